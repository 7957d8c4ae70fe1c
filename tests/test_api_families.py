"""mpress's own interface under every MPI that is installed: the header, the examples of docs/c.md,
and the programs that tell most. One libmpress.so serves all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from execution import ROOT, Finished, execute
from mpis import MPIS
from test_api import FORCED, PREFIX, compile_api_program, examples
from test_installation import FAMILIES

# test_api.py has them under the MPI that was chosen, which as a rule is MPICH.
OTHERS = FAMILIES[1:]


@pytest.fixture
def run_plainly(tmp_path):
    """run_plainly(family, ranks, program, env, args): by the family's own launcher, without
    preload."""

    def run(family, ranks, program, env, args=()) -> Finished:
        mpi = MPIS[family]
        return execute([mpi.mpiexec, "-n", str(ranks), program, *args], {**mpi.env, **env})

    return run


@pytest.mark.parametrize("language", [("c", "c99"), ("c++", "c++11")], ids=["C99", "C++11"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_header_is_plain(family, language, tmp_path):
    """Old compilers take it, whatever the MPI's own header says."""
    kind, standard = language
    source = tmp_path / "source"
    source.write_text(
        "#include <mpress/mpress.h>\n#include <mpress/codec.h>\n#include <mpress/iso.h>\n"
        "int main(void) {\n  mpress_call call = {0, 0, 0, 0, 0};\n"
        "  mpress_request request = MPRESS_REQUEST_NULL;\n"
        "  int (*function)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm,\n"
        "                  const mpress_call*) = mpress_send;\n"
        "  return call.mask || !function || mpress_wait(&request, MPI_STATUS_IGNORE);\n}\n"
    )
    command = [MPIS[family].mpicc, "-x", kind, f"-std={standard}", "-pedantic", "-Wall", "-Wextra"]
    command += ["-Werror", "-fsyntax-only", "-I", PREFIX / "include", source]
    done = execute(command)
    assert (done.status, done.output) == (0, "")


@pytest.mark.parametrize(
    "name", ["messages", "collectives", "neighbourhoods", "neighbour_errors", "wrong", "forked"]
)
@pytest.mark.parametrize("family", OTHERS)
def test_programs(family, name, build_dir, run_plainly):
    program = compile_api_program(ROOT / "tests" / "api" / f"{name}.c", MPIS[family], build_dir)
    done = run_plainly(family, 2, program, FORCED)
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize("family", OTHERS)
def test_exchanges_of_neighbours(family, build_dir, run_plainly, simulated_gpu):
    source = ROOT / "tests" / "api" / "neighbour_exchanges.c"
    program = compile_api_program(source, MPIS[family], build_dir)
    env = {**simulated_gpu, **FORCED, "MPRESS_THRESHOLD": "0"}
    done = run_plainly(family, 4, program, env, ["6", "60", "devices"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.extended
@pytest.mark.parametrize("name", ["forms", "threads", "scopes", "leaks"])
@pytest.mark.parametrize("family", OTHERS)
def test_more_programs(family, name, build_dir, run_plainly, simulated_gpu):
    program = compile_api_program(ROOT / "tests" / "api" / f"{name}.c", MPIS[family], build_dir)
    env = {**simulated_gpu, **FORCED, "MPRESS_THRESHOLD": "0"}
    done = run_plainly(family, 3 if name == "forms" else 2, program, env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output


def check_example(family, program, run_plainly) -> None:
    done = run_plainly(family, 2, program, FORCED)
    assert done.status == 0 and done.stdout.endswith("compressed: yes\n"), done.output
    assert 0 < float(done.stdout.split()[1].rstrip(";")) <= 2.001e-6


@pytest.mark.parametrize("family", OTHERS)
def test_the_first_example(family, run_plainly, tmp_path):
    """As docs/c.md says, with the MPI's own compiler."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(examples()[0])
    library = PREFIX / "lib"
    command = [MPIS[family].mpicc, source, f"-I{PREFIX}/include", f"-L{library}"]
    done = execute([*command, f"-Wl,-rpath,{library}", "-lmpress", "-o", program])
    assert done.status == 0, done.output
    check_example(family, program, run_plainly)


def test_the_first_example_by_cmake(run_plainly, tmp_path):
    """With the lines of docs/c.md, and CMake's own module for the MPI."""
    page = (ROOT / "docs" / "c.md").read_text()
    lines = page.split("```cmake\n")[1].split("```")[0]
    assert "find_package(mpress" in lines and "MPI::MPI_C" in lines
    (tmp_path / "program.c").write_text(examples()[0])
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(p C)\nadd_executable(program program.c)\n"
        + lines
    )
    build = tmp_path / "build"
    options = [f"-Dmpress_ROOT={PREFIX}", f"-DMPI_C_COMPILER={MPIS['mpich'].mpicc}"]
    done = execute(["cmake", "-S", tmp_path, "-B", build, *options])
    assert done.status == 0, done.output
    done = execute(["cmake", "--build", build])
    assert done.status == 0, done.output
    check_example("mpich", build / "program", run_plainly)


def test_the_first_example_by_pkg_config(mpi, run_plainly, tmp_path):
    """Where there is no pkg-config, its file is read by hand."""
    folder = PREFIX / "lib" / "pkgconfig"
    if found := shutil.which("pkg-config"):
        query = [found, "--cflags", "--libs", "mpress"]
        done = execute(query, {"PKG_CONFIG_PATH": str(folder)})
        assert done.status == 0, done.output
        version = execute([found, "--modversion", "mpress"], {"PKG_CONFIG_PATH": str(folder)})
        header = (PREFIX / "include" / "mpress" / "mpress.h").read_text()
        major, minor, patch = (
            header.split(f"#define MPRESS_VERSION_{part} ")[1].split()[0]
            for part in ("MAJOR", "MINOR", "PATCH")
        )
        assert version.stdout == f"{major}.{minor}.{patch}\n"
        words = done.stdout.split()
    else:
        text = (folder / "mpress.pc").read_text().replace("${pcfiledir}", str(folder))
        values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        prefix = text.split("prefix=")[1].splitlines()[0]
        words = f"{values['Cflags']} {values['Libs']}".replace("${prefix}", prefix).split()
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(examples()[0])
    done = execute([MPIS["mpich"].mpicc, source, *words, "-o", program])
    assert done.status == 0, done.output
    check_example("mpich", program, run_plainly)
    linked = execute(["ldd", program]).stdout
    assert str(Path(PREFIX, "lib").resolve()) in str(
        Path(linked.split("libmpress.so")[1].split("=> ")[1].split()[0]).resolve()
    )
