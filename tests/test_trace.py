"""Records that a job leaves: merged whatever state they are in."""

from __future__ import annotations

import pytest

from mpress import trace


def record(rank: int, rows: list[tuple[int, ...]], finished: int = 2_000_000_000) -> bytes:
    header = trace._HEADER.pack(
        b"mpressR1", trace._HEADER.size, trace._ROW.size, 8, rank, 2, 100 + rank, 1_000_000_000,
        finished, 0, 0, b"host", b"codec=mpc", b"an MPI",
    )  # fmt: skip
    return header + b"".join(trace._ROW.pack(*row) for row in rows)


def key(op: int, codec: int, reason: int, direction: int, peer: int) -> int:
    return op | codec << 8 | reason << 16 | direction << 24 | 1 << 31 | (peer & 0xFFFFFFFF) << 32


def test_messages_are_counted_once_and_times_everywhere(tmp_path):
    sent = (key(5, 1, 0, 0, 1), 3, 3000, 1000, 7_000_000, 0, 1_000_000, 0)
    left = (key(5, 0, 1, 0, 1), 2, 20, 20, 0, 0, 0, 0)
    got = (key(15, 1, 0, 1, 0), 3, 3000, 1000, 0, 5_000_000, 0, 1)
    waited = (key(21, 0, 0, 2, -1), 4, 0, 0, 0, 0, 9_000_000, 0)
    (tmp_path / "rank-0.100.rec").write_bytes(record(0, [sent, left, (0,) * 8]))
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
    [wait] = [row for row in merged["rows"] if row["direction"] == "complete"]
    assert wait["operation"] == "MPI_Waitall" and wait["peer"] is None


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
