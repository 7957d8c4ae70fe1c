"""A tool that wraps MPI's calls, beside mpress: loaded before it, linked into the program, loaded
behind it; one that wraps all that it should and one that wraps two calls (tests/mpi/tool.c)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from execution import ROOT, execute

from mpress.cli import launch

SOURCES = ROOT / "tests" / "mpi"
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
PRELOAD = str(launch.required_preload_library())
SENT, ROOM = 3 * 12000, 3 * 20000

# What the program does, in three rounds.
FULL = (
    f"Send 3/{SENT} Isend 3/{SENT} Recv 3/{SENT} Irecv 6/{2 * ROOM} "
    f"Wait 3/{SENT} Waitall 6/0 Probe 3/{SENT}"
)
PARTIAL = f"Send 3/{SENT} Isend 0/0 Recv 0/0 Irecv 0/0 Wait 3/{SENT} Waitall 0/0 Probe 0/0"
NOTHING = "Send 0/0 Isend 0/0 Recv 0/0 Irecv 0/0 Wait 0/0 Waitall 0/0 Probe 0/0"
TOOLS = [pytest.param((), FULL, id="full"), pytest.param(("-DPARTIAL",), PARTIAL, id="partial")]


@pytest.fixture
def build(mpi, tmp_path):
    """build(file, options...): what mpicc makes of tests/mpi's sources."""

    def built(name: str, *options: str | Path) -> Path:
        done = execute([mpi.mpicc, "-O1", "-o", tmp_path / name, *options, "-lm"])
        assert done.status == 0, done.output
        return tmp_path / name

    return built


def seen(done) -> list[str]:
    assert done.status == 0, done.output
    # Launchers may run the lines of ranks together.
    lines = sorted(re.findall(r"rank (\d): ((?:\w+ \d+/\d+ ?){7})", done.stdout))
    assert [rank for rank, _ in lines] == ["0", "1"], done.output
    return [line.strip() for _, line in lines]


def check_compressed(done) -> None:
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] == 2 * 6


@pytest.mark.parametrize(("options", "wanted"), TOOLS)
def test_loaded_before(options, wanted, build, mpi_program, mpress_run):
    tool = build("tool.so", "-shared", "-fPIC", *options, SOURCES / "tool.c")
    env = {"LD_PRELOAD": str(tool)}
    done = mpress_run(2, mpi_program("tooled"), options=FORCED, env=env)
    assert seen(done) == [wanted, wanted]
    check_compressed(done)


@pytest.mark.parametrize(("options", "wanted"), TOOLS)
def test_linked_into_the_program(options, wanted, build, mpirun, mpress_run):
    program = build("tooled", *options, SOURCES / "tooled.c", SOURCES / "tool.c")
    done = mpress_run(2, program, options=FORCED)
    assert seen(done) == seen(mpirun(2, program)) == [wanted, wanted]
    check_compressed(done)


@pytest.mark.parametrize(("options", "wanted"), TOOLS)
def test_loaded_behind(options, wanted, build, mpi, mpi_program, mpress_run):
    """mpress calls MPI's own entry points: what it stands in for does not come by the tool."""
    tool = build("tool.so", "-shared", "-fPIC", *options, SOURCES / "tool.c")
    order = f"LD_PRELOAD={PRELOAD}:{tool}"
    launcher = ("--mpiexec", str(mpi.mpiexec))
    program = str(mpi_program("tooled"))
    done = mpress_run(2, "env", [order, program], options=(*FORCED, *launcher))
    assert seen(done) == [NOTHING, NOTHING]
    check_compressed(done)
