"""mpress.iso: exchanges of neighbourhoods, and halos, of arrays on the host and on GPUs."""

import re
import sys

import pytest
from execution import ROOT

PROGRAM = ("-m", "mpi4py", ROOT / "tests" / "iso_exchanges.py")


@pytest.mark.parametrize(("ranks", "seed"), [(1, 1), (2, 2), (4, 3), (6, 4)])
def test_arrays_of_numpy(ranks, seed, mpirun, mpi4py_env):
    env = {**mpi4py_env, "MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0"}
    done = mpirun(ranks, sys.executable, [*PROGRAM, str(seed)], env)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_arrays_on_gpus(mpirun, simulated_cupy):
    env = {**simulated_cupy, "MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0", "MPRESS_LINK": "peer"}
    done = mpirun(4, sys.executable, [*PROGRAM, "5", "devices"], env)
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize("place", ["host", "devices"])
def test_sums_in_quanta(place, mpirun, mpi4py_env, request):
    env = {**mpi4py_env, "MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0", "MPRESS_CHUNK": "32K"}
    if place == "devices":
        env |= request.getfixturevalue("simulated_cupy") | {"MPRESS_LINK": "peer"}
    program = ["-m", "mpi4py", ROOT / "tests" / "iso_sums.py", place]
    done = mpirun(4, sys.executable, program, env)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_examples_of_the_page(mpirun, mpi4py_env, tmp_path):
    page = (ROOT / "docs" / "neighbourhoods.md").read_text()
    program = tmp_path / "program.py"
    behind = """
assert (received == 1).all() and (total == 1).all()
assert u[0, 100] == u[1, 2] == 1 - cart.rank and inner == cart.rank * 198**2
assert (v == 1).all()
"""
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    program.write_text("".join(blocks) + behind)
    done = mpirun(2, sys.executable, ["-m", "mpi4py", program], mpi4py_env)
    assert done.status == 0, done.output


@pytest.mark.parametrize("algorithm", ["combining", "digits"])
def test_combined_blocks_are_encoded_once(algorithm, mpress_run, mpi4py_env):
    program = ["-rc", "threads=False", ROOT / "tests" / "iso_combined.py", algorithm]
    command = [sys.executable, ["-m", "mpi4py", *program]]
    done = mpress_run(8, *command, ("--force",), env=mpi4py_env)
    assert done.status == 0 and done.stdout == "ok\n", done.output
    rows = [r for r in done.report["rows"] if r["algorithm"] == "combining" and r["raw_bytes"]]
    assert {r["direction"] for r in rows} == {"send", "receive"}
    assert {r["codec"] for r in rows} == {"szp"}
    assert sum(r["wire_bytes"] for r in rows) < sum(r["raw_bytes"] for r in rows) / 3


def test_halos_of_which_one_is_too_deep(mpirun, mpi4py_env, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
from mpi4py import MPI
import mpress.iso

cart = MPI.COMM_WORLD.Create_cart((3,), (True,))
try:
    mpress.iso.HaloExchange(cart, (1 if cart.rank == 1 else 8,), 2)
except ValueError as error:
    assert ("another" in str(error)) == (cart.rank != 1)
else:
    raise AssertionError
""")
    done = mpirun(3, sys.executable, ["-m", "mpi4py", program], mpi4py_env)
    assert done.status == 0, done.output


@pytest.mark.parametrize("threshold", ["hint", "differing hints", "learned"])
def test_thresholds_of_one_end(threshold, mpress_run, mpi4py_env):
    learned = {"MPRESS_LEARN": "all", "MPRESS_LINK_RATE": "100Mbit"}
    env = {**mpi4py_env, **(learned if threshold == "learned" else {})}
    program = ["-m", "mpi4py", ROOT / "tests" / "iso_thresholds.py", threshold]
    options = ("--codec", "mpc", *(("--force",) if threshold != "learned" else ()))
    done = mpress_run(3, sys.executable, program, options, env=env)
    assert done.status == 0 and done.stdout == "ok\n", done.output
    assert done.report["totals"]["compressed_messages"] > 0 or threshold == "learned"


def test_why_blocks_go_as_they_are(mpress_run, mpi4py_env, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np
from mpi4py import MPI
from mpress import iso

cart = MPI.COMM_WORLD.Create_cart((2,), (True,))
near = iso.Neighborhood(cart, [[1]], algorithm="direct")
for count in (100, 100_000):
    sent, received = np.full((1, count), cart.rank), np.empty((1, count), int)
    near.alltoall(sent, received)
    assert (received == 1 - cart.rank).all()
    near.alltoall(sent.astype(float), received.astype(float))
""")
    done = mpress_run(
        2, sys.executable, ["-m", "mpi4py", program], ("--codec", "none"), env=mpi4py_env
    )
    assert done.status == 0, done.output
    rows = [r for r in done.report["rows"] if r["direction"] == "send" and r["messages"]]
    assert {(r["reason"], r["messages"]) for r in rows} == {
        ("below the threshold", 2),
        ("not a run of f32 or f64", 1),
        ("switched off", 1),
    }
