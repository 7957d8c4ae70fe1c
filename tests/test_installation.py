"""One installation serves programs of every MPI, with their own launchers; and what it cannot serve
is named."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from compiled_programs import compile_mpi_program
from execution import BIN, ROOT, Finished, execute
from mpis import MPIS

from mpress.cli import launch, mpis

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
SOURCES = ROOT / "tests" / "mpi"
FAMILIES = ("mpich", "openmpi", "abi")
SPOKEN = {"mpich": "MPICH and its ABI", "openmpi": "Open MPI", "abi": "the MPI standard ABI"}


@pytest.fixture(params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture
def program(build_dir):
    """program(name, family): the executable of tests/mpi/NAME.c."""
    return lambda name, family: compile_mpi_program(name, MPIS[family], build_dir)


@pytest.fixture
def run(tmp_path):
    """run(family, n, command, options=FORCED, env=None): `mpress run`, which finds the launcher."""

    def run(family, n, command, options=FORCED, env=None) -> Finished:
        file = tmp_path / "report.json"
        ranks = [] if n is None else ["-n", str(n)]
        line = [BIN / "mpress", "run", *ranks, "--report", file, *options, "--", *command]
        done = execute(line, {**MPIS[family].env, **(env or {})})
        if file.exists():
            done.report = json.loads(file.read_text())
        return done

    return run


@pytest.fixture
def shared(tmp_path):
    """shared(source, family, *options): a shared library of tests/mpi/SOURCE.c."""

    def build(source: str, family: str, *options: str) -> Path:
        library = tmp_path / f"lib{source}.so"
        command = [MPIS[family].mpicc, "-O1", "-shared", "-fPIC", *options, "-o", library]
        subprocess.run([*command, SOURCES / f"{source}.c", "-lm"], check=True)
        return library

    return build


def compressed(done) -> int:
    assert done.status == 0, done.output
    return done.report["totals"]["compressed_messages"]


def test_programs_of_every_mpi_are_compressed(family, program, run):
    done = run(family, 2, [program("one_message", family)])
    assert compressed(done) == 1
    assert done.stdout == "rank 1: intact\n"
    assert done.report["mpi"] == SPOKEN[family]


def test_mpi_that_is_loaded_locally(family, program, run, shared):
    """As interpreters do: nothing that is loaded at the start knows MPI."""
    library = shared("one_message", family, "-Dmain=program_main")
    loader = program("loader", family)
    command = [shutil.which("env"), loader, library]
    options = (*FORCED, "--mpiexec", str(MPIS[family].mpiexec))
    done = run(family, 2, command, options)
    assert compressed(done) == 1
    assert done.stdout == "rank 1: intact\n"


@pytest.mark.parametrize(("how", "frames"), [("local", 0), ("deep", 0), ("default", 2)])
def test_calls_that_are_looked_up(how, frames, family, program, run):
    """In the library itself, past whatever stands in for MPI, and so on all ranks alike; or
    everywhere."""
    prefix = MPIS[family].mpicc.parent.parent
    name = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40", "abi": "libmpi_abi.so.1"}[family]
    done = run(family, 2, [program("dlopened", family), prefix / "lib" / name, how])
    assert compressed(done) == frames
    assert done.stdout.count("5000 elements, 0 wrong") == 2


def test_a_profiler_above_sees_the_programs_calls(family, program, run, shared):
    profiler = shared("profiler", family)
    done = run(family, 2, [program("profiled", family)], env={"LD_PRELOAD": str(profiler)})
    assert compressed(done) == 2 * 9
    for rank in range(2):
        assert f"rank {rank}: 3 sends of 120000, 3 receives of 120000\n" in done.stdout


@pytest.mark.parametrize("name", ["windows", "files"])
def test_what_passes_through_beside_messages(name, family, program, run, tmp_path):
    """MPI libraries use PMPI calls that mpress stands in for, above all in their files."""
    done = run(family, 3, [program(name, family), tmp_path / "file"])
    assert compressed(done) >= 3
    assert done.stdout == "ok\n"
    assert done.report["totals"]["errors"] == 0


def test_younger_calls_work_whatever_the_mpi_has(family, program, run):
    """Bindings look them up, find them in the preloaded library, and use them then."""
    done = run(family, None, [program("later_call", family)])
    assert compressed(done) == 1
    assert done.stdout == "ok\n"


def test_a_call_that_the_mpi_lacks(family, program, run, shared):
    """The preloaded library has it, so only the call itself can tell."""
    env = {"LD_PRELOAD": str(shared("lacking", family))}
    command = [program("one_message", family)]
    done = run(family, 2, command, env={**env, "LACKING": "PMPI_Session_init"})
    assert compressed(done) == 1
    done = run(family, 2, command, env={**env, "LACKING": "PMPI_Improbe"})
    assert done.status != 0
    assert "has no PMPI_Improbe, which MPI 3.0 asks for" in done.stderr
    done = run(
        family, 2, [program("sessions", family)], env={**env, "LACKING": "PMPI_Session_init"}
    )
    assert done.status != 0
    assert "mpress: the program called MPI_Session_init, which " in done.stderr
    assert "does not have" in done.stderr


def test_two_mpis_in_one_process(program, run):
    other = MPIS["openmpi"].mpicc.parent.parent / "lib" / "libmpi.so.40"
    done = run("mpich", None, [program("one_message", "mpich")], env={"LD_PRELOAD": str(other)})
    assert done.status != 0
    assert done.stderr.count("mpress: the program has loaded more than one MPI: ") == 1
    assert str(other) in done.stderr and "libmpi.so.12" in done.stderr


def test_an_mpi_of_no_family(run, tmp_path):
    library = tmp_path / "libmpi.so"
    program = tmp_path / "program"
    source = tmp_path / "program.c"
    source.write_text("int MPI_Init(int*, char***);\nint main(void) { return MPI_Init(0, 0); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, SOURCES / "other_mpi.c"], check=True)
    link = [source, "-L", tmp_path, "-lmpi", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", "-o", program, *link], check=True)
    assert execute([program]).status == 0
    done = run("mpich", None, [program])
    assert done.status == 2
    assert f"the program uses {library} (Acme MPI 7), which is neither" in done.stderr


def test_a_backend_that_was_not_built(family, program, tmp_path):
    front = Path(shutil.copy(launch.preload_library(), tmp_path))
    done = execute([program("one_message", family)], {"LD_PRELOAD": str(front)})
    assert done.status == 2
    assert f"{tmp_path}/libmpress_{family}.so cannot be loaded" in done.stderr
    assert "install mpress again with MPICC set to" in done.stderr


def test_nothing_happens_in_programs_without_mpi(tmp_path):
    front = Path(shutil.copy(launch.preload_library(), tmp_path))
    done = execute(["/bin/sh", "-c", "ls / > /dev/null && echo fine"], {"LD_PRELOAD": str(front)})
    assert (done.status, done.output) == (0, "fine\n")


def test_the_mpi_of_a_program_is_known_before_it_runs(family, program, tmp_path):
    library = mpis.program_mpi(program("one_message", family))
    assert library.family == family
    assert library.implementation == ("openmpi" if family == "openmpi" else "mpich")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    for unknown in (script, "/bin/sh", tmp_path, tmp_path / "nothing"):
        assert mpis.program_mpi(unknown) is None


def test_the_launcher_is_that_of_the_programs_mpi(family, program, monkeypatch, tmp_path):
    """Wherever it lies: beside the library, or on PATH among others'."""
    path = program("one_message", family)
    owner = "openmpi" if family == "openmpi" else "mpich"
    assert mpis.launcher_implementation(mpis.find_launcher([str(path)])) == owner
    other = MPIS["mpich" if owner == "openmpi" else "openmpi"].mpiexec.parent
    right = MPIS[owner].mpiexec.parent
    monkeypatch.setattr(mpis, "_launchers_of", lambda _: [f"{other}/mpiexec", f"{right}/mpiexec"])
    assert mpis.find_launcher([str(path)]) == f"{right}/mpiexec"
    monkeypatch.setattr(mpis, "_launchers_of", lambda _: [f"{other}/mpiexec"])
    with pytest.raises(mpis.UserError, match=r"uses .*libmpi.*no mpiexec of it is beside"):
        mpis.find_launcher([str(path)])


