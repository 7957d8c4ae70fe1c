"""mpress's own interface for C: programs that link libmpress.so, alone and under `mpress run`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_programs import made_once, simulated_gpu_library, yielding
from execution import MPRESS, ROOT, execute
from mpis import Mpi

import mpress

PREFIX = Path(mpress.__file__).parent
FORCED = {"MPRESS_FORCE": "1"}


def compile_api_program(source: Path, mpi: Mpi, build_dir: Path, *options: str | Path) -> Path:
    """The executable of a C file that links libmpress.so, for an MPI, compiled where it is out of
    date."""
    folder = build_dir / "tests" / "api" / mpi.name
    program = folder / ("mapped" if options else "") / source.stem
    tests = ROOT / "tests"
    includes = (
        PREFIX / "include" / "mpress",
        *(tests / x for x in ("api", "mpi", "simulated_gpu")),
    )
    headers = [path for include in includes for path in include.glob("*.h")]
    library = PREFIX / "lib" / "libmpress.so"
    objects = [yielding(build_dir)]
    newest = max(path.lstat().st_mtime for path in [source, mpi.mpicc, library, *objects, *headers])
    with made_once(program):
        if not program.exists() or program.stat().st_mtime < newest:
            command = [mpi.mpicc, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", *options]
            command += ["-I", PREFIX / "include", "-I", tests / "simulated_gpu", source, *objects]
            command += ["-L", library.parent, "-lmpress", "-lm", f"-Wl,-rpath,{library.parent}"]
            if "simulated_gpu.h" in source.read_text() or options:
                gpus = simulated_gpu_library(build_dir)
                command += [gpus, f"-Wl,-rpath,{gpus.parent}"]
            done = execute([*command, "-o", program])
            assert done.status == 0, done.output
    return program


@pytest.fixture(scope="session")
def api_program(build_dir: Path, mpi) -> Callable[[str], Path]:
    """api_program(name): the executable of tests/api/NAME.c."""
    return lambda name: compile_api_program(ROOT / "tests" / "api" / f"{name}.c", mpi, build_dir)


def test_messages_of_a_plain_program(api_program, mpirun):
    """Nothing tells the job's identity but the ranks themselves."""
    done = mpirun(2, api_program("messages"), [], FORCED)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


SAID = "mpress: {} went by MPI alone, uncompressed: mpress had not started."
A_PART, LATER = "a collective call on some of the ranks", "a collective call that does not block"


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("world", []),
        ("parts", [A_PART]),
        ("messages", ["a message"]),
        ("pending", ["a message", LATER]),
        ("threads", ["a message", A_PART, LATER, None]),
    ],
)
def test_programs_that_do_not_start_it(first, said, api_program, mpirun):
    """A blocking collective call of all ranks does; calls before that are MPI's, which one rank
    says once."""
    done = mpirun(4, api_program("unstarted"), [first], FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output
    lines = [line for line in done.stderr.splitlines() if "mpress had not started" in line]
    assert len(lines) == bool(said) or (None in said and not lines), done.stderr
    assert all(any(line.startswith(SAID.format(what)) for what in said) for line in lines)
    too_early = "mpress_init(): on some rank a receive began before mpress did"
    assert done.stderr.count(too_early) == (first == "pending")


def test_calls_under_mpress_run_are_all_its_own(api_program, mpress_run):
    program = api_program("unstarted")
    for first in ("parts", "messages", "pending"):
        done = mpress_run(4, program, [first, "seen"], options=["--force"])
        assert done.status == 0 and done.stdout == "ok\n", done.output
        assert "mpress had not started" not in done.stderr


def test_messages_under_mpress_run(api_program, mpress_run):
    """The preload library and libmpress.so are one mpress."""
    done = mpress_run(2, api_program("messages"), options=["--force"])
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] > 20
    assert totals["errors"] == 0


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_collectives(ranks, api_program, mpirun):
    done = mpirun(ranks, api_program("collectives"), [], FORCED)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_collectives_that_nothing_pays_for(api_program, mpirun):
    done = mpirun(2, api_program("collectives"), [], {"MPRESS_PROFILE": "off"})
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_collectives_under_mpress_run(api_program, mpress_run):
    done = mpress_run(3, api_program("collectives"), ["50000"], options=["--force"])
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    assert done.report["totals"]["compressed_messages"] > 100


