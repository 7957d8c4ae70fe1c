"""README.md and docs: every example is run, or is held against what would read it.

Of shell blocks each command line is parsed: those of mpress by its own parser, of others the files
and targets that they name have to exist, and options of scripts have to be in them; those of `RUN`
are executed, too. A block of C, Python or CMake that neither a test here runs nor one that
`ELSEWHERE` names is an error.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import typer
from execution import BIN, MPRESS, ROOT, execute

import mpress
from mpress import _core, cli

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: str  # relative to the repository
    language: str
    number: int  # among those of its language on the page
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.language}{self.number}"


def read_blocks() -> dict[str, Block]:
    found = {}
    for page in PAGES:
        numbers: Counter[str] = Counter()
        for language, text in FENCE.findall(page.read_text()):
            block = Block(str(page.relative_to(ROOT)), language, numbers[language], text)
            numbers[language] += 1
            found[str(block)] = block
    return found


BLOCKS = read_blocks()


def of(language: str) -> list[str]:
    return [name for name, block in BLOCKS.items() if block.language == language]


# What other tests run: the file, and the function there.
ELSEWHERE = {
    "docs/c.md:c0": ("test_api.py", "test_examples_of_the_page"),
    "docs/c.md:c1": ("test_api.py", "test_examples_of_the_page"),
    "docs/c.md:c2": ("test_api.py", "test_examples_of_the_page"),
    "docs/communicator.md:python0": ("test_communicator.py", "test_examples_of_the_page"),
    "docs/communicator.md:python1": ("test_communicator.py", "test_examples_of_the_page"),
    "docs/neighbourhoods.md:python0": ("test_iso.py", "test_examples_of_the_page"),
    "docs/neighbourhoods.md:python1": ("test_iso.py", "test_examples_of_the_page"),
}
# What is executed here, in a folder with what `folder` puts there. The test of a block may want
# something of the report, or of what is printed.
RUN = {
    "README.md:sh0": "report.json",
    "README.md:sh1": "within 0.0",
    "README.md:sh2": "within 0; compressed: no\n",
    "README.md:sh3": "mean 1.50000\nmean 1.50000\n",
    "docs/c.md:sh0": "compressed: yes",
    "docs/choosing.md:sh0": "szp:rel=1e-5",
    "docs/choosing.md:sh1": "run.json",
    "docs/programs.md:sh0": "MPRESS_CODEC",
    "docs/programs.md:sh1": "messages sent",
    "docs/programs.md:sh5": "simulated (paced)",
}
# The files that they use, with the blocks that are on the page before them.
FILES = {
    "README.md:sh1": ("sum.py", "README.md:python0"),
    "README.md:sh2": ("sum.c", "README.md:c0"),
    "README.md:sh3": ("halo.py", "README.md:python1"),
    "docs/c.md:sh0": ("program.c", "docs/c.md:c0"),
}
# Those of which everything is compressed where it pays, as users have it; else all is.
UNFORCED = {"README.md:sh1", "README.md:sh2"}
LOADED = "import numpy as np, mpress\nfield = np.linspace(0, 1, 100_000)\n"
# Before Python blocks that run in this process, and behind them.
ALONE = {
    "docs/api.md:python0": ("", "assert np.abs(again - field).max() <= encoded.bound"),
    "docs/api.md:python1": (
        LOADED + "x, y = field, field**2\n",
        "assert np.abs(field - (x + y)).max() <= total.bound",
    ),
}
# Before Python blocks that run as two ranks, with everything forced, and behind them.
RANKS = {
    "docs/programs.md:python0": (
        "",
        "sent = np.sin(np.linspace(0, 10, 1_000_000))\n"
        "assert 0 < np.abs(field - sent).max() <= 1e-5\n"
        "assert halo.Get_info().Get('mpress_codec') == 'szp:abs=1e-5'",
    ),
}
# Need a GPU: they compile, and know mpress's names.
NAMES_ALONE = {"docs/api.md:python2"}
# Around C blocks.
MAIN = "int main(int argc, char** argv) {\nMPI_Init(&argc, &argv);\n"
AROUND_C = {
    "docs/api.md:c0": (
        "#include <mpi.h>\n" + MAIN + "MPI_Comm halo;\n",
        "MPI_Info_free(&info);\nMPI_Comm_free(&halo);\nMPI_Finalize();\n}\n",
    ),
    "docs/neighbourhoods.md:c0": ("", ""),
    "docs/neighbourhoods.md:c1": (
        "#include <mpi.h>\n"
        + MAIN
        + """MPI_Comm cart, graph;
