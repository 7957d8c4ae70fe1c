"""Records that a job leaves: merged whatever state they are in."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys

import pytest

from mpress import trace
from mpress.cli import run


def record(
    rank: int,
    rows: list[tuple[int, ...]],
    finished: int = 2_000_000_000,
    pid: int = 100,
    host: str = "host",
    said: str = "",
    settings: str = "codec=mpc",
    left: tuple[tuple[int, int, bytes], ...] = (),
) -> bytes:
    header = trace._HEADER.pack(
        b"mpressR1", trace._HEADER_BYTES, trace._ROW.size, 8, rank, 2, pid, 1_000_000_000,
        finished, 0, 0, host.encode(), settings.encode(), b"an MPI", b"guesses", said.encode(),
    )  # fmt: skip
    calls = b"".join(trace._LEFT.pack(*row) for row in left).ljust(
        trace._HEADER_BYTES - trace._HEADER.size, b"\0"
    )
    return header + calls + b"".join(trace._ROW.pack(*row, *(0,) * (12 - len(row))) for row in rows)


def key(op: int, codec: int, reason: int, direction: int, peer: int) -> int:
    return op | codec << 8 | reason << 16 | direction << 24 | 1 << 31 | (peer & 0xFFFFFFFF) << 32


def test_messages_are_counted_once_and_times_everywhere(tmp_path):
    sent = (key(5, 1, 0, 0, 1), 3, 3000, 1000, 7_000_000, 0, 1_000_000, 0, 0)
    left = (key(5, 0, 1, 0, 1), 2, 20, 20, 0, 0, 0, 0, 0)
    got = (key(15, 1, 0, 1, 0), 3, 3000, 1000, 0, 5_000_000, 0, 1, 2_000_000)
    waited = (key(21, 0, 0, 2, -1), 4, 0, 0, 0, 0, 9_000_000, 0, 0)
    (tmp_path / "rank-0.100.rec").write_bytes(record(0, [sent, left, (0,) * 9]))
    (tmp_path / "rank-1.101.rec").write_bytes(record(1, [got, waited], finished=0))
    merged = trace.merge(tmp_path)
    totals = merged["totals"]
    assert (totals["messages"], totals["raw_bytes"], totals["wire_bytes"]) == (5, 3020, 1020)
    assert (totals["compressed_messages"], totals["decoded_messages"]) == (3, 3)
    assert totals["errors"] == 1
    assert totals["encode_seconds"] == pytest.approx(0.007)
    assert totals["decode_seconds"] == pytest.approx(0.005)
    assert totals["wait_seconds"] == pytest.approx(0.010)
    assert merged["left_raw"] == {"below the threshold": {"messages": 2, "bytes": 20}}
    assert [rank["finished"] for rank in merged["ranks"]] == [True, False]
    assert merged["run_seconds"] == pytest.approx(1.0)
    assert merged["unreadable_records"] == []
    ways = [dict(peer="same-host", memory="host", way="whole", compressed=True, messages=3,
                 raw_bytes=3000, seconds=pytest.approx(0.002))]  # fmt: skip
    assert merged["ways"] == ways and merged["detours"] == {}
    [wait] = [row for row in merged["rows"] if row["direction"] == "complete"]
    assert wait["operation"] == "MPI_Waitall" and wait["peer"] is None


def test_why_mpi_served_calls_is_summed_over_ranks(tmp_path):
    """By text: its address is each rank's own. One that is not written yet is left out."""
    bcast, allreduce = 38, 39
    first = ((bcast | 7 << 8, 3, b"short"), (allreduce | 9 << 8, 5, b"a type"), (0, 2, b"others"))
    second = ((allreduce | 8 << 8, 1, b"short"), (bcast | 8 << 8, 4, b"short"), (bcast, 6, b""))
    for rank, left in enumerate((first, second)):
        (tmp_path / f"rank-{rank}.10{rank}.rec").write_bytes(record(rank, [], left=left))
    found = [tuple(row.values()) for row in trace.merge(tmp_path)["left_to_mpi"]]
    assert found == [("MPI_Allreduce", "a type", 5), ("MPI_Allreduce", "short", 1),
                     ("MPI_Bcast", "short", 7), ("several", "others", 2)]  # fmt: skip


