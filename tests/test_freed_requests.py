"""Requests that the program freed while they were active, and the end of MPI."""

from __future__ import annotations

import re

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")

PROGRAMS = [
    ("orphans", ["many"]),
    ("orphans", ["errors"]),
    ("finalize", ["callbacks"]),
    ("finalize", ["callbacks", "PMPI"]),
    ("finalize", ["unmatched"]),
    ("finalize", ["late_receivers"]),
    ("finalize", ["freed_receives"]),
]


def totals(done):
    return done.report["totals"]


def messages(done, rank=0):
    """How many compressed messages a rank sent."""
    return sum(
        row["messages"]
        for row in done.report["rows"]
        if row["rank"] == rank and row["direction"] == "send" and row["codec"] == "mpc"
    )


@pytest.mark.parametrize(("name", "args"), PROGRAMS)
def test_the_programs_are_right_without_mpress(name, args, mpi_program, mpirun):
    done = mpirun(2, mpi_program(name), args)
    assert done.status == 0, done.output


@pytest.mark.parametrize("args", [["callbacks"], ["callbacks", "PMPI"]])
def test_delete_callbacks_on_self_still_communicate(args, mpi_program, mpress_run):
    """mpress is the last to stop, whoever calls MPI_Finalize by whatever name."""
    done = mpress_run(2, mpi_program("finalize"), args, options=FORCED)
    assert done.status == 0, done.stderr
    assert messages(done) == 3
    assert all(rank["finished"] for rank in done.report["ranks"])


@pytest.mark.parametrize("chunk", ["1M", "64K"])
@pytest.mark.parametrize(("part", "sent"), [("unmatched", 1), ("late_receivers", 2)])
def test_finalize_waits_for_nobody_and_keeps_frames(part, sent, chunk, mpi_program, mpress_run):
    """Nor do chunks that nobody asks for keep it from ending."""
    env = {"MPRESS_CHUNK": chunk}
    done = mpress_run(2, mpi_program("finalize"), [part], options=FORCED, env=env)
    assert done.status == 0, done.stderr
    assert messages(done) == sent
    assert all(rank["finished"] for rank in done.report["ranks"])


@pytest.mark.parametrize("chunk", ["1M", "64K"])
def test_finalize_delivers_to_freed_receives(chunk, mpi_program, mpress_run):
    env = {"MPRESS_CHUNK": chunk}
    done = mpress_run(2, mpi_program("finalize"), ["freed_receives"], options=FORCED, env=env)
    assert done.status == 0, done.stderr
    assert messages(done) == 65
    assert totals(done)["chunked_messages"] == (chunk == "64K")


def test_errors_of_freed_requests_reach_handlers_that_call_mpi(mpi_program, mpress_run):
    done = mpress_run(2, mpi_program("orphans"), ["errors"], options=FORCED)
    assert done.status == 0, done.stderr
    assert "20 errors" in done.stdout


def test_many_freed_receives_cost_later_calls_little(preloadable, mpi_program, mpress_run):
    """3000 receives wait while 1000 other calls are made: a few are looked at in each."""
    library = preloadable("count_tests")
    env = {"LD_PRELOAD": library}
    done = mpress_run(2, mpi_program("orphans"), ["many"], options=FORCED, env=env)
    assert done.status == 0, done.stderr
    tests = [int(count) for count in re.findall(r"(\d+) tests", done.stderr)]
    assert len(tests) >= 2
    assert max(tests) < 200_000
