"""Blocks of collective calls that several ranks get (tests/mpi/same_bits): encoded once, passed on
as they came, and the same bits on every rank, also where the codec is lossy."""

import pytest

EXTENDED = pytest.mark.extended
SHARED = {"MPI_Allgather", "MPI_Allgatherv", "MPI_Bcast"}
# A codec, and what the program is told of it.
LOSSY = {"szp:abs=1e-3": "abs=1e-3", "szp:rel=1e-3": "rel=1e-3", "zfp:16": "loose"}


def forced(codec: str) -> tuple[str, ...]:
    return ("--codec", codec, "--force", "--threshold", "0")


def rows(done, direction: str) -> list[dict]:
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.report["totals"]["errors"] == 0
    return [row for row in done.report["rows"]
            if row["direction"] == direction and row["operation"] in SHARED]  # fmt: skip


@pytest.mark.parametrize("codec", [*LOSSY, "mpc"])
@pytest.mark.parametrize("ranks", [2, 3, pytest.param(5, marks=EXTENDED)])
def test_on_hosts_and_devices(ranks, codec, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_LEAKS": "shared"}
    args = [LOSSY.get(codec, "exact"), str(ranks), "40"]
    done = mpress_run(ranks, mpi_program("same_bits"), args, forced(codec), env=env)
    sent = rows(done, "send")
    assert {row["operation"] for row in sent} == SHARED
    assert sum(row["messages"] for row in sent if row["codec"] == codec[:3]) > 20


def test_by_mpi_alone(mpi_program, mpirun):
    """The program is right without mpress."""
    done = mpirun(3, mpi_program("same_bits"), ["exact", "5", "40", "host"])
    assert done.status == 0 and done.stdout == "ok\n", done.output
