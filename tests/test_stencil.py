"""apps/stencil: the C program and its twin in Python, beside a serial reference in NumPy."""

import itertools
import json
import re
import sys

import numpy as np
import pytest
from compiled_programs import yielding
from execution import ROOT, execute

pytestmark = pytest.mark.xdist_group("stencil")  # the program is compiled once
STENCIL = ROOT / "apps" / "stencil"
TWIN = STENCIL / "stencil.py"
FORCED = {"MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0"}


@pytest.fixture(scope="module")
def parts(patched):
    """apps/stencil's modules: parts(name)."""
    patched.syspath_prepend(str(STENCIL))

    def load(name):
        patched.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return load


@pytest.fixture(scope="module")
def program(parts, tmp_path_factory, mpi, build_dir):
    program = tmp_path_factory.mktemp("stencil") / "stencil"
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wpedantic"]
    warnings += ["-Wno-stringop-overread"]  # GCC's for Open MPI's MPI_UNWEIGHTED, no array
    parts("stencil_program").build(program, mpi.mpicc, ["-O2", *warnings, yielding(build_dir)])
    return program


@pytest.fixture
def stencil(program, mpirun, tmp_path):
    """stencil(ranks, "--option value ...", env): what is printed, and the last values, on one line
    of cells."""

    def run(ranks, options, env=None):
        output = tmp_path / "values"
        done = mpirun(ranks, program, [*options.split(), "--output", str(output)], env)
        assert done.status == 0, done.output
        return done.stdout, np.fromfile(output)

    return run


def value(options, name, default):
    words = options.split()
    return words[words.index(name) + 1] if name in words else default


def reference(options):
    """All cells with one more around, of one process; additions in the program's order."""
    grid = tuple(map(int, value(options, "--grid", "200x200").split("x")))
    dims, points = len(grid), int(value(options, "--points", 2 * len(grid) + 1))
    is_jacobi = value(options, "--problem", "heat") == "jacobi"
    is_periodic = value(options, "--border", "periodic") == "periodic"
    weight = 20 / 6 if points == 9 else 2 * dims
    rate = float(value(options, "--rate", 0.9 * (1 / weight)))
    axes = np.ix_(*((2 * np.arange(n) + 1 - n) / n for n in grid))
    balls = [sum((x - centre) ** 2 for x in axes) < 0.09 for centre in (-0.4, 0.4)]
    hot, other = (np.broadcast_to(ball, grid) * 1.0 for ball in balls)
    assert hot.sum() == other.sum() > 0
    u = np.zeros(grid) if is_jacobi else hot - 0.5 * other
    for _ in range(int(value(options, "--steps", 100))):
        wide = np.pad(u, 1, mode="wrap") if is_periodic else np.pad(u, 1)
        if not is_periodic:
            wide[0] = 1

        def moved(*by, wide=wide):
            return wide[tuple(slice(1 + m, 1 + m + n) for m, n in zip(by, grid, strict=True))]

        units = np.eye(dims, dtype=int)
        total = sum(moved(*-unit) + moved(*unit) for unit in units)
        if points == 9:
            corners = (moved(-1, -1) + moved(-1, 1)) + (moved(1, -1) + moved(1, 1))
            total = (4 * total + corners) * (1 / 6)
        u = (total + (hot - other)) / weight if is_jacobi else u + rate * (total - weight * u)
    return u.ravel()


CASES = [
    (1, "--grid 23x17 --depth 5 --steps 23"),
    (2, "--grid 23x17 --depth 1 --steps 21 --exchange mpi"),
    (3, "--grid 31x22 --depth 4 --steps 22 --points 9"),
    (4, "--grid 31x23 --depth 7 --steps 30 --border fixed"),
    (4, "--grid 24x24 --depth 1 --steps 12 --border fixed --points 9 --problem jacobi"),
    (5, "--grid 41x9 --depth 8 --steps 20 --problem jacobi --rate 0.1"),
    (6, "--grid 25x23 --depth 3 --steps 25 --border fixed --problem jacobi --exchange mpi"),
    (2, "--grid 13x12x11 --depth 6 --steps 15"),
    (4, "--grid 13x14x11 --depth 3 --steps 14 --border fixed --problem jacobi"),
    (6, "--grid 13x12x11 --depth 4 --steps 10 --border fixed --exchange mpi --rate 0.12"),
]


