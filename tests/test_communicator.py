"""mpress.Communicator: what it promises, and mpi4py's own suite with it in the place of mpi4py's
communicators; with any launcher, and under `mpress run`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT, execute
from test_mpi4py import outcomes, tests_of_mpi4py  # noqa: F401

CHECKS = ROOT / "tests" / "communicator_checks.py"
FORCED = {"MPRESS_FORCE": "1"}
SUITE = (
    "p2p_buf", "p2p_buf_matched", "p2p_obj", "cco_buf", "cco_vec", "cco_nb_buf", "cco_nb_vec",
    "cco_pr_buf", "cco_pr_vec", "msgzero",
)  # fmt: skip


def served(mpi) -> list[str]:
    """mpi4py asks for threads, and other MPIs do not let those look at requests."""
    return ["collectives"] if mpi.name in ("default", "mpich", "openmpi") else []


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_it_promises(ranks, mpirun, mpi, mpi4py_env):
    args = [CHECKS, "forced", *served(mpi)]
    done = mpirun(ranks, sys.executable, args, {**mpi4py_env, **FORCED})
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_under_mpress_run(mpress_run, mpi, mpi4py_env):
    args = [CHECKS, "forced", *served(mpi), "preloaded"]
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
    done = mpirun(ranks, sys.executable, [ROOT / "tests" / "communicator_jax.py"], with_jax)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_streams(mpirun, mpi, mpi4py_env, simulated_gpu):
    """Where devices serve a call, the stream waits for it, and not the host."""
    if not served(mpi):
        pytest.skip("whose library cannot tell of requests under MPI_THREAD_MULTIPLE")
    simulated = os.fspath(ROOT / "tests" / "simulated_gpu")
    path = os.pathsep.join(filter(None, [simulated, mpi4py_env.get("PYTHONPATH", "")]))
    env = {**mpi4py_env, **simulated_gpu, "PYTHONPATH": path, "MPRESS_LINK": "peer"}
    done = mpirun(2, sys.executable, [ROOT / "tests" / "communicator_streams.py"], env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    assert "waits on the host" not in done.stderr  # the program has named no stream


def test_own_suite(mpirun, mpi4py_env, tests_of_mpi4py, tmp_path):  # noqa: F811
    names = [f"test_{name}" for name in SUITE]
    args = [ROOT / "tests" / "mpi4py_suite.py", tests_of_mpi4py, tmp_path, "communicator", *names]
    env = {**mpi4py_env, **FORCED, "MPRESS_THRESHOLD": "0"}
    done = mpirun(2, sys.executable, args, env, timeout=300)
    assert done.status == 0, done.output
    for ended in outcomes(tmp_path, 2):
        wrong = {name for name, found in ended.items() if {"failed", "error"} & set(found)}
        assert not wrong, done.output
        assert sum(found == ["passed"] for found in ended.values()) > 250


def test_codecs_alone_start_no_mpi():
    program = "import sys, mpress; mpress.codec('mpc'); assert 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_examples_of_the_page(mpirun, with_jax, tmp_path):
    text = (ROOT / "docs" / "communicator.md").read_text()
    blocks = [block.split("```")[0] for block in text.split("```python\n")[1:]]
    program = tmp_path / "example.py"
    program.write_text("\n".join([*blocks, "assert isinstance(total, jax.Array)"]))
    done = mpirun(3, sys.executable, [program], with_jax)
    assert done.status == 0 and "each element within" in done.stdout, done.output


def test_an_interpreter_without_mpi(tmp_path):
    """What is missing is said when a Communicator is asked for."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('no MPI here')\n")
    env = {"PYTHONPATH": os.fspath(tmp_path)}
    done = execute([sys.executable, "-c", "import mpress; mpress.Communicator"], env)
    assert done.status != 0 and "no MPI here" in done.output
