"""Random calls of mpress.Communicator, of all kinds of arguments that mpi4py takes. What comes out
is compared with what NumPy says of the same data: exactly, or within the bound of the call's codec;
nothing else may be written.

    mpiexec -n N python communicator_random.py SEED CALLS [devices] [plain]

All ranks draw the same calls. `devices`: arrays may lie on GPUs; `plain`: the calls are
mpi4py's own. Prints how many calls mpress served, on all ranks together.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from communicator_buffers import TYPES, Buffer, Parts
from mpi4py import MPI

import mpress

seed, number = int(sys.argv[1]), int(sys.argv[2])
is_plain = "plain" in sys.argv
chance = random.Random()
world = MPI.COMM_WORLD
SIZES = (0, 1, 7, 400, 3000, 20_000)
FORMS = ("blocking", "immediate", "persistent")
# The communicator's own is None.
CODECS = (None, "none", "mpc", "szp:abs=1e-2", "szp:rel=1e-4", "zfp:24")
OWN_CODEC = "szp:abs=1e-3"


def values(key: int, count: int, dtype: Any) -> np.ndarray:
    """Of this key; between 0.5 and 1.5."""
    draw = np.random.default_rng(key)
    x = np.linspace(0, 20, count) + draw.uniform(0, 6)
    kind = draw.integers(4)
    found = (1 + 0.5 * np.sin(x), draw.uniform(0.5, 1.5, count), np.full(count, 1.25), x / 20)[kind]
    if dtype == np.int32:
        return (100 * found).astype(dtype)
    found = np.clip(found, 0.5, 1.5).astype(dtype)
    return found + 1j * found[::-1] if found.dtype.kind == "c" else found


def error_of(codec: str | None, dtype: Any) -> float:
    """That a codec may leave in values between 0.5 and 1.5."""
    if dtype == np.int32 or codec in ("none", "mpc"):
        return 0
    exact = {None: 1e-3, "szp:abs=1e-2": 1e-2, "szp:rel=1e-4": 1e-4, "zfp:24": 1e-2}[codec]
    return 1.001 * exact * (np.sqrt(2) if np.dtype(dtype).kind == "c" else 1)


@dataclass
class Call:
    """`fill` and `check` take the number of the start."""

    name: str
    arguments: list[Any]
    fill: Callable[[int], None]
    check: Callable[[int], None]
    codec: str | None
    comm: mpress.Communicator
    form: str
    starts: int = 1
    done: int = 0
    requests: list[Any] = field(default_factory=list)

    def __repr__(self) -> str:
        words = f"{self.name}, {self.form}, {self.codec}, {self.comm.size} ranks"
        return f"({words}, start {self.done})"


def keyed(call: int, start: int, sender: int, receiver: int = 0) -> int:
    return ((seed * 1009 + call) * 31 + start) * 400 + sender * 20 + receiver


@dataclass
class Draw:
    """What all ranks draw for a call."""

    call: int
    comm: mpress.Communicator
    dtype: Any
    codec: str | None
    gaps: tuple[list[bool], list[bool]]
    devices: tuple[list[bool], list[bool]]
    root: int
    in_place: bool
    most: int

    def buffer(self, side: int, count: int) -> Buffer:
        me = self.comm.rank
        return Buffer(count, self.dtype, self.devices[side][me], self.gaps[side][me], own_chance)

    def sent(self, start: int, sender: int, receiver: int, count: int) -> np.ndarray:
        return values(keyed(self.call, start, sender, receiver), count, self.dtype)

    def arrived(
        self, start: int, sender: int, receiver: int, count: int, own_is_exact: bool = True
    ) -> tuple[np.ndarray, float]:
        """What this rank has of it, and how far off it may be."""
        exact = self.sent(start, sender, receiver, count)
        is_exact = own_is_exact and sender == self.comm.rank
        return exact, 0 if is_exact else error_of(self.codec, self.dtype)


def counts_of(draw: Draw, number: int) -> list[int]:
    return [chance.choice((0, draw.most, chance.randint(0, draw.most))) for _ in range(number)]


def parts_of(draw: Draw, varied: bool, counts: list[int] | None = None) -> Parts:
    """One of each rank; where they are varied, of so many elements and with room before some."""
    size = draw.comm.size
    if not varied:
        return Parts([draw.most] * size, [draw.most * r for r in range(size)], False, True)
    counts = counts or counts_of(draw, size)
    is_packed = chance.random() < 0.5
    starts, end = [], 0
    for count in counts:
        starts.append(end + (0 if is_packed else chance.randint(0, 3)))
        end = starts[-1] + count
    return Parts(counts, starts, True, is_packed)


def bcast(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    n, me = draw.most, draw.comm.rank
    buffer = draw.buffer(0, n)

    def fill(start: int) -> None:
        buffer.put({0: draw.sent(start, draw.root, 0, n)} if me == draw.root else {})

    def check(start: int) -> None:
        buffer.check({0: draw.arrived(start, draw.root, 0, n)})

    return "Bcast", [buffer.spec(), draw.root], fill, check


def allgather(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    me, size = draw.comm.rank, draw.comm.size
    parts = parts_of(draw, chance.random() < 0.5)
    counts, starts = parts.counts, parts.starts
    out, into = draw.buffer(0, counts[me]), draw.buffer(1, parts.end)

    def fill(start: int) -> None:
        own = draw.sent(start, me, 0, counts[me])
        out.put({0: own})
        into.put({starts[me]: own} if draw.in_place else {})

    def check(start: int) -> None:
        # The same to all, so its own with a loss, too.
        arrived = (draw.arrived(start, r, 0, counts[r], False) for r in range(size))
        into.check(dict(zip(starts, arrived, strict=True)))
        out.check({0: (draw.sent(start, me, 0, counts[me]), 0)})

    receives = into.spec_of_parts(parts)
    sends = MPI.IN_PLACE if draw.in_place else out.spec()
    return "Allgatherv" if parts.are_varied else "Allgather", [sends, receives], fill, check


def gather(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    me, size = draw.comm.rank, draw.comm.size
    parts = parts_of(draw, chance.random() < 0.5)
    counts, starts = parts.counts, parts.starts
    is_root = me == draw.root
    in_place = draw.in_place and is_root
    out, into = draw.buffer(0, counts[me]), draw.buffer(1, parts.end)

    def fill(start: int) -> None:
        own = draw.sent(start, me, 0, counts[me])
        out.put({0: own})
        into.put({starts[me]: own} if in_place else {})

    def check(start: int) -> None:
        every = {starts[r]: draw.arrived(start, r, 0, counts[r]) for r in range(size)}
        into.check(every if is_root else {})

    receives = into.spec_of_parts(parts)
    sends = MPI.IN_PLACE if in_place else out.spec()
    name = "Gatherv" if parts.are_varied else "Gather"
    return name, [sends, receives if is_root else None, draw.root], fill, check


def scatter(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    me, size = draw.comm.rank, draw.comm.size
    parts = parts_of(draw, chance.random() < 0.5)
    counts, starts = parts.counts, parts.starts
    is_root = me == draw.root
    in_place = draw.in_place and is_root
    out, into = draw.buffer(0, parts.end), draw.buffer(1, counts[me])

    def fill(start: int) -> None:
        out.put({starts[r]: draw.sent(start, draw.root, r, counts[r]) for r in range(size)})
        into.put({})

    def check(start: int) -> None:
        into.check({} if in_place else {0: draw.arrived(start, draw.root, me, counts[me])})

    sends = out.spec_of_parts(parts)
    receives = MPI.IN_PLACE if in_place else into.spec()
    name = "Scatterv" if parts.are_varied else "Scatter"
    return name, [sends if is_root else None, receives, draw.root], fill, check


def alltoall(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    me, size = draw.comm.rank, draw.comm.size
    name = chance.choice(("Alltoall", "Alltoallv", "Alltoallw"))
    if size == 1 and name == "Alltoallw":
        name = "Alltoallv"  # of one rank, Open MPI 5 counts displacements in elements
    is_varied = name != "Alltoall"
    table = [counts_of(draw, size) for _ in range(size)]
    sends = parts_of(draw, is_varied, table[me])
    receives = parts_of(draw, is_varied, [table[r][me] for r in range(size)])
    out, into = draw.buffer(0, sends.end), draw.buffer(1, receives.end)

    def fill(start: int) -> None:
        parts = (draw.sent(start, me, r, count) for r, count in enumerate(sends.counts))
        out.put(dict(zip(sends.starts, parts, strict=True)))
        into.put({})

    def check(start: int) -> None:
        parts = (draw.arrived(start, r, me, count) for r, count in enumerate(receives.counts))
        into.check(dict(zip(receives.starts, parts, strict=True)))

    def in_bytes(buffer: Buffer, parts: Parts) -> list[Any]:
        width = np.dtype(draw.dtype).itemsize * buffer.step
        starts = [width * start for start in parts.starts]
        return [buffer.array, parts.counts, starts, [buffer.type] * size]

    if name == "Alltoallw":
        return name, [in_bytes(out, sends), in_bytes(into, receives)], fill, check
    return name, [out.spec_of_parts(sends), into.spec_of_parts(receives)], fill, check


def reduction(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    me, size = draw.comm.rank, draw.comm.size
    ops = (MPI.SUM, np.add), (MPI.MIN, np.minimum), (MPI.MAX, np.maximum), (MPI.PROD, np.multiply)
    op, function = chance.choice(ops[:1] if np.dtype(draw.dtype).kind in "ci" else ops)
    name = chance.choice((
        "Allreduce", "Reduce", "Reduce_scatter_block", "Reduce_scatter", "Scan",
    ))  # fmt: skip
    scattered = name.startswith("Reduce_scatter")
    counts = counts_of(draw, size) if name == "Reduce_scatter" else [draw.most] * size
    n = sum(counts) if scattered else draw.most  # of each rank's contribution
    first, mine = (sum(counts[:me]), counts[me]) if scattered else (0, n)
    # A derived type has no predefined operator.
    out, into = (
        Buffer(count, draw.dtype, draw.devices[side][me], False, own_chance)
        for side, count in enumerate((n, n if draw.in_place and scattered else mine))
    )
    gets = name != "Reduce" or me == draw.root
    in_place = draw.in_place and gets

    def fill(start: int) -> None:
        own = draw.sent(start, me, 0, n)
        out.put({0: own})
        into.put({0: own} if in_place else {})

    def check(start: int) -> None:
        ranks = range(me + 1 if name == "Scan" else size)
        every = [draw.sent(start, r, 0, n) for r in ranks]
        exact = function.reduce(every)[first : first + mine]
        error = 0.0
        if np.dtype(draw.dtype).kind != "i":
            if op in (MPI.SUM, MPI.PROD):  # in another order
                error = 4 * size * float(np.finfo(draw.dtype).eps) * np.abs(exact).max(initial=0)
            if op != MPI.PROD:
                error += error_of(draw.codec, draw.dtype) * (size if draw.codec == "zfp:24" else 1)
        if not gets:
            into.check({})
        elif in_place and scattered and mine < n:  # what lies behind the result is undefined
            found = into.all()[:mine]
            assert np.abs(found - exact).max(initial=0) <= error
        else:
            into.check({0: (exact, error)})
        if not in_place:
            out.check({0: (draw.sent(start, me, 0, n), 0)})

    blocks = size if name == "Reduce_scatter_block" else 1
    sends = MPI.IN_PLACE if in_place else out.spec(blocks)
    arguments = [sends, into.spec(blocks if in_place else 1) if gets else None]
    if name == "Reduce_scatter":
        arguments.append(counts)
    arguments.append(op)
    return name, [*arguments, draw.root] if name == "Reduce" else arguments, fill, check


def message(draw: Draw) -> tuple[str, list[Any], Any, Any]:
    """From each rank to the one so many places behind it."""
    me, size = draw.comm.rank, draw.comm.size
    shift = chance.randrange(size)
    to, source = (me + shift) % size, (me - shift) % size
    counts = counts_of(draw, size)
    out, into = draw.buffer(0, counts[me]), draw.buffer(1, counts[source])

    def fill(start: int) -> None:
        out.put({0: draw.sent(start, me, 0, counts[me])})
        into.put({})

    def check(start: int) -> None:
        into.check({0: draw.arrived(start, source, 0, counts[source], False)})
        out.check({0: (draw.sent(start, me, 0, counts[me]), 0)})

    return "Sendrecv", [out.spec(), to, draw.call, into.spec(), source, draw.call], fill, check


MAKERS = (bcast, allgather, gather, scatter, alltoall, reduction, reduction, message)


def make(call: int, comms: list[mpress.Communicator]) -> Call:
    chance.seed(f"{seed} {call}")  # communicators of other sizes draw more, or less
    places: list[list[bool]] = [[], []]
    for side in places:
        kind = chance.choice((0, 1, 0.5)) if "devices" in sys.argv else 0
        side += [chance.random() < kind for _ in range(world.size)]
    maker, form, comm = chance.choice(MAKERS), chance.choice(FORMS), chance.choice(comms)
    in_place = chance.random() < 0.2
    # MPIs choose how to gather to all by what a rank's own types tell.
    gaps = [[chance.random() < 0.2] * world.size for _ in range(2)]
    dtype = chance.choice(list(TYPES))
    starts = chance.randint(1, 3) if form == "persistent" else 1
    most = chance.choice(SIZES)
    if maker not in (bcast, message):
        most //= 2
    if form == "persistent":
        most = max(most, 4)  # of nothing, MPICH 5.0 between hosts divides by zero
    draw = Draw(call, comm, dtype, chance.choice(CODECS), tuple(gaps), tuple(places),
                chance.randrange(8), in_place, most)  # fmt: skip
    draw.root %= comm.size
    name, arguments, fill, check = maker(draw)
    return Call(name, arguments, fill, check, draw.codec, comm, form, starts)


def method(call: Call, name: str) -> Callable[..., Any]:
    given = {} if call.codec is None or is_plain else {"codec": call.codec}
    return lambda *arguments: getattr(call.comm, name)(*arguments, **given)


def begin(call: Call) -> bool:
    """Returns whether it is under way."""
    call.fill(0)
    if call.form == "blocking":
        method(call, call.name)(*call.arguments)
        note(call.comm)
        call.check(0)
        return False
    if call.name == "Sendrecv":
        out, to, tag, into, source, _ = call.arguments
        names = ("Irecv", "Isend") if call.form == "immediate" else ("Recv_init", "Send_init")
        receive = getattr(call.comm, names[0])(into, source, tag)
        call.requests = [receive, method(call, names[1])(out, to, tag)]
    else:
        name = f"I{call.name.lower()}" if call.form == "immediate" else f"{call.name}_init"
        call.requests = [method(call, name)(*call.arguments)]
    if call.form == "persistent":
        MPI.Prequest.Startall(call.requests)
    return True


def note(told: Any) -> None:
    """What became of a call, of a communicator's last one or of a request."""
    global served
    served += not is_plain and told.outcome.served


