"""Makes the calls of a case (tests/iso_cases.py), and says what is not as the ranks' coordinates
alone have it: what comes is a function of its origin, neighbour, call and start."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from iso_cases import SUMS, Call, Case
from iso_memory import ELEMENTS, LAYOUTS, ROOM, Memory, datatype, key_of, places, values
from mpi4py import MPI

from mpress import _api

MISSING = MPI.PROC_NULL
OTHER_INDEX = 99  # of data that is the same for all neighbours
GARBAGE_COUNT, GARBAGE_PLACE = -77, 1 << 40
EVEN = ("alltoall", "allgather", "reduce")


class CallError(Exception):
    """A function of mpress has returned an error."""


def invoke(name: str, *words: int) -> None:
    function = getattr(_api.library(), name)
    code = function(*(ctypes.c_void_p(word & 2**64 - 1) for word in words))
    if code != MPI.SUCCESS:
        raise CallError(f"{name}: {_api.error_text() or code}")


def own_op(dtype: str) -> MPI.Op:
    """A sum that MPI does not know, also of datatypes with gaps: of an item's one or two elements
    the first is where it begins, and the other at its end."""

    def sum_up(a: Any, b: Any, datatype: MPI.Datatype) -> None:
        size = np.dtype(dtype).itemsize
        step = datatype.Get_extent()[1] // size
        vectors = [np.frombuffer(memory, dtype).reshape(-1, step) for memory in (a, b)]
        for place in (0, step - 1)[: datatype.Get_size() // size]:
            with np.errstate(over="ignore"):
                vectors[1][:, place] += vectors[0][:, place]

    return MPI.Op.Create(sum_up, commute=True)


OWN_OPS = {dtype: own_op(dtype) for dtype in ELEMENTS}
OPS = {
    "sum": (MPI.SUM, np.add),
    "max": (MPI.MAX, np.maximum),
    "min": (MPI.MIN, np.minimum),
    "bxor": (MPI.BXOR, np.bitwise_xor),
    "own": (MPI.OP_NULL, np.add),
}


class Place:
    """Of this rank in a grid, and where offsets lead from it."""

    def __init__(self, case: Case, rank: int) -> None:
        self.case, self.rank = case, rank
        self.at = np.unravel_index(rank, case.sizes) if case.sizes else ()

    def neighbour(self, offset: Sequence[int], sign: int) -> int:
        to = []
        grid = zip(self.at, offset, self.case.sizes, self.case.periodic, strict=True)
        for at, step, size, is_periodic in grid:
            place = int(at) + sign * step
            if not is_periodic and not 0 <= place < size:
                return MISSING
            to.append(place % size)
        return int(np.ravel_multi_index(to, self.case.sizes)) if to else 0


class Side:
    """What is sent, or what is received: blocks in memory, and the arguments that tell of them."""

    def __init__(self, run: Running, is_received: bool, begin: int) -> None:
        call, case = run.call, run.case
        self.run, self.is_received, self.begin = run, is_received, begin
        self.partners = run.sources if is_received else run.targets
        self.is_one = run.is_gather and not is_received
        if call.name in SUMS and is_received:
            self.is_one = True
        number = 1 if self.is_one else len(self.partners)
        self.counts = np.zeros(max(number, 1), np.int64)
        self.displacements = np.zeros(max(number, 1), np.int64)
        self.kinds = [MPI.DATATYPE_NULL] * max(number, 1)
        self.blocks: list[tuple[int, int, np.ndarray]] = []  # neighbour, origin, bytes
        self.count = 0
        self.kind = datatype(self.layout(0), call.dtype)
        self.end = begin
        for i in range(number):
            self.add(i, case)
        if number == 0:
            self.count = self.length(0, run.rank) // len(LAYOUTS[self.layout(0)].places)

    def layout(self, i: int) -> str:
        layouts = self.run.call.layouts
        name, is_result = self.run.call.name, self.is_received
        if name == "reduce" or (name == "scatter_reduce" and is_result):
            # MPI's own operators take no other; the program's has no elements before its items.
            is_plain = self.run.call.op != "own" or layouts[0] == "backwards"
            return "plain" if is_plain else layouts[0]
        if self.run.call.overlaps and not self.is_received:
            i = 0  # what is sent twice is the same
        if self.run.call.name in ("alltoallw", "allgatherw", "scatter_reduce"):
            return layouts[(i + self.run.rank + self.is_received) % len(layouts)]
        return layouts[(self.run.rank + self.is_received) % len(layouts)]

    def length(self, i: int, origin: int) -> int:
        """In elements: a multiple of what each datatype's item has."""
        call = self.run.call
        if call.name in EVEN or call.name in SUMS:
            i = 0
        elif self.run.is_gather:
            i = 0 if self.run.case.is_uniform else origin
        elif not self.run.case.is_uniform:
            i += 3 * origin
        unit = max(len(LAYOUTS[one].places) for one in call.layouts)
        return unit * call.lengths[i % len(call.lengths)]

    def add(self, i: int, case: Case) -> None:
        call, run = self.run.call, self.run
        size = np.dtype(call.dtype).itemsize
        layout = self.layout(i)
        one = LAYOUTS[layout]
        is_missing = not self.is_one and self.partners[i] == MISSING
        origin = run.rank if self.is_one or not self.is_received else self.partners[i]
        is_even = call.name in EVEN or self.is_one
        length = self.length(i, run.rank if is_missing else origin)
        self.counts[i] = count = length // len(one.places)
        self.kinds[i] = datatype(layout, call.dtype)
        if i == 0:
            self.count = count
        if is_missing and not is_even:
            self.displacements[i] = GARBAGE_PLACE
            if not case.is_uniform or self.is_received or call.name == "scatter_reduce":
                self.counts[i] = GARBAGE_COUNT
                self.kinds[i] = MPI.DATATYPE_NULL
            return
        if is_even:
            at = self.begin + i * count * one.extent * size
        elif call.overlaps and not self.is_received:
            at = self.begin + 2 * one.extent * size
            self.displacements[i] = 2 if call.name == "alltoallv" else 2 * one.extent * size
        elif call.name in ("alltoallv", "allgatherv"):
            step = one.extent * size
            place = -(-(self.end - self.begin) // step) + call.gaps[i % len(call.gaps)]
            # Of a layout whose elements lie before its begin, too.
            place += min(one.places) < 0
            at = self.begin + place * step
            self.displacements[i] = place
        else:
            before = -min(one.places) * size
            at = self.end + before + 4 * call.gaps[i % len(call.gaps)]
            self.displacements[i] = at - self.begin
        block = places(at, int(count), layout, size)
        if block.size:
            self.end = max(self.end, int(block.max()) + 1)
        if not is_missing:
            self.blocks.append((i, origin, block))

    def words(self, memory: Memory) -> tuple[int, ...]:
        """The arguments of the call."""
        call = self.run.call
        address = memory.address + self.begin
        if self.is_one or call.name in EVEN:
            return address, int(self.count), MPI._handleof(self.kind)
        arrays = address, self.counts.ctypes.data, self.displacements.ctypes.data
        if call.name in ("alltoallv", "allgatherv"):
            return *arrays, MPI._handleof(self.kind)
        size = MPI._sizeof(MPI.Datatype)
        word = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]
        mask = 2 ** (8 * size) - 1
        self.types = (word * len(self.kinds))(*(MPI._handleof(k) & mask for k in self.kinds))
        return *arrays, ctypes.addressof(self.types)

    def existing(self, memory: Memory) -> list[Any]:
        """The same as mpi4py takes it, without neighbours that do not exist."""
        there = [i for i, rank in enumerate(self.partners) if rank != MISSING]
        bytes_of = getattr(MPI, "buffer", None) or MPI.memory
        return [
            bytes_of.fromaddress(memory.address + self.begin, self.end - self.begin),
            [int(self.counts[i]) for i in there],
            [int(self.displacements[i]) for i in there],
            [self.kinds[i] for i in there],
        ]


