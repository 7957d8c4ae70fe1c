"""MPRESS_PROGRESS=thread: messages proceed while the program computes (tests/mpi/computing.c)."""

from __future__ import annotations

import os
import sys

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


IMMEDIATE = """
import numpy
from mpi4py import MPI
import mpress
world = MPI.COMM_WORLD
assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
comm = mpress.Communicator(world, codec="mpc")
x = numpy.sin(numpy.arange(1 << 18, dtype=numpy.float32) * 1e-3) * (world.rank + 1)
total, gathered = numpy.empty_like(x), numpy.empty((world.size, x.size), x.dtype)
for _ in range(3):
    requests = [comm.Iallreduce(x, total), comm.Iallgather(x, gathered)]
    if world.rank == 0:
        world.Barrier()  # the others wait for what this rank has to send first
    served = []
    for request in requests:
        request.Wait()
        served.append(request.outcome.served)
    if world.rank != 0:
        world.Barrier()
ranks = numpy.arange(1, world.size + 1, dtype=numpy.float32)
assert numpy.allclose(total, x / (world.rank + 1) * ranks.sum(), rtol=1e-5)
assert (gathered[world.rank] == x).all()
if world.rank == 0:
    print("served", served)
"""


@pytest.mark.parametrize("progress", [None, "calls"])
def test_calls_that_do_not_block_start_the_thread(progress, mpi, mpi4py_env, mpress_run, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(IMMEDIATE)
    env = mpi4py_env | ({"MPRESS_PROGRESS": progress} if progress else {})
    options = ("--codec", "mpc", "--force", "--mpiexec", os.fspath(mpi.mpiexec))
    done = mpress_run(3, sys.executable, ["-m", "mpi4py", program], env=env, options=options)
    assert done.status == 0, done.output
    is_served = "served [True, True]" in done.stdout
    by_hook = mpi.name == "openmpi"
    assert is_served == (by_hook or (progress is None and not refuses(mpi)))
    assert is_served != ("collective calls that do not block are the MPI's" in done.output)
