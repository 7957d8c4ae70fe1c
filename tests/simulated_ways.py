"""mpress.p2p.ways on simulated GPUs: python simulated_ways.py PLAN.json OUT.json."""

from simulated_buffers import SimulatedBuffer

from mpress.p2p import memory, ways

ways._SAMPLE_SECONDS = 0.001  # the ways are looked at, not the times
ways.main(
    {
        "host": lambda _, nbytes: memory.HostBuffer(nbytes),
        "device": SimulatedBuffer,
        "pool": lambda device, nbytes: SimulatedBuffer(device, nbytes, of_pool=True),
    },
    ways.MPI.COMM_WORLD.rank % 2,
)
