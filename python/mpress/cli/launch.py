"""Finding the libraries that ranks load, and building the command that starts ranks."""

import os
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


def find_mpiexec(command: str | None, program: Sequence[str]) -> list[str]:
    """The launcher: as given, else the one for the MPI of a program (with its arguments)."""
    if command is None:
        return [mpis.find_launcher(program)]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"--mpiexec {command!r}: {error}") from None
    if not words:
        raise UserError(f"--mpiexec {command!r}: expected a launcher and its options")
    if not shutil.which(words[0]):
        raise UserError(f"--mpiexec {command!r}: {_no_program(words[0])}")
    return words


def find_program(name: str) -> str:
    """The executable file that a name means: a path, or a program on PATH."""
    found = shutil.which(name)
    if found is None:
        raise UserError(f"PROGRAM {name!r}: {_no_program(name)}")
    return found


def _no_program(name: str) -> str:
    """Why a name means no executable file."""
    path = Path(name)
    if os.sep not in name:
        here = f"; for the file in this folder write ./{name}" if path.is_file() else ""
        return f"there is no such program on PATH{here}"
    if path.is_dir():
        return "expected an executable file, but this is a directory"
    if not path.exists():
        return "there is no such file"
    return "expected an executable file, but this one may not be executed"


def rank_command(
    program: Sequence[str],
    environment: Mapping[str, str],
    ranks: int | None,
    mpiexec: Sequence[str],
) -> list[str]:
    """The command line: `env` sets the variables in the ranks alone, whatever the launcher is."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    launcher = [] if ranks is None else [*mpiexec, "-n", str(ranks)]
    # `env` would take ./a=b for a setting.
    shell = ["sh", "-c", 'exec "$0" "$@"'] if "=" in program[0] else []
    return [*launcher, "env", *settings, *shell, *program]
