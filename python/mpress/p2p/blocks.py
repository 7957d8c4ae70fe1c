"""Which blocks the ranks of a collective call have for one another, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DIFFERENT = ("alltoall", "alltoallv", "scatter")
"""Operations whose ranks have another block for each rank; of others all get the same."""

_PLANES = 2  # of the grid of `alltoallv`, whole ones of each rank


@dataclass(frozen=True)
class Place:
    """Where a block lies in a buffer, in elements."""

    first: int
    count: int


Places = dict[int, Place]
"""By the other rank."""


def counts(op: str, ranks: int, count: int) -> np.ndarray:
    """Elements of the block from each rank (rows) to each; `count` is the mean.

    Blocks of `alltoallv` are those of a transposition in a 3-D FFT whose grid the ranks do not
    divide: half of the ranks (rounded up) have three planes of it where the others have two, before
    and after, and a block is as many lines as its source has planes times its target's.
    """
    if op != "alltoallv":
        return np.full((ranks, ranks), count, np.int64)
    planes = _PLANES * ranks + (ranks + 1) // 2
    own = [planes // ranks + (rank < planes % ranks) for rank in range(ranks)]
    ends = np.cumsum(np.outer(own, own)) * (count * ranks**2) // planes**2
    return np.diff(ends, prepend=0).reshape(ranks, ranks)


def of_rank(op: str, rank: int, counts: np.ndarray) -> tuple[Places, Places]:
    """Blocks that a rank has for others, and of others, itself among them: in its sending, and in
    its receiving buffer. The root of a broadcast receives nothing."""
    ranks = len(counts)
    if op in ("alltoall", "alltoallv"):
        return _in_a_row(counts[rank]), _in_a_row(counts[:, rank])
    every = _in_a_row(counts[0])
    one = Place(0, int(counts[0, 0]))
    if op == "allgather":
        return dict.fromkeys(range(ranks), one), every
    if op == "gather":
        return {0: one}, every if rank == 0 else {}
    if op == "scatter":
        return every if rank == 0 else {}, {0: one}
    return (dict.fromkeys(range(1, ranks), one), {}) if rank == 0 else ({}, {0: one})


def span(places: Places) -> int:
    """Elements from the beginning of a buffer to the end of the last block."""
    return max((place.first + place.count for place in places.values()), default=0)


def room(op: str, role: str, ranks: int, nbytes: int) -> int:
    """Bytes that no rank's `send` or `receive` buffer exceeds, for blocks of `nbytes`."""
    each = counts(op, ranks, nbytes)
    places = (of_rank(op, rank, each)[role == "receive"] for rank in range(ranks))
    slack = 0 if op != "alltoallv" else 16  # its counts are of whole elements
    return max(span(one) for one in places) + slack


def _in_a_row(counts: np.ndarray) -> Places:
    firsts = np.cumsum(counts) - counts
    both = zip(firsts, counts, strict=True)
    return {rank: Place(int(first), int(count)) for rank, (first, count) in enumerate(both)}
