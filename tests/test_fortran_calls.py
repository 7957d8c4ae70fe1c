"""Fortran bindings whose calls mpress cannot see keep it off in the whole job.

The binding is written in C, so that no Fortran is needed; `make test-fortran` has real ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from execution import ROOT, execute

import mpress

PRELOAD = Path(mpress.__file__).parent / "lib" / "libmpress_preload.so"
SOURCES = ROOT / "tests" / "mpi"
RANKS = 'if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ]; then exec "$0"; else exec "$1"; fi'
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
OFF = "calls MPI where mpress cannot see it"


@pytest.fixture(scope="session")
def unseen(tmp_path_factory, mpi):
    """A program that receives through a binding which completes requests inside MPI."""
    directory = tmp_path_factory.mktemp("unseen")
    library = directory / "libunseen_mpi.so"
    command = [mpi.mpicc, "-shared", "-fPIC", "-o", library, SOURCES / "unseen_binding.c", "-ldl"]
    done = execute(command)
    assert done.status == 0, done.output
    program = directory / "unseen"
    command = [mpi.mpicc, "-o", program, SOURCES / "unseen.c", library, f"-Wl,-rpath,{directory}"]
    done = execute([*command, "-lm"])
    assert done.status == 0, done.output
    return program


def test_unseen_calls_keep_mpress_off(unseen, mpress_run):
    outcome = mpress_run(2, unseen, options=FORCED)
    assert outcome.status == 0, outcome.output
    assert "rank 1: intact" in outcome.stdout
    assert outcome.stderr.count(OFF) == 1
    assert outcome.report["totals"]["messages"] == 0
    assert all(rank["finished"] for rank in outcome.report["ranks"])


def test_unseen_calls_of_one_rank_keep_mpress_off_everywhere(unseen, mpi, mpi_program, mpress_run):
    """The sender is a program in C, without any Fortran binding."""
    words = ["-c", RANKS, str(mpi_program("one_message")), str(unseen)]
    outcome = mpress_run(2, "sh", words, options=(*FORCED, "--mpiexec", str(mpi.mpiexec)))
    assert outcome.status == 0, outcome.output
    assert "rank 1: intact" in outcome.stdout
    assert outcome.stderr.count(OFF) == 1
    assert outcome.report["totals"]["messages"] == 0


def test_ranks_agree_without_mpress_run(unseen, mpi_program, mpirun):
    """No records tell what the others run."""
    settings = [f"LD_PRELOAD={PRELOAD}", f"MPRESS_JOB={'0123456789abcdef' * 2}", "MPRESS_FORCE=1"]
    words = ["-c", RANKS, str(mpi_program("one_message")), str(unseen)]
    done = mpirun(2, "env", [*settings, "sh", *words])
    assert done.status == 0, done.output
    assert "rank 1: intact" in done.stdout
    assert done.stderr.count(OFF) == 1
