"""An algorithm of the tests' own for MPI_Alltoall: what a new one touches outside its own files,
and that it then serves calls."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from execution import execute
from patched_sources import ROOT, check_touched, copy_sources

import mpress

DUMMY = ROOT / "tests" / "dummy_algorithm"
PATCH = DUMMY / "two_files.patch"
TOUCHED = ("src/CMakeLists.txt", "src/coll/algorithm.hpp")

PROGRAM = """
import numpy
from mpi4py import MPI
import mpress
comm = mpress.Communicator(MPI.COMM_WORLD)
out = numpy.arange(comm.size << 16, dtype=numpy.float32) + comm.rank
got = numpy.empty_like(out)
comm.Alltoall(out, got)
wanted = [numpy.split(out - comm.rank, comm.size)[comm.rank] + rank for rank in range(comm.size)]
assert (got == numpy.concatenate(wanted)).all()
if comm.rank == 0:
    print("served", comm.outcome.served)
"""


@pytest.fixture
def patched(tmp_path):
    """The sources with the dummy algorithm."""
    tree = tmp_path / "tree"
    copy_sources(tree, PATCH, [(DUMMY / "dummy.cpp", "src/coll/algorithms")])
    return tree


def test_an_algorithm_touches_two_files(patched):
    check_touched(patched, PATCH, TOUCHED)


@pytest.mark.extended
def test_calls_go_by_it(patched, tmp_path, mpi, mpi4py_env):
    build, site = tmp_path / "build", tmp_path / "site"
    options = ["-DMPRESS_PYTHON=OFF", "-DMPRESS_CUDA=OFF", "-DMPRESS_MPICC_ONLY=ON"]
    options += [f"-DMPICC={mpi.mpicc}"]
    subprocess.run(["cmake", "-G", "Ninja", "-S", patched, "-B", build, *options], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    shutil.copytree(Path(mpress.__file__).parent, site / "mpress")
    for library in build.rglob("libmpress*.so"):
        shutil.copy(library, site / "mpress" / "lib")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = {**mpi.env, **mpi4py_env, "PYTHONPATH": os.fspath(site)}
    command = [sys.executable, "-m", "mpress", "run", "-n", "3", "--mpiexec", mpi.mpiexec]
    command += ["--codec", "mpc", "--force", "--report", tmp_path / "report.json"]
    done = execute([*command, "--", sys.executable, "-m", "mpi4py", program], env)
    assert done.status == 0 and "served True" in done.stdout, done.output
    command = [sys.executable, "-m", "mpress", "info", "--algorithms", "--mpiexec", mpi.mpiexec]
    done = execute(command, env | {"MPRESS_CODEC": "mpc", "MPRESS_FORCE": "1"})
    assert done.status == 0 and re.search(r"MPI_Alltoall.*\n.*dummy", done.stdout), done.output
