"""What the suites of this folder share: how they are built, and an environment to run them in."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

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
