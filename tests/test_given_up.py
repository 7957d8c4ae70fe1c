"""Chunks that nobody asks for: memory is given back, and MPI ends."""

from __future__ import annotations

import pytest

OPTIONS = ("--codec", "mpc", "--force", "--threshold", "0")


@pytest.mark.parametrize("part", ["truncated", "cancelled"])
def test_the_program_is_right_without_mpress(part, mpi_program, mpirun):
    done = mpirun(2, mpi_program("given_up"), [part])
    assert done.status == 0, done.output


def test_chunks_of_truncated_messages_are_dropped(mpi_program, mpress_run):
    """The sender may hold about three such messages: each of 24 goes in chunks only where those
    before it were taken."""
    env = {"MPRESS_CHUNK": "64K", "MPRESS_POOL_LIMIT": "4M"}
    done = mpress_run(2, mpi_program("given_up"), ["truncated"], options=OPTIONS, env=env)
    assert done.status == 0, done.stderr
    assert done.report["totals"]["chunked_messages"] == 24
    assert all(rank["finished"] for rank in done.report["ranks"])


def test_chunks_of_a_cancelled_message_are_drained(preloadable, mpi_program, mpress_run):
    library = preloadable("cancels")
    env = {"MPRESS_CHUNK": "64K", "LD_PRELOAD": library}
    done = mpress_run(2, mpi_program("given_up"), ["cancelled"], options=OPTIONS, env=env)
    assert done.status == 0, done.stderr
    assert "cancelled" in done.stdout
    assert done.report["totals"]["chunked_messages"] == 1
    assert all(rank["finished"] for rank in done.report["ranks"])
