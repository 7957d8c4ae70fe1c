"""The regions of an array that a stencil's halo exchange sends and receives. Knows no MPI."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass
class Region:
    """What one neighbour gets, and the same cells of the halo, which this rank gets from the
    neighbour at the negative offset: runs of cells from a first one on, in a row-major array."""

    sent: int
    """The first cell, counted in the array."""
    received: int
    runs: list[tuple[int, int]]
    """Distance from the first cell, and number of cells."""
    box: list[int] | None
    """Its cells in each dimension; None of a triangle."""
    triangle: tuple[int, int, int, int, int] | None = None
    """Arguments of mpress_type_create_triangular()."""

    @property
    def cells(self) -> int:
        return sum(length for _, length in self.runs)

    def indices(self, first: int) -> np.ndarray:
        """Of all cells, from a first one on."""
        found = [np.arange(first + at, first + at + length) for at, length in self.runs]
        return np.concatenate(found) if found else np.empty(0, np.int64)


def region(offset: Sequence[int], extent: int, depth: int, points: int) -> Region:
    """That of blocks of `extent` cells in each dimension with a halo of `depth` cells."""
    dims = len(offset)
    wide = extent + 2 * depth
    strides = [wide ** (dims - 1 - j) for j in range(dims)]
    shift = sum(int(c) * extent * stride for c, stride in zip(offset, strides, strict=True))
    if points == 5 and depth > 1 and np.count_nonzero(offset) == 2:
        first, triangle = _corner(int(offset[0]), int(offset[1]), extent, depth)
        count, length, increment, stride, _ = triangle
        runs = [(i * stride, length + i * increment) for i in range(count)]
        return Region(first + shift, first, runs, None, triangle)
    sizes = [extent if c == 0 else depth for c in offset]
    starts = [{0: depth, 1: 0, -1: extent + depth}[int(c)] for c in offset]
    first = sum(start * stride for start, stride in zip(starts, strides, strict=True))
    rows = itertools.product(*(range(size) for size in sizes[:-1]))
    runs = [
        (sum(at * stride for at, stride in zip(row, strides[:-1], strict=True)), sizes[-1])
        for row in rows
    ]
    return Region(first + shift, first, runs, sizes)


def _corner(
    row_step: int, column_step: int, extent: int, depth: int
) -> tuple[int, tuple[int, int, int, int, int]]:
    """Of a corner of the halo the cells that are at most `depth` steps away along the dimensions:
    the first, and their triangle."""
    wide, side = extent + 2 * depth, depth - 1
    row, column, length, increment, stride = {
        (1, 1): (1, depth - 1, 1, 1, wide - 1),
        (1, -1): (1, extent + depth, 1, 1, wide),
        (-1, 1): (extent + depth, 1, side, -1, wide + 1),
        (-1, -1): (extent + depth, extent + depth, side, -1, wide),
    }[row_step, column_step]
    return row * wide + column, (side, length, increment, stride, 0)
