"""`mpress run` starts programs as users name them, by the launcher of their MPI; what that refuses,
it says itself."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from compiled_programs import compile_mpi_program
from execution import BIN, execute
from mpis import MPIS

from mpress.cli import launch, mpis

MPRESS = BIN / "mpress"
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
FAMILIES = ("mpich", "openmpi")


@pytest.fixture(params=FAMILIES)
def family(request) -> str:
    return request.param


@pytest.fixture
def folder(family, build_dir, tmp_path) -> Path:
    """A folder with a program of the family's, and ways to it."""
    program = shutil.copy(compile_mpi_program("one_message", MPIS[family], build_dir), tmp_path)
    (tmp_path / "sub folder").mkdir()
    shutil.copy(program, tmp_path / "sub folder" / "my program")
    (tmp_path / "link").symlink_to("one_message")
    (tmp_path / "folder link").symlink_to("sub folder")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "on-path").symlink_to("../sub folder/my program")
    shutil.copy(program, tmp_path / "a=b")
    return tmp_path


def run(family, *command, options=(), env=None, cwd=None):
    return execute([MPRESS, "run", *options, "--", *command], {**MPIS[family].env, **(env or {})},
                   cwd=cwd)  # fmt: skip


def path_with(folder: Path) -> str:
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize("command", [
    ["./one_message"], ["../{name}/one_message"], ["{folder}/one_message"], ["on-path"],
    ["./link"], ["sub folder/my program"], ["folder link/my program"], ["./a=b"],
    ["env", "NAME=1", "nice", "./one_message"],
], ids=" ".join)  # fmt: skip
def test_the_launcher_is_that_of_the_program_however_it_is_named(
    command, family, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", path_with(folder / "bin"))
    words = [word.format(folder=folder, name=folder.name) for word in command]
    assert mpis.launcher_implementation(mpis.find_launcher(words)) == family


@pytest.mark.parametrize("program", ["./one_message", "on-path", "folder link/my program", "./a=b"])
def test_ranks_are_one_job(program, family, folder):
    """Of which each would be alone under another MPI's launcher."""
    env = {"PATH": path_with(folder / "bin")}
    done = run(family, program, options=["-n", "2", *FORCED], env=env, cwd=folder)
    assert (done.status, done.stdout) == (0, "rank 1: intact\n"), done.output
    assert "ran alone" not in done.stderr and "no statistics" not in done.stderr


def test_the_library_beside_a_program_that_a_link_names(tmp_path):
    """$ORIGIN is the folder of the program, not of a link to it."""
    home = tmp_path / "its home"
    home.mkdir()
    library, source = tmp_path / "mpi.c", tmp_path / "program.c"
    library.write_text('const char* PMPI_Get_library_version(void) { return "MPICH"; }\n')
    source.write_text("int PMPI_Get_library_version(void);\n"
                      "int main(void) { return !PMPI_Get_library_version(); }\n")  # fmt: skip
    built = home / "libmpi.so.12"
    for command in (
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12", "-o", built, library],
        ["cc", "-o", home / "program", source, built, "-Wl,-rpath,$ORIGIN"],
    ):
        assert execute(command).status == 0
    (tmp_path / "link").symlink_to(home / "program")
    assert mpis.program_mpi(tmp_path / "link") == mpis.Library(built, "mpich", "mpich")


def test_a_script_hides_the_mpi_of_its_program(build_dir, tmp_path):
    """The default launcher starts it; where that is another MPI's, a line says so."""
    program = compile_mpi_program("handles", MPIS["openmpi"], build_dir)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nexec '{program}'\n")
    script.chmod(0o755)
    assert mpis.find_launcher(["./script"]) == mpis.default_launcher()
    own = run("openmpi", "./script", cwd=tmp_path,
              options=["-n", "2", *FORCED, "--mpiexec", str(MPIS["openmpi"].mpiexec)])  # fmt: skip
    assert own.status == 0, own.output
    assert "ran alone" not in own.stderr
    other = run("openmpi", "./script", cwd=tmp_path,
                options=["-n", "2", *FORCED, "--mpiexec", str(MPIS["mpich"].mpiexec)])  # fmt: skip
    assert "started 2 programs that each ran alone" in other.stderr


def launcher_alone(ranks: int, *command, env=None, cwd=None):
    """What Open MPI's launcher does with `env PROGRAM`, as mpress calls it."""
    return execute([MPIS["openmpi"].mpiexec, "-n", str(ranks), "env", *command], env, cwd=cwd)


def words(text: str) -> set[str]:
    """Lines, but for what differs from run to run."""
    return {line.strip() for line in text.splitlines() if line.strip()}


def test_too_many_ranks_are_the_launchers_to_refuse(build_dir):
    program = compile_mpi_program("one_message", MPIS["openmpi"], build_dir)
    allowed = {k: v for k, v in MPIS["openmpi"].env.items() if "ROOT" in k}
    alone = launcher_alone(9999, program, env=allowed)
    assert alone.status != 0 and "not enough slots" in alone.output
    done = execute([MPRESS, "run", "-n", "9999", "--", program], allowed)
    assert done.status == alone.status
    assert words(done.output) == words(alone.output)


def test_root_is_the_launchers_to_refuse(build_dir, monkeypatch):
    """Open MPI's does not start programs of root's, unless it is told to."""
    for name in MPIS["openmpi"].env:
        monkeypatch.delenv(name, raising=False)
    program = compile_mpi_program("one_message", MPIS["openmpi"], build_dir)
    alone = launcher_alone(2, program)
    assert (alone.status != 0) == (os.geteuid() == 0), alone.output
    done = execute([MPRESS, "run", "-n", "2", *FORCED, "--", program])
    assert done.status == alone.status
    assert words(done.stderr) == words(alone.stderr)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_that_cannot_be_started(family, tmp_path):
    """The file may be executed, but what it names as its interpreter is not there."""
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    options = ["-n", "2", "--mpiexec", str(MPIS[family].mpiexec)]
    # MPICH's launcher, alone too, ends by SIGPIPE and says nothing where the programs have ended
    # before it writes to them: once in some hundreds of such runs.
    for _ in range(10):
        done = run(family, "./script", options=options, cwd=tmp_path)
        if done.status != 128 + signal.SIGPIPE:
            break
    assert done.status == 127
    assert "./script" in done.output and "No such file" in done.output
    assert "mpress" not in done.output
    alone = run(family, "./script", cwd=tmp_path)
    assert alone.status == 127 and "mpress" not in alone.output


def test_the_launchers_status_and_words_are_kept(tmp_path):
    launcher = tmp_path / "launch"
    launcher.write_text("#!/bin/sh\necho 'launch: no nodes are free' >&2\nexit 183\n")
    launcher.chmod(0o755)
    options = ["-n", "2", "--mpiexec", str(launcher), "--report", str(tmp_path / "r.json")]
    done = execute([MPRESS, "run", *options, "--", "true"])
    assert (done.status, done.output) == (183, "launch: no nodes are free\n")


@pytest.mark.parametrize(("name", "why"), [
    ("no-such-program", "there is no such program on PATH\n"),
    ("data", "write ./data"), ("./data", "may not be executed"), ("./folder", "is a directory"),
    ("./nothing", "there is no such file"), ("", "there is no such program"),
])  # fmt: skip
def test_what_is_no_program(name, why, tmp_path):
    (tmp_path / "data").write_text("")
    (tmp_path / "folder").mkdir()
    for options in ((), ("-n", "2")):
        done = execute([MPRESS, "run", *options, "--", name], cwd=tmp_path)
        assert done.status == 2 and done.stdout == ""
        assert done.stderr.startswith(f"mpress: PROGRAM {name!r}: ") and why in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("launcher", "why"), [
    ("", "expected a launcher"), ("'mpiexec", "No closing quotation"),
    ("/no/mpiexec -x", "there is no such file"),
])  # fmt: skip
def test_what_is_no_launcher(launcher, why):
    done = execute([MPRESS, "run", "-n", "2", "--mpiexec", launcher, "--", "true"])
    assert done.status == 2 and why in done.stderr
    assert done.stderr.startswith("mpress: --mpiexec ") and done.stderr.count("\n") == 1


def test_a_rank_that_cannot_become_its_program(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/nowhere/interpreter\n")
    script.chmod(0o755)
    done = execute([MPRESS, "run", "--", script], {"PMI_RANK": "0", "MPRESS_JOB": "0" * 32})
    assert done.status == 2 and done.stderr.count("\n") == 1
    assert f"PROGRAM {str(script)!r} cannot be started" in done.stderr


def test_settings_reach_a_program_whose_name_holds_an_equals_sign():
    command = launch.rank_command(["./a=b", "c d"], {"NAME": "1"}, None, [])
    assert command == ["env", "NAME=1", "sh", "-c", 'exec "$0" "$@"', "./a=b", "c d"]
    assert launch.rank_command([sys.executable], {"NAME": "1"}, 2, ["mpiexec"]) == [
        "mpiexec", "-n", "2", "env", "NAME=1", sys.executable]  # fmt: skip
