"""What the suites of this folder share: how they are built, and how their programs are run."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpress.p2p.jobs import communicate

BIN = Path(sys.executable).parent
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
"""Options of `mpress run`: all that can be compressed is, without loss."""
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}:{os.environ['PATH']}",
    # Ranks that wait leave cores to the others.
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "50",
    # Open MPI's way to allow what those who run this have asked for.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def unpack(source: Path, root: Path, wanted: Callable[[str], bool] = lambda part: True) -> None:
    """A tar file whose members all lie in one folder: those whose next folder is wanted."""
    with tarfile.open(source) as archive:
        for member in archive:
            parts = Path(member.name).parts[1:]
            if parts and wanted(parts[0]):
                member.name = str(Path(*parts))
                archive.extract(member, root, filter="tar")


def execute(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} in {folder}:\n{done.stdout[-2000:]}")


@dataclass(frozen=True)
class Ended:
    """A program that ran."""

    code: int | None  # None: it did not end in time, and was ended
    text: str
    """What it printed, errors among it."""
    seconds: float
    report: dict[str, Any] | None
    """Of `mpress run`."""

    @property
    def compressed(self) -> int:
        return self.report["totals"]["compressed_messages"] if self.report else 0


def launched(
    program: Sequence[str],
    ranks: int,
    options: Sequence[str] | None,
    folder: Path,
    limit: float,
    mpiexec: Sequence[str] = ("mpiexec",),
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Runs a program in a folder, for `limit` seconds at most: under `mpress run` with these
    options, or plain where they are None."""
    with tempfile.TemporaryDirectory(prefix="mpress-report-") as scratch:
        report = Path(scratch) / "report.json"
        command = [*mpiexec, "-n", str(ranks), *program]
        if options is not None:
            command = ["mpress", "run", "--mpiexec", shlex.join(mpiexec), *options, "--report",
                       str(report), "-n", str(ranks), "--", *program]  # fmt: skip
        begin = time.monotonic()
        with subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT | dict(variables or {}), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            text, _, has_ended = communicate(process, limit)
        told = json.loads(report.read_text()) if report.exists() else None
        code = process.returncode if has_ended else None
        return Ended(code, text, time.monotonic() - begin, told)
