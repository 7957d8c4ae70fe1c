"""The worker of mpress.p2p on simulated GPUs: python simulated_messages.py PLAN.json OUT.json."""

from simulated_buffers import SimulatedBuffer

from mpress.p2p import worker

worker.main(lambda nbytes: SimulatedBuffer(worker.MPI.COMM_WORLD.rank % 2, nbytes))
