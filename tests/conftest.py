"""Fixtures: the build directory, the MPI of the programs, MPI programs, and ways to run them.

`--mpi` chooses the MPI that programs are built with and run under; mpress is the same for all.
Every program that these start is ended with all its processes after `timeout` seconds, or more
where the machine is loaded: a hang is a failure, not a wait, and a slow machine is no failure.

`make test` runs as many tests at a time as there are cores (pytest-xdist). What they share in the
build directory is made under a lock (`made_once`); what is costly to set up for a file is set up
once where its tests are of one `xdist_group`.
"""

import dataclasses
import fcntl
import importlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import where_time_goes
from hypothesis import settings
from served_cli import ServedCommand

import mpress
from mpress.p2p import jobs

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
MPRESS = BIN / "mpress"
TIMEOUT = 300  # seconds on an idle machine, of what takes a few


@dataclass(frozen=True)
class Mpi:
    """An MPI that programs are built with and run under: its compiler wrapper and launcher, and
    what that needs in its environment."""

    name: str
    mpicc: Path
    mpiexec: Path
    env: Mapping[str, str] = field(default_factory=dict)


# Ranks of the tests may outnumber cores, where those that wait should leave them to the others, and
# belong to root; that is for the tests to allow.
_MPICH = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "50",
}
# Ranks start in half the time where UCX, the network layer of MPICH's wheel, looks at no network
# and hooks no calls of the C library. Tests of all families have it as it comes.
_UCX = {"UCX_TLS": "self,sm", "UCX_MEM_MMAP_HOOK_MODE": "none"}
_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
_SIDE = BIN.parent / "mpi"
# Which library mpi4py opens.
_OPEN_MPI_PYTHON = {"MPI4PY_LIBMPI": str(_SIDE / "openmpi/lib/libmpi.so.40")}
MPIS = {
    "default": Mpi("default", BIN / "mpicc", BIN / "mpiexec", _MPICH | _UCX | _OPEN_MPI),
    "mpich": Mpi("mpich", _SIDE / "mpich/bin/mpicc", _SIDE / "mpich/bin/mpiexec", _MPICH),
    "openmpi": Mpi(
        "openmpi",
        _SIDE / "openmpi/bin/mpicc",
        _SIDE / "openmpi/bin/mpiexec",
        _OPEN_MPI | _OPEN_MPI_PYTHON,
    ),
    "abi": Mpi("abi", _SIDE / "mpich/bin/mpicc_abi", _SIDE / "mpich/bin/mpiexec", _MPICH),
}


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


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays agree in type, shape and every bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Twins(mpress.Codec):
    """A codec that compares its CUDA twin with itself whenever it is used."""

    def encode(self, array: Any, *, stream: Any = None) -> mpress.Encoded:
        encoded = super().encode(array, stream=stream)
        field = np.ascontiguousarray(np.asarray(array), encoded.dtype).reshape(encoded.shape)
        twin = super().encode(on_device(field))
        assert same_bits(twin.payload.to_host(), encoded.payload)
        assert (twin.spec, twin.bound) == (encoded.spec, encoded.bound)
        return encoded

    def decode(self, encoded: Any, out: Any = None, **options: Any) -> Any:
        combine = options.get("combine", "replace")
        there = out.copy() if combine != "replace" and out is not None else None
        own = isinstance(encoded, mpress.Encoded)
        payload = encoded.payload if own else np.frombuffer(encoded, np.uint8)
        codec = mpress.Codec(encoded.spec if own else self.spec)
        like = encoded if own else out
        where = {
            "dtype": options.get("dtype") or getattr(like, "dtype", None),
            "shape": options.get("shape", getattr(like, "shape", None)),
        }
        try:
            decoded = super().decode(encoded, out, **options)
        except mpress.CorruptPayload:
            with pytest.raises(mpress.CorruptPayload):
                mpress.Codec.decode(codec, on_device(payload), **where)
            raise
        if there is None:
            twin = mpress.Codec.decode(codec, on_device(payload), **where)
            assert same_bits(twin.to_host(), decoded)
        elif codec.spec != "none":
            twin = mpress.Codec.decode(codec, on_device(payload), on_device(there), combine=combine)
            np.testing.assert_array_equal(twin.to_host(), decoded)
        return decoded

    def add(self, *summands: Any, **options: Any) -> mpress.Encoded:
        def twin() -> mpress.Encoded:
            return mpress.Codec.add(self, *map(there, summands), **options)

        def there(summand: Any) -> Any:
            if not isinstance(summand, mpress.Encoded):
                return on_device(np.frombuffer(summand, np.uint8))
            if isinstance(summand.payload, mpress.DeviceArray):
                return summand
            return dataclasses.replace(summand, payload=on_device(summand.payload))

        try:
            encoded = super().add(*summands, **options)
        except (ArithmeticError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                twin()
            raise
        assert same_bits(twin().payload.to_host(), encoded.payload)
        assert twin().bound == encoded.bound
        return encoded


def on_device(array: np.ndarray) -> Any:
    """The array on the GPU, without another library."""
    from mpress import _core, _device

    stream = _device.Stream(0)
    buffer = _core.cuda_copy(array.ctypes.data, array.nbytes, 0, stream.handle)
    return mpress.DeviceArray(buffer, array.dtype, array.shape, stream)


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--device") == "cuda":
        monkeypatch.setattr(mpress, "codec", Twins)


@dataclass
class Finished:
    """A program that ended: its exit status, what it printed, and the report of `mpress run`."""

    status: int
    stdout: str
    stderr: str
    report: dict[str, Any] | None = None

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def crowding() -> float:
    """How many processes share a core, in the minutes before; at least 1."""
    return max(1.0, max(os.getloadavg()) / (os.cpu_count() or 1))


def communicate(process: Any, timeout: float) -> tuple[str, str] | None:
    """What the process printed; None where it does not end within `timeout`, times crowding()."""
    begin = time.monotonic()
    while True:
        left = begin + timeout * crowding() - time.monotonic()
        if left <= 0:
            return None
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=left)


