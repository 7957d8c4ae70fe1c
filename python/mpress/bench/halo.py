"""The regions of an array that a stencil's halo exchange sends and receives."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

from mpress.bench.loops import call
from mpress.bench.names import STENCILS


def offsets(points: int, depth: int) -> np.ndarray:
    """The neighbours whose cells `depth` steps of a stencil look at."""
    from mpress import iso  # which needs an MPI

    is_star = points in (5, 7) and depth == 1
    return (iso.von_neumann if is_star else iso.moore)(STENCILS[points], 1)


@dataclass
class Region:
    """What one neighbour gets, and the same cells of the halo that this rank gets from the
    neighbour's opposite: runs of cells from a first one on, in a row-major array of doubles."""

    sent: int
    """The first cell, counted in the array."""
    received: int
    runs: list[tuple[int, int]]
    """Distance from the first cell, and number of cells."""
    datatype: MPI.Datatype

    @property
    def cells(self) -> int:
        return sum(length for _, length in self.runs)

    def picked(self, array: np.ndarray, first: int) -> np.ndarray:
        """The cells, from a first one on."""
        flat = array.reshape(-1)
        return np.concatenate(
            [flat[first + at : first + at + length] for at, length in self.runs] or [flat[:0]]
        )


def region(offset: np.ndarray, extent: int, depth: int, points: int) -> Region:
    """That of blocks of `extent` cells in each dimension with a halo of `depth` cells."""
    dims = len(offset)
    wide = extent + 2 * depth
    strides = [wide ** (dims - 1 - j) for j in range(dims)]
    shift = sum(int(c) * extent * stride for c, stride in zip(offset, strides, strict=True))
    if points == 5 and depth > 1 and np.count_nonzero(offset) == 2:
        first, runs, datatype = _triangle(offset, extent, depth)
        return Region(first + shift, first, runs, datatype)
    sizes = [extent if c == 0 else depth for c in offset]
    starts = [{0: depth, 1: 0, -1: extent + depth}[int(c)] for c in offset]
    first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
    rows = itertools.product(*(range(size) for size in sizes[:-1]))
    runs = [
        (sum(at * stride for at, stride in zip(row, strides[:-1], strict=True)), sizes[-1])
        for row in rows
    ]
    datatype = MPI.DOUBLE.Create_subarray([wide] * dims, sizes, [0] * dims).Commit()
    return Region(first + shift, first, runs, datatype)


def _triangle(
    offset: np.ndarray, extent: int, depth: int
) -> tuple[int, list[tuple[int, int]], MPI.Datatype]:
    """Of a corner the cells that are at most `depth` steps away along the dimensions: the first of
    the halo, runs, and a type of mpress_type_create_triangular()."""
    wide, side = extent + 2 * depth, depth - 1
    # Block i of `count` has first + i * increment cells, and begins i * stride behind the first.
    row, column, first, increment, stride = {
        (1, 1): (1, depth - 1, 1, 1, wide - 1),
        (1, -1): (1, extent + depth, 1, 1, wide),
        (-1, 1): (extent + depth, 1, side, -1, wide + 1),
        (-1, -1): (extent + depth, extent + depth, side, -1, wide),
    }[int(offset[0]), int(offset[1])]
    datatype = MPI.Datatype()
    words = (side, first, increment, stride, 0, MPI._handleof(MPI.DOUBLE), MPI._addressof(datatype))
    call("mpress_type_create_triangular", *words)
    runs = [(i * stride, first + i * increment) for i in range(side)]
    return row * wide + column, runs, datatype.Commit()