def test_another_mpis_launcher_is_noticed(program, run):
    """A script hides which MPI its program uses, so the wrong launcher may be taken."""
    program = program("handles", "openmpi")
    options = (*FORCED, "--mpiexec", str(MPIS["mpich"].mpiexec))
    done = run("openmpi", 2, [shutil.which("env"), program], options)
    assert "started 2 programs that each ran alone" in done.stderr
    assert "(Open MPI)" in done.stderr and "--mpiexec" in done.stderr


def started_by_launcher(family: str, *words, env=None) -> Finished:
    mpi = MPIS[family]
    command = [mpi.mpiexec, "-n", "2", BIN / "mpress", "run", *FORCED, *words]
    return execute(command, {**mpi.env, **(env or {})})


def test_ranks_that_start_mpress_run_themselves(family, program, tmp_path):
    records = tmp_path / "records"
    env = {"MPRESS_JOB": "0123456789abcdef" * 2, "MPRESS_RECORD": str(records)}
    done = started_by_launcher(family, "--", program("one_message", family), env=env)
    assert (done.status, done.stdout) == (0, "rank 1: intact\n"), done.output
    assert len(list(records.glob("rank-*.rec"))) == 2


def test_ranks_need_the_name_of_their_job(program):
    """Open MPI's launcher tells it, MPICH's does not."""
    done = started_by_launcher("openmpi", "--", program("one_message", "openmpi"))
    assert (done.status, done.stdout) == (0, "rank 1: intact\n"), done.output
    done = started_by_launcher("mpich", "--", program("one_message", "mpich"))
    assert done.status == 2
    assert "the launcher does not tell its ranks what job they are" in done.stderr
