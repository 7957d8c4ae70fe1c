"""`mpress bench iso`."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from execution import BIN, ROOT, execute

from mpress import _core
from mpress.bench import halo, iso_jobs, iso_plots, names, statistics

FEW = ("-n", "4", "--launches", "1", "--repeat", "3", "--seconds", "0")


@pytest.fixture
def bench(mpi, mpi4py_env, tmp_path):
    """bench(stage, *args): `mpress bench iso STAGE`; returns what it printed, and its JSON."""

    def run(stage, *args):
        file = tmp_path / "result.json"
        command = [BIN / "mpress", "bench", "iso", stage, "--mpiexec", mpi.mpiexec, *FEW]
        done = execute([*command, "--json", file, *args], {**mpi.env, **mpi4py_env})
        assert done.status == 0, done.output
        return done.stdout, json.loads(file.read_text())

    return run


def rows_of(document):
    return {(row["bytes"], row["method"], row["spec"]): row for row in document["rows"]}


def test_blocks(bench):
    methods = ("auto", "combining", "direct", "persistent-digits", "graph", "graph-again",
               "alltoallv")  # fmt: skip
    printed, document = bench(
        "communication", "--launches", "2", "--grid", "2x2", "--sizes", "1,3-6",
        *(word for name in methods for word in ("--method", name)),
    )  # fmt: skip
    rows = rows_of(document)
    assert list(rows) == [(n, name, None) for n in (1, 3, 6) for name in methods]
    for (nbytes, name, _), row in rows.items():
        assert row["correct"] and row["max_error"] == 0
        assert row["seconds"] > 0 and len(row["launches"]) == 2 == len(row["interval"])
        assert row["rounds_measured"] == [3, 3]
        # Of the eight offsets three lead elsewhere: two along a dimension, and one along both.
        expected = {"direct": (3, 8), "combining": (2, 12), "digits": (2, 12)}[row["algorithm"]]
        assert (row["rounds"], row["blocks"]) == expected
        assert row["sent_bytes"] == nbytes * row["blocks"], row
        assert ("over" in row) == (name != "graph") and ("best" in row) == (name == "auto")
    messages = [rows[3, name, None]["messages"] for name in ("combining", "direct", "graph")]
    assert messages == [2, 8, None]
    assert document["kind"] == "iso" and document["reference"] == "graph"
    assert {"date", "versions", "commit", "cpu", "mpi", "plan"} <= set(document)
    assert "2x2 torus; Moore radius 1, order row" in printed and "combining" in printed


def test_beyond_borders(bench):
    """Of a line without an end the ranks have one neighbour or two."""
    printed, document = bench(
        "communication", "--grid", "4x1", "--periodic", "0", "--shape", "von-neumann", "--sizes",
        "8", "--order", "column", "--method", "cart", "--method", "graph", "--method", "alltoallv",
        "--method", "digits",
    )  # fmt: skip
    rows = rows_of(document)
    assert all(row["correct"] and row["blocks"] == 2 for row in rows.values())
    assert "4x1 mesh; von Neumann radius 1, order column" in printed


def test_orders_of_each_rank(bench):
    _, document = bench(
        "communication", "--grid", "4", "--order", "random-each", "--sizes", "16", "--skip", "0"
    )
    assert [row["method"] for row in document["rows"]] == ["graph", "alltoallv"]
    assert all(row["correct"] for row in document["rows"])


def test_codecs(bench):
    printed, document = bench(
        "communication", "--grid", "4", "--radius", "1", "--sizes", "64K", "--type", "f32",
        "--spec", "mpc", "--spec", "szp:abs=1e-2", "--force", "--method", "auto", "--method",
        "combining", "--method", "graph",
    )  # fmt: skip
    rows = rows_of(document)
    assert [key[1:] for key in rows] == [
        ("auto", "none"), ("auto", "mpc"), ("auto", "szp:abs=0.01"), ("combining", "none"),
        ("graph", None),
    ]  # fmt: skip
    assert rows[65536, "auto", "none"]["sent_bytes"] == 2 * 65536
    assert rows[65536, "auto", "mpc"]["ratio"] > 1.1
    lossy = rows[65536, "auto", "szp:abs=0.01"]
    assert lossy["ratio"] > 3 and 0 < lossy["max_error"] <= 0.01
    assert "auto szp:abs=0.01" in printed


@pytest.mark.parametrize("points, extent, depth, grid, cells", [
    pytest.param(5, 9, 1, "2x2", 4 * 9, marks=pytest.mark.extended),
    (5, 9, 3, "4x1", 6 * 9 + 6 * 2), (9, 6, 2, "2x2", 8 * 6 + 16),
    (7, 5, 1, "1x2x2", 4 * 25), (27, 5, 2, "4x1x1", 2 * 50 + 2 * 4 * 20 + 8 * 8),
])  # fmt: skip
def test_halos(points, extent, depth, grid, cells, bench):
    """Corners of a diamond's halo are triangles, and what goes to the rank itself is not sent."""
    _, document = bench(
        "stencil", "--points", str(points), "--extent", str(extent), "--depth", str(depth),
        "--grid", grid, *(("--setup", "--periodic", "1") if points == 9 else ()),
        *(("--exchange-only",) if points == 27 else ()),
    )  # fmt: skip
    assert all(row["correct"] and row["max_error"] == 0 for row in document["rows"])
    methods = [row["method"] for row in document["rows"]]
    assert methods[:5] == ["auto", "direct", "combining", "digits", "graph"]
    assert ("cart" in methods) == (points in (5, 7) and depth == 1)
    direct = next(row for row in document["rows"] if row["method"] == "direct")
    if points != 9:
        assert direct["bytes"] == direct["sent_bytes"] == 8 * cells


