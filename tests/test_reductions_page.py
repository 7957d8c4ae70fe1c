"""bench/report_reductions.py, its figures, and the topic for users, on results that are made up:
losses in bold, what is missing named, and gZCCL's tables and figures as far as there are rows."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from made_up_calls import RANKS, run_of

from mpress.p2p import jobs

pytestmark = pytest.mark.xdist_group(Path(__file__).stem)  # of one set of results
MB = 1 << 20


def microseconds(path: str, nbytes: int, link: str, transport: str) -> float:
    """Of a call: a start, and a rate in bytes a microsecond."""
    rate = {"auto": 300e3, "host": 40e3, "mpi": 2e3}[link]
    spec, form = jobs.codec_of(path), jobs.form_of(path)
    faster = {"szp:rel=0.001": 4, "szp:rel=1e-04": 3, "zfp:8": 2}.get(spec, 1)
    if spec.startswith("szp:abs"):
        faster = 5
    if path == "nccl":
        return 20 + nbytes / rate / 1.5
    if path in jobs.OF_MPI:
        return 30 + nbytes / min(rate, 5e3) * 2
    staged = 1e3 + nbytes / 1e4 if form and form.startswith(jobs.STAGED) else 0
    return (30 if form else 15) + nbytes / rate / faster + staged


def events_of(case: dict) -> list:
    """Of calls whose parts take 10 us each."""
    found = _events_of_call(case)
    return [one | {"ts": one["ts"] + 100 * number} for number in range(6) for one in found]


def _events_of_call(case: dict) -> list:
    name, piece = "MPI_Allreduce", case["bytes"] // RANKS
    long = {"raw_bytes": piece, "codec": "szp"}
    found = []
    for rank in range(RANKS):
        others = [other for other in range(RANKS) if other != rank]
        some = [(name, 0, 70, {}), (f"{name} to {others[0]}", 10, 11, {"raw_bytes": 32})]
        for number, other in enumerate(others):
            some += [
                (f"encode {number}", 20, 30, {"message": 10 + number, **long}),
                (f"{name} to {other}", 21, 30, {"message": number, **long}),
                (f"{name} from {other}", 22, 40, {"message": number, **long}),
                ("arrive 0", 22, 40, {"message": number, **long}),
                (f"{name} to {other}", 41, 50, {"message": 20 + number, **long}),
                (f"{name} from {other}", 42, 69, {"message": 20 + number, **long}),
                ("arrive 0", 42, 60, {"message": 20 + number, **long}),
            ]
        found += [{"ph": "X", "pid": rank, "name": what, "ts": begin, "dur": end - begin,
                   "args": {"codec": "none", **arguments}}
                  for what, begin, end, arguments in some]  # fmt: skip
    return found


@pytest.fixture(scope="module")
def results(bench, patched, tmp_path_factory) -> dict:
    """What the driver writes of ranks whose times are those above; one job fails."""
    driver, calls = bench("reductions"), bench("calls")
    patched.setattr(jobs, "run", run_of(microseconds, ("auto", "host"), broken="zfp:8"))
    wanted = driver.Wanted(
        RANKS, "device", driver.OPS, [32, MB, 16 * MB, 64 * MB, 256 * MB],
        ["szp:rel=0.001", "szp:abs", "szp:rel=1e-04", "zfp:8"], ("wave", "turb"), ("wave",), True,
        (16 * MB, 256 * MB),
    )  # fmt: skip
    patched.setattr(calls, "write_data", lambda folder, names, _: dict.fromkeys(names, "x/y"))
    patched.setattr(driver.Wanted, "with_data", lambda wanted, _: wanted)
    job_list = calls.all_jobs(calls.KINDS, calls.LINKS, ("tcp",), "device")
    out = tmp_path_factory.mktemp("made-up") / "made-up.json"
    document = calls.measure(out, wanted, job_list, seconds=10000)
    case = {"op": "allreduce", "data": "wave", "bytes": 256 * MB}
    events = bench("call_timeline").typical(events_of(case), case, "szp:rel=0.001", RANKS)
    timeline = calls.Job(calls.TIMELINE, "auto", "mpi").facts | case
    document["timelines"] = [timeline | {"path": "szp:rel=0.001", "events": events}]
    facts = {"gpu": "GPU", "gpus": RANKS, "commit": "abcdef123456", "date": "2026-01-01"}
    return {"runs": [document | facts | {"file": "reductions-made-up.json"}]}


@pytest.fixture(scope="module")
def found(bench, results) -> dict:
    """With the committed results of codecs, and of szp's quality."""
    return bench("report").read() | {"reductions": results}


@pytest.fixture(scope="module")
def page(bench, found) -> str:
    report = bench("report")
    return bench("report_reductions").section(
        report.about_reductions(found), report.REDUCTION_PLOTS
    )


