"""Runs MPI programs under mpress with memory, thread and undefined-behaviour checks.

python tests/sanitize/run.py address|thread|valgrind [--quick]

`address` and `thread` build mpress and the programs with the address and undefined-behaviour, or
the thread sanitizer, in build-address or build-thread; `valgrind` runs what `make` installed under
memcheck. MPI itself is not instrumented: what is known of it is left out by the suppressions beside
this file, none of which names a frame of mpress's.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIN = Path(sys.executable).parent
PROGRAMS = ROOT / "tests" / "mpi"

SIMULATION = ROOT / "tests" / "simulated_gpu"

LINKED = {"MPRESS_LINK": "peer", "MPRESS_CHUNK": "4K", "SIMULATED_GPU_LEAKS": "shared"}
# Programs of tests/mpi, and how many ranks they have. Those of device memory run by the host and
# from GPU to GPU.
SMALL = [
    ("p2p", 2),
    ("truncate", 2),
    ("probe", 2),
    ("requests", 2),
    ("derived", 2),
    ("isendrecv", 2),
    ("overtake", 2),
    ("lifetimes", 2),
    ("orphans", 2),
    ("threads", 2),
    ("recycled", 2),
    ("device_messages", 2),
    ("device_edges", 2),
    ("device_strewn", 2),
]
# Parts of device_linked.
PARTS = ["truncation", "more than fits", "order", "completions", "cancelled receives", "freed"]
# Parts of device_direct.
DIRECT = ["received", "both ways", "freed early", "no room", "too long"]
BY_HOST = {"MPRESS_LINK": "mpi"}
CHUNKS = BY_HOST | {"MPRESS_CHUNK": "8K"}
TWO_HOSTS = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}  # of MPICH
# Reductions: programs, arguments and settings, of three ranks.
REDUCTIONS = [
    ("reductions", "1 30 exact device", {}),
    ("reductions", "2 30 rel=1e-4 device", {"MPRESS_CODEC": "szp:rel=1e-4"}),
    ("reductions", "4 20 rel=1e-4 device", {"MPRESS_CODEC": "szp:rel=1e-4"} | TWO_HOSTS),
    ("reductions", "5 20 exact device", TWO_HOSTS),
    ("reductions_linked", "3 30", {"MPRESS_CODEC": "none", "MPRESS_FORCE": "0"}),
    (
        "reductions_linked",
        "3 30",
        {"MPRESS_CODEC": "none", "MPRESS_FORCE": "0", "SIMULATED_GPU_SHARED": "1"},
    ),
    ("reductions_reproducible", "1 exact key device", {"MPRESS_CODEC": "none"}),
    ("reductions_reproducible", "1 abs=1e-3 key", {"MPRESS_CODEC": "szp:abs=1e-3"}),
    ("hints_differ", "", {"MPRESS_CODEC": "mpc"}),
    ("errors_told", "noise f32 sum device", {"MPRESS_CODEC": "zfp:8", "MPRESS_MEASURE_ERROR": "1"}),
]
# Ranks, settings and arguments of runs of the random program.
STRESS = [
    (1, BY_HOST, "--seed 1 --rounds 40"),
    (2, BY_HOST, "--seed 2 --rounds 40"),
    (2, CHUNKS, "--seed 3 --rounds 30"),
    (2, BY_HOST, "--seed 4 --rounds 30 --threads 3"),
    (2, CHUNKS, "--seed 5 --rounds 20 --threads 2"),
    (2, CHUNKS, "--seed 6 --rounds 20 --threads 2 --devices"),
    (3, LINKED, "--seed 7 --rounds 20 --devices"),
    (2, LINKED, "--seed 8 --rounds 30 --threads 3 --devices"),
]


def run(command: list[str | Path], **options: object) -> None:
    print("+", " ".join(str(word) for word in command), flush=True)
    subprocess.run([str(word) for word in command], check=True, **options)


def build(sanitizers: str, folder: Path) -> None:
    """The preload library for MPICH and the simulated GPUs, instrumented."""
    run(
        [
            *(BIN / "cmake", "-G", "Ninja", "-S", ROOT, "-B", folder),
            *("-DMPRESS_PYTHON=OFF", "-DMPRESS_CUDA=OFF", f"-DMPRESS_SANITIZE={sanitizers}"),
            *(f"-DMPICC={BIN / 'mpicc'}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DMPRESS_TESTS=ON"),
        ]
    )
    targets = ["mpress_preload", "mpress_mpich", "mpress_simulated_gpu"]
    run([BIN / "cmake", "--build", folder, "--target", *targets])


def compiled(name: str, folder: Path, flags: list[str], simulated_gpu: Path) -> Path:
    """A program of tests/mpi."""
    cpp = sorted((PROGRAMS / name).glob("*.cpp"))
    sources = cpp or [PROGRAMS / f"{name}.c"]
    program = folder / "programs" / name
    headers = [*PROGRAMS.glob("*.h"), *(PROGRAMS / name).glob("*.hpp"), *SIMULATION.glob("*.h")]
    newest = max(path.stat().st_mtime for path in [*sources, *headers])
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(parents=True, exist_ok=True)
        options = ["-I", SIMULATION, *(["-std=c++20"] if cpp else [])]
        libraries = [simulated_gpu, f"-Wl,-rpath,{simulated_gpu.parent}", "-lm"]
        libraries += ["-lstdc++"] if cpp else []
        command = [BIN / "mpicc", *options, "-O1", "-g", "-pthread", *flags, "-o", program]
        run([*command, *sources, *libraries])
    return program


def installed_library() -> Path:
    code = "from mpress.cli import launch; print(launch.required_preload_library())"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())


def library_in(folder: Path) -> Path:
    """The front, with its backends beside it."""
    together = folder / "lib"
    together.mkdir(exist_ok=True)
    for library in folder.glob("src/**/libmpress_*.so"):
        link = together / library.name
        link.unlink(missing_ok=True)
        link.symlink_to(library)
    return together / "libmpress_preload.so"


def execute(
    ranks: int,
    command: list[str | Path],
    library: Path,
    settings: dict[str, str],
) -> None:
    """One job with everything compressed."""
    environment = {
        "LD_PRELOAD": str(library),
        "MPRESS_JOB": "5a" * 16,
        "MPRESS_CODEC": "mpc",
        "MPRESS_FORCE": "1",
        "MPRESS_THRESHOLD": "0",
        **settings,
    }
    words = [f"{name}={value}" for name, value in environment.items()]
    run([BIN / "mpiexec", "-n", str(ranks), "env", *words, *command], cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checker", choices=["address", "thread", "valgrind"])
    parser.add_argument("--quick", action="store_true", help="the random program alone, shorter")
    chosen = parser.parse_args()
    folder = ROOT / f"build-{chosen.checker}"
    folder.mkdir(exist_ok=True)
    wrapper: list[str | Path] = []
    flags: list[str] = []
    settings: dict[str, str] = {}
    built = ROOT / "build" if chosen.checker == "valgrind" else folder
    simulated_gpu = built / "tests" / "simulated_gpu" / "libmpress_simulated_gpu.so"
    if chosen.checker == "valgrind":
        if not shutil.which("valgrind"):
            sys.exit("valgrind is not installed: Debian and Ubuntu have it as 'valgrind'")
        library = installed_library()
        wrapper = ["valgrind", "-q", "--error-exitcode=9", "--num-callers=30"]
        wrapper += [f"--suppressions={HERE / 'valgrind.supp'}", "--fair-sched=yes"]
    else:
        sanitizers = "address,undefined" if chosen.checker == "address" else "thread"
        flags = [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer"]
        build(sanitizers, folder)
        library = library_in(folder)
        settings = {
            # mpress's library comes before the sanitizer's; MPI and hwloc keep memory to the end.
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_stack_use_after_return=1",
            "LSAN_OPTIONS": f"suppressions={HERE / 'leaks.supp'}:print_suppressions=0",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "TSAN_OPTIONS": f"suppressions={HERE / 'thread.supp'}:halt_on_error=1"
            ":second_deadlock_stack=1:ignore_noninstrumented_modules=0",
            # UCX's hooks for memory run in threads that the thread sanitizer does not know yet.
            "UCX_MEM_EVENTS": "no",
        }
    settings["MPRESS_GPU"] = str(simulated_gpu)
    if not chosen.quick:
        for name, ranks in SMALL:
            program = compiled(name, folder, flags, simulated_gpu)
            execute(ranks, [*wrapper, program], library, settings | BY_HOST)
            if name.startswith("device_"):
                execute(ranks, [*wrapper, program], library, settings | LINKED)
        for name, parts, limit in (
            ("device_linked", PARTS, "4M"),
            ("device_direct", DIRECT, "2M"),
            ("device_direct_long", ["both ways"], "64M"),
        ):
            program = compiled(name, folder, flags, simulated_gpu)
            for part in parts:
                environment = settings | LINKED | {"MPRESS_POOL_LIMIT": limit}
                execute(2, [*wrapper, program, part], library, environment)
        for name, arguments, way in REDUCTIONS:
            program = compiled(name, folder, flags, simulated_gpu)
            words = [*wrapper, program, *arguments.split()]
            execute(3, words, library, settings | LINKED | way)
    stress = compiled("stress", folder, flags, simulated_gpu)
    for ranks, way, arguments in STRESS:
        small = ["--max-bytes", "100000", "--timeout", "300"]
        words = [*wrapper, stress, *arguments.split(), *small]
        execute(ranks, words, library, settings | way)
    print(f"{chosen.checker}: clean")


if __name__ == "__main__":
    main()