@pytest.mark.parametrize("points, depth, reach", [
    (5, 1, 1), (5, 2, 2), (5, 3, 3), (9, 2, None), (7, 1, 1), (7, 2, None), (27, 1, None),
])  # fmt: skip
def test_cells_of_halos(points, depth, reach):
    """All that steps of the stencil look at comes, once, from the opposite side of the neighbour's
    block; `reach`: the most steps along the dimensions, or None where diagonals count as one."""
    extent, dims = 4, names.STENCILS[points]
    wide = (extent + 2 * depth,) * dims
    beyond = np.maximum(depth - (at := np.indices(wide)), at - (extent + depth - 1)).clip(0)
    is_halo = beyond.sum(0) > 0
    if reach:
        is_halo &= beyond.sum(0) <= reach
    offsets = [one for one in np.ndindex((3,) * dims) if one != (1,) * dims]
    offsets = [np.array(one) - 1 for one in offsets]
    if reach == 1:
        offsets = [one for one in offsets if np.abs(one).sum() == 1]
    came = np.zeros(wide, int)
    for offset in offsets:
        region = halo.region(offset, extent, depth, points)
        received = region.indices(region.received)
        came.reshape(-1)[received] += 1
        there = np.array(np.unravel_index(received, wide))
        sent = np.array(np.unravel_index(region.indices(region.sent), wide))
        assert (sent == there + extent * offset[:, None]).all()
        assert ((sent >= depth) & (sent < depth + extent)).all()
    assert (came == is_halo).all()


def test_codecs_of_halos(bench):
    _, document = bench(
        "stencil", "--points", "27", "--extent", "24", "--depth", "2", "--grid", "1x2x2",
        "--exchange-only", "--spec", "szp:abs=1e-3", "--force", "--method", "auto", "--method",
        "graph",
    )  # fmt: skip
    lossy = next(row for row in document["rows"] if row["spec"] == "szp:abs=0.001")
    assert lossy["ratio"] > 2 and 0 < lossy["max_error"] <= 1e-3


def test_creation(bench, tmp_path):
    folder = tmp_path / "pictures"
    printed, document = bench(
        "creation", "--grid", "2x2", "--radius", "2", "--inner", "1", "--schedule-grid", "6x5",
        "--plot", folder,
    )  # fmt: skip
    methods = [row["method"] for row in document["rows"]]
    assert methods == ["iso", "attribute", "graph-adjacent", "graph-general", "cart", "duplicate",
                     "schedule-direct", "schedule-combining", "schedule-digits"]  # fmt: skip
    assert all(row["seconds"] > 0 and row["neighbours"] == 16 for row in document["rows"])
    assert document["reference"] == "graph-adjacent" and "Moore radius 2 minus radius 1" in printed
    assert [one.name for one in folder.iterdir()] == ["times.svg"]


