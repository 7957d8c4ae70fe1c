"""Runs bindings.py for every MPI with Fortran bindings: run.py [pytest's arguments]

MPIFORT names their compiler wrappers; without it, those of Debian's packages and the one on PATH.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = "mpifort.mpich mpifort.openmpi mpifort"
PROGRAM = "program empty\n  use mpi_f08\n  call MPI_Init()\nend program empty\n"
MISSING = (
    "make test-fortran needs gfortran and an MPI with Fortran bindings, but found none: on Debian "
    "and Ubuntu install gfortran and libmpich-dev mpich or libopenmpi-dev openmpi-bin, or set "
    "MPIFORT to the compiler wrappers of other MPIs"
)


def compiles(wrapper: str) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "empty.f90"
        source.write_text(PROGRAM)
        command = [wrapper, "-o", f"{directory}/empty", source]
        return subprocess.run(command, cwd=directory, capture_output=True).returncode == 0


def found() -> list[str]:
    """Wrappers that compile for mpi_f08; of the names of one wrapper, the first."""
    by_meaning: dict[str, str] = {}
    asked = os.environ.get("MPIFORT", "").split()
    for name in asked or NAMES.split():
        wrapper = shutil.which(name)
        if wrapper and compiles(wrapper):
            shown = subprocess.run([wrapper, "-show"], capture_output=True, text=True).stdout
            by_meaning.setdefault(shown, wrapper)
        elif asked:
            sys.exit(f"MPIFORT={name}: expected a compiler wrapper that compiles for mpi_f08")
    return list(by_meaning.values())


def main() -> int | str:
    wrappers = found()
    if not wrappers:
        sys.exit(MISSING)
    failed = []
    for wrapper in wrappers:
        print(f"Fortran bindings of {wrapper}", flush=True)
        mpicc = Path(wrapper).with_name(Path(wrapper).name.replace("mpifort", "mpicc"))
        suite = Path(__file__).with_name("bindings.py")
        command = [sys.executable, "-m", "pytest", "--mpi", mpicc, suite, *sys.argv[1:]]
        if subprocess.run(command).returncode != 0:
            failed.append(wrapper)
    return f"failed: {', '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
