"""`mpress info --protocols`, and that messages go as its table says."""

from __future__ import annotations

import itertools
import json
import os
import sys

import pytest
from execution import MPRESS, execute

pytestmark = pytest.mark.usefixtures("served_jobs")

PROGRAM = """
import sys
import numpy
from mpi4py import MPI
sizes, memory = sys.argv[2:], sys.argv[1]
array_of = numpy.asarray
if memory == "device":
    import cupy
    array_of = cupy.asarray
world = MPI.COMM_WORLD
for size in map(int, sizes):
    x = array_of(numpy.sin(numpy.arange(size // 4, dtype=numpy.float32) * 1e-3))
    for _ in range(4):  # the first ones open what both ranks share
        if world.rank == 0:
            world.Send(x, 1)
        else:
            world.Recv(x, 0)
        world.Barrier()
"""


@pytest.fixture
def table_of(mpi, mpress_run, tmp_path):
    """table_of(memory, sizes, options, env): of rank 0 the ranges, and the rows of what it sent."""

    def run(memory, sizes, options, env):
        program, file = tmp_path / "program.py", tmp_path / "table.json"
        program.write_text(PROGRAM)
        env = {**env, "MPRESS_PROTOCOLS": str(file), "MPI4PY_RC_THREAD_LEVEL": "funneled"}
        options = (*options, "--mpiexec", os.fspath(mpi.mpiexec))
        arguments = ["-m", "mpi4py", program, memory, *map(str, sizes)]
        done = mpress_run(2, sys.executable, arguments, env=env, options=options)
        assert done.status == 0, done.output
        found = json.loads(file.read_text())
        [table] = [one for one in found["tables"] if one["memory"] == memory]
        sent = [
            row
            for row in done.report["rows"]
            if row["rank"] == 0 and row["direction"] == "send" and row["operation"] == "MPI_Send"
        ]
        return table["ranges"], sent

    return run


def test_messages_of_the_host_go_as_the_table_says(table_of, mpi4py_env):
    # Around the threshold, and around two chunks, from which on messages are cut.
    sizes = [2048 - 4, 2048, 16384 - 4, 16384]
    options = ("--codec", "mpc", "--force", "--threshold", "2K")
    ranges, sent = table_of("host", sizes, options, {**mpi4py_env, "MPRESS_CHUNK": "8K"})
    assert [(row["first"], row["protocol"], row["codec"]) for row in ranges] == [
        (4, "raw", 0), (2048, "eager", 1), (16384, "pipelined, MPI", 1)
    ]  # fmt: skip
    assert [row["reason"] for row in ranges] == [1, 0, 0]
    assert all(a["last"] + 4 == b["first"] for a, b in itertools.pairwise(ranges))
    went = {(row["codec"], row["way"]): row["raw_bytes"] // 4 for row in sent}
    assert went == {
        ("none", "whole"): sizes[0],
        ("mpc", "whole"): sizes[1] + sizes[2],
        ("mpc", "chunks"): sizes[3],
    }


def test_messages_of_gpus_go_as_the_table_says(table_of, simulated_cupy):
    sizes = [16384 - 4, 16384, 4 << 20]
    env = {**simulated_cupy, "MPRESS_LINK": "auto"}
    ranges, sent = table_of("device", sizes, ("--codec", "none"), env)
    assert [(row["first"], row["protocol"]) for row in ranges] == [
        (4, "raw"), (16384, "zero-copy get"), (65536, "zero-copy get")
    ]  # fmt: skip
    assert [row["reason"] for row in ranges] == [1, 1, 5]  # below the threshold, and switched off
    # 3: short: faster by MPI; 5: nothing is encoded.
    refusals = {one["protocol"]: one["why_not"] for one in ranges[0]["refusals"]}
    assert refusals["zero-copy get"] == refusals["pipelined, GPU to GPU"] == 3
    assert refusals["eager"] == 5
    by_way = {row["way"]: row["raw_bytes"] for row in sent}
    assert by_way["whole"] >= 4 * sizes[0] and by_way["peer"] >= sizes[2]


def test_the_command_prints_it(mpi, mpi4py_env, tmp_path, monkeypatch):
    file = tmp_path / "table.json"
    env = {**mpi.env, **mpi4py_env, "MPRESS_CODEC": "szp:rel=1e-3"}
    command = [MPRESS, "info", "--protocols", "--mpiexec", os.fspath(mpi.mpiexec), "--json", file]
    done = execute(command, env)
    assert done.status == 0, done.output
    assert "codec szp:rel=0.001" in done.stdout and "below the threshold" in done.stdout
    assert "from memory of the host to rank 1, of its host" in done.stdout
    again = execute([MPRESS, "info", "--protocols", "--from", file])
    assert again.status == 0 and again.stdout == done.stdout
    calls = execute([MPRESS, "info", "--algorithms", "--from", file])
    assert calls.status == 0 and "shorter than the threshold" in calls.stdout, calls.output
    assert "MPI_Allreduce" in calls.stdout and "of 2 ranks, codec szp:rel=0.001" in calls.stdout


def test_calls_go_as_the_table_says(mpi, mpress_run, simulated_cupy, tmp_path):
    """Also by one kernel a rank, once these have opened memory for each other."""
    program, file = tmp_path / "program.py", tmp_path / "table.json"
    program.write_text("""
import cupy, numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
for size in (1 << 10, 1 << 16, 8 << 20):
    x = cupy.asarray(numpy.ones(size // 4, numpy.float32))
    for _ in range(6):
        world.Bcast(x)
host = numpy.ones(1 << 20, numpy.float32)
world.Bcast(host)
""")
    env = {**simulated_cupy, "MPRESS_LINK": "auto", "MPRESS_PROTOCOLS": str(file)}
    env["MPI4PY_RC_THREAD_LEVEL"] = "funneled"
    options = ("--codec", "none", "--mpiexec", os.fspath(mpi.mpiexec))
    done = mpress_run(2, sys.executable, ["-m", "mpi4py", program], env=env, options=options)
    assert done.status == 0, done.output
    calls = {
        (one["call"], one["memory"]): one["ranges"] for one in json.loads(file.read_text())["calls"]
    }
    ranges = calls["MPI_Bcast", "device"]
    went = [(row["first"], row["algorithm"]) for row in ranges]
    assert went == [(4, "mpi"), (16384, "symmetric move"), ((2 << 20) + 4, "symmetric broadcast")]
    assert all(a["last"] + 4 == b["first"] for a, b in itertools.pairwise(ranges))
    assert {row["algorithm"] for row in calls["MPI_Bcast", "host"]} == {"mpi"}
    rows = [row for row in done.report["rows"] if row["operation"] == "MPI_Bcast"]
    served = {row["algorithm"] for row in rows if row["raw_bytes"] and row["direction"] == "send"}
    assert served and "one-kernel" in served
    in_all = sum(row["raw_bytes"] for row in rows if row["direction"] == "send")
    assert in_all == 6 * ((1 << 16) + (8 << 20))  # what is shorter, or the host's, is the MPI's


@pytest.mark.parametrize(
    "args, culprit",
    [
        (("--protocols", "-n", "1"), "-n 1"),
        (("--algorithms", "-n", "1"), "-n 1"),
        (("--protocols", "--from", "/no/such"), "/no/such"),
        (("--from", "x.json"), "--from"),
    ],
)
def test_what_is_refused(args, culprit):
    done = execute([MPRESS, "info", *args])
    assert done.status == 2 and culprit in done.stderr and len(done.stderr.splitlines()) == 1
