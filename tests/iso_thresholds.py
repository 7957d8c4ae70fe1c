"""Blocks that one of their two ends takes for short: a process with a long block to another looks
for what may be encoded, and one with none but short ones does not have to."""

import sys

import numpy as np
from mpi4py import MPI

from mpress import iso

world = MPI.COMM_WORLD
ring = world.Create_cart((world.size,), (True,))
near = iso.Neighborhood(ring, [[1], [-1]])
kind = sys.argv[1]
if kind != "learned":
    own = "1G" if kind == "differing hints" and ring.rank == 1 else "1024"
    hints = MPI.Info.Create({"mpress_threshold": own})
    near.comm.Set_info(hints)
    hints.Free()


def items(a: int, b: int, short: int) -> int:
    return 20000 if {a, b} == {0, 1} else short


def block(origin: int, index: int, count: int, round: int) -> np.ndarray:
    return np.full(count, 1000.0 * origin + 10 * index + round)


def with_gaps(blocks: list[np.ndarray]) -> list[np.ndarray]:
    strided = [np.zeros((one.size, 2))[:, 0] for one in blocks]
    for to, one in zip(strided, blocks, strict=True):
        to[:] = one
    return strided


targets = [(ring.rank + 1) % ring.size, (ring.rank - 1) % ring.size]
sources = targets[::-1]
for round in range(24):
    short = 2000 if round % 2 == 0 else 400
    sent = [block(ring.rank, i, items(ring.rank, to, short), round) for i, to in enumerate(targets)]
    received = [np.zeros(items(of, ring.rank, short)) for of in sources]
    if round % 3 == 1:
        sent, received = with_gaps(sent), with_gaps(received)
    near.alltoallw(sent, received)
    for i, of in enumerate(sources):
        assert (received[i] == block(of, i, received[i].size, round)).all()
if ring.rank == 0:
    print("ok")