@pytest.mark.parametrize("radius, dims, inner, s, rounds, blocks", [
    (1, 2, 0, 8, 4, 12), (3, 2, 0, 48, 12, 84), (2, 2, 1, 16, 8, 28), (1, 3, 0, 26, 6, 54),
    (2, 3, 1, 98, 12, 246), (1, 4, 0, 80, 8, 216),
])  # fmt: skip
def test_closed_forms(radius, dims, inner, s, rounds, blocks):
    axis = range(-radius, radius + 1)
    every = np.stack(np.meshgrid(*[axis] * dims, indexing="ij"), -1).reshape(-1, dims)
    offsets = every[np.abs(every).max(axis=1) > inner]
    assert len(offsets) == s
    sizes, periodic = [2 * radius + 1] * dims, [1] * dims
    flat = offsets.reshape(-1).tolist()
    found = _core.neighbour_alltoall("combining", sizes, periodic, flat, s, 0)
    assert found[:3] == (rounds, rounds, blocks) and found[3] > 0
    assert _core.neighbour_alltoall("direct", sizes, periodic, flat, s, 3)[:3] == (s, s, s)


@pytest.mark.parametrize("arguments, said", [
    (("tree", [2], [1], [1], 1, 0), "algorithm is 'tree'; expected direct, combining, digits"),
    (("direct", [2], [1], [1], 1, 2), "rank: expected one of the grid's"),
])  # fmt: skip
def test_schedules_that_cannot_be(arguments, said):
    with pytest.raises(ValueError, match=said):
        _core.neighbour_alltoall(*arguments)


def test_outliers():
    # Quartiles of type 7 are 2.75 and 6.25, so what is beyond -7.75 and 16.75 is left out.
    values = [1, 2, 3, 4, 5, 6, 7, 16.8]
    assert statistics.without_outliers(values).tolist() == values[:-1]
    assert statistics.without_outliers([*values[:-1], 16.7]).tolist() == [*values[:-1], 16.7]
    assert statistics.outliers(values) == 1 and statistics.outliers([3.0]) == 0
    assert statistics.launch_means([values, [2, 2]]) == [4, 2]


def test_intervals():
    mean, (low, high) = statistics.mean_interval([1, 2, 3, 4, 5])
    assert mean == 3 and high - mean == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-4)
    assert mean - low == pytest.approx(high - mean)
    assert statistics.mean_interval([7]) == (7, None)
    for degrees, expected in ((1, 12.7062), (4, 2.776445), (30, 2.042272), (31, 2.039513),
                              (60, 2.000298), (1000, 1.962339)):  # fmt: skip
        assert statistics.student(degrees) == pytest.approx(expected, rel=2e-5)


def test_ratios_are_paired():
    """A launch that is ten times slower changes no ratio."""

    def launch(slow):
        def row(method, times):
            return {"bytes": 8, "method": method, "spec": None,
                    "seconds": [slow * t for t in times]}  # fmt: skip

        return {"rows": [row("auto", [3, 6, 9]), row("direct", [2, 2, 2]),
                         row("combining", [6, 12, 18]), row("graph", [1, 2, 3])]}  # fmt: skip

    auto, direct, _, graph = iso_jobs.summary([launch(1), launch(10)], "graph")
    assert auto["over"] == 3 and auto["over_interval"] == [3, 3] and auto["over_means"] == 3
    assert auto["best"] == "direct" and auto["over_best"] == 3
    assert direct["over"] == 1 and direct["over_means"] == 1
    assert auto["launches"] == [6, 60] and "over" not in graph


