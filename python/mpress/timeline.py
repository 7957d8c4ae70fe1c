"""The timeline of a run: reads what ranks keep of it and merges it into one file of trace events,
the JSON that Perfetto and chrome://tracing read.

The layout of a rank's file is that of ``src/trace/timeline.hpp``; like a record, it is readable at
any moment, so whatever an aborted job left behind can be merged too.
"""

from __future__ import annotations

import heapq
import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mpress.trace import CODECS, OPERATIONS, REASONS, RecordError, text_of

KINDS = {
    1: "send", 2: "receive", 3: "encode", 4: "copy out", 5: "wire", 6: "arrive", 7: "copy in",
    8: "decode", 9: "wait", 10: "wait for device", 11: "linger",
}  # fmt: skip
NO_NUMBER = 0xFFFFFFFF

_HEADER = struct.Struct("<8sIIQQQQiI64s")
_SLOT = struct.Struct("<Q4Q2I2iI4B")

# Lanes beside those of threads, in the order in which they are shown.
_LANES = {
    "send": "sends",
    "receive": "receives",
    "encode": "device {device}: encode (given - seen done)",
    "copy out": "device {device}: copy out (given - seen done)",
    "copy in": "device {device}: copy in, decode (given - seen done)",
    "decode": "device {device}: copy in, decode (given - seen done)",
    "wire": "wire: handed to MPI - seen done",
    "arrive": "wire: receive posted - seen to have come",
}
_ENDS = {"send": 0, "receive": 1, "wire": 0, "arrive": 1}
_OF_THREADS = ("wait", "wait for device", "linger")


class Event(NamedTuple):
    """As in the file; times in nanoseconds of the host's clock."""

    number: int
    begin: int
    end: int
    raw_bytes: int
    wire_bytes: int
    message: int
    chunk: int
    peer: int
    device: int
    thread: int
    kind: str
    operation: str
    codec: str
    reason: str | None


@dataclass(frozen=True)
class Origin:
    """Whose timeline a file is, and what two clocks told when it was opened (nanoseconds)."""

    path: Path
    rank: int
    pid: int
    host: str
    opened: int
    opened_wall: int


def _header(path: Path, data: bytes) -> tuple[Origin, int, int]:
    """Also how many events there is room for, and how many were noted."""
    if len(data) < _HEADER.size or not data.startswith(b"mpressT1"):
        raise RecordError(f"{path}: not an mpress timeline")
    (_, header_bytes, slot_bytes, capacity, noted, opened, opened_wall, rank, pid,
     host) = _HEADER.unpack_from(data)  # fmt: skip
    if header_bytes != _HEADER.size or slot_bytes != _SLOT.size:
        raise RecordError(f"{path}: a timeline of another version of mpress")
    return Origin(path, rank, pid, text_of(host), opened, opened_wall), capacity, noted


def _event(fields: tuple[int, ...]) -> Event:
    *numbers, kind, operation, codec, reason = fields
    return Event(*numbers, KINDS[kind], OPERATIONS[operation], CODECS[codec], REASONS[reason])


