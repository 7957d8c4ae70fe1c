"""What the ranks of a benchmark run: python -m mpress.p2p.worker PLAN.json OUT.json.

The plan is made, and the output read, by mpress.p2p.jobs. Its cases are messages of one size and
content, or of collective calls; a case has paths, which take turns: specs of codecs, each on a
duplicate of the communicator with that hint, alone or with the bytes of a chunk behind CHUNKED, or
behind one of FORMS, and the names of BASELINES.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _core, trace
from mpress.p2p import arrival, data, loopback, memory, nccl
from mpress.p2p.jobs import BASELINES, CHUNKED, LINK_COUNTERS, OPERATIONS, PARTS, REDUCTIONS, TIMES
from mpress.p2p.message import codec_comm, message

_SAMPLE_SECONDS = 0.006
_CALIBRATIONS = 3
_MOST_ITERATIONS = 200
_SLOW_SECONDS = 0.05
_LEAST_ROUNDS = 5
_MOST_WINDOW_BYTES = 512 << 20
_TAG = 1

Sample = Callable[[int], float]


class Rank:
    """One of them: its memory, its communicators, and the ways to send a message."""

    def __init__(self, plan: dict[str, Any], allocate: Callable[[int], Any]) -> None:
        self.plan = plan
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.peers = [(self.rank + k) % self.comm.size for k in range(1, self.comm.size)]
        self.allocate = allocate
        self.on_device = plan["to" if self.rank else "from"] == "device"
        self.comms: dict[str, MPI.Comm] = {}
        self.spent = dict.fromkeys(PARTS, 0.0)
        self._nccl: nccl.Communicator | None = None
        self._copies_to_peers: bool | None = None
        self._buffers: dict[str, Any] = {}

    def window_of(self, nbytes: int) -> int:
        """Messages under way to each peer."""
        if self.plan["benchmark"] == "latency":
            return 1
        return min(self.plan["window"], max(1, _MOST_WINDOW_BYTES // (nbytes * len(self.peers))))

    def buffer(self, role: str) -> Any:
        """Room for the messages of any case, which all of them share: programs do so, and GPUs that
        reach each other's memory keep it open."""
        if role not in self._buffers:
            sizes = {self.room(role, case) for case in self.plan["cases"]}
            self._buffers[role] = self.allocate(max(sizes))
        return self._buffers[role]

    def room(self, role: str, case: dict[str, Any]) -> int:
        """Bytes of a buffer, for the messages of a case."""
        nbytes = case["bytes"]
        return nbytes * self.window_of(nbytes) * len(self.peers) if role == "receive" else nbytes

    def comm_of(self, path: str) -> MPI.Comm:
        if path not in self.comms:
            spec, _, chunk = path.partition(CHUNKED)
            self.comms[path] = codec_comm(self.comm, spec, chunk)
        return self.comms[path]

    def nccl(self) -> nccl.Communicator | None:
        """None where it fails on a rank, which says why."""
        if self._nccl is None:
            try:
                self._nccl = nccl.Communicator(self.comm)
            except (OSError, RuntimeError) as error:
                print(f"rank {self.rank}: {error}", file=sys.stderr)
            if not self.comm.allreduce(self._nccl is not None, op=MPI.LAND):
                self._nccl = None
        return self._nccl

    def copies_to_peers(self) -> bool:
        """Whether every rank's GPU is its own and reaches those of all others."""
        if self._copies_to_peers is None:
            devices = memory.devices()
            own = self.on_device and devices >= self.comm.size
            own = own and all(memory.reaches(peer % devices) for peer in self.peers)
            self._copies_to_peers = self.comm.allreduce(own, op=MPI.LAND)
        return self._copies_to_peers

    def has(self, path: str) -> bool:
        """Whether all ranks can take a path."""
        if path == "peer-copy":
            return self.copies_to_peers()
        return path != "nccl" or self.nccl() is not None

    def is_gpu_aware(self) -> bool:
        """Whether the MPI takes memory of devices itself."""
        record = trace.own_record()
        return record is not None and record.gpu_aware

    def counters(self) -> dict[str, float]:
        """What mpress has counted in this process so far; all 0 where it is not loaded."""
        record = trace.own_record()
        rows = record.rows if record else []
        sent = [row for row in rows if row["direction"] == "send"]
        return {
            "sent": sum(row["messages"] for row in sent),
            "raw_bytes": sum(row["raw_bytes"] for row in sent),
            "wire_bytes": sum(row["wire_bytes"] for row in sent),
            "chunked": sum(row["messages"] for row in sent if row["way"] == "chunks"),
            **{
                counter: sum(row["messages"] for row in sent if row["way"] == name)
                for name, counter in LINK_COUNTERS.items()
            },
            "encode_seconds": sum(row["encode_seconds"] for row in rows),
            "decode_seconds": sum(row["decode_seconds"] for row in rows),
            "wait_seconds": sum(row["wait_seconds"] for row in rows),
            "loopback_bytes": loopback.sent_bytes(),
            **self.spent,
        }

    def timed(self, part: str, call: Callable[..., None]) -> Callable[..., None]:
        """The same call, whose time counts as one of PARTS."""

        def counted(*arguments: Any) -> None:
            begin = time.perf_counter()
            call(*arguments)
            self.spent[part] += time.perf_counter() - begin

        return counted


