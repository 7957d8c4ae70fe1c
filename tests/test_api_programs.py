"""Programs of tests/mpi as programs of mpress's own interface: tests/api/as_mpress.h has their
calls be mpress's, and nothing is preloaded. What they check of MPI holds of mpress.h, too."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from collective_scripts import Setting, scripts
from execution import ROOT, execute
from hypothesis import given, seed, settings
from test_api import PREFIX, compile_api_program
from test_api import api_program as api_program  # a fixture
from test_collectives_random import OPTIONS, write

from mpress import trace

EXTENDED = pytest.mark.extended
FORCED = {"MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0"}
HOST = {"MPRESS_GPU": "off"}
BLOCKS = {"MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gather", "MPI_Gatherv",
          "MPI_Scatter", "MPI_Scatterv", "MPI_Allgather", "MPI_Allgatherv",
          "MPI_Bcast"}  # fmt: skip
REDUCTIONS = {"MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"}
HEADER = ROOT / "tests" / "api" / "as_mpress.h"


@pytest.fixture(scope="session")
def mapped_program(build_dir: Path, mpi) -> Callable[[str], Path]:
    """mapped_program(name): tests/mpi/NAME.c, calling mpress."""
    options = ("-D_GNU_SOURCE=", "-include", HEADER)
    source = ROOT / "tests" / "mpi"
    return lambda name: compile_api_program(source / f"{name}.c", mpi, build_dir, *options)


@pytest.fixture
def run_plainly(mpirun, tmp_path) -> Callable[..., dict]:
    """run_plainly(ranks, program, arguments, env): without the preload; returns what the ranks
    recorded, as the report of `mpress run` has it."""

    def run(ranks, program, arguments, env) -> dict:
        records = tmp_path / "records"
        records.mkdir(exist_ok=True)
        for old in records.iterdir():
            old.unlink()
        done = mpirun(ranks, program, arguments, {**env, "MPRESS_RECORD": str(records)})
        assert done.status == 0, done.output
        report = trace.merge(records)
        report["stdout"] = done.stdout
        assert len(report["ranks"]) == ranks
        assert report["totals"]["errors"] == 0
        return report

    return run


def sent(report: dict) -> set[str]:
    """The calls of which mpress sent something."""
    return {row["operation"] for row in report["rows"] if row["direction"] == "send"}


PROGRAMS = [
    # Ranks, the program and its arguments, the codec, settings, some of the calls that mpress sends
    # for, and the least number of compressed messages. Host memory.
    (3, "collectives", "mpc", HOST, {"MPI_Isend", "MPI_Allreduce"}, 50),
    (3, "blocks 9 80 host", "mpc", HOST, BLOCKS, 30),
    (4, "reductions 3 40 rel=1e-4", "szp:rel=1e-4", HOST, REDUCTIONS, 50),
    (3, "same_bits rel=1e-3 6 20 host", "szp:rel=1e-3", HOST, {"MPI_Bcast"}, 20),
    (3, "in_flight mix 9 15 host", "mpc", HOST, {"MPI_Bcast", "MPI_Isend"}, 30),
    (4, "shared_blocks allgather 3 60000 host", "szp:abs=1e-4", HOST, {"MPI_Allgather"}, 36),
    # Simulated GPUs.
    (3, "blocks 3 40", "mpc", {}, BLOCKS, 30),
    (3, "blocks 43 40 device", "none", {}, {"MPI_Bcast", "MPI_Alltoall"}, 0),
    (3, "reductions 30 30 rel=1e-4 device", "szp:rel=1e-4", {}, REDUCTIONS, 30),
    (3, "same_bits abs=1e-3 3 25", "szp:abs=1e-3", {"MPRESS_CHUNK": "64K"}, {"MPI_Bcast"}, 20),
    (3, "in_flight mix 3 10", "mpc", {}, {"MPI_Bcast", "MPI_Isend"}, 30),
    (4, "shared_blocks bcast 3 60000 devices", "szp:abs=1e-4", {}, {"MPI_Bcast"}, 9),
    (3, "reductions_long 1e-3 300000", "szp:abs=1e-3", {}, {"MPI_Allreduce"}, 20),
    # Messages.
    (2, "derived", "mpc", HOST, {"MPI_Sendrecv"}, 100),
    (2, "threads", "mpc", HOST, {"MPI_Isend", "MPI_Send", "MPI_Sendrecv"}, 100),
    (3, "probe", "mpc", HOST, {"MPI_Isend"}, 10),
    (2, "truncate", "mpc", HOST, {"MPI_Send"}, 2),
    (2, "overtake", "mpc", HOST, {"MPI_Isend"}, 2),
    (2, "reposted", "mpc", HOST, {"MPI_Send"}, 2),
]
MORE_PROGRAMS = [
    (2, "overlapping", "mpc", HOST, {"MPI_Isend", "MPI_Send"}, 100),
    (2, "recycled", "mpc", HOST, {"MPI_Isend"}, 100),
    (3, "blocks 8 40 late", "mpc", {}, {"MPI_Bcast"}, 30),
    (5, "blocks 3 40", "mpc", {}, BLOCKS, 30),
    (5, "reductions 5 75 exact", "mpc", HOST, REDUCTIONS, 50),
    (4, "reductions_linked 40 30 held", "none", {}, REDUCTIONS, 0),
    (5, "same_bits rel=1e-3 7 30", "szp:rel=1e-3", {}, {"MPI_Bcast"}, 20),
    (4, "in_flight mix 4 12", "none", {}, {"MPI_Bcast"}, 0),
]


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=f"{case[0]}-{case[1].replace(' ', '-')}") for case in PROGRAMS),
        *(
            pytest.param(case, id=f"{case[0]}-{case[1].replace(' ', '-')}", marks=EXTENDED)
            for case in MORE_PROGRAMS
        ),
    ],
)
def test_programs(case, mpi, mapped_program, run_plainly, simulated_gpu):
    """Calls on the host and on devices, of all forms, compressed."""
    ranks, words, codec, env, operations, least = case
    name, *arguments = words.split()
    env = {**simulated_gpu, "MPRESS_CODEC": codec, **env}
    if codec != "none":
        env |= FORCED
    report = run_plainly(ranks, mapped_program(name), arguments, env)
    # Where what does not block is MPI's, few calls may be all of that.
    assert sent(report) & operations if mpi.name == "abi" else sent(report) >= operations
    totals = report["totals"]
    assert totals["compressed_messages"] >= least
    assert least or not totals["compressed_messages"]
    is_mpis = mpi.name == "abi" and name == "in_flight"
    if env["MPRESS_GPU"] != "off" and "late" not in arguments and not is_mpis:
        assert totals["peer_messages"] > 0
    if name != "overlapping":
        assert report["stdout"] == "ok\n"


@pytest.mark.parametrize(
    "part", ["all", "threads", pytest.param("freed", marks=EXTENDED)]
)  # fmt: skip
def test_persistent_calls(part, mpi, mapped_program, run_plainly):
    """Started in any order by each rank, with messages, also by several threads."""
    if part == "freed" and mpi.name == "abi":
        pytest.skip("such calls are MPICH's own there, which do not survive it")
    env = {**FORCED, **HOST, "MPRESS_CODEC": "mpc"}
    report = run_plainly(3, mapped_program("persistent_pairs"), [part], env)
    assert int(report["stdout"]) > 0
    least = 0 if mpi.name == "abi" else min(int(report["stdout"]), 90)
    assert report["totals"]["compressed_messages"] >= least
    assert (part == "freed") or report["totals"]["compressed_messages"] > 20  # messages


@pytest.mark.parametrize("part", ["orders", "blocked", "thousand"])
def test_calls_proceed_in_each_other(part, mpi, mapped_program, run_plainly):
    """Who has a block to pass on waits in another of mpress's calls."""
    env = {**FORCED, **HOST, "MPRESS_CODEC": "mpc", "MPRESS_ALGORITHM": "bcast=chain"}
    report = run_plainly(4, mapped_program("in_flight"), [part], env)
    assert report["stdout"] == "ok\n"
    # MPI serves them where it does not let mpress in (tests/test_collectives_in_flight.py), and the
    # first on a communicator where mpress has not seen keyvals being made.
    is_mpis = {"orders": True, "blocked": mpi.name == "abi"}
    assert ("MPI_Bcast" in sent(report)) != is_mpis.get(part, False)


