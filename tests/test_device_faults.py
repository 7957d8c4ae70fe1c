"""Devices and processes that fail, or have nothing to spare, while messages in device memory
travel: on simulated GPUs, and on real ones, which nothing else may use meanwhile."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from compiled_programs import compile_mpi_program

RAW = ("--codec", "none")
ENCODED = ("--codec", "mpc", "--force", "--threshold", "0")
FIRST_USE = 128 << 20  # of a real GPU, by a process, for kernels, streams and workspaces


@dataclass
class Gpus:
    """What programs of tests/simulated_gpu/simulated_gpu.h run on."""

    program: Callable[[str], Path]
    env: Mapping[str, str]
    is_real: bool

    def used_memory(self) -> list[int]:
        """MiB, for each; nothing where they are simulated."""
        if not self.is_real:
            return []
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        done = subprocess.run(query, check=True, capture_output=True, text=True)
        return [int(line) for line in done.stdout.splitlines()]


@pytest.fixture(params=["simulated", pytest.param("cuda", marks=pytest.mark.cuda)])
def gpus(request, mpi, build_dir) -> Gpus:
    is_real = request.param == "cuda"
    env = {} if is_real else request.getfixturevalue("simulated_gpu")
    return Gpus(lambda name: compile_mpi_program(name, mpi, build_dir, cuda=is_real), env, is_real)


def is_alive(process: int) -> bool:
    """Nor a zombie that nobody has waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def comes_true(condition: Callable[[], bool], seconds: float = 300) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("options", [RAW, ENCODED], ids=["raw", "encoded"])
def test_a_killed_rank_ends_the_job(options, gpus, mpress_run, tmp_path):
    folder = tmp_path / "processes"
    folder.mkdir()
    used = gpus.used_memory()
    args = [str(32 << 20), os.fspath(folder)]
    done = mpress_run(2, gpus.program("device_killed"), args, options=options, env=gpus.env)
    assert done.status != 0
    assert not any(rank["finished"] for rank in done.report["ranks"])
    assert done.report["totals"]["messages"] >= 2 * 4
    processes = [int(path.name) for path in folder.iterdir()]
    assert len(processes) == 2
    assert comes_true(lambda: not any(map(is_alive, processes))), done.output
    assert comes_true(lambda: gpus.used_memory() == used), (used, gpus.used_memory())


@pytest.mark.parametrize(
    ("options", "begin", "spare"),
    [
        # All pairs of two of the three.
        (RAW, "cold", 0), (RAW, "warm", 4 << 20), (ENCODED, "cold", 4 << 20), (ENCODED, "warm", 0),
        *(pytest.param(*one, marks=pytest.mark.extended) for one in (
            (RAW, "cold", 4 << 20), (RAW, "warm", 0), (ENCODED, "cold", 0),
            (ENCODED, "warm", 4 << 20),
        )),
    ],
)  # fmt: skip
def test_a_program_that_leaves_no_memory(options, begin, spare, gpus, mpress_run):
    if begin == "cold" and gpus.is_real:
        spare += FIRST_USE * (2 if len(gpus.used_memory()) == 1 else 1)
    args = [begin, str((64 if gpus.is_real else 16) << 20), str(spare)]
    done = mpress_run(2, gpus.program("device_full"), args, options=options, env=gpus.env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


@pytest.mark.parametrize("options", [RAW, ENCODED], ids=["raw", "encoded"])
def test_gpus_are_hidden_from_a_rank(options, gpus, mpress_run):
    done = mpress_run(2, gpus.program("device_hidden"), options=options, env=gpus.env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.report["totals"]["compressed_messages"] == (0 if options == RAW else 8)


def test_without_a_profile_one_line_says_so(gpus, mpress_run, tmp_path):
    program = gpus.program("device_hidden")
    env = {**gpus.env, "MPRESS_PROFILE": "", "XDG_CACHE_HOME": os.fspath(tmp_path)}
    done = mpress_run(2, program, env=env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.stderr.count("no profile of this machine") == 1
    env["MPRESS_PROFILE"] = os.fspath(tmp_path / "lost.profile")
    done = mpress_run(2, program, env=env)
    assert done.status != 0
    assert "lost.profile': No such file or directory" in done.stderr