@pytest.mark.parametrize(
    "ways",
    [{}, {"SIMULATED_GPU_PEERS": "0"}, {"MPRESS_LINK": "mpi"}, {"MPRESS_CHUNK": "4K"}],
)
def test_calls_with_a_stream(ways, api_program, mpirun, simulated_gpu):
    done = mpirun(2, api_program("streams"), [], {**simulated_gpu, **FORCED, **ways})
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


@pytest.mark.parametrize(
    ("dies", "progress"),
    [
        *((dies, "calls") for dies in (None, 0, 1)),
        *((dies, "thread") for dies in (None, 0)),
        pytest.param(1, "thread", marks=pytest.mark.extended),
    ],
)
def test_calls_that_devices_serve_in_a_stream(
    dies, progress, mpi, api_program, mpirun, simulated_gpu
):
    """They return before the stream gets to them. Where a member's device fails, the others' stop
    waiting for it."""
    if progress == "thread" and mpi.name == "abi":
        pytest.skip("which has no way to look at requests from several threads")
    env = {**simulated_gpu, "MPRESS_PROGRESS": progress, "MPRESS_LINK": "peer"}
    arguments = [] if dies is None else [str(dies)]
    done = mpirun(2, api_program("stream_order"), arguments, env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    assert done.stderr.count("waits on the host for what the stream holds") == 1


@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.extended)])
def test_every_collective_call_in_all_forms(ranks, api_program, mpirun):
    """Also between groups and among neighbours, in place, and of nothing: as MPI's own."""
    env = {**FORCED, "MPRESS_THRESHOLD": "0", "MPRESS_GPU": "off"}
    done = mpirun(ranks, api_program("forms"), [], env)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_scopes_of_a_plain_program(api_program, mpirun):
    """MPI's own calls are not seen there, and stay as they are."""
    done = mpirun(2, api_program("scopes"), [], FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_scopes_under_mpress_run(api_program, mpress_run):
    done = mpress_run(2, api_program("scopes"), ["seen"], ["--codec", "none", "--force"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_threads(mpi, api_program, mpirun):
    """Each with requests and communicators of its own."""
    done = mpirun(2, api_program("threads"), [], FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize("arguments", [[], pytest.param(["all"], marks=pytest.mark.extended)])
def test_nothing_is_left_of_requests(arguments, api_program, mpirun, simulated_gpu):
    """Neither the process nor a device keeps more after thousands of them than after a few."""
    env = {**simulated_gpu, **FORCED, "MPRESS_THRESHOLD": "0"}
    done = mpirun(2, api_program("leaks"), arguments, env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def test_children_of_fork(api_program, mpirun):
    done = mpirun(2, api_program("forked"), [], FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_wrong_arguments(api_program, mpirun):
    done = mpirun(2, api_program("wrong"), [], FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_arrays_that_are_not_there(api_program, mpirun):
    """docs/c.md: null where something is needed is MPI_ERR_ARG, and the text names the argument."""
    done = mpirun(2, api_program("wrong"), ["null"], FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_switched_off(api_program, mpirun):
    """All calls are the MPI's, and what programs hear is the same."""
    program = api_program("collectives")
    assert mpirun(2, program, ["100"], {"MPRESS_DISABLE": "1"}).stdout.endswith("ok\n")


@pytest.mark.parametrize("ranks", [1, 4, 6])
def test_neighbourhoods(ranks, api_program, mpirun):
    done = mpirun(ranks, api_program("neighbourhoods"))
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_neighbourhoods_come_free(api_program, mpirun):
    done = mpirun(2, api_program("neighbourhoods"), ["many"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_neighbourhoods_beside_other_calls(api_program, mpirun):
    env = {**FORCED, "MPRESS_CODEC": "mpc"}
    done = mpirun(2, api_program("neighbourhoods"), ["beside"], env, timeout=60)
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize(("ranks", "seed"), [(1, 1), (4, 3)])
def test_exchanges_of_neighbours(ranks, seed, api_program, mpirun):
    program = api_program("neighbour_exchanges")
    done = mpirun(ranks, program, [str(seed), "60"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize(("ranks", "settings"), [(1, {}), (3, {}), (2, {"MPRESS_DISABLE": "1"})])
def test_wrong_exchanges_of_neighbours(ranks, settings, api_program, mpirun):
    arguments = ["disabled"] if settings else []
    done = mpirun(ranks, api_program("neighbour_errors"), arguments, settings)
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_lists_that_differ(api_program, mpirun):
    done = mpirun(3, api_program("neighbourhoods"), ["differing"], {"MPRESS_ISO_CHECK": "1"})
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_codecs_need_no_mpi(build_dir, tmp_path):
    program = tmp_path / "codecs"
    options = ["-I", PREFIX / "include", "-L", PREFIX / "lib", f"-Wl,-rpath,{PREFIX / 'lib'}"]
    source = ROOT / "tests" / "api" / "codecs.c"
    for language in (["cc", "-std=c99", "-pedantic"], ["c++", "-x", "c++", "-std=c++17"]):
        command = [*language, "-Wall", "-Wextra", "-Werror", source, "-x", "none"]
        subprocess.run([*command, *options, "-lmpress", "-lm", "-o", program], check=True)
        assert subprocess.run([program], check=True, capture_output=True).stdout == b"ok\n"


def examples() -> list[str]:
    """The programs of docs/c.md."""
    text = (ROOT / "docs" / "c.md").read_text()
    return [part.split("```")[0] for part in text.split("```c\n")[1:]]


def test_examples_of_the_page(mpi, mpirun, tmp_path):
    prefix = execute([MPRESS, "info", "--prefix"]).stdout.strip()
    assert Path(prefix) == PREFIX
    library = f"{prefix}/lib"
    for number, text in enumerate(examples()):
        source = tmp_path / f"example{number}.c"
        source.write_text(text)
        command = [mpi.mpicc, "-Wall", "-Wextra", "-Werror", source, f"-I{prefix}/include"]
        command += [f"-L{library}", f"-Wl,-rpath,{library}", "-lmpress"]
        done = execute([*command, "-o", source.with_suffix("")])
        assert done.status == 0, done.output
    done = mpirun(3, tmp_path / "example0", [], FORCED)
    assert done.status == 0 and done.stdout.endswith("compressed: yes\n"), done.output
    assert float(done.stdout.split()[1].rstrip(";")) <= 3.001e-6
    repeated = mpirun(3, tmp_path / "example2", [], FORCED)
    assert repeated.status == 0, repeated.output
    lines = repeated.stdout.splitlines()
    assert [line.split(";")[0] for line in lines] == ["102000 elements came"] * 3
    assert all(0 <= float(line.split()[-1]) <= 3.001e-6 for line in lines)
    alone = execute([tmp_path / "example1"])
    assert alone.status == 0 and "bytes, each element within 0.009" in alone.stdout


def test_build_systems_find_it(mpi, tmp_path):
    """By pkg-config's file and CMake's package, wherever the installation lies."""
    text = (PREFIX / "lib" / "pkgconfig" / "mpress.pc").read_text()
    assert "prefix=${pcfiledir}/../..\n" in text and "-lmpress" in text
    (tmp_path / "main.c").write_text(examples()[1])
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(p C)\nfind_package(mpress 0.1 REQUIRED)\n"
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE mpress::mpress)\n"
    )
    build = tmp_path / "build"
    done = execute(["cmake", "-S", tmp_path, "-B", build, f"-Dmpress_ROOT={PREFIX}"])
    assert done.status == 0, done.output
    done = execute(["cmake", "--build", build])
    assert done.status == 0, done.output
    assert execute([build / "main"]).status == 0
