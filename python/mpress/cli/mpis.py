"""Which MPI a program uses, and which launcher starts its ranks.

Libraries with one binary interface are a family, for which there is one backend: ``mpich`` (MPICH
and all that promise its ABI), ``openmpi``, and ``abi`` (the standard ABI of MPI 5).
"""

import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpress import _core
from mpress.cli.errors import UserError

NAMES = {"mpich": "MPICH", "openmpi": "Open MPI", "abi": "the MPI standard ABI"}

# Names of an MPI's own launcher, the generic one first.
_LAUNCHERS = {
    "mpich": ("mpiexec", "mpiexec.hydra", "mpiexec.mpich"),
    "openmpi": ("mpiexec", "mpirun", "mpiexec.openmpi"),
}
_ELF64 = struct.Struct("<4s4x24xQ14xHH6x")  # magic, offset, size and number of program headers
_INTERPRETER = 3  # the program header that names the dynamic loader
_LOADED = re.compile(r"^\s*(?:\S.*? => )?(\S.*) \(0x[0-9a-f]+\)$", re.MULTILINE)


@dataclass(frozen=True)
class Library:
    """An MPI library: its family, and whose it is (``mpich``, ``openmpi``) where that is known."""

    path: Path
    family: str
    implementation: str | None

    def __str__(self) -> str:
        return f"{NAMES[self.family]} ({self.path})"


def _loader(program: Path) -> str | None:
    """The dynamic loader that an ELF program names; None for scripts and static programs."""
    with program.open("rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:5] != b"\x7fELF\x02":
            return None
        _, offset, size, count = _ELF64.unpack_from(header)
        for number in range(count):
            file.seek(offset + number * size)
            kind, _, start, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
            if kind == _INTERPRETER:
                file.seek(start)
                return file.read(length).rstrip(b"\0").decode()
    return None


def library(path: Path) -> Library | None:
    """What an MPI library is, by the symbols and texts in it; None where it is none.

    OSError or ValueError where the file cannot be read or is empty.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(b"\0PMPI_Get_library_version\0") < 0:
            return None
        if data.find(b"ompi_mpi_comm_world") >= 0:
            implementation = "openmpi"
        elif data.find(b"MPICH") >= 0:
            implementation = "mpich"
        else:
            implementation = None
    family = "abi" if path.name.startswith("libmpi_abi.") else implementation
    return Library(path, family, implementation) if family else None


def program_mpi(program: str | Path) -> Library | None:
    """The MPI library that the dynamic loader will give to a program, without running it.

    None where that cannot be known: for scripts, static programs, and those that load MPI later.
    """
    # Of a name without a folder the loader would look for a library, and $ORIGIN is where the
    # program itself lies, not a link to it.
    path = Path(os.path.realpath(program))
    try:
        loader = _loader(path)
        if loader is None:
            return None
        done = subprocess.run(
            [loader, "--list", path], capture_output=True, timeout=30, stdin=subprocess.DEVNULL
        )
        for match in _LOADED.finditer(os.fsdecode(done.stdout)):
            loaded = Path(match.group(1))
            found = library(loaded) if "mpi" in loaded.name else None
            if found is not None:
                return found
    except (OSError, ValueError, struct.error, subprocess.TimeoutExpired):
        pass  # not a program that can be looked into; starting it will tell
    return None


def _command_mpi(command: Sequence[str]) -> tuple[str, Library | None]:
    """The program whose MPI counts, and that MPI: what a command starts, or, where that is no MPI
    program itself (``numactl ./program``, ``env NAME=1 ./program``), the first of its arguments
    that is one."""
    for word in command:
        file = shutil.which(word)
        mpi = program_mpi(file) if file else None
        if mpi is not None:
            return word, mpi
    return command[0], None


def launcher_implementation(launcher: str) -> str | None:
    """Whose launcher this is, from what it says; None for those of a resource manager."""
    try:
        done = subprocess.run(
            [launcher, "--version"], capture_output=True, text=True, timeout=30,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout + done.stderr
    if re.search(r"Open MPI|OpenRTE|PRRTE", text):
        return "openmpi"
    return "mpich" if re.search(r"HYDRA|MPICH|Intel\(R\) MPI", text) else None


def _default_launchers() -> Iterator[str]:
    """The launcher beside the interpreter, those of the MPIs mpress was built for, that on PATH."""
    built = [launcher for _, _, launcher in _core.build_info()["mpis"]]
    for path in [Path(sys.executable).parent / "mpiexec", *map(Path, built)]:
        if path.is_file():
            yield str(path)
    on_path = shutil.which("mpiexec")
    if on_path:
        yield on_path


def _launchers_of(mpi: Library) -> Iterator[str]:
    """Launchers that may be those of a library: beside it first."""
    names = _LAUNCHERS.get(mpi.implementation or "", ("mpiexec",))
    # Open MPI's launcher takes its own path for that of an installation, and refuses /bin.
    for lib in (mpi.path.resolve().parent, mpi.path.parent.resolve()):
        for prefix in (lib.parent, lib.parent.parent):
            yield from (str(p) for name in names if (p := prefix / "bin" / name).is_file())
    yield from _default_launchers()
    yield from filter(None, map(shutil.which, names))


def default_launcher() -> str | None:
    """The launcher for programs whose MPI is not known."""
    return next(_default_launchers(), None)


def find_launcher(command: Sequence[str]) -> str:
    """The mpiexec for a program and its arguments: that of the MPI which it uses where that is
    known, else the default."""
    program, mpi = _command_mpi(command)
    if mpi is None:
        found = default_launcher()
        if found is None:
            raise UserError(
                "no mpiexec beside the Python interpreter or on PATH: give --mpiexec CMD"
            )
        return found
    for launcher in dict.fromkeys(_launchers_of(mpi)):
        owner = launcher_implementation(launcher)
        if owner is None or mpi.implementation in (None, owner):
            return launcher
    raise UserError(
        f"PROGRAM {program!r} uses {mpi}, but no mpiexec of it is beside that library or on PATH: "
        "give --mpiexec CMD"
    )
