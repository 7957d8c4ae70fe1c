"""What the linker made: mistakes here show only on other machines."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest


def symbols(path: Path, *options: str) -> list[list[str]]:
    done = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


LIBRARIES = Path(find_spec("mpress").origin).parent / "lib"
FRONT = LIBRARIES / "libmpress_preload.so"
CUDA = LIBRARIES / "libmpress_cuda.so"
BACKENDS = [LIBRARIES / f"libmpress_{family}.so" for family in ("mpich", "openmpi", "abi")]


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_kernels_share_no_function(isa, build_dir):
    """The linker may keep any copy of a weak symbol: one compiled for a better CPU would run on
    every CPU."""
    objects = sorted((build_dir / "src" / "codec").rglob(f"{isa}.cpp.o"))
    if not objects:
        pytest.skip("not an x86-64 build")
    assert len(objects) == 3  # mpc, szp, zfp
    for path in objects:
        weak = [words[-1] for words in symbols(path) if words[-2] in "VWu"]
        assert not weak, path


ASKED_BY_SANITIZERS = ("asan_default_options", "lsan_default_options", "tsan_default_suppressions")


def test_front_shows_every_call_under_both_names():
    names = {words[-1] for words in symbols(FRONT, "-D", "--defined-only")}
    assert "MPI_Send" in names
    others = {name for name in names if not name.startswith(("MPI_", "PMPI_", "MPIX_", "PMPIX_"))}
    assert others == {f"__{x}" for x in ASKED_BY_SANITIZERS}
    assert {f"P{name}" for name in names if name[0] == "M"} == {n for n in names if n[0] == "P"}


@pytest.mark.parametrize("path", BACKENDS, ids=lambda path: path.stem)
def test_backends_show_no_mpi(path):
    """What a backend showed, another library's calls could end in, past the front."""
    assert [words[-1] for words in symbols(path, "-D", "--defined-only")] == ["mpress_backend"]


@pytest.mark.parametrize("family", ["mpich", "openmpi", "abi"])
def test_front_knows_every_call_that_is_defined(family, build_dir):
    """A call that src/preload defines but src/front/calls.hpp lacks would pass mpress by."""
    objects = build_dir / "src/preload/CMakeFiles" / f"mpress_{family}.dir"
    shown = {words[-1] for words in symbols(FRONT, "-D", "--defined-only")}
    defined = set()
    for path in objects.glob("*.cpp.o"):
        defined |= {words[-1] for words in symbols(path, "--defined-only") if words[-2] in "TW"}
    calls = {name for name in defined if name.startswith("MPI_")}
    assert "MPI_Send" in calls
    assert calls <= shown


def test_the_library_for_gpus_shows_its_entries_alone():
    """Its copy of the CUDA runtime must not meet the program's."""
    if not CUDA.exists():
        pytest.skip("built without CUDA")
    names = [words[-1] for words in symbols(CUDA, "-D", "--defined-only")]
    assert names == ["mpress_gpu", "mpress_gpu_arrays"]


def test_the_extension_brings_no_cuda_runtime():
    """A process has one, with one set of memory pools: libmpress_cuda.so's."""
    extension = Path(find_spec("mpress._core").origin)

    def has_runtime(path: Path) -> bool:  # libraries are stripped, but it looks up its driver so
        return b"cudaGetDriverEntryPoint" in path.read_bytes()

    def has_kernels(path: Path) -> bool:
        done = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True)
        return ".nv_fatbin" in done.stdout

    assert not has_runtime(extension) and not has_kernels(extension)
    done = subprocess.run(["readelf", "-d", extension], capture_output=True, text=True, check=True)
    assert "NEEDED" in done.stdout and "cuda" not in done.stdout
    if CUDA.exists():
        assert has_runtime(CUDA) and has_kernels(CUDA)


@pytest.mark.parametrize("path", [FRONT, *BACKENDS, CUDA], ids=lambda path: path.stem)
def test_libraries_bring_their_own_runtime(path):
    if path == CUDA and not path.exists():
        pytest.skip("built without CUDA")
    done = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    needed = [line for line in done.stdout.splitlines() if "NEEDED" in line]
    assert needed
    assert not any(name in line for line in needed for name in ("libmpi", "libstdc++", "libcuda"))
    # Exceptions of the program's pass through backends alone.
    assert any("libgcc" in line for line in needed) == (path in BACKENDS)
