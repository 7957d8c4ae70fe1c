"""Finding the libraries that ranks load, and building the command that starts ranks."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpress.cli import mpis
from mpress.cli.errors import UserError

_LIBRARIES = Path(__file__).resolve().parent.parent / "lib"


def preload_library() -> Path | None:
    """The library that ranks load, or None where mpress was built without MPI."""
    path = _LIBRARIES / "libmpress_preload.so"
    return path if path.exists() else None


def backend(family: str) -> Path | None:
    """What is loaded for a family of MPIs, or for GPUs (`cuda`); None where it was not built."""
    path = _LIBRARIES / f"libmpress_{family}.so"
    return path if path.exists() else None


def required_preload_library() -> Path:
    """As preload_library(), but its absence is the user's error."""
    path = preload_library()
    if path is None:
        raise UserError(
            "this mpress was built without MPI: install one (`pip install mpich` is enough) or "
            "set MPICC to its compiler wrapper, and install mpress again"
        )
    # The dynamic loader takes both for separators and knows no escape.
    if any(c in ":;" or c.isspace() for c in str(path)):
        raise UserError(f"{path} cannot be preloaded: the path holds a space or a colon")
    return path


def find_mpiexec(command: str | None, program: str) -> list[str]:
    """The launcher: as given, else the one for the program's MPI."""
    if command is None:
        return [mpis.find_launcher(program)]
    words = shlex.split(command)
    if not words or not shutil.which(words[0]):
        raise UserError(f"--mpiexec {command!r}: expected a command that exists")
    return words


def rank_command(
    program: Sequence[str],
    environment: Mapping[str, str],
    ranks: int | None,
    mpiexec: Sequence[str],
) -> list[str]:
    """The command line: `env` sets the variables in the ranks alone, whatever the launcher is."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    launcher = [] if ranks is None else [*mpiexec, "-n", str(ranks)]
    return [*launcher, "env", *settings, *program]