def execute(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    cwd: Path | None = None,
) -> Finished:
    """Runs a command in a process group of its own, with no MPRESS_* variable but those in env, and
    without a profile that the user may have, nor what this machine's links are like at the moment.
    MPRESS is served (served_cli.py)."""
    words = [str(word) for word in command]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("MPRESS_")}
    inherited |= {"MPRESS_PROFILE": "off", "MPRESS_LEARN": "off"}
    environment = inherited | dict(env or {})
    process: subprocess.Popen[str] | ServedCommand
    if command[0] == MPRESS:
        process = ServedCommand(words, environment, cwd)
    else:
        process = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            start_new_session=True,
        )
    printed = communicate(process, timeout)
    if printed is None:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        pytest.fail(f"no end after {timeout} s: {' '.join(words)}\n{stdout}\n{stderr}")
    return Finished(process.returncode, *printed)


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


def served_run(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """subprocess.run with what is printed, for modules under test: MPRESS is served."""
    words = [str(word) for word in command]
    if Path(words[0]) != MPRESS:
        return subprocess.run(words, **options)
    process = ServedCommand(words, options.get("env") or os.environ, None)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode or 0, stdout, stderr)


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


@contextmanager
def made_once(file: Path) -> Iterator[None]:
    """What is made within is made by one process at a time; `file` names it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file.with_name(file.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """Where CMake built; tests that compile something put it below."""
    return Path(os.environ.get("TESTS_BUILD_DIR", ROOT / "build"))


def mpi_of(choice: str) -> Mpi:
    """One of MPIS, or that of a compiler wrapper."""
    if choice in MPIS:
        return MPIS[choice]
    mpicc = Path(shutil.which(choice) or pytest.exit(f"--mpi {choice}: no such MPI", returncode=2))
    # Beside it, by the same ending: mpicc.mpich, mpiexec.mpich.
    mpiexec = mpicc.with_name(mpicc.name.replace("mpicc", "mpiexec"))
    return Mpi(str(mpicc).strip("/").replace("/", "-"), mpicc, mpiexec, _MPICH | _OPEN_MPI)


@pytest.fixture(scope="session")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """The MPI that `--mpi` chose."""
    return mpi_of(request.config.getoption("--mpi"))


def simulated_gpu_library(build_dir: Path) -> Path:
    """Two GPUs where there is none: what MPRESS_GPU is set to for programs of
    tests/simulated_gpu/simulated_gpu.h."""
    library = build_dir / "tests" / "simulated_gpu" / "libmpress_simulated_gpu.so"
    assert library.exists(), "not built: cmake --build build --target mpress_tests"
    return library


def on_path(env: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment in which Python finds the modules of this folder, too."""
    before = env.get("PYTHONPATH")
    return env | {"PYTHONPATH": os.pathsep.join([*([before] if before else []), str(folder)])}


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
            command = [mpi.mpicc, *options, "-O1", "-g", "-Wall", "-Wextra", "-pthread"]
            done = execute([*command, "-o", program, *sources, "-lm", *libraries])
            assert done.status == 0, done.output
    return program


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


def on_rank_1(folder: Path, program: Path, command: str) -> Path:
    """A script that runs the program, on rank 1 after a shell command."""
    script = folder / "program.sh"
    rank = "${PMI_RANK:-${PMIX_RANK:-$OMPI_COMM_WORLD_RANK}}"
    start = f'exec {shlex.quote(str(program))} "$@"'
    script.write_text(f'#!/bin/sh\n[ "{rank}" = 1 ] && {command}\n{start}\n')
    script.chmod(0o755)
    return script


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