class Case:
    """Messages of one size and content."""

    op: str | None = None  # of a collective call

    def __init__(self, rank: Rank, case: dict[str, Any], values: Any) -> None:
        self.rank = rank
        self.nbytes = case["bytes"]
        self.values = data.cut(values, self.nbytes)
        self.window = rank.window_of(self.nbytes)
        self.held: tuple[Any, ...] = ()
        self.send = rank.buffer("send")
        self.receive = rank.buffer("receive")
        self.send.write(self.values)

    def sample(self, path: str) -> Sample:
        """A function that measures `iterations` of the benchmark and returns seconds: one way of a
        message for latency, a message in each direction that has them for the others, between all
        pairs of ranks."""
        benchmark = self.rank.plan["benchmark"]
        if path == "copy":
            return self._copies()
        if path == "peer-copy":
            return self._peer_copies()
        if path == "plain":
            return self._plain()
        send, receive = self.send, self.receive
        if path == "host":
            send = memory.HostBuffer(self.nbytes)
            receive = memory.HostBuffer(self.nbytes * self.window * len(self.rank.peers))
            send.write(self.values)
            self.held = (send, receive)  # messages know addresses alone
        one, windows = self._calls(path, send, receive)
        rank, window = self.rank.rank, self.window
        both = benchmark == "bibandwidth"

        def latency(iterations: int) -> float:
            begin = time.perf_counter()
            for _ in range(iterations):
                one(rank == 0)
                one(rank == 1)
            return (time.perf_counter() - begin) / iterations / 2

        def bandwidth(iterations: int) -> float:
            begin = time.perf_counter()
            for _ in range(iterations):
                windows(rank == 0 or both, rank == 1 or both)
            return (time.perf_counter() - begin) / iterations / window

        return latency if benchmark == "latency" else bandwidth

    def _calls(self, path: str, send: Any, receive: Any) -> tuple[Callable, Callable]:
        """one(sends) passes a message on; windows(sends, receives) a window of them for each peer,
        and returns when all ranks know that they have arrived."""
        rank, peers, nbytes = self.rank, self.rank.peers, self.nbytes
        peer = peers[0]
        turns = [
            [(other, receive.address + (i * len(peers) + j) * nbytes)
             for j, other in enumerate(peers)]
            for i in range(self.window)
        ]  # fmt: skip
        if path == "nccl":
            link = rank.nccl()
            assert link is not None

            def one(sends: bool) -> None:
                if sends:
                    link.send(send.address, nbytes, peer)
                else:
                    link.receive(receive.address, nbytes, peer)
                link.wait()

            def windows(sends: bool, receives: bool) -> None:
                for turn in turns:
                    link.group_start()
                    for other, place in turn:
                        if receives:
                            link.receive(place, nbytes, other)
                        if sends:
                            link.send(send.address, nbytes, other)
                    link.group_end()
                link.wait()
                rank.comm.Barrier()

            return one, windows

        comm = rank.comm_of("none" if path == "host" else path)
        outgoing = message(send.address, self.values)
        incoming = [(message(place, self.values), other) for turn in turns for other, place in turn]

        def one(sends: bool) -> None:
            if sends:
                comm.Send(outgoing, peer, _TAG)
            else:
                comm.Recv(incoming[0][0], peer, _TAG)

        def windows(sends: bool, receives: bool) -> None:
            requests = [comm.Irecv(i, other, _TAG) for i, other in incoming] if receives else []
            if sends:
                requests += [comm.Isend(outgoing, other, _TAG) for _, other in incoming]
            MPI.Request.Waitall(requests)
            rank.comm.Barrier()

        return one, windows

    def _plain(self) -> Sample:
        rank, nbytes = self.rank, self.nbytes
        comm = rank.comm_of("none")
        aside = memory.HostBuffer(nbytes)
        elements, peer = message(aside.address, self.values), rank.peers[0]

        def one(sends: bool) -> None:
            if sends:
                if rank.on_device:
                    memory.copy_out(aside.address, self.send.address, nbytes)
                comm.Send(elements, peer, _TAG)
            else:
                comm.Recv(elements, peer, _TAG)
                if rank.on_device:
                    memory.copy_in(self.receive.address, aside.address, nbytes)

        def sample(iterations: int) -> float:
            begin = time.perf_counter()
            for _ in range(iterations):
                one(rank.rank == 0)
                one(rank.rank == 1)
            return (time.perf_counter() - begin) / iterations / 2

        return sample

    def _copies(self) -> Sample:
        calls: tuple[Any, ...] = ()
        if self.rank.on_device:
            aside = memory.PinnedBuffer(self.nbytes)
            calls = (
                (memory.copy_out, (aside.address, self.send.address)),
                (memory.copy_in, (self.receive.address, aside.address)),
            )

        def sample(iterations: int) -> float:
            slower = 0.0
            for copy, arguments in calls:
                begin = time.perf_counter()
                for _ in range(iterations):
                    copy(*arguments, aside.nbytes)
                slower = max(slower, (time.perf_counter() - begin) / iterations)
            return self.rank.comm.allreduce(slower, op=MPI.MAX)

        return sample

    def _peer_copies(self) -> Sample:
        rank, benchmark = self.rank, self.rank.plan["benchmark"]
        sends = rank.rank == 0 or benchmark == "bibandwidth"
        places = [memory.PeerBuffer(peer, self.nbytes) for peer in rank.peers] if sends else []

        def sample(iterations: int) -> float:
            begin = time.perf_counter()
            for _ in range(iterations):
                for _ in range(self.window):
                    for place in places:
                        place.fill_from(self.send.address)
                for place in places:
                    place.wait()
                if benchmark != "latency":
                    rank.comm.Barrier()
            return (time.perf_counter() - begin) / iterations / self.window

        return sample

    def check(self, path: str) -> dict[str, Any]:
        """One message from each rank, and what arrived: the worst of all ranks."""
        comm, rank = self.rank.comm_of(path), self.rank
        self.receive.fill(0xA5)
        rank.comm.Barrier()
        comm.Sendrecv(message(self.send.address, self.values), rank.peers[0], _TAG,
                      message(self.receive.address, self.values), rank.peers[-1], _TAG)  # fmt: skip
        spec = path.partition(CHUNKED)[0]
        found = arrival.judge(
            spec, self.values, self.receive.read(self.values.dtype, self.values.size)
        )
        every = rank.comm.allgather(found)
        return min(every, key=lambda one: (one["kept"], -(one["max_error"] or 0)))


