"""mpress.Communicator: what it promises, and mpi4py's own suite with it in the place of mpi4py's
communicators; with any launcher, and under `mpress run`."""

from __future__ import annotations

import os
import subprocess
import sys
from random import SystemRandom

import pytest
from execution import ROOT, execute
from test_mpi4py import FORCED as RUN_FORCED
from test_mpi4py import cupy_env, outcomes, tests_of_mpi4py, without_duplicates  # noqa: F401

CHECKS = ROOT / "tests" / "communicator_checks.py"
FORCED = {"MPRESS_FORCE": "1"}
RUNNER = ROOT / "tests" / "mpi4py_suite.py"
# A rank that fails ends the others, too, which would wait for it.
WITH_MPI = ("-m", "mpi4py")
SUITE = (
    "p2p_buf", "p2p_buf_matched", "p2p_buf_part", "p2p_obj", "p2p_obj_matched", "cco_buf",
    "cco_vec", "cco_nb_buf", "cco_nb_vec", "cco_pr_buf", "cco_pr_vec", "cco_ngh_buf",
    "cco_pr_ngh_buf", "cco_obj", "cco_ngh_obj", "msgzero",
)  # fmt: skip
FEW = without_duplicates(
    SUITE, ("p2p_obj", "p2p_buf_matched", "cco_nb_buf", "cco_obj", "cco_ngh_obj")
)
# What goes other ways among three ranks than between two.
OF_THREE = (
    "p2p_buf.TestP2PBufWorld", "cco_buf.TestCCOBufWorld", "cco_vec.TestCCOVecWorld",
    "cco_nb_buf.TestCCOBufWorld", "cco_pr_vec.TestCCOVecWorld",
    "cco_ngh_buf.TestCCONghBufWorldDup", "cco_pr_ngh_buf.TestCCONghBufWorld",
)  # fmt: skip
# A part of each way that arguments go: with and without a request, counts, duplicates, grids.
ON_GPUS = (
    "p2p_buf.TestP2PBufWorld", "cco_buf.TestCCOBufWorldDup", "cco_nb_vec.TestCCOVecWorld",
    "cco_ngh_buf.TestCCONghBufWorld", "cco_pr_buf.TestCCOBufWorld",
)  # fmt: skip
# All of them that take arrays.
ALL_ON_GPUS = tuple(name for name in SUITE if "obj" not in name and name not in (
    "p2p_buf_part", "msgzero"
))  # fmt: skip


def served(mpi) -> list[str]:
    """mpi4py asks for threads, and other MPIs do not let those look at requests."""
    return ["collectives"] if mpi.name in ("default", "mpich", "openmpi") else []


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_it_promises(ranks, mpirun, mpi, mpi4py_env):
    args = [*WITH_MPI, CHECKS, "forced", *served(mpi)]
    done = mpirun(ranks, sys.executable, args, {**mpi4py_env, **FORCED})
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_under_mpress_run(mpress_run, mpi, mpi4py_env):
    args = [*WITH_MPI, CHECKS, "forced", *served(mpi), "preloaded"]
    options = ["--force", "--mpiexec", os.fspath(mpi.mpiexec)]
    done = mpress_run(2, sys.executable, args, options, mpi4py_env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] > 5


