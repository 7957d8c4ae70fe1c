"""Halo exchanges, and the stencils between them: `mpress bench iso stencil`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import fields, iso
from mpress.bench import creation, exchanges, halo, loops, names
from mpress.bench.exchanges import Communicators, Method, Neighbours, Side, method_of
from mpress.bench.session import Row, Session

_DOUBLE = 8
_LEAST, _MOST = 8, {2: 512, 3: 128}  # cells of a field that is made
_STRIDE = 977  # cells between the beginnings of two ranks' fields


def run(plan: dict[str, Any], keep: Callable[[list[Row]], None]) -> None:
    """Gives `keep` a row for each method."""
    keep(_Stencil(plan).rows())


def _smooth(name: str, extent: int, dims: int) -> np.ndarray:
    """A field of `extent` cells in each dimension, the same again and again where that is long."""
    edge = min(max(extent, _LEAST), _MOST[dims])
    made = fields.make(name, (_LEAST if dims == 2 else edge, edge, edge), "f64")
    made = made[_LEAST // 2] if dims == 2 else made
    times = -(-extent // edge)
    return np.tile(made, (times,) * dims)[(slice(extent),) * dims].reshape(-1)


def _offsets(points: int, depth: int) -> np.ndarray:
    """The neighbours whose cells `depth` steps of a stencil look at."""
    is_star = points in (5, 7) and depth == 1
    return (iso.von_neumann if is_star else iso.moore)(names.STENCILS[points], 1)


class _Stencil:
    """A rank's block of `extent` cells in each dimension, with a halo of `depth` cells."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan, self.points = plan, plan["points"]
        self.extent, self.depth = plan["extent"], plan["depth"]
        self.dims = names.STENCILS[self.points]
        self.session = Session(plan, self.dims)
        offsets = np.ascontiguousarray(_offsets(self.points, self.depth), np.int32)
        self.near = Neighbours(self.session.cart, offsets)
        self.comms = Communicators(self.near)
        is_first = MPI.COMM_WORLD.rank == 0
        values = _smooth(plan["field"], self.extent, self.dims) if is_first else None
        self.values: np.ndarray = MPI.COMM_WORLD.bcast(values)
        self._results: list[np.ndarray] = []
        self.field = np.zeros((self.extent + 2 * self.depth,) * self.dims)
        self.fill()
        self.regions = [halo.region(one, self.extent, self.depth, self.points) for one in offsets]

    def fill(self, rank: int | None = None) -> np.ndarray:
        """The field of a rank, of this one by default, whose halo holds NaN."""
        is_own = rank is None
        field = self.field if is_own else np.empty_like(self.field)
        field[...] = math.nan
        inner = (slice(self.depth, self.depth + self.extent),) * self.dims
        rank = self.session.rank if rank is None else rank
        field[inner] = np.roll(self.values, rank * _STRIDE).reshape((self.extent,) * self.dims)
        return field

    def methods(self) -> list[Method]:
        ones = np.ones(len(self.regions), np.int64)
        types = [self.datatype(one) for one in self.regions]
        places = (np.array([first * _DOUBLE for first in firsts], np.int64) for firsts in (
            [one.sent for one in self.regions], [one.received for one in self.regions],
        ))  # fmt: skip
        sent, received = (Side(self.field, one, ones, types) for one in places)
        return [method_of(one["name"], one["spec"], self.comms, sent, received)
                for one in self.plan["methods"]]  # fmt: skip

    def datatype(self, region: halo.Region) -> MPI.Datatype:
        """That of a region's cells, from its first one on."""
        if region.box is not None:
            made = MPI.DOUBLE.Create_subarray(self.field.shape, region.box, [0] * self.dims)
            return made.Commit()
        made = MPI.Datatype()
        assert region.triangle is not None
        words = (*region.triangle, MPI._handleof(MPI.DOUBLE), MPI._addressof(made))
        loops.call("mpress_type_create_triangular", *words)
        return made.Commit()

    def rows(self) -> list[Row]:
        nbytes = self.halo_bytes()
        found = self.session.compared(
            self.near, self.methods(), self.check, self.operation, lambda _: nbytes
        )
        return [{"bytes": nbytes, **row} for row in found]

    def halo_bytes(self) -> int:
        """What the rank that has most sends to others."""
        others = (MPI.PROC_NULL, self.session.rank)
        pairs = zip(self.regions, self.near.targets, strict=True)
        cells = sum(region.cells for region, target in pairs if target not in others)
        return int(self.session.most([cells * _DOUBLE])[0])

    def operation(self, method: Method) -> loops.Operation:
        """What is timed: with the neighbourhood's creation, and the kernel, as the plan says."""
        np.nan_to_num(self.fill(), copy=False)
        made, kept = loops.exchanging(method.exchange), method.kept
        if self.plan["setup"]:
            is_graph = method.name.startswith(names.REFERENCE)
            name = "graph-adjacent" if is_graph else "iso"
            info = exchanges.hints(names.algorithm_of(method.name))
            struct, needs = creation.creating(name, self.near, info)
            kept += [struct, needs]
            made.creation = ctypes.pointer(struct)
        if self.plan["update"]:
            made.update = ctypes.pointer(self._update(kept))
        return made

    def _update(self, kept: list[Any]) -> loops.Update:
        # All methods compute the same, and share where the results are.
        if not self._results:
            self._results = [np.zeros_like(self.field) for _ in range(2)]
        what = loops.Update()
        what.dimensions, what.points, what.depth = self.dims, self.points, self.depth
        what.extent[: self.dims] = self.field.shape
        what.field = self.field.ctypes.data
        what.results[:] = [one.ctypes.data for one in self._results]
        kept.append(what)
        return what

    def check(self, method: Method, operation: loops.Operation) -> Row:
        """The halo that one exchange brings. Raises RuntimeError where mpress brings another."""
        self.fill()
        loops.measure([operation], np.zeros(1), self.session.together)
        error, is_same = 0.0, True
        others: dict[int, np.ndarray] = {}
        for source, region in zip(self.near.sources.tolist(), self.regions, strict=True):
            if source == MPI.PROC_NULL:
                continue
            if source not in others:
                others = {source: self.fill(source)}  # one at a time: fields are large
            expected = others[source].reshape(-1)[region.indices(region.sent)]
            came = self.field.reshape(-1)[region.indices(region.received)]
            if came.tobytes() != expected.tobytes():
                is_same = False
                error = max(
                    error, float(np.nan_to_num(np.abs(came - expected), nan=math.inf).max())
                )
        bound = method.outcome.bound
        is_kept = is_same or (
            method.spec is not None and error < math.inf and (math.isnan(bound) or error <= bound)
        )
        verdict = self.session.most([not is_kept, error])
        if verdict[0] and method.is_mpress:
            raise RuntimeError(f"{method.name}: a halo came wrong")
        return {"correct": not verdict[0], "max_error": float(verdict[1])}
