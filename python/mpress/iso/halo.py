"""HaloExchange: the halos of fields on a grid that is cut into blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress._codec import Codec
from mpress.comm import Outcome
from mpress.iso.lists import moore, von_neumann
from mpress.iso.neighborhood import Neighborhood
from mpress.iso.requests import Request


def _what_is_wrong(
    cart: MPI.Cartcomm,
    shape: tuple[int, ...],
    depth: tuple[int, ...],
    periodic: Sequence[bool] | bool | None,
) -> str | None:
    dims = cart.ndim
    if len(shape) < dims:
        return f"shape: expected {dims} dimensions or more, not {shape}"
    if len(depth) != dims or min(depth, default=0) < 0:
        return f"depth: expected a number of cells, or {dims}, not {depth}"
    for cells, most in zip(depth, shape, strict=False):
        if cells > most:
            return f"depth: {cells} cells are more than the block's {most}"
    if periodic is not None:
        wanted = (periodic,) * dims if isinstance(periodic, bool) else tuple(periodic)
        if tuple(map(bool, wanted)) != tuple(map(bool, cart.periods)):
            return f"periodic: the grid is {cart.periods}, not {wanted}"
    return None


class HaloExchange:
    """The halos of fields on a grid that is cut into blocks of equal dimensions.

    Collective. `cart`: the processes' grid. `shape`: of this process's block, without halos;
    `depth` cells of halo lie around it, a number or one for each dimension, so fields are arrays of
    shape + 2 * depth. Dimensions beyond those of the grid are not cut (a vector's components, say).
    `corners`: with those of the halo, as stencils need that look at diagonal cells, and several
    steps at once. `periodic`: None, or what `cart` has to be in each dimension. `codec`: as of
    Neighborhood. Raises ValueError, on all processes, where the shape of one is smaller than the
    depth, or does not fit.
    """

    def __init__(
        self,
        cart: MPI.Cartcomm,
        shape: Sequence[int],
        depth: int | Sequence[int],
        corners: bool = True,
        periodic: Sequence[bool] | bool | None = None,
        codec: str | Codec | None = None,
    ) -> None:
        if not isinstance(cart, MPI.Cartcomm):
            raise TypeError(f"cart: expected a Cartcomm of mpi4py's, not {type(cart).__name__}")
        dims = cart.ndim
        self.shape = tuple(map(int, shape))
        depths = (depth,) * dims if isinstance(depth, (int, np.integer)) else tuple(depth)
        self.depth = tuple(map(int, depths))
        wrong = _what_is_wrong(cart, self.shape, self.depth, periodic)
        # Processes with blocks of their own size may be wrong alone, and the others would wait.
        if cart.allreduce(wrong is not None, MPI.LOR):
            raise ValueError(wrong or "the shape or depth of another process is wrong")
        offsets = moore(dims, 1) if corners else von_neumann(dims, 1)
        deep = [
            all(d > 0 or c == 0 for d, c in zip(self.depth, one, strict=True)) for one in offsets
        ]
        offsets = offsets[deep] if len(offsets) else offsets
        like = np.array([*self.shape, *(-n for n in self.shape)], np.int64)
        most = np.empty_like(like)
        cart.Allreduce(like, most, MPI.MAX)
        is_uniform = bool(
            (most == like).all() and (most[: len(self.shape)] == -most[len(self.shape) :]).all()
        )
        is_uniform = cart.allreduce(is_uniform, MPI.LAND)
        self.neighborhood = Neighborhood(cart, offsets, codec, uniform_sizes=is_uniform)
        self._sent = [self._region(one, is_sent=True) for one in offsets]
        self._received = [self._region(one, is_sent=False) for one in offsets]
        self._requests: list[Request] = []

    def _region(self, offset: np.ndarray, is_sent: bool) -> tuple[slice, ...]:
        """The cells that go to the target at `offset`, or come from the source at -offset."""
        slices = []
        for c, n, d in zip(offset, self.shape, self.depth, strict=False):
            if c == 0:
                slices.append(slice(d, d + n))
            elif is_sent:
                slices.append(slice(n, n + d) if c > 0 else slice(d, 2 * d))
            else:
                slices.append(slice(0, d) if c > 0 else slice(n + d, n + 2 * d))
        return tuple(slices)

    def __call__(self, *fields: Any) -> None:
        """Fills the fields' halos from the neighbours' cells; beyond borders they stay."""
        self._check(fields)
        for field in fields:
            self.neighborhood.alltoallw(
                [field[cells] for cells in self._sent],
                [field[cells] for cells in self._received],
            )

    def start(self, *fields: Any) -> None:
        """Begins that: until finish() the cells that are sent must not change, nor the halos be
        used."""
        self._check(fields)
        for field in fields:
            self._requests.append(
                self.neighborhood.ialltoallw(
                    [field[cells] for cells in self._sent],
                    [field[cells] for cells in self._received],
                )
            )

    def _check(self, fields: Sequence[Any]) -> None:
        if self._requests:
            raise RuntimeError("the last exchange was not finished: finish() comes before start()")
        wide = tuple(
            n + 2 * d for n, d in itertools.zip_longest(self.shape, self.depth, fillvalue=0)
        )
        for number, field in enumerate(fields):
            if tuple(field.shape) != wide:
                raise ValueError(f"field {number}: expected an array of {wide}, not {field.shape}")

    def finish(self) -> list[Outcome]:
        """Returns when all halos are there: what became of each field's exchange."""
        requests, self._requests = self._requests, []
        return [one.wait() for one in requests]

    def free(self) -> None:
        """Collective, as MPI_Comm_free."""
        self.neighborhood.free()
