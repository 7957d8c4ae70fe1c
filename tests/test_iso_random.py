"""Random calls of neighbourhoods by all ranks of a job, which draws them itself and shrinks what
fails (tests/iso_random.py). For longer runs: ISO_EXAMPLES=5000 pytest -k many_random_calls -m ''.

Where a job ends or hangs, `iso_random.py replay FILE` makes the case that is shown again."""

from __future__ import annotations

import os
import re
import sys
from random import SystemRandom

import pytest
from execution import ROOT, on_path

PROGRAM = ROOT / "tests" / "iso_random.py"
# Under MPI_THREAD_MULTIPLE, which is mpi4py's default, calls that do not block go another way.
THREADS = {False: "threads=False", True: "threads=True"}
FORCED = {"MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0"}
HOST = {"MPRESS_GPU": "off"}
LINKS = ("peer", "host", "mpi")


@pytest.fixture
def draw(mpi, mpirun, mpi4py_env, simulated_gpu, tmp_path):
    """draw(ranks, seed, examples, link, threads, settings): where there is no link, memory is the
    host's."""

    def run(ranks, seed, examples, link, threads=False, settings=None) -> None:
        case = tmp_path / "case"
        env = {**mpi4py_env, **FORCED, **(HOST if link is None else simulated_gpu)}
        env |= settings or {}
        words = [str(examples), str(seed), case]
        if link is not None:
            env = on_path(env, ROOT / "tests") | {"MPRESS_LINK": link, "MPRESS_CHUNK": "8K"}
            words.append("devices")
        python = ["-m", "mpi4py", "-rc", THREADS[threads], PROGRAM]
        done = mpirun(ranks, sys.executable, [*python, *words], env)
        at = case.read_text() if case.exists() else ""
        verdict, _, graphs = done.stdout.partition("\n")
        assert done.status == 0 and verdict == "ok", f"{done.output}\n{seed}: {at}"
        # MPI's own calls are the last oracle, for memory of the host; not those of every MPI.
        told = re.fullmatch("([0-9]+) by graphs\n", graphs)
        assert told or (mpi.name == "default" and graphs == "graphs are unfit\n")
        assert not told or int(told[1]) > 0 or link is not None

    return run


@pytest.mark.parametrize(("ranks", "examples"), [(1, 40), (3, 40), (8, 12)])
def test_random_calls(ranks, examples, draw):
    draw(ranks, ranks, examples, None, ranks == 3)


@pytest.mark.parametrize("link", LINKS)
def test_random_calls_on_devices(link, draw):
    draw(4, 10 + LINKS.index(link), 20, link)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("ranks", "link", "progress"),
    [
        (2, None, "single"),
        (5, None, "single"),
        (8, "host", "single"),
        (4, "mpi", "single"),
        (3, "peer", "single"),
        (6, None, "multiple"),
        (3, "peer", "multiple"),
        (5, None, "thread"),
        (3, "host", "thread"),
    ],
)
def test_many_random_calls(ranks, link, progress, mpi, draw):
    """Others every time; `thread`: one of mpress's own proceeds."""
    examples = int(os.environ.get("ISO_EXAMPLES", "150"))
    # The standard ABI has no way to look at requests from several threads.
    own = {"MPRESS_PROGRESS": "thread"} if progress == "thread" and mpi.name != "abi" else {}
    draw(ranks, SystemRandom().getrandbits(32), examples, link, progress != "single", own)
