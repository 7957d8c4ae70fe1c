"""The program's floating-point environment is its own: tests/mpi/float_environment.c makes calls of
all families with traps unmasked, flags raised and other modes. Without mpress it passes, too."""

from __future__ import annotations

import pytest

FORCED = ("--force", "--threshold", "0")
PROGRAM = "float_environment"
# All but inexact, which MPI_Init of MPICH and Open MPI themselves raise.
EARLY = ("traps", "early", "{bound}", "F80")
LATE = ("traps", "late", "{bound}")
ISAS = pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])


@pytest.fixture
def runs(mpi_program, mpress_run):
    """runs(ranks, words, codec, env={}): under mpress, all served; its report."""

    def run(ranks, words, codec, env=None):
        bound = codec.partition("abs=")[2] or ("0" if codec in ("mpc", "none") else "inf")
        arguments = [word.format(bound=bound) for word in words]
        options = ("--codec", codec, *FORCED)
        done = mpress_run(ranks, mpi_program(PROGRAM), arguments, options, env=env)
        assert done.status == 0, done.output
        assert done.report["totals"]["errors"] == 0
        return done

    return run


def served(done) -> set[str]:
    return {row["operation"] for row in done.report["rows"] if row["direction"] == "send"}


@pytest.mark.parametrize("words", [EARLY, LATE], ids=["early", "late"])
def test_without_mpress(words, mpi_program, mpirun):
    done = mpirun(2, mpi_program(PROGRAM), [word.format(bound="0") for word in words])
    assert done.status == 0, done.output


@pytest.mark.parametrize("codec", ["mpc", "zfp:16", "szp:rel=1e-4"])
def test_nothing_traps(codec, runs):
    """Nor is any flag raised, nor any mode changed."""
    done = runs(3, EARLY, codec)
    assert {"MPI_Sendrecv", "MPI_Bcast", "MPI_Allgather", "MPI_Alltoall"} <= served(done)
    runs(2, LATE, codec)


@ISAS
def test_nothing_traps_in_quanta(isa, runs):
    done = runs(3, LATE, "szp:abs=1e-3", {"MPRESS_ISA": isa})
    assert {"MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter_block"} <= served(done)


@pytest.mark.parametrize("learns", ["off", "all"])
def test_nothing_traps_where_it_has_to_pay(learns, mpi_program, mpress_run):
    """Costs are measured, learned and compared meanwhile."""
    arguments = ["traps", "early", "0", "F80"]
    env = {"MPRESS_LEARN": learns, "MPRESS_THRESHOLD": "16K"}
    done = mpress_run(2, mpi_program(PROGRAM), arguments, env=env)
    assert done.status == 0, done.output


@ISAS
def test_ranks_with_other_modes(isa, runs):
    """The bound holds, and all ranks have the same bits."""
    runs(4, ("modes", "{bound}"), "szp:abs=1e-2", {"MPRESS_ISA": isa})


def test_reproducible_sums_with_other_modes(mpi_program, mpress_run):
    env = {"MPRESS_REPRODUCIBLE": "1"}
    done = mpress_run(4, mpi_program(PROGRAM), ["modes", "1e-2"], ("--codec", "none"), env=env)
    assert done.status == 0, done.output
    assert "MPI_Allreduce" in served(done)


@pytest.mark.parametrize("codec", ["none", "mpc"])
def test_sums_without_loss_are_the_programs(codec, mpi, runs):
    done = runs(2, ("sums",), codec)
    assert "MPI_Allreduce" in served(done)
    if mpi.name == "abi":  # which has no way to look at requests from several threads
        return
    runs(2, ("sums", "elsewhere"), codec, {"MPRESS_PROGRESS": "thread"})