def test_pictures(tmp_path):
    """Of rows as a run has them; that of one launch has no intervals."""

    def row(nbytes, method, interval):
        return {"bytes": nbytes, "method": method, "spec": None, "seconds": 2e-6,
                "interval": interval} | ({} if method == "graph" else {
                    "over": 1.5, "over_interval": [1.4, 1.6]})  # fmt: skip

    plan = {"stage": "communication", "ranks": 4, "grid": [2, 2], "shape": "moore", "radius": 1}
    rows = [row(n, name, interval) for n in (1, 64) for name in ("auto", "graph")
            for interval in [[1e-6, 3e-6] if n == 1 else None]]  # fmt: skip
    iso_plots.draw({"plan": plan, "mpi": "MPI", "reference": "graph", "rows": rows}, tmp_path)
    for name in ("times.svg", "ratios.svg"):
        text = (tmp_path / name).read_text()
        assert text.startswith("<?xml") and "moore, radius 1" in text


def test_page_of_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    report = importlib.import_module("report_iso")
    plan = {"stage": "communication", "ranks": 4, "grid": [2, 2], "dimensions": 2,
            "periodic": None, "shape": "moore", "radius": 1, "inner": 0, "order": "row",
            "skip": 0}  # fmt: skip
    result = {"rows": [
        {"bytes": 1024, "method": method, "spec": None, "seconds": [time * 1e-6] * 3}
        for method, time in (("auto", 3), ("direct", 2), ("graph", 4))
    ], "mpi": "MPI", "hosts": 1}  # fmt: skip
    document = iso_jobs.document(plan, [result, result], "graph") | {"commit": "0123456789"}
    text = report.page([document])
    assert "## Communication: MPI, 4 ranks, 2x2 torus" in text and "`0123456`" in text
    line = "| 1K | 4.00 | 0.750 (0.750 to 0.750) | 0.500 (0.500 to 0.500) | "
    assert line + "1.500 (1.500 to 1.500), direct |" in text
    if report.PAGE.exists():
        assert report.PAGE.read_text() == report.page(report.read_runs("iso-*.json"))


@pytest.mark.parametrize("stage, arguments, said", [
    ("communication", ("--grid", "2xa"), "--grid '2xa': expected numbers, such as 3x3x3"),
    ("communication", ("--grid", "2x3"), "--grid 2x3: expected 4 ranks in all"),
    ("communication", ("--periodic", "3"), "--periodic 3: expected at most the 2 dimensions"),
    ("communication", ("--shape", "star"), "--shape 'star': expected one of moore, von-neumann"),
    ("communication", ("--inner", "2"), "--inner 2: expected at most the radius 1"),
    ("communication", ("--order", "any"), "--order 'any': expected one of row, column, random"),
    ("communication", ("--method", "tree"), "--method 'tree': expected one of auto, direct"),
    ("communication", ("--method", "cart"), "expected a von Neumann neighbourhood of radius 1"),
    ("communication", ("--order", "random-each", "--method", "auto"), "than graph and alltoallv"),
    ("communication", ("--sizes", "12-3"), "expected the smaller size first"),
    ("communication", ("--sizes", "0"), "expected sizes of 1 byte to 1 GiB"),
    ("communication", ("--sizes", "12", "--spec", "mpc"), "12 bytes are no whole elements of 8"),
    ("communication", ("--spec", "zfp:99"), "--spec: "),
    ("communication", ("--spec", "mpc", "--method", "graph"), "--spec: expected one of the"),
    ("communication", ("--type", "f16"), "--type 'f16': expected f32 or f64"),
    ("communication", ("--field", "sea"), "--field 'sea': expected one of wave"),
    ("creation", ("--method", "auto"), "--method 'auto': expected one of iso, attribute"),
    ("creation", ("--schedule-grid", "4"), "--schedule-grid 4: expected 2 dimensions"),
    ("stencil", ("--points", "6"), "--points 6: expected 5, 9, 7 or 27"),
    ("stencil", ("--depth", "11", "--extent", "10"), "--depth 11: expected at most the 10 cells"),
    ("stencil", ("--method", "alltoallv"), "--method 'alltoallv': expected one of"),
    ("stencil", ("--method", "cart"), "--method cart: expected 5 or 7 points"),
    ("stencil", ("--setup", "--method", "persistent-auto"), "expected no --setup"),
])  # fmt: skip
def test_what_cannot_be(stage, arguments, said):
    done = execute([BIN / "mpress", "bench", "iso", stage, *arguments])
    assert done.status == 2 and said in done.stderr
