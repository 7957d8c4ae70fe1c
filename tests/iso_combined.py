"""Long blocks that are combined: each is a frame of its origin's until it is where it belongs."""

import sys
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import iso

ITEMS = 20000
BOUND = 1e-3


def block(origin: int, index: int) -> np.ndarray:
    return np.sin(np.arange(ITEMS) * 1e-3 + index) + origin


def check(sources: Any, received: np.ndarray, index: Any) -> None:
    for i, source in enumerate(sources):
        if source < 0:
            assert (received[i] == -7).all()
        else:
            # A bound of its own at each hop would add up to more.
            error = abs(received[i] - block(source, index(i))).max()
            assert 0 < error <= BOUND * (1 + 1e-12)


def main() -> None:
    world = MPI.COMM_WORLD
    cart = world.Create_cart(MPI.Compute_dims(world.size, 3), (True, True, False))
    near = iso.Neighborhood(cart, iso.moore(3, 1), algorithm=sys.argv[1])
    sent = np.array([block(cart.rank, i) for i in range(26)])
    received = np.full_like(sent, -7)
    for _ in range(2):
        request = near.ialltoall(sent, received, codec=f"szp:abs={BOUND}")
        outcome = request.wait()
        check(near.sources, received, lambda i: i)
        assert outcome.bound <= BOUND * (1 + 1e-12)
    received[:] = -7
    near.allgather(sent[3], received, codec=f"szp:abs={BOUND}")
    check(near.sources, received, lambda i: 3)
    if cart.rank == 0:
        print("ok")


main()
