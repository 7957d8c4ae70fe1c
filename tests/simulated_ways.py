"""mpress.p2p.ways on simulated GPUs: python simulated_ways.py PLAN.json OUT.json."""

from simulated_buffers import SimulatedBuffer

from mpress.p2p import memory, ways

ways.main(
    {
        "host": lambda _, nbytes: memory.HostBuffer(nbytes),
        "device": SimulatedBuffer,
        "pool": lambda device, nbytes: SimulatedBuffer(device, nbytes, of_pool=True),
    },
    ways.MPI.COMM_WORLD.rank % 2,
)
