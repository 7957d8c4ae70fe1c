"""Programs and libraries that tests compile, made once in the build directory by whichever test
comes first.
"""

import fcntl
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from execution import ROOT, execute
from mpis import Mpi


@contextmanager
def made_once(file: Path) -> Iterator[None]:
    """What is made within is made by one process at a time; `file` names it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file.with_name(file.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def simulated_gpu_library(build_dir: Path) -> Path:
    """Two GPUs where there is none: what MPRESS_GPU is set to for programs of
    tests/simulated_gpu/simulated_gpu.h."""
    library = build_dir / "tests" / "simulated_gpu" / "libmpress_simulated_gpu.so"
    assert library.exists(), "not built: cmake --build build --target mpress_tests"
    return library


def yielding(build_dir: Path, *, is_library: bool = False) -> Path:
    """What makes programs sleep that wait for others: tests/mpi/yielding.cpp, as an object or as a
    library to preload."""
    source = ROOT / "tests" / "mpi" / "yielding.cpp"
    file = build_dir / "tests" / "mpi" / ("libyielding.so" if is_library else "yielding.o")
    with made_once(file):
        if not file.exists() or file.stat().st_mtime < source.stat().st_mtime:
            kind = ["-shared", "-fPIC"] if is_library else ["-c"]
            done = execute(
                ["c++", "-O1", "-fno-exceptions", "-Wall", "-Wextra", *kind, "-o", file, source]
            )
            assert done.status == 0, done.output
    return file


def compile_mpi_program(name: str, mpi: Mpi, build_dir: Path, *, cuda: bool = False) -> Path:
    """The executable of tests/mpi/NAME.c, or of all C++ files of the directory tests/mpi/NAME as
    one, which takes half the time, for an MPI, compiled where it is out of date. One that includes
    simulated_gpu.h has the simulated GPUs' library, or with `cuda` what makes it use real ones."""
    folder = ROOT / "tests" / "mpi"
    sources = sorted((folder / name).glob("*.cpp"))
    simulated = ROOT / "tests" / "simulated_gpu"
    headers = [*folder.glob("*.h"), *(folder / name).glob("*.hpp"), *simulated.glob("*.h")]
    options = ["-std=c++20"] if sources else []
    libraries = ["-lstdc++"] if sources else []
    sources = sources or [folder / f"{name}.c"]
    if cuda:
        toolkit = Path(shutil.which("nvcc") or pytest.skip("needs nvcc")).resolve().parents[1]
        sources.append(ROOT / "tests" / "gpu" / "device_memory.c")
        options += ["-I", simulated, "-I", toolkit / "include"]
        libraries += [f"-L{toolkit / 'lib64'}", "-lcudart_static", "-ldl", "-lrt"]
    elif any('#include "simulated_gpu.h"' in path.read_text() for path in sources):
        library = simulated_gpu_library(build_dir)
        options += ["-I", simulated]
        libraries += [library, f"-Wl,-rpath,{library.parent}"]
    program = build_dir / "tests" / "mpi" / (mpi.name + ("-cuda" if cuda else "")) / name
    if not cuda:
        libraries.insert(0, yielding(build_dir))
        headers.append(libraries[0])
    newest = max(path.lstat().st_mtime for path in [*sources, mpi.mpicc, *headers])
    with made_once(program):
        if not program.exists() or program.stat().st_mtime < newest:
            if len(sources) > 1 and not cuda:
                whole = program.with_suffix(".cpp")
                whole.write_text("".join(f'#include "{path}"\n' for path in sources))
                sources = [whole]
            command = [mpi.mpicc, *options, "-O1", "-g1", "-Wall", "-Wextra", "-pthread"]
            done = execute([*command, "-o", program, *sources, "-lm", *libraries])
            assert done.status == 0, done.output
    return program


def on_rank_1(folder: Path, program: Path, command: str) -> Path:
    """A script that runs the program, on rank 1 after a shell command."""
    script = folder / "program.sh"
    rank = "${PMI_RANK:-${PMIX_RANK:-$OMPI_COMM_WORLD_RANK}}"
    start = f'exec {shlex.quote(str(program))} "$@"'
    script.write_text(f'#!/bin/sh\n[ "{rank}" = 1 ] && {command}\n{start}\n')
    script.chmod(0o755)
    return script
