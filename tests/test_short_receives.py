"""Receives that are too short for what is compressed go to MPI as they are; whatever comes to them
all the same is right."""

from __future__ import annotations

import pytest
from compiled_programs import on_rank_1

from mpress.cli import launch

FORCED = ("--codec", "mpc", "--force")
WAYS = 24
"""Messages of 4 KB that are received, each in another way."""


def counted(done, direction, **wanted):
    """Messages of rows of this kind, but for those without data."""
    rows = [row for row in done.report["rows"] if row["direction"] == direction]
    rows = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return sum(row["messages"] for row in rows if row["raw_bytes"] > 0)


def test_short_messages_count_where_they_are_sent(mpi_program, mpress_run):
    done = mpress_run(2, mpi_program("short_receives"), ["environment"], options=FORCED)
    assert done.status == 0, done.output
    assert counted(done, "send") == WAYS
    # Those with gaps, and persistent ones, are looked at.
    assert counted(done, "receive") == 4
    assert done.report["totals"]["compressed_messages"] == 0


@pytest.mark.parametrize(("first", "second"), [("1K", "64K"), ("64K", "1K")])
def test_ranks_have_thresholds_of_their_own(first, second, tmp_path, mpi_program, mpirun):
    """As no job of `mpress run` has them."""
    program = mpi_program("short_receives")
    script = on_rank_1(tmp_path, program, f"export MPRESS_THRESHOLD={second}")
    env = {
        "LD_PRELOAD": str(launch.required_preload_library()),
        "MPRESS_JOB": "0123456789abcdef" * 2,
        "MPRESS_FORCE": "1",
        "MPRESS_THRESHOLD": first,
    }
    done = mpirun(2, script, ["environment"], env)
    assert (done.status, done.stdout, done.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize("call", ["set_info", "dup_with_info", "idup_with_info"])
@pytest.mark.parametrize("members", ["both", "one"])
def test_hints_below_what_ranks_expect(members, call, mpi_program, mpress_run):
    """Also where the receiver has not given them, whose duplicates then lack them."""
    done = mpress_run(2, mpi_program("short_receives"), [members, call], options=FORCED)
    assert done.status == 0, done.output
    for direction in ("send", "receive"):
        assert counted(done, direction, codec="mpc") == WAYS + 1


@pytest.mark.parametrize("chunk", ["1M", "64K"])
def test_truncation_is_told(chunk, mpi_program, mpress_run):
    """Where a frame, or the header of chunks, would have fit."""
    env = {"MPRESS_CHUNK": chunk}
    done = mpress_run(2, mpi_program("short_receives"), ["truncated"], options=FORCED, env=env)
    assert done.status == 0, done.output
    assert done.report["totals"]["compressed_messages"] == 16
