"""Statistics of a run: reads the records that ranks keep and merges them into one report.

The layout of a record is that of ``src/trace/record.hpp``. Ranks update their records while they
run and never need to close them, so whatever an aborted job left behind can be merged too.
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mpress import links

REPORT_FORMAT = 1

OPERATIONS = (
    "", "MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Isend", "MPI_Ibsend",
    "MPI_Issend", "MPI_Irsend", "MPI_Sendrecv", "MPI_Isendrecv", "MPI_Sendrecv_replace",
    "MPI_Isendrecv_replace", "MPI_Start", "MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv",
    "MPI_Probe", "MPI_Mprobe", "MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome",
    "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Request_get_status",
    "MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gather", "MPI_Gatherv", "MPI_Scatter",
    "MPI_Scatterv", "MPI_Allgather", "MPI_Allgatherv", "MPI_Bcast",
    "MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
    "mpress_iso_neighbor_alltoall", "mpress_iso_neighbor_alltoallv",
    "mpress_iso_neighbor_alltoallw", "mpress_iso_neighbor_allgather",
    "mpress_iso_neighbor_allgatherv", "mpress_iso_neighbor_allgatherw",
    "mpress_iso_neighbor_reduce", "mpress_iso_neighbor_scatter_reduce",
    "MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv", "MPI_Neighbor_alltoallw",
    "MPI_Neighbor_allgather", "MPI_Neighbor_allgatherv",
)  # fmt: skip
REDUCTIONS = (
    "MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block",
)  # fmt: skip
CODECS = {0: "none", 1: "mpc", 2: "zfp", 3: "szp"}
REASONS = {
    0: None,
    1: "below the threshold",
    2: "not a run of f32 or f64",
    3: "incompressible",
    4: "would not pay at any ratio",
    5: "switched off",
    6: "unaligned device memory",
    7: "peer of another world",
    8: "no memory",
    9: "sessions in use",
    10: "device memory left to MPI",
    11: "would not pay at the ratio seen",
    12: "costs never measured",
    13: "sent raw to time the link",
    14: "came raw, and is passed on so",
}
DIRECTIONS = {0: "send", 1: "receive", 2: "complete"}
WAYS = {0: "whole", 1: "chunks", 3: "direct"} | {link.way: link.name for link in links.ALL}

DETOURS = {
    0: None,
    1: "its receiver is on another host",
    2: "no link between GPUs: MPRESS_LINK, or no chunks",
    3: "short: faster by MPI",
    4: "left to an MPI that takes memory of GPUs",
    5: "to itself, or no header can announce it",
    6: "its receiver's GPU, or process, cannot open this memory",
    7: "its receiver has not opened the memory yet",
    8: "the memory for messages under way was full",
    9: "its memory cannot be shared: copied first",
}
"""Why a message in memory of a GPU took a longer way than another could have."""
ALGORITHMS = (
    None, "linear", "binomial", "chain", "scatter-ring", "scatter-doubling", "two-shot",
    "scattered", "ring", "doubling", "bruck", "by-host", "pairwise", "one-shot",
    "one-kernel", "combining",
)  # fmt: skip
"""Of collective calls: as ``src/schedule/algorithms.hpp`` has them."""

_HEADER = struct.Struct("<8sIIIiiIQQII64s384s128s4352s4096s")
_LEFT = struct.Struct("<QQ112s")
_LEFT_CAPACITY = 64
_HEADER_BYTES = _HEADER.size + _LEFT_CAPACITY * _LEFT.size
_ROW = struct.Struct("<12Q")
_COUNTS = ("messages", "raw_bytes", "wire_bytes")
_SECONDS = ("encode_seconds", "decode_seconds", "wait_seconds")


class RecordError(ValueError):
    """A file is not a record of this version."""


@dataclass
class Record:
    """What one rank left: its identity and its rows (dictionaries, as in the report)."""

    rank: int
    size: int
    pid: int
    host: str
    settings: str
    mpi: str
    profile: str
    said: list[str]
    simulated: bool
    gpu_aware: bool
    started_ns: int
    finished_ns: int
    rows: list[dict[str, Any]]
    left_to_mpi: list[dict[str, Any]]


def text_of(raw: bytes) -> str:
    """The text in a field of fixed size."""
    return raw.split(b"\0", 1)[0].decode(errors="replace")


def _row(rank: int, fields: list[int]) -> dict[str, Any]:
    (key, messages, raw, wire, encode, decode, wait, errors, transfer, bound, unbounded,
     measured) = fields  # fmt: skip
    peer = key >> 32
    has_errors = DIRECTIONS[key >> 24 & 0xF] != "receive"
    return {
        "rank": rank,
        "operation": OPERATIONS[key & 0x7F],
        "algorithm": ALGORITHMS[key >> 20 & 0xF],
        "direction": DIRECTIONS[key >> 24 & 0xF],
        "peer": None if peer == 0xFFFFFFFF else peer,
        "memory": "device" if key >> 7 & 1 else "host",
        "codec": CODECS[key >> 8 & 0xF],
        "reason": REASONS[key >> 16 & 0xF],
        "way": WAYS[key >> 28 & 7],
        "detour": DETOURS[key >> 12 & 0xF],
        "messages": messages,
        "raw_bytes": raw,
        "wire_bytes": wire,
        "encode_seconds": encode / 1e9,
        "decode_seconds": decode / 1e9,
        "wait_seconds": wait / 1e9,
        "transfer_seconds": transfer / 1e9,
        "errors": errors,
        "unbounded": unbounded,
        "error_bound": _double(bound) if has_errors and not unbounded else None,
        "measured_error": _double(measured) if unbounded else None,
    }


def _double(bits: int) -> float:
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]


def read_record(path: str | Path) -> Record:
    """Reads one rank's record.

    Raises RecordError where the file is no record of this version.
    """
    data = Path(path).read_bytes()
    if len(data) < _HEADER_BYTES or not data.startswith(b"mpressR1"):
        raise RecordError(f"{path}: not an mpress record")
    (_, header_bytes, row_bytes, capacity, rank, size, pid, started, finished, simulated, aware,
     host, settings, mpi, profile, said) = _HEADER.unpack_from(data)  # fmt: skip
    if header_bytes != _HEADER_BYTES or row_bytes != _ROW.size:
        raise RecordError(f"{path}: a record of another version of mpress")
    whole = min(capacity, (len(data) - header_bytes) // row_bytes)
    table = memoryview(data)[header_bytes : header_bytes + whole * row_bytes].cast("Q")
    width = row_bytes // 8
    keys = table[::width].tolist()  # 0 of rows that are unused, as most are
    rows = [
        _row(rank, table[i * width : (i + 1) * width].tolist()) for i, key in enumerate(keys) if key
    ]
    texts = (text_of(host), text_of(settings), text_of(mpi), text_of(profile))
    return Record(rank, size, pid, *texts, text_of(said).splitlines(), bool(simulated),
                  bool(aware), started, finished, rows, _left_to_mpi(data))  # fmt: skip


def _left_to_mpi(data: bytes) -> list[dict[str, Any]]:
    table = _LEFT.iter_unpack(data[_HEADER.size : _HEADER_BYTES])
    return [
        {"operation": OPERATIONS[key & 0x7F] or "several", "reason": text_of(why), "calls": calls}
        for key, calls, why in table
        if calls and why[0]
    ]


@cache
def _own_record_path() -> Path | None:
    found = Path(os.environ.get("MPRESS_RECORD", os.devnull)).glob(f"rank-*.{os.getpid()}.rec")
    return next(found, None)


def own_record() -> Record | None:
    """What mpress keeps of this process, whose MPI runs; None where it keeps nothing."""
    path = _own_record_path()
    return read_record(path) if path else None


def dead_ranks(directory: str | Path) -> list[int]:
    """Ranks of this host whose process is gone although it never reached MPI_Finalize."""
    dead = []
    for path in Path(directory).glob("rank-*.rec"):
        try:
            record = read_record(path)
        except (RecordError, OSError):
            continue
        if record.host != os.uname().nodename or record.size == 0 or record.finished_ns:
            continue
        try:
            os.kill(record.pid, 0)
        except ProcessLookupError:
            dead.append(record.rank)
        except PermissionError:
            pass
    return sorted(dead)


def _sums(rows: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: sum(row[name] for row in rows) for name in names}


def _totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Messages are counted where they are sent; times wherever they are spent."""
    sent = [row for row in rows if row["direction"] == "send"]
    totals = _sums(sent, _COUNTS) | _sums(rows, _SECONDS)
    totals["compressed_messages"] = sum(r["messages"] for r in sent if r["codec"] != "none")
    totals["decoded_messages"] = sum(
        r["messages"] for r in rows if r["direction"] == "receive" and r["codec"] != "none"
    )
    totals["chunked_messages"] = sum(r["messages"] for r in sent if r["way"] == "chunks")
    for link in links.ALL:
        totals[f"{link.name}_messages"] = sum(r["messages"] for r in sent if r["way"] == link.name)
    totals["direct_messages"] = sum(
        r["messages"] for r in rows if r["direction"] == "receive" and r["way"] == "direct"
    )
    totals["errors"] = sum(row["errors"] for row in rows)
    totals["ratio"] = totals["raw_bytes"] / totals["wire_bytes"] if totals["wire_bytes"] else 1.0
    return totals