def _seconds_of(sample: Sample) -> float:
    begin = time.perf_counter()
    sample(1)
    return time.perf_counter() - begin


def run_case(rank: Rank, messages: Any, case: dict[str, Any]) -> list[dict[str, Any]]:
    """A row a path of a case, its `messages`; on rank 0, whose clock counts."""
    paths = [path for path in case["paths"] if rank.has(path)]
    samples = {path: messages.sample(path) for path in paths}
    plan, comm = {**rank.plan, **case}, rank.comm
    iterations, is_slow = {}, {}
    round_seconds = 0.0
    for path, sample in samples.items():
        comm.Barrier()
        # What takes long is called less often; mpress's own paths need these calls to open links.
        first = min(_seconds_of(sample) for _ in range(min(plan["warmup"], 2)))
        is_long = path in BASELINES and first > _SLOW_SECONDS
        if plan["warmup"] > 2 and not comm.bcast(is_long):
            sample(plan["warmup"] - 2)
        comm.Barrier()
        took = _seconds_of(sample)
        is_slow[path] = comm.bcast(took > _SLOW_SECONDS)
        if not is_slow[path]:
            # The quickest: a hiccup would give a path fewer messages a sample than others have.
            took = min(took, *(_seconds_of(sample) for _ in range(_CALIBRATIONS - 1)))
        iterations[path] = comm.bcast(min(_MOST_ITERATIONS, int(_SAMPLE_SECONDS / took) + 1))
        round_seconds += took * (iterations[path] + (not is_slow[path]))
    rounds = int(plan["seconds"] / round_seconds)
    rounds = comm.bcast(max(min(_LEAST_ROUNDS, plan["repeat"]), min(rounds, plan["repeat"])))

    seconds: dict[str, list[float]] = {path: [] for path in samples}
    counted: dict[str, dict[str, float]] = {path: {} for path in samples}
    for turn in range(rounds):
        order = list(samples) if turn % 2 == 0 else list(samples)[::-1]
        for path in order:
            before = rank.counters()
            comm.Barrier()
            # A rank who begins late, and what was idle meanwhile, do not count but in the counters;
            # they are nothing beside what takes long.
            if not is_slow[path]:
                samples[path](1)
            seconds[path].append(samples[path](iterations[path]))
            for name, value in rank.counters().items():
                counted[path][name] = counted[path].get(name, 0) + value - before[name]
    rows = []
    for path in samples:
        every = comm.gather(counted[path])
        checks = plan.get("check", True) and path not in BASELINES
        checked = messages.check(path) if checks else None
        if every is None:
            continue
        total = {name: sum(one[name] for one in every) for name in every[0]}
        total["loopback_bytes"] = max(one["loopback_bytes"] for one in every)
        rows.append({
            **({"op": messages.op} if messages.op else {}),
            "data": case["data"], "bytes": messages.nbytes, "path": path,
            "window": messages.window, "iterations": iterations[path], "seconds": seconds[path],
            "calls": rounds * (iterations[path] + (not is_slow[path])),
            "most": {name: max(one[name] for one in every) for name in (*TIMES, *PARTS)},
            "check": checked, **total,
        })  # fmt: skip
    return rows


