"""MPRESS_PROGRESS=thread: messages proceed while the program computes (tests/mpi/computing.c)."""

from __future__ import annotations

import pytest

THREAD = {"MPRESS_PROGRESS": "thread"}
FORCED = ("--codec", "mpc", "--force", "--threshold", "1K")


def refuses(mpi):
    """Nobody can look at requests from several threads there (docs/semantics.md)."""
    return mpi.name == "abi"


def test_data_arrives_while_the_sender_computes(mpi, mpi_program, mpress_run, tmp_path):
    env = THREAD | {"MPRESS_CHUNK": "64K"}
    program = mpi_program("computing")
    done = mpress_run(2, program, [str(tmp_path / "arrived")], options=FORCED, env=env)
    if refuses(mpi):
        assert done.status != 0
        assert "MPRESS_PROGRESS=thread: this MPI" in done.output
        return
    assert done.status == 0, done.output
    assert done.stdout.endswith("ok\n"), done.output


@pytest.mark.parametrize(("threads", "rounds"), [("1", "6"), ("3", "4")])
def test_everything_else_stays_right(threads, rounds, mpi, mpi_program, mpress_run):
    if refuses(mpi):
        return  # the test above shows that
    options = ["--seed", "2", "--rounds", rounds, "--threads", threads]
    env = THREAD | {"MPRESS_CHUNK": "16K"}
    done = mpress_run(2, mpi_program("stress"), options, options=FORCED, env=env, timeout=300)
    assert done.status == 0, done.output


@pytest.mark.parametrize("args", [["callbacks"], ["callbacks", "PMPI"]], ids=["MPI", "PMPI"])
def test_the_thread_ends_before_mpi_does(args, mpi, mpi_program, mpress_run):
    """MPICH's MPI_Finalize takes back no lock that a thread holds. Messages of delete callbacks on
    MPI_COMM_SELF proceed without the thread."""
    if refuses(mpi):
        return  # see above
    env = THREAD | {"MPRESS_CHUNK": "64K"}
    done = mpress_run(2, mpi_program("finalize"), args, options=FORCED, env=env)
    assert done.status == 0, done.output
    assert all(rank["finished"] for rank in done.report["ranks"])


@pytest.mark.parametrize("leaving", ["throw", "jump"])
def test_handlers_may_throw_and_jump_away(leaving, mpi, mpi_program, mpress_run):
    if refuses(mpi):
        return  # see above
    env = THREAD | {"MPRESS_CHUNK": "64K"}
    args = ["mpress", "own-lock", leaving]
    done = mpress_run(2, mpi_program("throwing"), args, options=FORCED, env=env)
    assert done.status == 0, done.output


def test_on_devices(mpi, mpi_program, mpress_run, simulated_gpu):
    if refuses(mpi):
        return  # see above
    env = simulated_gpu | THREAD | {"MPRESS_CHUNK": "16K"}
    options = ["--seed", "4", "--rounds", "4", "--devices", "--threads", "3"]
    done = mpress_run(2, mpi_program("stress"), options, options=FORCED, env=env, timeout=300)
    assert done.status == 0, done.output


def test_a_wrong_value_names_what_was_expected(mpi_program, mpress_run):
    done = mpress_run(1, mpi_program("library_name"), env={"MPRESS_PROGRESS": "always"})
    assert done.status == 2
    assert "calls or thread" in done.output