def lines_of(text: str) -> dict[str, list[str]]:
    """Cells of all tables, by the first of a line; the first of several counts."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in reversed(rows)}


def test_what_was_wanted_beside_what_was_reached(page):
    lines = lines_of(page)
    goal = "from GPU to GPU: allreduce, 256 MB a rank, wave: `szp:rel=0.001` over NCCL"
    assert lines[goal] == ["at most 0.455", "0.387", "reached"]
    goal = "from GPU to GPU: allreduce, 256 MB a rank, wave, the worst of 5: raw over NCCL"
    assert lines[goal] == ["at most 1", "1.476", "**missed**"]
    goal = "from GPU to GPU: allreduce, 1 MB a rank, wave, the worst of 2: raw over NCCL"
    assert lines[goal] == ["at most 0.7", "0.828", "**missed**"]
    goal = "by MPI, TCP: allreduce, 16 MB a rank, wave: `szp:rel=1e-04` over NCCL"
    assert lines[goal] == ["at most 0.286", "0.501", "**missed**"]
    goal = "from GPU to GPU: `none` over the best uncompressed way, the worst of 7 (allreduce, "
    assert any(name.startswith(goal) for name in lines)
    assert lines["what came, where that was looked at"][2] == "**missed**"
    assert "- auto, by host memory of both GPUs: failed: a GPU was lost" in page
    assert "abcdef123456" in page and "## 4 x GPU, 4 ranks, device memory, an MPI" in page


def test_tables_of_a_link(page):
    lines = lines_of(page)
    assert "### from GPU to GPU (NCCL: nvlink)" in page and "(NCCL: socket)" in page
    assert lines["32 B"] == ["15.0", "20.0", "30.0", "30.0", "0.750", "0.500", "0.500"]
    coded = next(cells for cells in (
        line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| 256 MB")
    ) if len(cells) == 7)  # fmt: skip
    assert coded[1:5] == ["910", "617", "239: 0.387 / 0.262", "194: 0.315 / 0.213"]
    assert lines["16 MB, raw"][0] == "70.9" and lines["16 MB, raw"][-1] == "0.825"
    parts = lines["allreduce, 256 MB a rank, wave, `szp:rel=0.001`"]
    assert parts == ["70", *["10"] * 7]
    what_came = lines_of(page.partition("### What came")[2])
    assert what_came["allreduce, 256 MB a rank, wave, `zfp:8`"] == ["0.0001", "0.001", "**broken**"]


def test_gzccl_beside_ours(page, found):
    lines = lines_of(page)
    assert lines["1e-3"][4:] == ["92.28", "53.23", "94.41", "53.41"]
    assert lines["ring, a codec in every hop"][0] == "153.27" and lines["NCCL"][1:] == ["-"] * 4
    for number in (2, 3, 6, 7):
        assert f"### Figure {number}: " in page
    assert "Not drawn" not in page


def test_pages_of_what_there_is(bench, found, tmp_path):
    report = bench("report")
    texts = {path.name: text for path, text in report.pages(found).items()}
    assert "## Do reductions get faster?" in texts["performance.md"]
    assert "`reductions-made-up.json`" in texts["performance.md"]
    drawn = {path: draw for path, draw in report.drawings(found).items()
             if path in report.REDUCTION_PLOTS.values()}  # fmt: skip
    assert set(drawn) == set(report.REDUCTION_PLOTS.values())
    digest = bench("result_pictures").digest
    for path, (draw, shows) in drawn.items():
        draw(shows, tmp_path / path.name)
        assert digest(shows) in (tmp_path / path.name).read_text()
    # Without rounds: figures that compare them are not drawn, and the page says so.
    fewer = found | {"reductions": copy.deepcopy(found["reductions"])}
    for run in fewer["reductions"]["runs"]:
        run["rows"] = [row for row in run["rows"] if not jobs.form_of(row["path"])]
        run["timelines"] = []
    assert {path.name for path in report.drawings(fewer) if path.name.startswith("reductions")} == {
        "reductions-sizes.svg", "reductions-codec.svg",
    }  # fmt: skip
    text = report.pages(fewer)[report.DEV / "results-reductions.md"]
    assert "figure 2, 6, 7" in text and "### Figure 3: " in text
    # Without calls: the quality of szp alone.
    without = {name: value for name, value in found.items() if name != "reductions"}
    text = report.pages(without)[report.DEV / "results-reductions.md"]
    assert "not measured yet" in text and "### Table 1" in text
    # A job that wrote nothing.
    empty = found | {"reductions": copy.deepcopy(found["reductions"])}
    for run in empty["reductions"]["runs"]:
        run["rows"] = run["timelines"] = []
    report.pages(empty)
    assert json.dumps(found["reductions"])


def test_losses_are_bold_for_users(bench, results):
    topic = bench("user_reductions").topic(results)
    lines = lines_of(topic.text)
    place = "4 GPUs, 2026-01-01"
    assert f"from GPU to GPU: {place}" in lines and f"by MPI, TCP: {place}" in lines
    assert lines["allreduce, 256 MB a rank"][0] == "**1.48**"
    assert lines["allreduce, 256 MB a rank, wave"][0] == "0.39 / 0.26"
    worst = next(line for line in topic.glance if line[0] == "Reductions, raw over NCCL")
    assert worst[2].startswith("**1.50** (allreduce")
    assert "1 of the jobs failed" in topic.text