def _sent_by(rows: list[dict[str, Any]], name: str) -> dict[str, dict[str, int]]:
    """Messages that were sent, by what the rows say of `name`, where they say anything."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: {"messages": 0, "bytes": 0})
    for row in rows:
        if row["direction"] == "send" and row[name]:
            sums[row[name]]["messages"] += row["messages"]
            sums[row[name]]["bytes"] += row["raw_bytes"]
    return dict(sums)


def _summed_left(records: list[Record]) -> list[dict[str, Any]]:
    """By operation; of each, the reasons of most calls first."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for record in records:
        for left in record.left_to_mpi:
            sums[left["operation"], left["reason"]] += left["calls"]
    return [
        {"operation": operation, "reason": reason, "calls": calls}
        for (operation, reason), calls in sorted(
            sums.items(), key=lambda item: (item[0][0], -item[1], item[0][1])
        )
    ]


def _ways(rows: list[dict[str, Any]], hosts: dict[int, str]) -> list[dict[str, Any]]:
    """What ranks received, by kind of peer, memory, way and whether it was compressed: `seconds`
    are those from a message's header to its end, where its data followed that; else 0."""
    sums: dict[tuple[str, str, str, bool], dict[str, Any]] = defaultdict(
        lambda: {"messages": 0, "raw_bytes": 0, "seconds": 0.0}
    )
    for row in rows:
        if row["direction"] == "receive" and row["messages"]:
            here = hosts.get(row["peer"]) == hosts[row["rank"]]
            kind = "same-host" if here else "other-host"
            found = sums[kind, row["memory"], row["way"], row["codec"] != "none"]
            found["messages"] += row["messages"]
            found["raw_bytes"] += row["raw_bytes"]
            found["seconds"] += row["transfer_seconds"]
    names = ("peer", "memory", "way", "compressed")
    return [dict(zip(names, key, strict=True)) | sums[key] for key in sorted(sums)]