@pytest.mark.parametrize(("ranks", "options"), CASES)
def test_values_are_those_of_one_process(stencil, ranks, options):
    printed, values = stencil(ranks, f"{options} --check")
    assert "the same bits as at depth 1" in printed
    assert np.array_equal(values, reference(options))


def test_heat_stays_on_a_torus(stencil):
    grid = "--grid 50x41 --depth 6"
    first, (_, last) = reference(f"{grid} --steps 0"), stencil(3, f"{grid} --steps 300")
    assert first.sum() > 50
    assert last.sum() == pytest.approx(first.sum(), rel=1e-12)
    assert last.std() < 0.5 * first.std()


def test_jacobi_solves_poissons_equation(stencil):
    options = "--problem jacobi --grid 14x11 --border fixed --depth 5 --steps 1500"
    _, values = stencil(2, options)
    wide = np.pad(values.reshape(14, 11), 1)
    wide[0] = 1
    near = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    charge = near - 4 * wide[1:-1, 1:-1]
    rounded = np.round(charge)
    assert np.abs(charge - rounded).max() < 1e-12
    assert (rounded == -1).sum() == (rounded == 1).sum() == 11


@pytest.mark.parametrize("depth", [1, 4])
def test_errors_stay_within_the_bounds(stencil, depth):
    options = f"--grid 60x50 --depth {depth} --steps 40 --border fixed --points 9"
    printed, values = stencil(4, f"{options} --codec szp:abs=1e-4 --check", FORCED)
    found = re.search(r"differs .* by (\S+); the bounds allow (\S+)\n", printed)
    off, allowed = map(float, found.groups())
    difference = np.abs(values - reference(options)).max()
    assert 1e-7 < off <= allowed <= 1.01e-4 * 40 / depth
    assert difference == pytest.approx(off, rel=0.01)


def test_messages_are_compressed(program, mpress_run):
    options = ["--grid", "200x200", "--depth", "8", "--codec", "szp:abs=1e-4", "--check"]
    done = mpress_run(2, program, options, ["--force", "--threshold", "0"])
    assert done.status == 0, done.output
    assert done.report["totals"]["compressed_messages"] > 0


def test_what_is_counted(stencil, parts):
    """Of 3 x 1 processes, on a torus: two others, and the process itself."""
    printed, _ = stencil(3, "--grid 30x20 --depth 2 --steps 7")
    times = parts("stencil_program").times(printed)
    assert 0 < times.exchanging < times.step
    rows, corners = 3 * 2 * 2 * 20, 3 * 4 * 2 * 2
    assert (times.exchanges, times.messages, times.bytes) == (4, 18, 8 * (rows + corners))


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ("--grid 20", "--grid: '20'"),
        ("--grid 20x20x0", "--grid: '20x20x0'"),
        ("--grid 9x9x9x9", "--grid: '9x9x9x9'"),
        ("--depth 0", "--depth: '0'"),
        ("--depth 2x", "--depth: '2x'"),
        ("--steps", "--steps needs a value"),
        ("--border open", "--border: 'open'"),
        ("--problem wave", "--problem: 'wave'"),
        ("--rate 0.3", "--rate 0.3 is not stable: 5 points take at most 0.25"),
        ("--points 7", "--points 7: a grid of 2 dimensions takes 5 or 9"),
        ("--points 9 --grid 8x8x8", "--points 9: a grid of 3 dimensions takes 7"),
        ("--grid 20x9 --depth 11", "--depth 11: of 9 cells along y the smallest"),
        ("--codec szp", "--codec szp: "),
        ("--output /missing/file", "cannot write '/missing/file'"),
    ],
)
def test_wrong_options_are_named(program, mpi, options, culprit):
    done = execute([program, *options.split()], mpi.env)
    assert done.status != 0
    complaints = [one for one in done.stderr.splitlines() if one.startswith("stencil: ")]
    assert len(complaints) == 1 and culprit in complaints[0]


