"""HaloExchange: the halos of fields on a grid that is cut into blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress._codec import Codec
from mpress.comm import Outcome
from mpress.iso._arguments import Arguments
from mpress.iso.lists import moore, von_neumann
from mpress.iso.neighborhood import Neighborhood
from mpress.iso.requests import Request

_MOST_KNOWN = 64


def _read(
    cart: MPI.Cartcomm,
    shape: Sequence[int],
    depth: int | Sequence[int],
    periodic: Sequence[bool] | bool | None,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape and the depth in each dimension of the grid."""
    dims = cart.ndim
    cells = tuple(map(int, shape))
    if len(cells) < dims:
        raise ValueError(f"shape: expected {dims} dimensions or more, not {cells}")
    deep = (depth,) * dims if isinstance(depth, (int, np.integer)) else tuple(depth)
    if len(deep) != dims or min(deep, default=0) < 0:
        raise ValueError(f"depth: expected a number of cells, or {dims}, not {depth!r}")
    for halo, most in zip(deep, cells, strict=False):
        if halo > most:
            raise ValueError(f"depth: {halo} cells are more than the block's {most}")
    if periodic is not None:
        wanted = (periodic,) * dims if isinstance(periodic, bool) else tuple(periodic)
        if tuple(map(bool, wanted)) != tuple(map(bool, cart.periods)):
            raise ValueError(f"periodic: the grid is {cart.periods}, not {wanted}")
    return cells, tuple(map(int, deep))


def _agree(
    cart: MPI.Cartcomm,
    read: tuple[tuple[int, ...], tuple[int, ...]] | None,
    error: Exception | None,
) -> bool:
    """Raises on all processes where one of them has an error, or where depths differ. Have all
    blocks the same shape?"""
    everybody = cart.allgather(read)
    if error is not None:
        raise error
    if None in everybody:
        raise ValueError("the shape or depth of another process is wrong")
    if len({(len(shape), depth) for shape, depth in everybody}) > 1:
        raise ValueError("processes have shapes of different dimensions, or different depths")
    return len({shape for shape, _ in everybody}) == 1


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
        read, error = None, None
        try:
            read = _read(cart, shape, depth, periodic)
        except (TypeError, ValueError) as found:
            error = found
        # Processes with blocks of their own size may be wrong alone, and the others would wait.
        is_uniform = _agree(cart, read, error)
        assert read is not None
        self.shape, self.depth = read
        dims = cart.ndim
        offsets = moore(dims, 1) if corners else von_neumann(dims, 1)
        deep = [
            all(d > 0 or c == 0 for d, c in zip(self.depth, one, strict=True)) for one in offsets
        ]
        offsets = offsets[deep] if len(offsets) else offsets
        self.neighborhood = Neighborhood(cart, offsets, codec, uniform_sizes=is_uniform)
        self._sent = [self._region(one, is_sent=True) for one in offsets]
        self._received = [self._region(one, is_sent=False) for one in offsets]
        self._requests: list[Request] = []
        self._known: dict[Any, Arguments] = {}

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
            self.neighborhood._block("alltoallw", self._arguments(field), None)

    def start(self, *fields: Any) -> None:
        """Begins that: until finish() the cells that are sent must not change, nor the halos be
        used."""
        self._check(fields)
        for field in fields:
            arguments = self._arguments(field)
            self._requests.append(self.neighborhood._begin("alltoallw", arguments, None))

    def _arguments(self, field: Any) -> Arguments:
        """What the exchange of a field takes: that of memory of the host is known from the second
        time on, as to find it takes longer than short exchanges do."""
        if not isinstance(field, np.ndarray):
            return self._found(field)
        key = (field.__array_interface__["data"], field.strides, field.dtype.str)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._found(field)._replace(blocks=())
        return known._replace(kept=(field, known.kept))

    def _found(self, field: Any) -> Arguments:
        return self.neighborhood._read.alltoallw(
            [field[cells] for cells in self._sent], [field[cells] for cells in self._received]
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