def peer_place() -> str:
    """Where the other ranks run, as the policy tells it."""
    here = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
    all_here = here.size == MPI.COMM_WORLD.size
    here.Free()
    return "same-host" if all_here else "other-host"


def run(
    plan: dict[str, Any],
    allocate_device: Callable[[int], Any],
    keep: Callable[[dict[str, Any]], None],
) -> None:
    """All cases of a plan, or those begun within its `limit` of seconds; rank 0 gives `keep` what
    it has after each. `allocate_device(nbytes)` gives a buffer of this rank's GPU."""
    begin = time.monotonic()
    comm = MPI.COMM_WORLD
    on_device = plan["to" if comm.rank else "from"] == "device"
    allocate = allocate_device if on_device else memory.HostBuffer
    rank, of_case = Rank(plan, allocate), Case
    if plan["benchmark"] in OPERATIONS:
        from mpress.p2p import collectives  # which is made of what is here

        rank, of_case = collectives.CollectiveRank(plan, allocate), collectives.CollectiveCase
        if plan["benchmark"] in REDUCTIONS:
            from mpress.p2p import reductions

            of_case = reductions.ReductionCase
    mpi = _core.mpi_name(MPI.Get_library_version())
    result = {
        "mpi": mpi,
        "transport_settings": _core.transport_settings(mpi),
        "ranks": comm.size,
        "gpu_aware": rank.is_gpu_aware(),
        "hardware": comm.allgather(_core.hardware()),
        "peer": peer_place(),
        "sees_loopback": loopback.is_seen(),
        "rows": [],
        "left_out": [],
    }
    name, values = None, None
    for number, case in enumerate(plan["cases"]):
        if comm.bcast(time.monotonic() - begin > plan.get("limit", math.inf)):
            result["left_out"] = plan["cases"][number:]
            break
        if case["data"] != name:
            name = case["data"]
            # The others may not see the file.
            values = comm.bcast(np.load(plan["files"][name]) if comm.rank == 0 else None)
        result["rows"] += run_case(rank, of_case(rank, case, values), case)
        if comm.rank == 0:
            keep(result)
    if comm.rank == 0:
        keep(result)


def main(allocate_device: Callable[[int], Any] | None = None) -> None:
    comm = MPI.COMM_WORLD
    plan = comm.bcast(json.loads(Path(sys.argv[1]).read_text()) if comm.rank == 0 else None)
    ranks = plan.get("ranks", 2)
    if comm.size != ranks:
        sys.exit(f"mpress.p2p.worker: expected {ranks} ranks, but there are {comm.size}")
    gpu = None
    if allocate_device is None and "device" in (plan["from"], plan["to"]):
        gpu = memory.use_device(comm.rank % memory.devices())
    out = Path(sys.argv[2])

    def keep(result: dict[str, Any]) -> None:
        aside = out.with_suffix(".new")
        aside.write_text(json.dumps(result | {"gpu": gpu}) + "\n")
        aside.replace(out)  # whole at any time, for those whose ranks are ended

    run(plan, allocate_device or memory.CudaBuffer, keep)


if __name__ == "__main__":
    main()
