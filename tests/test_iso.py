"""mpress.iso: exchanges of neighbourhoods, and halos, of arrays on the host and on GPUs."""

import re
import sys

import pytest
from conftest import ROOT

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
