"""Fixtures: the build directory, MPI programs, and ways to run them.

Every program that these start is ended with all its processes after `timeout` seconds: a hang is
a failure, not a wait.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
TIMEOUT = 120


@dataclass
class Finished:
    """A program that ended: its exit status, what it printed, and the report of `mpress run`."""

    status: int
    stdout: str
    stderr: str
    report: dict[str, Any] | None = None

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def execute(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    cwd: Path | None = None,
) -> Finished:
    """Runs a command in a process group of its own, with no MPRESS_* variable but those in env."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MPRESS_")}
    process = subprocess.Popen(
        [str(word) for word in command],
        env=inherited | dict(env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        words = " ".join(str(word) for word in command)
        pytest.fail(f"no end after {timeout} s: {words}\n{stdout}\n{stderr}")
    return Finished(process.returncode, stdout, stderr)


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Where CMake built; tests that compile something put it below."""
    return Path(os.environ.get("MPRESS_BUILD_DIR", ROOT / "build"))


@pytest.fixture(scope="session")
def mpi_program(build_dir: Path) -> Callable[[str], Path]:
    """mpi_program(name): the executable of tests/mpi/NAME.c, compiled where it is out of date."""
    sources = ROOT / "tests" / "mpi"
    programs = build_dir / "tests" / "mpi"

    def compiled(name: str) -> Path:
        source = sources / f"{name}.c"
        program = programs / name
        newest = max(path.stat().st_mtime for path in [source, *sources.glob("*.h")])
        if not program.exists() or program.stat().st_mtime < newest:
            programs.mkdir(parents=True, exist_ok=True)
            command = [BIN / "mpicc", "-O1", "-g", "-Wall", "-Wextra", "-pthread"]
            done = execute([*command, "-o", program, source, "-lm"])
            assert done.status == 0, done.output
        return program

    return compiled


@pytest.fixture(scope="session")
def mpirun() -> Callable[..., Finished]:
    """mpirun(n, program, args=(), env=None, timeout=...): plain mpiexec, without mpress."""

    def run(
        n: int,
        program: str | Path,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Finished:
        return execute([BIN / "mpiexec", "-n", str(n), program, *args], env, timeout)

    return run


@pytest.fixture
def mpress_run(tmp_path: Path) -> Callable[..., Finished]:
    """mpress_run(n, program, args=(), options=(), env=None, timeout=...): `mpress run` with these
    options and a report, which `Finished.report` holds; n None runs without a launcher."""

    def run(
        n: int | None,
        program: str | Path,
        args: Sequence[str] = (),
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Finished:
        file = tmp_path / "report.json"
        file.unlink(missing_ok=True)
        ranks = [] if n is None else ["-n", str(n)]
        command = [BIN / "mpress", "run", *ranks, "--report", file, *options, "--", program, *args]
        done = execute(command, env, timeout)
        if file.exists():
            done.report = json.loads(file.read_text())
        return done

    return run
