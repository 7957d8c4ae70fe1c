"""Fixtures: the build directory, the MPI of the programs, MPI programs, and ways to run them.

`--mpi` chooses the MPI that programs are built with and run under (`mpis.py`); mpress is the same
for all. Programs are compiled once (`compiled_programs.py`), and started with a watchdog
(`execution.py`).

`make test` runs as many tests at a time as there are cores (pytest-xdist). What they share in the
build directory is made under a lock (`made_once`); what is costly to set up for a file is set up
once where its tests are of one `xdist_group`.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import cuda_twins
import pytest
import where_time_goes
from compiled_programs import compile_mpi_program, made_once, simulated_gpu_library, yielding
from execution import MPRESS, ROOT, TIMEOUT, Finished, execute, on_path, served_run
from hypothesis import settings
from mpis import MPIS, Mpi, mpi_of

import mpress
from mpress.p2p import jobs


def pytest_addoption(parser: pytest.Parser) -> None:
    where_time_goes.pytest_addoption(parser)
    parser.addoption(
        "--mpi",
        default="default",
        help=f"MPI of the programs: {', '.join(sorted(MPIS))}, or a compiler wrapper mpicc",
    )
    parser.addoption(
        "--device",
        default="cpu",
        choices=("cpu", "cuda"),
        help="cuda: what mpress.codec does on the host is done on the GPU too, and compared",
    )


def pytest_configure(config: pytest.Config) -> None:
    # NumPy's threads wait for work on the cores that ranks need; nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Programs keep what they free: a third of their time went into pages given back and asked for.
    os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(1 << 30))
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(32 << 20))  # the most that glibc takes
    # Workers and ranks load what has been compiled: a rank's modules may take longer than it runs.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    where_time_goes.pytest_configure(config)
    is_extended = "not extended" not in config.option.markexpr
    settings.register_profile("mpress", deadline=None, max_examples=60 if is_extended else 20)
    settings.load_profile("mpress")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """xdist 3.8 writes groups where pytest 9.2 no longer looks: no group would be one."""
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = type(item._id).parse(grouped)


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end: nobody need look for garbage among them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--device") == "cuda":
        monkeypatch.setattr(mpress, "codec", cuda_twins.Twins)


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    """monkeypatch, for all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def bench(patched: pytest.MonkeyPatch) -> Callable[[str], types.ModuleType]:
    """bench(name): a module of bench/."""
    patched.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module


@pytest.fixture
def served_programs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """served_programs(module): MPRESS is served where that module runs it."""
    stand_in = types.SimpleNamespace(**vars(subprocess) | {"run": served_run})
    return lambda module: monkeypatch.setattr(module, "subprocess", stand_in)


@pytest.fixture
def served_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mpress run` is served where this process starts it by jobs.run; commands start their own."""
    in_earnest = jobs._execute

    def execute_served(command: Sequence[str], env: dict[str, str], most: float | None) -> Any:
        if most is not None:
            return in_earnest(command, env, most)
        assert command[:3] == [sys.executable, "-m", "mpress"]
        done = served_run([MPRESS, *command[3:]], env=env)
        if done.returncode == 0:
            sys.stderr.write(done.stderr)
        return done.returncode, done.stderr + done.stdout

    monkeypatch.setattr(jobs, "_execute", execute_served)


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Where CMake built; tests that compile something put it below."""
    return Path(os.environ.get("TESTS_BUILD_DIR", ROOT / "build"))


@pytest.fixture(scope="session")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """The MPI that `--mpi` chose."""
    return mpi_of(request.config.getoption("--mpi"))


@pytest.fixture(scope="session")
def mpi_program(build_dir: Path, mpi: Mpi) -> Callable[[str], Path]:
    """mpi_program(name): the executable of tests/mpi/NAME.c, or of tests/mpi/NAME/*.cpp."""
    return lambda name: compile_mpi_program(name, mpi, build_dir)


@pytest.fixture(scope="session")
def simulated_gpu(build_dir: Path) -> dict[str, str]:
    """The environment of programs that run on simulated GPUs."""
    return {"MPRESS_GPU": str(simulated_gpu_library(build_dir))}


@pytest.fixture(scope="session")
def mpirun(mpi: Mpi) -> Callable[..., Finished]:
    """mpirun(n, program, args=(), env=None, timeout=...): plain mpiexec, without mpress."""

    def run(
        n: int,
        program: str | Path,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Finished:
        command = [mpi.mpiexec, "-n", str(n), program, *args]
        return execute(command, {**mpi.env, **(env or {})}, timeout)

    return run


@pytest.fixture
def preloadable(mpi: Mpi, tmp_path: Path) -> Callable[..., str]:
    """preloadable(name, *options): the library of tests/mpi/NAME.c, for LD_PRELOAD."""

    def build(name: str, *options: str) -> str:
        library, source = tmp_path / f"lib{name}.so", ROOT / "tests" / "mpi" / f"{name}.c"
        command = [mpi.mpicc, *options, "-shared", "-fPIC", "-o", library, source, "-ldl"]
        subprocess.run(command, check=True)
        return str(library)

    return build


@pytest.fixture
def mpress_run(tmp_path: Path, mpi: Mpi) -> Callable[..., Finished]:
    """mpress_run(n, program, args=(), options=(), env=None, timeout=...): `mpress run` with these
    options and a report, which `Finished.report` holds; n None runs without a launcher. Scripts do
    not tell their MPI, so its launcher is named."""

    def run(
        n: int | None,
        program: str | Path,
        args: Sequence[str] = (),
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> Finished:
        file = tmp_path / "report.json"
        file.unlink(missing_ok=True)
        ranks = [] if n is None else ["-n", str(n), "--mpiexec", str(mpi.mpiexec)]
        command = [MPRESS, "run", *ranks, "--report", file, *options, "--", program, *args]
        done = execute(command, {**mpi.env, **(env or {})}, timeout)
        if file.exists():
            done.report = json.loads(file.read_text())
        return done

    return run


@pytest.fixture(scope="session")
def mpi4py_env(mpi: Mpi, build_dir: Path) -> dict[str, str]:
    """What makes Python load mpi4py with the MPI of the tests, and ranks sleep that wait. Wheels
    find the MPI of .venv by themselves and can be led to others, but not to the standard ABI: for
    that, mpi4py is built."""
    preloaded = {"LD_PRELOAD": os.fspath(yielding(build_dir, is_library=True))}
    if mpi.name not in ("mpich", "openmpi", "abi"):
        return preloaded
    libraries = os.fspath(mpi.mpicc.parent.parent / "lib")
    if mpi.name != "abi":
        return preloaded | {"MPI4PY_MPIABI": mpi.name, "LD_LIBRARY_PATH": libraries}
    target = build_dir / "mpi4py" / f"abi-{metadata.version('mpi4py')}"
    with made_once(target):
        if not target.exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
            command += [target, "--no-binary", "mpi4py", f"mpi4py=={metadata.version('mpi4py')}"]
            env = {"MPICC": os.fspath(mpi.mpicc), "CFLAGS": "-O0"}
            done = execute(command, env, timeout=900)
            assert done.status == 0, done.output
    return preloaded | {"PYTHONPATH": os.fspath(target), "LD_LIBRARY_PATH": libraries}


@pytest.fixture(scope="session")
def simulated_cupy(mpi4py_env: dict[str, str], simulated_gpu: dict[str, str]) -> dict[str, str]:
    """The environment with simulated GPUs, and a library in the place of CuPy."""
    return on_path({**mpi4py_env, **simulated_gpu}, ROOT / "tests" / "simulated_gpu")