def passed(call: Call) -> bool:
    """A start has ended: is it under way again?"""
    for request in call.requests:
        note(request)
    call.check(call.done)
    call.done += 1
    if call.done < call.starts:
        call.fill(call.done)
        MPI.Prequest.Startall(call.requests)
        return True
    if call.form == "persistent":
        for request in call.requests:
            request.Free()
    return False


def wait(requests: list[Any], how: int) -> None:
    """In one of the ways that there are."""
    if how == 0:
        MPI.Request.Waitall(requests)
    elif how == 1:
        for _ in requests:  # MPICH 5.0's MPI_Testall takes no persistent collective call
            MPI.Request.Waitany(requests)
    elif how == 2:
        for request in reversed(requests):
            request.Wait()
    else:
        for request in requests:
            while not request.Test():
                pass


if "devices" in sys.argv:
    cuda = importlib.import_module("cupy").cuda
    cuda.Device(world.rank % cuda.runtime.getDeviceCount()).use()
served = 0
own_chance = random.Random(seed + world.rank)  # each rank may say it in its own way
comms = [
    one if is_plain else mpress.Communicator(one, codec=OWN_CODEC)
    for one in (world, world.Split(0, -world.rank), world.Split(world.rank % 2, world.rank))
]
under_way: list[Call] = []
for i in range(number):
    doing = [call := make(i, comms)]
    try:
        if begin(call):
            under_way.append(call)
        chance.seed(f"behind {seed} {i}")
        most = sys.maxsize if i == number - 1 else chance.choice((0, 0, 1, 5))
        while under_way and most > 0:  # wait for so many
            ended = [under_way.pop(chance.randrange(len(under_way)))]
            if most > 1:
                ended, under_way = [*ended, *under_way], []
            doing = ended
            wait([request for one in ended for request in one.requests], (i + world.rank) % 4)
            for call in ended:
                doing = [call]
                if passed(call):
                    under_way.append(call)
            most -= 1
    except Exception as error:
        raise AssertionError(f"seed {seed}, call {i}, {doing}: {error}") from error
total = world.allreduce(served)
if world.rank == 0:
    print("ok", total)