@pytest.mark.parametrize("codec", ["mpc", pytest.param("none", marks=EXTENDED)])
def test_scripts(codec, mapped_program, run_plainly, simulated_gpu, tmp_path):
    """Random calls of all forms, compared with what plain MPI brings."""
    served = set()

    @seed(5)
    @settings(max_examples=3, **OPTIONS)
    @given(scripts(codec, [Setting(HOST, False), Setting(simulated_gpu, True)]))
    def run(script):
        env = {**script.env, "MPRESS_CODEC": codec}
        if script.options:
            env |= FORCED
        program = mapped_program("scripted")
        arguments = [write(script, tmp_path), script.bound]
        report = run_plainly(script.ranks, program, arguments, env)
        assert report["stdout"] == "ok\n", script
        served.update(sent(report))

    run()
    assert len(served & BLOCKS) > 3  # of ten, by chance


def declared() -> set[str]:
    """The functions of mpress.h."""
    text = (PREFIX / "include" / "mpress" / "mpress.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return set(re.findall(r"^(?:int|const char\*) (mpress_\w+)\(", text, flags=re.MULTILINE))


def test_every_function_is_called(api_program, mapped_program):
    """By a program that a test runs: what no object refers to is not tested."""
    names = declared()
    assert len(names) > 80 and {"mpress_init", "mpress_iexscan", "mpress_version"} <= names
    programs = [api_program(name) for name in ("forms", "messages", "wrong", "scopes")]
    programs += [mapped_program(name) for name in ("in_flight", "reductions", "collectives")]
    called = set()
    for program in programs:
        symbols = execute(["nm", "--undefined-only", program])
        assert symbols.status == 0, symbols.output
        called |= set(re.findall(r"\bU (mpress_\w+)", symbols.stdout))
    assert called <= names
    assert names - called == set()
