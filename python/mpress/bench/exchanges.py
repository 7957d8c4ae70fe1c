"""The methods that are compared: a neighbourhood's exchange by mpress, and by MPI's own calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _api
from mpress.bench import loops
from mpress.bench.names import OF_MPI, PERSISTENT, REFERENCE, algorithm_of


@dataclass
class Neighbours:
    """The lists of this rank: all offsets, and the ranks they lead to, MPI_PROC_NULL among them."""

    cart: MPI.Cartcomm
    offsets: np.ndarray
    sources: np.ndarray = field(init=False)
    targets: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.sources, self.targets = (np.empty(len(self.offsets), np.int32) for _ in range(2))
        for i in range(len(self.offsets)):
            loops.call(
                "mpress_cart_relative_shift", MPI._handleof(self.cart),
                self.offsets[i].ctypes.data,
                self.sources[i:].ctypes.data, self.targets[i:].ctypes.data,
            )  # fmt: skip

    def existing_sources(self) -> np.ndarray:
        """Their places in the list."""
        return np.flatnonzero(self.sources != MPI.PROC_NULL)

    def existing_targets(self) -> np.ndarray:
        return np.flatnonzero(self.targets != MPI.PROC_NULL)


@dataclass
class Side:
    """A block for each offset, in one array."""

    array: np.ndarray
    places: np.ndarray
    """In bytes."""
    counts: np.ndarray
    datatypes: Sequence[MPI.Datatype]


@dataclass
class Method:
    name: str
    spec: str | None
    exchange: loops.Exchange
    outcome: _api.COutcome
    kept: list[Any]
    """What the exchange has addresses of."""

    @property
    def is_mpress(self) -> bool:
        return self.name not in OF_MPI


class Communicators:
    """Those of all methods, made once."""

    def __init__(self, near: Neighbours) -> None:
        self.near = near
        self._made: dict[str, MPI.Comm] = {}

    def of(self, method: str) -> MPI.Comm:
        name = REFERENCE if method.startswith(REFERENCE) else algorithm_of(method)
        if name in ("cart", "alltoallv"):
            return self.near.cart
        if name not in self._made:
            self._made[name] = self._graph() if name == REFERENCE else self._iso(name)
        return self._made[name]

    def _graph(self) -> MPI.Comm:
        near = self.near
        sources = near.sources[near.existing_sources()]
        targets = near.targets[near.existing_targets()]
        # Not of the grid, whose ranks are the same: Open MPI 5.0 takes such a graph for the grid.
        return MPI.COMM_WORLD.Create_dist_graph_adjacent(sources, targets)

    def _iso(self, algorithm: str) -> MPI.Comm:
        made, offsets = MPI.Cartcomm(), self.near.offsets
        info = hints(algorithm)
        loops.call(
            "mpress_iso_neighborhood_create_with_info", MPI._handleof(self.near.cart),
            len(offsets), offsets.ctypes.data, MPI._handleof(info), MPI._addressof(made),
        )  # fmt: skip
        info.Free()
        return made


def hints(algorithm: str) -> MPI.Info:
    """All processes have blocks of equal lengths, so any algorithm can serve them."""
    return info_of({"iso_algorithm": algorithm, "iso_uniform_sizes": "true"})


def info_of(keys: dict[str, str]) -> MPI.Info:
    info = MPI.Info.Create()
    for name, value in keys.items():
        info.Set(name, value)
    return info


def method_of(
    name: str, spec: str | None, comms: Communicators, sent: Side, received: Side
) -> Method:
    """A method with its arguments. Where `spec` is None, mpress is asked for none."""
    near, comm = comms.near, comms.of(name)
    exchange, outcome = loops.Exchange(), _api.COutcome(0, 0.0)
    exchange.comm = MPI._addressof(comm)
    kept: list[Any] = [comm, sent, received]
    made = Method(name, spec, exchange, outcome, kept)
    if made.is_mpress:
        exchange.kind = loops.EXCHANGES.index("iso")
        every = np.arange(len(near.offsets))
        _fill(exchange.sent, sent, every, np.int64, kept)
        _fill(exchange.received, received, every, np.int64, kept)
        if spec is not None:
            asks = _api.call_of(spec, outcome, None, False)
            kept.append(asks)
            exchange.call = ctypes.addressof(asks)
        if name.startswith(PERSISTENT):
            _make_persistent(exchange, comm, kept)
    elif name == "alltoallv":
        exchange.kind = loops.EXCHANGES.index("global")
        _fill_global(exchange.sent, sent, near.targets, comm.size, kept)
        _fill_global(exchange.received, received, near.sources, comm.size, kept)
    else:
        exchange.kind = loops.EXCHANGES.index("neighbours")
        targets, sources = near.existing_targets(), near.existing_sources()
        if name == "cart":
            targets, sources = cartesian_order(near.offsets)
        _fill(exchange.sent, sent, targets, np.int32, kept)
        _fill(exchange.received, received, sources, np.int32, kept)
    return made


def _fill(blocks: loops.Blocks, side: Side, which: np.ndarray, dtype: Any, kept: list) -> None:
    counts = np.ascontiguousarray(side.counts[which], dtype)
    places = np.ascontiguousarray(side.places[which], np.int64)
    types = loops.handles([side.datatypes[i] for i in which])
    kept += [counts, places, types]
    blocks.buffer = side.array.ctypes.data
    blocks.counts, blocks.displacements = counts.ctypes.data, places.ctypes.data
    blocks.types = ctypes.addressof(types)


def _fill_global(
    blocks: loops.Blocks, side: Side, ranks: np.ndarray, size: int, kept: list
) -> None:
    """As many elements for a rank as the list has for it, by their ranks: all blocks are alike."""
    numbers = np.bincount(ranks[ranks != MPI.PROC_NULL], minlength=size)
    length = int(side.counts[0]) if len(side.counts) else 0
    if int(numbers.sum()) * length > np.iinfo(np.int32).max:
        raise RuntimeError("alltoallv: its displacements, of type int, cannot tell so many bytes")
    counts = np.ascontiguousarray(numbers * length, np.int32)
    places = np.ascontiguousarray(np.cumsum(counts) - counts, np.int32)
    types = loops.handles([side.datatypes[0] if side.datatypes else MPI.BYTE])
    kept += [counts, places, types]
    blocks.buffer = side.array.ctypes.data
    blocks.counts, blocks.displacements = counts.ctypes.data, places.ctypes.data
    blocks.types = ctypes.addressof(types)


def cartesian_order(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which blocks of a list MPI sends and receives on a Cartesian communicator, in its order: at
    -1 and +1 in each dimension. What comes from -1 is what the list has for +1."""
    where = {tuple(map(int, offset)): i for i, offset in enumerate(offsets)}
    sent, received = [], []
    for j in range(offsets.shape[1]):
        for step in (-1, 1):
            offset = [0] * offsets.shape[1]
            offset[j] = step
            sent.append(where[tuple(offset)])
            offset[j] = -step
            received.append(where[tuple(offset)])
    return np.array(sent, np.int64), np.array(received, np.int64)


def _make_persistent(exchange: loops.Exchange, comm: MPI.Comm, kept: list[Any]) -> None:
    request = ctypes.c_void_p()
    kept.append(request)
    exchange.kind = loops.EXCHANGES.index("started")
    exchange.request = ctypes.addressof(request)
    sides = (
        word or 0
        for side in (exchange.sent, exchange.received)
        for word in (side.buffer, side.counts, side.displacements, side.types)
    )
    loops.call(
        "mpress_iso_neighbor_alltoallw_init", *sides, MPI._handleof(comm),
        MPI._handleof(MPI.INFO_NULL), ctypes.addressof(request), exchange.call or 0,
    )  # fmt: skip


def free(method: Method) -> None:
    if method.exchange.request:
        loops.call("mpress_request_free", method.exchange.request)
