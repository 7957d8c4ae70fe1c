"""Fortran programs keep their meaning while their messages travel compressed, by every binding.

`make test-fortran` runs this for every MPI with Fortran bindings that it finds (run.py); `make
test` leaves it alone. Each program of this directory is compiled for mpif.h, `use mpi` and `use
mpi_f08`, checks what MPI promises, and also passes without mpress.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled_programs import compile_mpi_program
from execution import execute

SOURCES = Path(__file__).parent
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
BINDINGS = ("mpif_h", "mpi", "mpi_f08")
RANKS = 2

# Compressed messages of both ranks, by the call that sent them.
SENT = {
    "messages": {
        "MPI_Send": 8,
        "MPI_Bsend": 1,
        "MPI_Ssend": 1,
        "MPI_Rsend": 1,
        "MPI_Sendrecv": 2,
        "MPI_Sendrecv_replace": 4,
    },
    "requests": {"MPI_Isend": 44, "MPI_Issend": 14, "MPI_Start": 8},
    "probes": {"MPI_Isend": 12},
    "types": {"MPI_Sendrecv": 12, "MPI_Isend": 2},
    "errors": {"MPI_Send": 4, "MPI_Sendrecv_replace": 40},
    "mixed": {"MPI_Send": 2, "MPI_Isend": 4},
    "sections": {"MPI_Send": 2, "MPI_Sendrecv": 2, "MPI_Sendrecv_replace": 2},
}
TRUNCATED = {"errors": 3}  # messages that are refused, not decoded


@pytest.fixture(scope="session")
def fortran_program(build_dir, mpi):
    """fortran_program(name, binding): the executable of NAME.F90 and, where it exists, NAME.c."""

    def compiled(name: str, binding: str) -> Path:
        directory = build_dir / "tests" / "fortran" / mpi.name / binding
        program = directory / name
        newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
        if program.exists() and program.stat().st_mtime > newest:
            return program
        directory.mkdir(parents=True, exist_ok=True)
        mpifort = mpi.mpicc.with_name(mpi.mpicc.name.replace("mpicc", "mpifort"))
        fortran = [mpifort, "-cpp", f"-DBINDING_{binding.upper()}", "-O1", "-g", "-w"]
        # mpif.h declares no interfaces, and so takes buffers of different types for a mistake.
        fortran += ["-fallow-argument-mismatch", f"-J{directory}", f"-I{directory}"]
        sources = [SOURCES / "checks.F90", SOURCES / f"{name}.F90"]
        beside = SOURCES / f"{name}.c"
        if beside.exists():
            c_part = directory / f"{name}_c.o"
            done = execute([mpi.mpicc, "-O1", "-g", "-c", "-o", c_part, beside])
            assert done.status == 0, done.output
            sources.append(c_part)
        done = execute([*fortran, "-o", program, *sources])
        assert done.status == 0, done.output
        return program

    return compiled


# Only mpi_f08 knows sections.
PROGRAMS = [
    pytest.param(name, binding, id=f"{name}-{binding}")
    for name in SENT
    for binding in BINDINGS
    if name != "sections" or binding == "mpi_f08"
]


def sent(report):
    """Compressed messages by the call that sent them."""
    count: dict[str, int] = {}
    for row in report["rows"]:
        if row["direction"] == "send" and row["codec"] != "none":
            count[row["operation"]] = count.get(row["operation"], 0) + row["messages"]
    return count


@pytest.mark.parametrize(("name", "binding"), PROGRAMS)
def test_programs_are_right_without_mpress(name, binding, fortran_program, mpirun):
    done = mpirun(RANKS, fortran_program(name, binding))
    assert done.status == 0, done.output


@pytest.mark.parametrize(("name", "binding"), PROGRAMS)
def test_messages_are_compressed(name, binding, fortran_program, mpress_run):
    outcome = mpress_run(RANKS, fortran_program(name, binding), options=FORCED)
    assert outcome.status == 0, outcome.output
    assert "ok" in outcome.stdout
    expected = dict(SENT[name])
    if "sections are sent as they are" in outcome.stdout:
        expected["MPI_Isend"] = 2
    assert sent(outcome.report) == expected
    totals = outcome.report["totals"]
    assert totals["decoded_messages"] == sum(expected.values()) - TRUNCATED.get(name, 0)
    assert totals["errors"] == 0
    assert "leaked" not in outcome.stderr  # MPICH counts the types that were never freed
    assert all(rank["finished"] for rank in outcome.report["ranks"])


@pytest.mark.parametrize("binding", BINDINGS)
def test_ranks_of_two_languages(binding, fortran_program, mpi, build_dir, mpress_run):
    """Rank 0 runs a Fortran program, rank 1 one in C, which has no Fortran binding at all."""
    ranks = 'if [ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ]; then exec "$0"; else exec "$1"; fi'
    words = ["-c", ranks, str(fortran_program("peer", binding))]
    words.append(str(compile_mpi_program("one_message", mpi, build_dir)))
    outcome = mpress_run(RANKS, "sh", words, options=(*FORCED, "--mpiexec", str(mpi.mpiexec)))
    assert outcome.status == 0, outcome.output
    assert "rank 1: intact" in outcome.stdout
    assert sent(outcome.report) == {"MPI_Send": 1}
    assert outcome.report["totals"]["decoded_messages"] == 1
