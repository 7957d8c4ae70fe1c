"""Commands that tests start, ended with all their processes after `timeout` seconds, or more where
the machine is loaded: a hang is a failure, not a wait, and a slow machine is no failure.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from served_cli import ServedCommand

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
MPRESS = BIN / "mpress"
TIMEOUT = 300  # seconds on an idle machine, of what takes a few


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


def crowding() -> float:
    """How many processes share a core, in the minutes before; at least 1."""
    return max(1.0, max(os.getloadavg()) / (os.cpu_count() or 1))


def communicate(process: Any, timeout: float) -> tuple[str, str] | None:
    """What the process printed; None where it does not end within `timeout`, times crowding()."""
    begin = time.monotonic()
    while True:
        left = begin + timeout * crowding() - time.monotonic()
        if left <= 0:
            return None
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=left)


def execute(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    cwd: Path | None = None,
) -> Finished:
    """Runs a command in a process group of its own, with no MPRESS_* variable but those in env, and
    without a profile that the user may have, nor what this machine's links are like at the moment.
    MPRESS is served (served_cli.py)."""
    words = [str(word) for word in command]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MPRESS_")}
    inherited |= {"MPRESS_PROFILE": "off", "MPRESS_LEARN": "off"}
    environment = inherited | dict(env or {})
    process: subprocess.Popen[str] | ServedCommand
    if command[0] == MPRESS:
        process = ServedCommand(words, environment, cwd)
    else:
        process = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            start_new_session=True,
        )
    printed = communicate(process, timeout)
    if printed is None:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        pytest.fail(f"no end after {timeout} s: {' '.join(words)}\n{stdout}\n{stderr}")
    return Finished(process.returncode, *printed)


def served_run(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """subprocess.run with what is printed, for modules under test: MPRESS is served."""
    words = [str(word) for word in command]
    if Path(words[0]) != MPRESS:
        return subprocess.run(words, **options)
    process = ServedCommand(words, options.get("env") or os.environ, None)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode or 0, stdout, stderr)


def on_path(env: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment in which Python finds the modules of this folder, too."""
    before = env.get("PYTHONPATH")
    return env | {"PYTHONPATH": os.pathsep.join([*([before] if before else []), str(folder)])}