@pytest.fixture
def with_jax(mpi4py_env):
    """The environment with a library in the place of JAX that is as large as the tests need."""
    paths = [os.fspath(ROOT / "tests" / "stand_ins"), mpi4py_env.get("PYTHONPATH", "")]
    return {**mpi4py_env, **FORCED, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.mark.parametrize("ranks", [1, 3])
def test_new_arrays_of_jax(ranks, mpirun, with_jax):
    args = [*WITH_MPI, ROOT / "tests" / "communicator_jax.py"]
    done = mpirun(ranks, sys.executable, args, with_jax)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


@pytest.mark.parametrize("place", ["host", "devices"])
def test_wrong_arguments(place, mpirun, mpi4py_env, simulated_cupy):
    env = {**(simulated_cupy if place == "devices" else mpi4py_env), **FORCED}
    args = [*WITH_MPI, ROOT / "tests" / "communicator_errors.py", "forced", place]
    done = mpirun(2, sys.executable, args, env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_children_by_fork(mpirun, mpi4py_env):
    env = {**mpi4py_env, **FORCED}
    args = [*WITH_MPI, ROOT / "tests" / "communicator_forks.py"]
    done = mpirun(2, sys.executable, args, env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_streams(mpirun, mpi, simulated_cupy):
    """Where devices serve a call, the stream waits for it, and not the host."""
    if not served(mpi):
        pytest.skip("whose library cannot tell of requests under MPI_THREAD_MULTIPLE")
    env = {**simulated_cupy, "MPRESS_LINK": "peer"}
    args = [*WITH_MPI, ROOT / "tests" / "communicator_streams.py"]
    done = mpirun(2, sys.executable, args, env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    assert "waits on the host" not in done.stderr  # the program has named no stream


@pytest.fixture
def random_calls(mpirun, mpi4py_env, simulated_cupy):
    """random_calls(ranks, seed, place, number): returns how many calls mpress served."""

    def run(ranks: int, seed: int, place: str, number: int = 60) -> int:
        env = {**(simulated_cupy if place == "devices" else mpi4py_env), **FORCED}
        env |= {"MPRESS_THRESHOLD": "0", "MPRESS_CHUNK": "32K"}
        args = [*WITH_MPI, ROOT / "tests" / "communicator_random.py", str(seed), str(number), place]
        done = mpirun(ranks, sys.executable, args, env)
        assert done.status == 0 and done.stdout.startswith("ok "), done.output
        return int(done.stdout.split()[1])

    return run


@pytest.mark.parametrize(
    ("ranks", "seed", "place"),
    [(1, 1, "host"), (2, 2, "host"), (3, 3, "devices"), (5, 4, "devices")],
)
def test_random_calls(ranks, seed, place, random_calls):
    assert random_calls(ranks, seed, place) >= ranks - 1  # of 60; where MPI allows, many


@pytest.mark.extended
@pytest.mark.parametrize("place", ["host", "devices"])
@pytest.mark.parametrize("ranks", [2, 4, 7])
def test_many_random_calls(ranks, place, random_calls):
    """Other ones in each run."""
    first = SystemRandom().randrange(1 << 32)
    for seed in range(first, first + 6):
        random_calls(ranks, seed, place, 150)


def all_passed(folder, ranks, least, done):
    for ended in outcomes(folder, ranks):
        wrong = {name for name, found in ended.items() if {"failed", "error"} & set(found)}
        assert not wrong, done.output
        assert sum(found == ["passed"] for found in ended.values()) >= least


@pytest.mark.parametrize(
    ("ranks", "names", "least"),
    [
        (2, FEW, 250),
        pytest.param(3, OF_THREE, 50, marks=pytest.mark.extended),
        *(pytest.param(n, SUITE, 350, marks=pytest.mark.extended) for n in (2, 3)),
    ],
)
def test_own_suite(ranks, names, least, mpirun, mpi4py_env, tests_of_mpi4py, tmp_path):  # noqa: F811
    place = "few-communicator" if names is FEW else "communicator"
    args = [RUNNER, tests_of_mpi4py, tmp_path, place, *(f"test_{name}" for name in names)]
    env = {**mpi4py_env, **FORCED, "MPRESS_THRESHOLD": "0"}
    done = mpirun(ranks, sys.executable, args, env, timeout=300)
    assert done.status == 0, done.output
    all_passed(tmp_path, ranks, least, done)


@pytest.mark.parametrize(
    ("names", "least"),
    [(ON_GPUS, 40), pytest.param(ALL_ON_GPUS, 300, marks=pytest.mark.extended)],
)
def test_own_suite_on_gpus(
    names,
    least,
    tests_of_mpi4py,  # noqa: F811
    cupy_env,  # noqa: F811
    mpi,
    mpress_run,
    tmp_path,
):
    """Under `mpress run`, as that reports what was compressed."""
    options = (*RUN_FORCED, "--mpiexec", os.fspath(mpi.mpiexec))
    env = {**cupy_env, "MPRESS_CHUNK": "4K"}
    place = "few-device-communicator" if names is ON_GPUS else "device-communicator"
    args = [RUNNER, tests_of_mpi4py, tmp_path, place, *(f"test_{name}" for name in names)]
    done = mpress_run(2, sys.executable, args, options=options, env=env, timeout=600)
    assert done.status == 0, done.output
    all_passed(tmp_path, 2, least, done)
    totals = done.report["totals"]
    assert totals["compressed_messages"] >= 100
    assert totals["compressed_messages"] == totals["decoded_messages"] and totals["errors"] == 0


def test_codecs_alone_start_no_mpi():
    program = "import sys, mpress; mpress.codec('mpc'); assert 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_examples_of_the_page(mpirun, with_jax, tmp_path):
    text = (ROOT / "docs" / "communicator.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    program = tmp_path / "example.py"
    program.write_text("\n".join([*blocks, "assert isinstance(total, jax.Array)"]))
    done = mpirun(3, sys.executable, [*WITH_MPI, program], with_jax)
    assert done.status == 0 and "each element within" in done.stdout, done.output


def test_an_interpreter_without_mpi(tmp_path):
    """What is missing is said when a Communicator is asked for."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('no MPI here')\n")
    env = {"PYTHONPATH": os.fspath(tmp_path)}
    done = execute([sys.executable, "-c", "import mpress; mpress.Communicator"], env)
    assert done.status != 0 and "no MPI here" in done.output
