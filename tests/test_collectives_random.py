"""Random scripts of collective calls (tests/collective_scripts.py), each made through mpress and by
MPI alone, and compared: tests/mpi/scripted. What fails is shrunk, and shown as a script.

Where a test fails now and then, its seed tells the scripts that led to it."""

from collections.abc import Iterable
from pathlib import Path
from random import SystemRandom

import pytest
from collective_scripts import BOUNDS, Script, Setting, scripts
from hypothesis import HealthCheck, given, note, seed, settings

TIMEOUT = 60  # of a script that takes a second
SERVED = {f"MPI_{name}" for name in ("Bcast", "Gather", "Gatherv", "Scatter", "Scatterv",
          "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw")}  # fmt: skip
OPTIONS = {
    "database": None,
    "deadline": None,
    "print_blob": False,
    "suppress_health_check": list(HealthCheck),
}


@pytest.fixture
def surroundings(mpi, simulated_gpu) -> list[Setting]:
    """The plainest first: hypothesis shrinks to that."""
    off = {"MPRESS_GPU": "off"}
    found = [
        Setting(off, False),
        Setting({**off, "MPRESS_CHUNK": "8K"}, False),
        Setting(simulated_gpu, True),
        Setting({**simulated_gpu, "MPRESS_CHUNK": "64K"}, True),
        Setting({**simulated_gpu, "MPRESS_LINK": "mpi", "MPRESS_CHUNK": "32K"}, True),
        Setting({**simulated_gpu, "MPRESS_LINK": "host", "MPRESS_CHUNK": "32K"}, True),
        Setting(
            {
                **simulated_gpu,
                "MPRESS_LINK": "host",
                "MPRESS_CHUNK": "4K",
                "MPRESS_HOST_WINDOW": "16K",
            },
            True,
        ),
        Setting({**simulated_gpu, "MPRESS_POOL_LIMIT": "300K", "MPRESS_CHUNK": "32K"}, True),
    ]
    if mpi.name != "openmpi":  # only MPICH takes parts of a host for hosts
        for name, value in (("ODD_EVEN_CLIQUES", "1"), ("NUM_CLIQUES", "3")):
            several = {f"MPIR_CVAR_{name}": value}
            found.append(Setting({**off, **several}, False))
            found.append(Setting({**simulated_gpu, **several}, True))
    if mpi.name != "abi":  # which has no way to look at requests from several threads
        found.append(Setting({**simulated_gpu, "MPRESS_PROGRESS": "thread"}, True))
    return found


def write(script: Script, folder: Path) -> Path:
    file = folder / "script"
    file.write_text("\n".join([*script.lines, ""]))
    return file


@pytest.fixture
def checked(mpi_program, mpress_run, tmp_path):
    """checked(script): runs it, and returns the calls of which mpress sent blocks."""

    def run(script: Script) -> set[str]:
        arguments = [write(script, tmp_path), script.bound]
        options = ("--codec", script.codec, *script.options)
        done = mpress_run(
            script.ranks, mpi_program("scripted"), arguments, options, script.env, timeout=TIMEOUT
        )
        assert done.status == 0 and done.stdout == "ok\n", f"{done.output}\n{script}"
        assert done.report["totals"]["errors"] == 0, script
        rows = done.report["rows"]
        return {row["operation"] for row in rows if row["direction"] == "send"} & SERVED

    return run


@pytest.fixture
def try_scripts(surroundings, checked):
    """try_scripts(codec, seeds, number): so many scripts for each seed; returns the calls of which
    mpress sent blocks. The first of a seed is empty; of more than eight most are variants."""

    served = set()

    def run_seed(codec: str, value: int, number: int) -> None:
        @seed(value)
        @settings(max_examples=number, **OPTIONS)
        @given(scripts(codec, surroundings))
        def run_one(script):
            if script.lines:
                note(f"seed {value}")
                served.update(checked(script))

        run_one()

    def run(codec: str, seeds: Iterable[int], number: int) -> set[str]:
        for value in seeds:
            run_seed(codec, value, number)
        return served

    return run


@pytest.mark.parametrize("codec", BOUNDS)
def test_scripts(codec, try_scripts):
    """The same ones in each run."""
    served = try_scripts(codec, [list(BOUNDS).index(codec)], 3)
    assert len(served) > 4  # of ten, by chance


@pytest.mark.extended
@pytest.mark.parametrize("codec", BOUNDS)
def test_many_scripts(codec, try_scripts):
    """Other ones in each run."""
    first = SystemRandom().randrange(1 << 32)
    try_scripts(codec, range(first, first + 6), 8)


def test_the_program_is_right_without_mpress(mpi_program, mpirun, tmp_path):
    @seed(1)
    @settings(max_examples=3, **OPTIONS)
    @given(scripts("none", [Setting({}, False)]))
    def run(script):
        done = mpirun(script.ranks, mpi_program("scripted"), [write(script, tmp_path), "exact"])
        assert done.status == 0 and done.stdout == "ok\n", f"{done.output}\n{script}"

    run()