MPI_Info info;
int size, periodic = 1, indegree = 2, outdegree = 2, sources[2], destinations[2];
MPI_Comm_size(MPI_COMM_WORLD, &size);
MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cart);
MPI_Cart_shift(cart, 0, 1, &sources[0], &sources[1]);
destinations[0] = sources[1];
destinations[1] = sources[0];
MPI_Info_create(&info);
""",
        "MPI_Comm_free(&graph);\nMPI_Comm_free(&cart);\nMPI_Info_free(&info);\nMPI_Finalize();\n}\n",
    ),
}
CMAKE = {"docs/c.md:cmake0"}


def test_no_block_is_left_out():
    assert len(BLOCKS) > 30
    covered = {*ELSEWHERE, *ALONE, *RANKS, *NAMES_ALONE, *AROUND_C, *CMAKE}
    covered |= {block for name, (_, block) in FILES.items() if name in RUN}
    assert set(RUN) <= set(of("sh"))
    assert {*covered} <= set(BLOCKS), "no such block any more"
    left_out = [
        name
        for name, block in BLOCKS.items()
        if block.language not in ("sh", "text") and name not in covered
    ]
    assert left_out == [], "no test runs these"
    for name, (file, function) in ELSEWHERE.items():
        text = (ROOT / "tests" / file).read_text()
        assert f"def {function}(" in text and f'"{Path(BLOCKS[name].page).name}"' in text


# ---- Shell ---------------------------------------------------------------------------------------

KNOBS = {name for name, _, _ in _core.knobs()}
TOP = {  # but for what is built, and what programs make
    path.name
    for path in ROOT.iterdir()
    if path.is_dir() and not path.name.startswith((".", "build", "demo-output", "dist"))
}
SETTING = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=")
LAUNCHERS = ("mpiexec", "srun")
COMPILERS = ("mpicc", "nvcc")
COMMAND = typer.main.get_command(cli.application())


def command_lines(text: str) -> list[list[str]]:
    """The commands of a block, and those that they substitute, as words."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        for inner in re.findall(r"\$\(([^()]*)\)", line):
            found.append(shlex.split(inner))
        flat = re.sub(r"\$\([^()]*\)", "SUBSTITUTED", line)
        for part in flat.split("&&"):
            found.append(shlex.split(part, comments=True))
    return [words for words in found if words]


def check_command(words: list[str]) -> None:
    while words and (setting := SETTING.match(words[0])):
        name = setting[1]
        assert not name.startswith("MPRESS_") or name in KNOBS, f"no such setting: {name}"
        words = words[1:]
    for word in words:
        # What the repository has is named by its path there; all else is the user's.
        if word.partition("/")[0] in TOP and "/" in word:
            assert list(ROOT.glob(word)), f"no such file: {word}"
    if not words:
        return
    name, rest = Path(words[0]).name, words[1:]
    if name == "mpress":
        check_mpress(rest)
    elif name in ("env", "export"):
        check_command(rest)
    elif name in LAUNCHERS:
        starts = ("mpress", "env", "python")
        inner = [
            i for i, word in enumerate(rest) if Path(word).name in starts or word.startswith("./")
        ]
        assert inner, f"{name} starts nothing"
        check_command(rest[inner[0] :])
    elif name == "make":
        targets = [word for word in rest if "=" not in word]
        known = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(targets) <= set(known), f"no such target among {targets}"
    elif name == "python":
        check_script(rest)
    else:
        assert name in COMPILERS or words[0].startswith("./"), f"what is {name}?"


def check_script(words: list[str]) -> None:
    """Of a script of the repository: its options are in its text."""
    script = ROOT / words[0]
    if words[0].partition("/")[0] not in TOP:
        return
    source = script.read_text()
    for word in words[1:]:
        if word.startswith("-"):
            assert f'"{word}"' in source, f"{words[0]} has no {word}"


def check_mpress(words: list[str]) -> None:
    """The command line's own parser takes it, and codecs are codecs."""
    command = COMMAND
    while hasattr(command, "commands"):
        assert words and words[0] in command.commands, f"no command {words[:1]} of {command.name}"
        command, words = command.commands[words[0]], words[1:]
    try:
        given = command.make_context(command.name, list(words)).params
    except Exception as error:  # typer's own: which class, depends on its release
        pytest.fail(f"mpress {command.name} {shlex.join(words)}: {error}")
    specs = [given.get("codec"), given.get("spec"), given.get("specs"), given.get("codecs")]
    for spec in specs:
        for one in [spec] if isinstance(spec, str) else spec or []:
            mpress.codec(one)
    if command.name == "run":
        check_command(given["program"])


