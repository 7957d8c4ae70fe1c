"""Exchanges of blocks of one size: `mpress bench iso communication`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress.bench import loops, shapes
from mpress.bench.exchanges import Communicators, Method, Neighbours, Side, method_of
from mpress.bench.session import Row, Session
from mpress.p2p import data

_SPAN = 4096  # more elements than a block has, so that blocks differ in where they begin
_STRIDES = (97, 31)


class Contents:
    """What blocks hold: pieces of one array that all ranks have."""

    def __init__(self, plan: dict[str, Any], most: int) -> None:
        self.dtype = {"bytes": np.uint8, "f32": np.float32, "f64": np.float64}[plan["type"]]
        count = most // np.dtype(self.dtype).itemsize + _SPAN
        values = None
        if MPI.COMM_WORLD.rank == 0:
            if plan["type"] == "bytes":
                values = np.random.default_rng(1).integers(0, 256, count, np.uint8)
            else:
                nbytes = count * np.dtype(self.dtype).itemsize
                values = data.make(plan["field"], max(nbytes, data.LEAST_BYTES), plan["type"])
        self.values: np.ndarray = MPI.COMM_WORLD.bcast(values)
        self.datatype = {"bytes": MPI.BYTE, "f32": MPI.FLOAT, "f64": MPI.DOUBLE}[plan["type"]]

    def block(self, rank: int, number: int, length: int) -> np.ndarray:
        room = self.values.size - length + 1
        first = (rank * _STRIDES[0] + number * _STRIDES[1]) % min(room, _SPAN)
        return self.values[first : first + length]


def run(plan: dict[str, Any], keep: Callable[[list[Row]], None]) -> None:
    """Gives `keep` the rows of the sizes that are done; in random order."""
    session = Session(plan, plan["dimensions"])
    near = Neighbours(session.cart, shapes.offsets(plan, plan["dimensions"], session.rank))
    comms = Communicators(near)
    contents = Contents(plan, max(plan["sizes"]))
    is_each = plan["order"] == "random-each"
    room = len(near.offsets) * max(plan["sizes"])
    arrays = [np.zeros(max(room, 1), np.uint8) for _ in range(2)]
    rows: list[Row] = []
    for nbytes in session.chance.permutation(plan["sizes"]).tolist():
        case = _Case(session, comms, contents, nbytes, arrays, is_each)
        rows += case.rows()
        keep(rows)


class _Case:
    """Blocks of one size."""

    def __init__(
        self,
        session: Session,
        comms: Communicators,
        contents: Contents,
        nbytes: int,
        arrays: list[np.ndarray],
        is_each: bool,
    ) -> None:
        self.session, self.near, self.contents, self.nbytes = session, comms.near, contents, nbytes
        self.is_each = is_each
        s = len(self.near.offsets)
        self.length = nbytes // np.dtype(contents.dtype).itemsize
        places = np.arange(s, dtype=np.int64) * nbytes
        counts = np.full(s, self.length, np.int64)
        used = [array[: s * nbytes] for array in arrays]
        sent, received = (Side(one, places, counts, [contents.datatype] * s) for one in used)
        self.sent, self.received = (one.view(contents.dtype).reshape(s, -1) for one in used)
        for i in range(s):
            self.sent[i] = contents.block(session.rank, self.number(i), self.length)
        self.methods = [
            method_of(one["name"], one["spec"], comms, sent, received)
            for one in session.plan["methods"]
        ]

    def number(self, i: int) -> int:
        """Where each rank has an order of its own, blocks tell their origin alone."""
        return 0 if self.is_each else i

    def rows(self) -> list[Row]:
        found = self.session.compared(
            self.near, self.methods, self.check, lambda one: loops.exchanging(one.exchange),
            lambda blocks: blocks * self.nbytes,
        )  # fmt: skip
        return [{"bytes": self.nbytes, **row} for row in found]

    def check(self, method: Method, operation: loops.Operation) -> Row:
        """What one exchange brings. Raises RuntimeError where mpress brings something else."""
        self.received.view(np.uint8)[:] = 0xFF
        loops.measure([operation], np.zeros(1), self.session.together)
        places, expected = self._expected(method.name)
        error, is_same = 0.0, True
        for place, block in zip(places, expected, strict=True):
            came = self.received[place]
            is_same = is_same and came.tobytes() == block.tobytes()
            if not is_same and self.contents.dtype != np.uint8:
                differences = np.abs(came.astype(np.float64) - block)
                error = max(error, float(differences.max(initial=0)))
        bound = method.outcome.bound
        is_kept = is_same or (method.spec is not None and (math.isnan(bound) or error <= bound))
        verdict = self.session.most([not is_kept, error])
        if verdict[0] and method.is_mpress:
            raise RuntimeError(f"{method.name}: blocks of {self.nbytes} bytes came wrong")
        return {"correct": not verdict[0], "max_error": float(verdict[1])}

    def _expected(self, name: str) -> tuple[list[int], list[np.ndarray]]:
        """The places of blocks that come, and what is there."""
        near, block = self.near, self.contents.block
        if name != "alltoallv":
            places = near.existing_sources().tolist()
            return places, [block(int(near.sources[i]), self.number(i), self.length)
                            for i in places]  # fmt: skip
        every = np.stack(near.cart.allgather(near.targets))
        found = []
        for source in range(near.cart.size):
            targets = every[source][every[source] != MPI.PROC_NULL]
            first = int((targets < near.cart.rank).sum())
            for place in range(first, first + int((targets == near.cart.rank).sum())):
                found.append(block(source, self.number(place), self.length))
        return list(range(len(found))), found