def test_what_became_of_messages_on_gpus(tmp_path):
    whole = key(5, 0, 1, 0, 1) | 1 << 7 | 3 << 12  # short
    copied = key(5, 0, 12, 0, 1) | 1 << 7 | 9 << 12 | 2 << 28
    got = key(15, 0, 0, 1, 0) | 1 << 7 | 2 << 28
    sent = [(whole, 2, 20, 20, 0, 0, 0, 0, 0), (copied, 4, 4000, 4100, 0, 0, 0, 0, 0)]
    (tmp_path / "rank-0.1.rec").write_bytes(record(0, sent, said="one thing\nanother\n"))
    received = [(got, 4, 4000, 4100, 0, 0, 0, 0, 8_000)]
    (tmp_path / "rank-1.2.rec").write_bytes(record(1, received, host="elsewhere"))
    merged = trace.merge(tmp_path)
    assert merged["detours"] == {
        trace.DETOURS[3]: {"messages": 2, "bytes": 20},
        trace.DETOURS[9]: {"messages": 4, "bytes": 4000},
    }
    [way] = merged["ways"]
    assert (way["peer"], way["memory"], way["way"]) == ("other-host", "device", "peer")
    assert way["seconds"] == pytest.approx(8e-6) and not way["compressed"]
    assert merged["said"] == [{"rank": 0, "text": t} for t in ("one thing", "another")]
    assert {row["operation"] for row in merged["rows"]} == {"MPI_Isend", "MPI_Irecv"}


def bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def accuracy_of(tmp_path, rows_by_rank, settings):
    for rank, rows in enumerate(rows_by_rank):
        kept = record(rank, rows, settings=settings)
        (tmp_path / f"rank-{rank}.{rank}.rec").write_bytes(kept)
    return [tuple(one.values()) for one in trace.merge(tmp_path)["accuracy"]]


@pytest.mark.parametrize("is_measured", [False, True])
def test_the_greatest_errors_of_results(tmp_path, is_measured):
    two_shot = 6 << 20

    def reduced(op: int, *errors: int) -> tuple[int, ...]:
        return key(op, 0, 0, 2, -1) | two_shot, 3, 0, 0, 0, 0, 9, 0, 0, *errors

    def sent(op: int, codec: int, *errors: int) -> tuple[int, ...]:
        return key(op, codec, 0, 0, 1), 3, 30, 10, 0, 0, 0, 0, 0, *errors

    first = [
        reduced(39, bits(1e-3), 0, 0),
        reduced(40, bits(1e-3), 1, bits(0.5)),
        reduced(41, 0, 0, 0),
        sent(39, 3, bits(7), 0, 0),  # a contribution is no result
        sent(1, 3, bits(0.25), 0, 0),
        sent(5, 3, bits(0.25), 1, 0),  # a GPU found one of the bounds
        sent(5, 2, 0, 3, bits(0.125)),
        sent(5, 1, 0, 0, 0),
        (key(21, 0, 0, 2, -1), 4, 0, 0, 0, 0, 9, 0, 0),
    ]
    second = [reduced(39, bits(2e-3), 0, 0), reduced(40, 0, 3, bits(0.25))]
    settings = "codec=szp" + " measure_error=1" * is_measured
    assert accuracy_of(tmp_path, [first, second], settings) == [
        ("MPI_Allreduce", "two-shot", None, 2e-3, None),
        ("MPI_Isend", None, "szp", None, None),
        ("MPI_Isend", None, "zfp", None, 0.125 if is_measured else None),
        ("MPI_Reduce", "two-shot", None, None, 0.5 if is_measured else None),
        ("MPI_Reduce_scatter", "two-shot", None, 0.0, None),
        ("MPI_Send", None, "szp", 0.25, None),
    ]


def test_a_spoilt_record_loses_only_itself(tmp_path):
    (tmp_path / "rank-0.1.rec").write_bytes(record(0, []))
    (tmp_path / "rank-1.2.rec").write_bytes(b"")
    (tmp_path / "rank-2.3.rec").write_bytes(b"something else entirely" * 100)
    merged = trace.merge(tmp_path)
    assert [rank["rank"] for rank in merged["ranks"]] == [0]
    assert len(merged["unreadable_records"]) == 2


def test_a_job_that_left_nothing(tmp_path):
    merged = trace.merge(tmp_path)
    assert merged["totals"]["messages"] == 0 and merged["totals"]["ratio"] == 1.0
    assert merged["ranks"] == [] and merged["run_seconds"] is None


@pytest.fixture
def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_dead_ranks(tmp_path, dead_pid):
    here = socket.gethostname()
    for rank, pid, host, finished in [
        (0, os.getpid(), here, 0),  # alive
        (1, dead_pid, here, 0),
        (2, dead_pid, here, 1),  # it reached MPI_Finalize
        (3, dead_pid, here + "-other", 0),  # nobody here can tell
    ]:
        (tmp_path / f"rank-{rank}.rec").write_bytes(record(rank, [], finished, pid, host))
    assert trace.dead_ranks(tmp_path) == [1]


def test_a_launcher_that_hangs_is_ended(tmp_path, dead_pid, monkeypatch, capsys):
    monkeypatch.setattr(run, "_GRACE_SECONDS", 0)
    (tmp_path / "rank-1.rec").write_bytes(record(1, [], 0, dead_pid, socket.gethostname()))
    assert run._execute(["sleep", "600"], tmp_path) != 0
    assert "rank 1 ended without MPI_Finalize" in capsys.readouterr().err