def test_one_process_speaks(program, mpirun):
    done = mpirun(2, program, ["--bogus", "1"])
    assert done.status != 0 and done.stderr.count("unknown option '--bogus'") == 1
    done = mpirun(2, program, ["--help"])
    assert done.status == 0 and done.stdout.count("usage: stencil") == 1


def twin(mpirun, env, folder, ranks, options):
    """The values of all processes in the order of the grid."""
    done = mpirun(ranks, sys.executable, [TWIN, *options.split(), "--output", folder / "own"], env)
    assert done.status == 0, done.output
    grid = tuple(map(int, value(options, "--grid", "").split("x")))
    split = {4: (2, 2), 6: (3, 2, 1)}[ranks]
    whole = np.full(grid, np.nan)
    for rank, at in enumerate(itertools.product(*map(range, split))):
        own = (slice(n * c // p, n * (c + 1) // p) for n, c, p in zip(grid, at, split, strict=True))
        whole[tuple(own)] = np.load(folder / f"own-{rank}.npy")
    return whole.ravel()


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (4, "--grid 31x23 --depth 4 --steps 30 --border fixed"),
        (6, "--grid 13x12x11 --depth 4 --steps 10 --problem jacobi"),
    ],
)
def test_the_twin_agrees(stencil, mpirun, mpi4py_env, tmp_path, ranks, options):
    values = twin(mpirun, mpi4py_env, tmp_path, ranks, options)
    assert np.array_equal(values, reference(options))
    assert np.array_equal(values, stencil(ranks, options)[1])


def test_the_twin_keeps_bounds(mpirun, mpi4py_env, tmp_path):
    options = "--grid 60x50 --depth 5 --steps 40"
    env = {**mpi4py_env, **FORCED}
    values = twin(mpirun, env, tmp_path, 4, f"{options} --codec szp:abs=1e-4")
    assert 1e-7 < np.abs(values - reference(options)).max() <= 8.1e-4


def test_the_twin_names_a_depth_that_is_wrong(mpi, mpi4py_env):
    command = [sys.executable, TWIN, "--grid", "9x9", "--depth", "10"]
    done = execute(command, {**mpi.env, **mpi4py_env})
    assert done.status != 0 and "--depth 10: a process has to have as many cells" in done.stderr


def test_pictures_are_drawn(parts, served_programs, mpi, mpi4py_env, monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    pictures = parts("stencil_pictures")
    served_programs(pictures)
    for name, its in (mpi.env | mpi4py_env | FORCED).items():
        monkeypatch.setenv(name, its)
    monkeypatch.setattr(pictures, "DEPTHS", (1, 4))
    monkeypatch.setattr(pictures, "CODECS", ("none", "szp:abs=1e-4"))
    monkeypatch.setattr(pictures, "PANELS", (("40x30", "1Gbit"),))
    monkeypatch.setattr(pictures, "STEPS", 8)
    monkeypatch.setattr(pictures, "FIELD", ("30x20", 20))
    monkeypatch.setattr(sys, "argv", ["pictures.py", "--output", str(tmp_path), "--rounds", "1"])
    pictures.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(float(line.split()[4]) > 0 for line in lines[1:])
    rows = json.loads((tmp_path / "depths.json").read_text())
    sent = [row["wire_bytes"] for row in rows]
    assert sent[0] == 8 * 2 * 30 and max(sent[2:]) < min(sent[:2])
    for name in ("fields.png", "depths.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