@pytest.mark.parametrize("name", of("sh"))
def test_command_lines_are_known(name):
    lines = command_lines(BLOCKS[name].text)
    assert lines
    for words in lines:
        check_command(words)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("mpress run -n 4 --codex mpc -- ./program", "codex"),
        ("mpress run -n four -- ./program", "four"),
        ("mpress bench latencies", "latencies"),
        ("MPRESS_CODECS=mpc ./program", "MPRESS_CODECS"),
        ("python apps/wave/demos.py", "demos"),
        ("python apps/stacking/demo.py --images 3 --picture 4M", "picture"),
        ("mpiexec -n 4 env MPRESS_FORCED=1 ./program", "MPRESS_FORCED"),
        ("make demos", "demos"),
        ("P=$(mpress infos --prefix)", "infos"),
    ],
)
def test_wrong_lines_are_found(line, why):
    with pytest.raises((AssertionError, pytest.fail.Exception), match=why):
        for words in command_lines(line):
            check_command(words)


def test_codecs_that_are_none_are_found():
    with pytest.raises(ValueError, match="szp"):
        check_command(shlex.split("mpress run -n 4 --codec szp:rel -- ./program"))


# A program for the blocks that have a `program`: everybody gives the next rank two megabytes.
PROGRAM = r"""
#include <math.h>
#include <mpi.h>
int main(int argc, char** argv) {
  enum { COUNT = 1 << 19 };
  static float given[COUNT], taken[COUNT];
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < COUNT; ++i) given[i] = 0.5f + 1e-6f * (float)i;
  MPI_Sendrecv(given, COUNT, MPI_FLOAT, (rank + 1) % size, 0, taken, COUNT, MPI_FLOAT,
               (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return fabsf(taken[0] - 0.5f) > 1e-3f;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, mpi):
    """Where shell blocks run: programs and fields that they name, and the MPI as `mpicc` and
    `mpiexec`."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "apps").symlink_to(ROOT / "apps")
    (folder / "program.c").write_text(PROGRAM)
    done = execute([mpi.mpicc, folder / "program.c", "-lm", "-o", folder / "program"])
    assert done.status == 0, done.output
    field = np.linspace(0, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    np.save(folder / "field.npy", field)
    netcdf = pytest.importorskip("netCDF4").Dataset(folder / "run.nc", "w")
    for axis in "xy":
        netcdf.createDimension(axis, 64)
    netcdf.createVariable("v", "f4", ("x", "y"))[:] = field
    netcdf.close()
    (folder / "bin").mkdir()
    for name in ("mpicc", "mpiexec"):
        stand_in = folder / "bin" / name
        stand_in.write_text(f'#!/bin/sh\nexec {shlex.quote(str(getattr(mpi, name)))} "$@"\n')
        stand_in.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def shell(folder, mpi, mpi4py_env):
    def run(text: str, where: Path = folder, *, force: bool = True):
        path = os.pathsep.join([str(folder / "bin"), str(BIN), os.environ["PATH"]])
        env = {**mpi.env, "PATH": path, "MPRESS_FORCE": "1" if force else "0"}
        if "python" in text:
            env |= mpi4py_env
        return execute(["sh", "-euc", text], env, cwd=where)

    return run


@pytest.mark.parametrize("name", RUN)
def test_commands_run(name, shell, folder, tmp_path):
    text = BLOCKS[name].text.replace(".venv/bin/", "")
    lines = [line for line in text.splitlines() if line != "make"]
    if name in FILES:
        folder = tmp_path
        file, block = FILES[name]
        (folder / file).write_text(BLOCKS[block].text)
    done = shell("\n".join(lines), folder, force=name not in UNFORCED)
    assert done.status == 0, done.output
    wanted = RUN[name]
    if wanted.endswith(".json"):
        assert ", of which 0 compressed" not in done.stdout and "compressed" in done.stdout
        assert (folder / wanted).stat().st_size > 0
    else:
        assert wanted in done.stdout, done.output


@pytest.mark.parametrize("name", of("text"))
def test_what_is_printed_is_on_the_page(name):
    """A block of text behind one of the shell is what that prints."""
    page = (ROOT / BLOCKS[name].page).read_text()
    before, _, _ = page.partition("```text\n" + BLOCKS[name].text)
    shell_blocks = [(match.end(), match[2]) for match in FENCE.finditer(before) if match[1] == "sh"]
    if not shell_blocks or before[shell_blocks[-1][0] :].strip():
        assert "┏" not in BLOCKS[name].text, "a table, but no command before it"
        return  # a drawing, or a format
    (words,) = command_lines(shell_blocks[-1][1])
    done = execute([MPRESS, *words[1:]])
    assert done.status == 0 and done.stdout == BLOCKS[name].text, "the page is stale"


# ---- Python --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALONE)
def test_python_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.linspace(0, 1, 100_000, dtype=np.float32).tofile("field.f32")
    before, behind = ALONE[name]
    exec(compile(before + BLOCKS[name].text + behind, name, "exec"), {})


@pytest.mark.parametrize("name", RANKS)
def test_python_runs_as_ranks(name, mpress_run, mpi4py_env, tmp_path):
    before, behind = RANKS[name]
    program = tmp_path / "program.py"
    program.write_text(before + BLOCKS[name].text + behind)
    # Where several threads may call MPI, some MPIs serve collective calls themselves.
    env = {**mpi4py_env, "MPI4PY_RC_THREAD_LEVEL": "funneled"}
    done = mpress_run(2, sys.executable, [program], ["--force"], env)
    assert done.status == 0, done.output
    assert done.report["totals"]["compressed_messages"] > 0


@pytest.mark.parametrize("name", sorted(NAMES_ALONE))
def test_python_knows_its_names(name):
    for node in ast.walk(ast.parse(BLOCKS[name].text)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mpress":
            assert hasattr(mpress, node.attr)


# ---- C and CMake ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AROUND_C)
def test_c_runs(name, mpi, mpress_run, tmp_path):
    before, behind = AROUND_C[name]
    source = tmp_path / "example.c"
    source.write_text(before + BLOCKS[name].text + behind)
    prefix = Path(mpress.__file__).parent
    command = [mpi.mpicc, "-Wall", "-Wextra", "-Werror", source, f"-I{prefix}/include"]
    command += [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lmpress"]
    done = execute([*command, "-o", source.with_suffix("")])
    assert done.status == 0, done.output
    done = mpress_run(2, source.with_suffix(""), options=["--force"])
    assert done.status == 0, done.output


@pytest.mark.parametrize("name", sorted(CMAKE))
def test_cmake_finds_it(name, mpi, tmp_path):
    if mpi.mpicc.name != "mpicc":
        pytest.skip("CMake's FindMPI knows no such wrapper")
    (tmp_path / "program.c").write_text(BLOCKS["docs/c.md:c0"].text)
    lists = (
        "cmake_minimum_required(VERSION 3.18)\nproject(p C)\nadd_executable(program program.c)\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(lists + BLOCKS[name].text)
    root = f"-Dmpress_ROOT={Path(mpress.__file__).parent}"
    build = tmp_path / "build"
    compiler = [f"-DMPI_C_COMPILER={mpi.mpicc}", "-DMPI_SKIP_MPICXX=ON"]
    for command in (
        ["cmake", "-S", tmp_path, "-B", build, root, *compiler],
        ["cmake", "--build", build],
    ):
        done = execute(command, mpi.env)
        assert done.status == 0, done.output


# ---- Texts ---------------------------------------------------------------------------------------


def names_of_the_sources() -> set[str]:
    """What else begins with MPRESS_: macros, variables of CMake."""
    headers = [path for top in ("include", "src") for path in (ROOT / top).rglob("*.h*")]
    files = [*headers, *(ROOT / "src").rglob("*.cuh"), ROOT / "CMakeLists.txt"]
    files += (ROOT / "cmake").iterdir()
    return {name for file in files for name in re.findall(r"MPRESS_[A-Z0-9_]+", file.read_text())}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_are_known(page):
    known = KNOBS | names_of_the_sources()
    named = re.findall(r"MPRESS_[A-Z0-9_]+", page.read_text())
    assert [name for name in named if name not in known and not name.endswith("_")] == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page):
    links = re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", page.read_text())
    for file, anchor in links:
        if "://" not in file:
            target = page.parent / file if file else page
            assert anchor in anchors(target), f"{page.name}: {file}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_are_there(page):
    """Paths in running text; capitals stand for names, and what programs make is not there yet."""
    named = re.findall(r"`([^`\s]+)`", FENCE.sub("", page.read_text()))
    for path in named:
        if path.partition("/")[0] in TOP and "/" in path and not re.search(r"/[A-Z]+\b|[{<]", path):
            assert list(ROOT.glob(path)), f"{page.name}: {path}"