def _accuracy(rows: list[dict[str, Any]], is_measured: bool) -> list[dict[str, Any]]:
    """The greatest absolute error of results: of reductions that mpress served, by operation and
    algorithm; of all else that was sent with a loss, by codec, too."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in rows:
        is_reduction = row["operation"] in REDUCTIONS
        if row["direction"] != ("complete" if is_reduction else "send") or not (
            row["algorithm"] if is_reduction else row["codec"] in ("zfp", "szp")
        ):
            continue
        codec = None if is_reduction else row["codec"]
        key = (row["operation"], row["algorithm"] or "", codec or "")
        first = dict(operation=row["operation"], algorithm=row["algorithm"], codec=codec,
                     error_bound=0.0, measured_error=None)  # fmt: skip
        one = found.setdefault(key, first)
        if row["unbounded"]:
            one["error_bound"] = None
        if one["error_bound"] is not None:
            one["error_bound"] = max(one["error_bound"], row["error_bound"])
        if row["unbounded"] and is_measured and codec != "szp":
            one["measured_error"] = max(one["measured_error"] or 0.0, row["measured_error"])
    return [found[key] for key in sorted(found)]


def read_records(directory: str | Path) -> tuple[list[Record], list[str]]:
    """The records in ``directory`` by rank, and why others could not be read."""
    records, unreadable = [], []
    for path in sorted(Path(directory).glob("rank-*.rec")):
        try:
            records.append(read_record(path))
        except (RecordError, OSError) as error:
            unreadable.append(str(error))
    records.sort(key=lambda record: (record.rank, record.pid))
    return records, unreadable


def merge(directory: str | Path) -> dict[str, Any]:
    """Merges the records in ``directory`` into a report, ready to be written as JSON.

    ``rows`` holds every line of every rank; ``totals`` counts each message once, at its sender.
    ``accuracy`` has the greatest error that results may have: ``error_bound``, 0 where nothing was
    lost and None where no bound held, and ``measured_error``, None where none was measured.
    ``ways`` tells how messages travelled, as receivers counted them, ``detours`` why messages in
    memory of GPUs took no shorter way, ``left_to_mpi`` why MPI served collective calls (of all
    ranks), and ``said`` what ranks said on standard error.
    ``ranks[i]["finished"]`` is false for a rank that never reached MPI_Finalize;
    ``unreadable_records`` says which records could not be read, and why.
    """
    records, unreadable = read_records(directory)
    rows = [row for record in records for row in record.rows]
    seconds = [(r.finished_ns - r.started_ns) / 1e9 for r in records if r.finished_ns]
    return {
        "format": REPORT_FORMAT,
        "mpi": records[0].mpi if records else None,
        "settings": records[0].settings if records else None,
        "profile": records[0].profile if records else None,
        "unreadable_records": unreadable,
        "simulated_link": any(record.simulated for record in records),
        "run_seconds": max(seconds, default=None),
        "totals": _totals(rows),
        "accuracy": _accuracy(rows, "measure_error=1" in (records[0].settings if records else "")),
        "left_raw": _sent_by(rows, "reason"),
        "ways": _ways(rows, {record.rank: record.host for record in records}),
        "detours": _sent_by(rows, "detour"),
        "left_to_mpi": _summed_left(records),
        "said": [{"rank": r.rank, "text": text} for r in records for text in r.said],
        "ranks": [
            {
                "rank": r.rank,
                "pid": r.pid,
                "host": r.host,
                "finished": r.finished_ns != 0,
                "seconds": (r.finished_ns - r.started_ns) / 1e9 if r.finished_ns else None,
            }
            for r in records
        ],
        "rows": rows,
    }