def read_events(path: Path) -> tuple[list[Event], int]:
    """The events of a file as they begin, and how many are lost: the oldest, and any that was being
    written when the process ended.

    Raises RecordError where the file is no timeline of this version.
    """
    data = path.read_bytes()
    _, capacity, noted = _header(path, data)
    used = min(noted, capacity, (len(data) - _HEADER.size) // _SLOT.size)
    slots = _SLOT.iter_unpack(data[_HEADER.size : _HEADER.size + used * _SLOT.size])
    try:
        events = [_event(fields) for fields in slots if fields[0] > noted - used]
    except LookupError:
        raise RecordError(f"{path}: a timeline of another version of mpress") from None
    events.sort(key=lambda event: (event.begin, -event.end))
    return events, noted - len(events)


def read_origins(directory: str | Path) -> tuple[list[Origin], list[str]]:
    """The timelines in ``directory`` by rank, and why others could not be read."""
    origins, unreadable = [], []
    for path in sorted(Path(directory).glob("timeline-*.rec")):
        try:
            with open(path, "rb") as file:
                origins.append(_header(path, file.read(_HEADER.size))[0])
        except (RecordError, OSError) as error:
            unreadable.append(str(error))
    origins.sort(key=lambda origin: (origin.rank, origin.pid))
    return origins, unreadable


def clock_offsets(origins: Iterable[Origin]) -> dict[str, int]:
    """What to add to each host's clock to have one for all, which is 0 when the first rank starts.

    Processes of a host share its monotonic clock; hosts are aligned by what their wall clocks told
    when their first rank started, and are as far apart as those.
    """
    origins = list(origins)
    offsets: dict[str, int] = {}
    for origin in origins:
        offsets.setdefault(origin.host, origin.opened_wall - origin.opened)
    start = min((origin.opened + offsets[origin.host] for origin in origins), default=0)
    return {host: offset - start for host, offset in offsets.items()}


class _Lanes:
    """The lanes of one rank. Events that overlap in one lane would not be shown, so those of a
    thread nest, and the others are spread over as many lanes as it takes."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._bases: dict[str, int] = {}
        self._busy: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._idle: dict[str, list[int]] = defaultdict(list)

    def of(self, event: Event) -> int:
        """To be asked in the order in which events begin."""
        if event.kind in _OF_THREADS or (event.kind in ("encode", "decode") and event.device < 0):
            self.names[event.thread] = f"thread {event.thread}"
            return event.thread
        name = _LANES[event.kind].format(device=event.device)
        if name not in self._bases:
            order = list(_LANES).index(event.kind)
            self._bases[name] = (1 + order * 64 + max(event.device, 0) % 64) * 1_000_000
        busy, idle = self._busy[name], self._idle[name]
        while busy and busy[0][0] <= event.begin:
            heapq.heappush(idle, heapq.heappop(busy)[1])
        place = heapq.heappop(idle) if idle else len(busy)
        heapq.heappush(busy, (event.end, place))
        lane = self._bases[name] + place
        self.names[lane] = name
        return lane


def _name(event: Event) -> str:
    if event.kind in ("send", "receive"):
        peer = event.peer if event.peer >= 0 else "another world"
        return f"{event.operation} {'to' if event.kind == 'send' else 'from'} {peer}"
    if event.kind == "wait":
        return event.operation
    if event.kind == "wait for device":
        return f"wait for device {event.device}"
    if event.kind == "linger":
        return "let chunks leave"
    return event.kind if event.chunk == NO_NUMBER else f"{event.kind} {event.chunk}"


def _arguments(event: Event) -> dict[str, Any]:
    if event.kind in _OF_THREADS:
        return {}
    arguments: dict[str, Any] = {
        "peer": event.peer if event.peer >= 0 else None,
        "raw_bytes": event.raw_bytes,
        "wire_bytes": event.wire_bytes,
        "codec": event.codec,
    }
    if event.kind in ("send", "receive"):
        arguments["memory"] = "host" if event.device < 0 else f"device {event.device}"
    if event.kind == "send":
        arguments["left_raw"] = event.reason
    if event.message != NO_NUMBER:
        arguments["message"] = event.message
    if event.chunk != NO_NUMBER:
        arguments["chunk"] = event.chunk
    return arguments


class _Flows:
    """Joins the two ends of a message in chunks, and of each chunk: both ranks know it by the tag
    of its chunks. Tags come again after many messages; what is not unique is left alone."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, ...], tuple[list[Any], list[Any]]] = {}

    def note(self, rank: int, event: Event, place: dict[str, Any]) -> None:
        end = _ENDS.get(event.kind)
        if end is None or event.message == NO_NUMBER:
            return
        pair = (rank, event.peer) if end == 0 else (event.peer, rank)
        ends = self._found.setdefault((*pair, event.message, event.chunk), ([], []))
        ends[end].append((place["pid"], place["tid"], place["ts"], place["dur"]))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, (key, (begins, ends)) in enumerate(self._found.items()):
            if len(begins) != 1 or len(ends) != 1:
                continue
            kind = "message" if key[-1] == NO_NUMBER else "chunk"
            common = {"name": kind, "cat": kind, "id": number}
            (pid, tid, ts, _), (to_pid, to_tid, to_ts, duration) = begins[0], ends[0]
            yield {**common, "ph": "s", "pid": pid, "tid": tid, "ts": ts}
            at = round(to_ts + max(duration - 0.001, 0), 3)  # within the event that it leads to
            yield {**common, "ph": "f", "bp": "e", "pid": to_pid, "tid": to_tid, "ts": at}


def _labels(process: int, origin: Origin, lanes: _Lanes) -> Iterator[dict[str, Any]]:
    def label(what: str, lane: int, **arguments: Any) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": process, "tid": lane, "args": arguments}

    yield label("process_name", 0, name=f"rank {origin.rank} ({origin.host})")
    yield label("process_sort_index", 0, sort_index=process)
    for lane, name in lanes.names.items():
        yield label("thread_name", lane, name=name)
        yield label("thread_sort_index", lane, sort_index=lane)


def _of_rank(
    process: int, origin: Origin, events: list[Event], offset: int, flows: _Flows
) -> Iterator[dict[str, Any]]:
    """Times in microseconds."""
    lanes = _Lanes()
    for event in events:
        place = {
            "pid": process,
            "tid": lanes.of(event),
            "ts": (event.begin + offset) / 1000,
            "dur": (event.end - event.begin) / 1000,
        }
        yield {"name": _name(event), "cat": event.kind, "ph": "X", **place,
               "args": _arguments(event)}  # fmt: skip
        flows.note(origin.rank, event, place)
    yield from _labels(process, origin, lanes)


def write(directory: str | Path, path: str | Path, about: dict[str, Any]) -> int:
    """Merges the timelines in ``directory``, a rank at a time, into the file ``path``. Returns how
    many events are lost.

    ``about`` goes into ``otherData``, beside what there is of each rank, what is lost of it, and
    how the clocks were aligned.
    """
    origins, unreadable = read_origins(directory)
    offsets = clock_offsets(origins)
    flows = _Flows()
    ranks: dict[int, dict[str, Any]] = {}
    separator = "\n"
    with open(path, "w") as file:

        def put(events: Iterable[dict[str, Any]]) -> None:
            nonlocal separator
            for event in events:
                file.write(separator + json.dumps(event, separators=(",", ":")))
                separator = ",\n"

        file.write('{"traceEvents": [')
        for origin in origins:
            try:
                events, lost = read_events(origin.path)
            except (RecordError, OSError) as error:
                unreadable.append(str(error))
                continue
            # Processes that a program spawned are ranks of a world of their own.
            process = origin.rank
            while process in ranks:
                process += 1_000_000
            ranks[process] = {"rank": origin.rank, "pid": origin.pid, "host": origin.host,
                              "events": len(events), "lost": lost}  # fmt: skip
            put(_of_rank(process, origin, events, offsets[origin.host], flows))
        if len({rank["rank"] for rank in ranks.values()}) == len(ranks):
            put(flows)
        other = {
            **about,
            "clock": "one host's" if len(offsets) < 2 else "each host's, aligned by wall clocks",
            "unreadable_timelines": unreadable,
            "ranks": list(ranks.values()),
        }
        file.write(f'\n],\n"displayTimeUnit": "ns",\n"otherData": {json.dumps(other)}}}\n')
    return sum(rank["lost"] for rank in ranks.values())
