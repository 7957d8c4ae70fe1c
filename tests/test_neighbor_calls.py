"""MPI_Neighbor_ calls of which mpress serves the long blocks: tests/mpi/neighbors, against what MPI
promises."""

import sys

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
CALLS = {"MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv", "MPI_Neighbor_alltoallw",
         "MPI_Neighbor_allgather", "MPI_Neighbor_allgatherv"}  # fmt: skip
EXTENDED = pytest.mark.extended


def served(done) -> set[str]:
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.report["totals"]["errors"] == 0
    return {row["operation"] for row in done.report["rows"]} & CALLS


@pytest.fixture
def blocks(mpi) -> tuple[str, ...]:
    """Open MPI's own non-blocking calls are wrong in grids of 1 or 2 processes a dimension: there
    mpress serves all blocks."""
    return ("long",) if mpi.name == "openmpi" else ()


@pytest.mark.parametrize("ranks", [2, 4, pytest.param(6, marks=EXTENDED)])
def test_on_hosts(ranks, blocks, mpi_program, mpress_run):
    arguments = [str(ranks), "25", "host", *blocks]
    done = mpress_run(ranks, mpi_program("neighbors"), arguments, FORCED)
    assert served(done) == CALLS
    assert done.report["totals"]["compressed_messages"] > 15


@pytest.mark.parametrize("link", ["auto", "mpi", "host"])
@pytest.mark.parametrize("codec", [FORCED, ("--codec", "none")], ids=["mpc", "none"])
def test_on_devices(link, codec, blocks, mpi, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    arguments = [str(7 + len(link)), "20", "any", *blocks]
    done = mpress_run(3, mpi_program("neighbors"), arguments, codec, env=env)
    assert served(done) == CALLS
    totals = done.report["totals"]
    assert (totals["compressed_messages"] > 10) == (codec is FORCED)
    # Those of the standard ABI that do not block are MPI's.
    if mpi.name != "abi":
        assert (totals["peer_messages"] > 0) == (link == "auto")


def test_switched_off(mpi_program, mpress_run):
    env = {"MPRESS_DISABLE_NEIGHBOR": "1"}
    arguments = ["2", "5", "host", "graphs"]
    done = mpress_run(2, mpi_program("neighbors"), arguments, FORCED, env=env)
    assert served(done) == set()


ALGORITHMS = ("auto", "combining", "direct", "digits", "lines", "ring")
USUAL = {1: ("auto",), 4: ("auto", "digits", "lines"), 8: ("combining", "direct", "digits", "ring")}
"""Of `make test`: schedule_neighbourhoods_test has all of them, of more ranks than these."""


@pytest.mark.parametrize(
    ("ranks", "algorithm"),
    [
        pytest.param(n, one, marks=() if one in USUAL.get(n, ()) else EXTENDED)
        for n in (1, 4, 6, 8)
        for one in ALGORITHMS
    ],
)
def test_isomorphic_graphs(ranks, algorithm, mpi_program, mpress_run):
    arguments = [str(ranks), "10", algorithm]
    done = mpress_run(ranks, mpi_program("isomorphic_graphs"), arguments, ("--codec", "none"))
    assert done.status == 0 and done.stdout == "ok\n", done.output
    algorithms = {row["algorithm"] for row in done.report["rows"] if row["operation"] in CALLS}
    if ranks > 1 and algorithm not in ("auto", "direct"):
        assert "combining" in algorithms


@pytest.mark.parametrize("dtype", ["float", "int"])
def test_less_than_there_is_room_for(dtype, mpress_run, mpi4py_env, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import sys

import mpi4py
import numpy as np

mpi4py.rc.threads = False
from mpi4py import MPI

world = MPI.COMM_WORLD
world.Set_errhandler(MPI.ERRORS_ARE_FATAL)
ring = world.Create_dist_graph_adjacent([(world.rank - 1) % 3], [(world.rank + 1) % 3])
sent = np.full(1900, world.rank, sys.argv[1])
received = np.full(2000, -1, sys.argv[1])
ring.Neighbor_alltoallv([sent, ([1900], [0])], [received, ([2000], [0])])
assert (received[:1900] == (world.rank - 1) % 3).all() and (received[1900:] == -1).all()
""")
    command = [sys.executable, ["-m", "mpi4py", program, dtype], FORCED]
    done = mpress_run(3, *command, env=mpi4py_env)
    assert done.status == 0, done.output
    rows = [r for r in done.report["rows"] if r["direction"] == "receive" and r["messages"]]
    assert [r["raw_bytes"] for r in rows] == 3 * [1900 * 8]