class Running:
    """A call of a case, from its arguments to what it has brought."""

    def __init__(self, case: Case, number: int, comm: MPI.Cartcomm) -> None:
        self.case, self.number, self.comm = case, number, comm
        self.call: Call = case.calls[number]
        self.rank = comm.rank
        offsets = case.offsets[::-1] if self.call.second else case.offsets
        here = Place(case, self.rank)
        self.sources = [here.neighbour(one, -1) for one in offsets]
        self.targets = [here.neighbour(one, 1) for one in offsets]
        self.is_gather = self.call.name.startswith("allgather") or self.call.name == "reduce"
        self.is_smooth = self.call.is_smooth
        self.op = self.call.op
        if self.op and self.call.dtype.startswith("float"):
            self.is_smooth = True
            self.op = "max" if self.op == "bxor" else self.op
        self.mpi_op = OWN_OPS[self.call.dtype] if self.op == "own" else OPS.get(self.op, [None])[0]
        devices = [
            self.call.devices[(2 * self.rank + side) % len(self.call.devices)] for side in (0, 1)
        ]
        self.sent = Side(self, False, ROOM + 16)
        begin = self.sent.end + 64 if self.call.is_joined else ROOM + 16
        self.received = Side(self, True, -(-begin // 16) * 16)
        self.memories = [Memory(self.received.end, devices[1])]
        if not self.call.is_joined:
            self.memories.insert(0, Memory(self.sent.end, devices[0]))
        self.start = 0
        self.request = ctypes.c_void_p()
        asked = None if self.call.codec is None else self.call.codec
        self.asks = _api.call_of(asked, None, None, False) if asked else None

    def elements(self, origin: int, neighbour: int, count: int) -> np.ndarray:
        is_alike = self.is_gather or self.call.overlaps
        key = key_of(origin, OTHER_INDEX if is_alike else neighbour, self.number, self.start)
        return values(key, count, self.call.dtype, self.is_smooth)

    def fill(self, side: Side, memory: Memory) -> None:
        for neighbour, origin, block in side.blocks:
            memory.image[block] = (
                self.elements(origin, neighbour, len(block)).view(np.uint8).reshape(block.shape)
            )

    def prepare(self) -> None:
        for memory in self.memories:
            memory.clear()
        self.fill(self.sent, self.memories[0])
        for memory in self.memories:
            memory.put()

    def check(self) -> str:
        memory = self.memories[-1]
        if self.call.name in SUMS:
            [(_, _, block)] = self.received.blocks
            count = len(block)
            came = [
                self.elements(source, i, count)
                for i, source in enumerate(self.sources)
                if source != MISSING
            ]
            if came and count:
                total = came[0].copy()
                with np.errstate(over="ignore"):
                    for one in came[1:]:
                        total = OPS[self.op][1](total, one)
                memory.image[block] = total.view(np.uint8).reshape(block.shape)
        else:
            self.fill(self.received, memory)
        names = ["the memory"] if self.call.is_joined else ["what is sent", "what is received"]
        for name, one in zip(names, self.memories, strict=True):
            if wrong := one.wrong():
                return f"call {self.number}, start {self.start}: {name}: {wrong}"
        return ""

    def is_for_graphs(self) -> bool:
        """Has MPI such a call, for all ranks' memory?"""
        return self.call.name == "alltoallw" and max(self.call.devices) < 0

    def compare_with_graph(self) -> str:
        """Makes MPI's own call of the last start's data, along a graph of who is there."""
        sources = [rank for rank in self.sources if rank != MISSING]
        targets = [rank for rank in self.targets if rank != MISSING]
        # Of a Cartesian communicator Open MPI makes a graph that it takes for Cartesian, too.
        plain = self.comm.Split(0, self.rank)
        graph = plain.Create_dist_graph_adjacent(sources, targets)
        memory = Memory(self.received.end, -1)
        memory.put()
        graph.Neighbor_alltoallw(
            self.sent.existing(self.memories[0]), self.received.existing(memory)
        )
        graph.Free()
        plain.Free()
        self.fill(self.received, memory)
        wrong = memory.wrong()
        return f"call {self.number}, by MPI's graph: {wrong}" if wrong else ""

    def words(self) -> list[int]:
        sent = self.sent.words(self.memories[0])
        memory = self.memories[-1]
        if self.call.name == "reduce":
            words = [sent[0], memory.address + self.received.begin, *sent[1:]]
        elif self.call.name == "scatter_reduce":
            words = [*sent, *self.received.words(memory)]
        else:
            return [*sent, *self.received.words(memory), MPI._handleof(self.comm)]
        return [*words, MPI._handleof(self.mpi_op), MPI._handleof(self.comm)]

    def begin(self) -> None:
        """The call; a persistent one is made and started."""
        self.prepare()
        asks = ctypes.addressof(self.asks) if self.asks else 0
        request = ctypes.addressof(self.request)
        name = self.call.name
        if self.call.form == "blocking":
            invoke(f"mpress_iso_neighbor_{name}", *self.words(), asks)
        elif self.call.form == "immediate":
            invoke(f"mpress_iso_ineighbor_{name}", *self.words(), request, asks)
        else:
            info = MPI.INFO_NULL
            if self.call.algorithm:
                info = MPI.Info.Create({"iso_algorithm": self.call.algorithm})
            made = f"mpress_iso_neighbor_{name}_init"
            invoke(made, *self.words(), MPI._handleof(info), request, asks)
            if info != MPI.INFO_NULL:
                info.Free()
            invoke("mpress_start", request)

    def again(self, start: int) -> None:
        self.start = start
        self.prepare()
        invoke("mpress_start", ctypes.addressof(self.request))

    def wait(self) -> str:
        if self.call.form != "blocking":
            status = (ctypes.c_byte * 256)()
            request, ignored = ctypes.addressof(self.request), ctypes.addressof(status)
            flag = ctypes.c_int(0)
            while self.call.tests and not flag.value:
                invoke("mpress_test", request, ctypes.addressof(flag), ignored)
            if not flag.value:
                invoke("mpress_wait", request, ignored)
        return self.check()

    def free(self) -> None:
        if self.call.form == "persistent":
            invoke("mpress_request_free", ctypes.addressof(self.request))
