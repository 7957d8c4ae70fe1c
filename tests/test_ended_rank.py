"""A rank that ends before MPI_Finalize, in a job that goes on without it: the others' farewell is
bounded, as that of plain MPICH is."""

from __future__ import annotations

import pytest
from execution import execute

from mpress.cli import launch

JOB = {
    "MPRESS_JOB": "0123456789abcdef" * 2,
    "MPRESS_CODEC": "mpc",
    "MPRESS_FORCE": "1",
    "MPRESS_CHUNK": "64K",
    "MPIR_CVAR_NO_COLLECTIVE_FINALIZE": "1",
}


@pytest.fixture
def left_alone(mpi, mpi_program):
    """Runs the program with a launcher that ends nobody because another rank has ended."""
    if mpi.name not in ("default", "mpich", "abi"):
        pytest.skip("MPICH's launcher and settings")

    def run(*args, env=None):
        command = [mpi.mpiexec, "-disable-auto-cleanup", "-n", "3", mpi_program("ended_rank")]
        return execute([*command, *args], {**mpi.env, **JOB, **(env or {})})

    return run


@pytest.mark.parametrize("args", [(), ("unreceived",)])
def test_plain_mpi_ends(args, left_alone):
    assert left_alone(*args).stdout.count("ok") == 2


@pytest.mark.parametrize("args", [(), ("unreceived",)])
def test_the_others_end(args, left_alone):
    preload = {"LD_PRELOAD": str(launch.required_preload_library())}
    done = left_alone(*args, env=preload)
    assert done.stdout.count("ok") == 2, done.output
    assert "waits no longer for rank 1, whose process has ended" in done.stderr
