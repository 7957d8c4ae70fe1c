"""What the linker made: mistakes here show only on other machines."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest


def symbols(path: Path, *options: str) -> list[list[str]]:
    done = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def preload_library() -> Path:
    package = find_spec("mpress").origin
    return Path(package).parent / "lib" / "libmpress_preload.so"


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_kernels_share_no_function(isa, build_dir):
    """The linker may keep any copy of a weak symbol: one compiled for a better CPU would run on
    every CPU."""
    objects = sorted((build_dir / "src" / "codec").rglob(f"*_{isa}.cpp.o"))
    if not objects:
        pytest.skip("not an x86-64 build")
    for path in objects:
        weak = [words[-1] for words in symbols(path) if words[-2] in "VWu"]
        assert not weak, path


def test_preload_library_shows_only_mpi():
    names = [words[-1] for words in symbols(preload_library(), "-D", "--defined-only")]
    assert "MPI_Send" in names
    assert all(name.startswith("MPI_") for name in names)


def test_preload_library_brings_its_own_runtime():
    done = subprocess.run(
        ["readelf", "-d", preload_library()], capture_output=True, text=True, check=True
    )
    needed = [line for line in done.stdout.splitlines() if "NEEDED" in line]
    assert needed
    assert not any(name in line for line in needed for name in ("libmpi", "libstdc++", "libgcc"))
