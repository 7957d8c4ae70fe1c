"""bench/report_collectives.py and its figures, on results that are made up: what was wanted beside
what was reached, losses in bold, what is missing named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_up_calls import RANKS, run_of

from mpress.p2p import jobs

pytestmark = pytest.mark.xdist_group(Path(__file__).stem)  # of one set of results
MB = 1 << 20


def microseconds(path: str, nbytes: int, link: str, transport: str) -> float:
    """Of a call whose blocks are of `nbytes`: a start, and a rate in bytes a microsecond."""
    rate = {"auto": 300e3, "host": 40e3, "mpi": 2e3 if transport == "tcp" else 8e3}[link]
    spec = jobs.codec_of(path)
    faster = {"zfp:4": 5, "szp:rel=0.001": 4, "zfp:24": 1.2}.get(spec, 1)
    if path == "nccl":
        return 20 + nbytes / rate / 1.5
    if path in jobs.OF_MPI:
        return 30 + nbytes / min(rate, 5e3) * 2
    return (30 if jobs.form_of(path) else 15) + nbytes / rate / faster


@pytest.fixture(scope="module")
def results(bench, patched, tmp_path_factory) -> dict:
    """What the driver writes of ranks whose times are those above; one job fails."""
    driver, calls = bench("collectives"), bench("calls")
    patched.setattr(jobs, "run", run_of(microseconds, ("auto", "host"), broken="zfp:24"))
    wanted = driver.Wanted(
        RANKS, "device", driver.OPS, [256 << 10, 64 * MB, 256 * MB],
        ["zfp:4", "zfp:24", "szp:rel=0.001"], ("wave", "turb"), ("wave",), has_nccl=True,
    )  # fmt: skip
    patched.setattr(calls, "write_data", lambda folder, names, _: dict.fromkeys(names, "x/y"))
    job_list = calls.all_jobs(calls.KINDS, calls.LINKS, calls.TRANSPORTS, "device")
    out = tmp_path_factory.mktemp("made-up") / "made-up.json"
    document = calls.measure(out, wanted, job_list, seconds=10000)
    facts = {"gpu": "GPU", "gpus": RANKS, "commit": "abcdef123456", "date": "2026-01-01"}
    return {"runs": [document | facts | {"file": "collectives-made-up.json"}]}


def lines_of(text: str) -> dict[str, list[str]]:
    """Cells of all tables, by the first of a line."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in rows}


def test_what_was_wanted_beside_what_was_reached(bench, results, tmp_path):
    page = bench("report_collectives")
    text = page.section(results, {name: tmp_path / f"{name}.svg" for name in page.FIGURES})
    lines = lines_of(text)
    # 1.5 times as fast NCCL is, but for its start: raw loses where blocks are large.
    goal = "from GPU to GPU: alltoall, 64 MB a pair, the worst of 3: raw over NCCL"
    assert lines[goal] == ["at most 1.00", "1.411", "**missed**"]
    goal = "from GPU to GPU: alltoall, 64 MB a pair: `zfp:4` over the faster of raw and NCCL"
    assert lines[goal] == ["at most 0.45", "0.353", "reached"]
    goal = "by host memory of both GPUs: allgather, 64 MB a rank: raw over NCCL"
    assert lines[goal] == ["at most 0.60", "1.487", "**missed**"]
    goal = "by MPI, TCP: scatter, 64 MB a rank: `szp:rel=0.001` over copies and MPI"
    assert lines[goal] == ["at most 0.07", "0.125", "**missed**"]
    goal = ("by MPI, TCP: alltoall, 16 MB a pair: `zfp:24` over the faster of `scattered/zfp:24` "
            "and `pairwise/zfp:24`")  # fmt: skip
    assert lines[goal] == ["at most 1.00", "0.998", "reached"]
    assert "abcdef123456" in text and "## 4 x GPU, 4 ranks, device memory, an MPI" in text
    assert "- auto, by host memory of both GPUs: failed: a GPU was lost" in text
    assert "not measured: alltoall of wave (64 KB, 16 MB, 64 MB a pair); alltoallv of wave" in text
    checked = lines["what arrived, where that was looked at"]
    assert checked[0] == "as promised" and checked[2] == "**missed**"
    assert "**broken**" in text
    assert all(f"({name}.svg)" in text for name in page.FIGURES)


def test_figures_are_drawn(bench, results, tmp_path):
    figures = bench("report_collective_figures").FIGURES
    # Two ways to draw: matplotlib takes a while for each panel.
    [run] = results["runs"]
    ways = ("auto", "mpi"), ("mpi", "tcp")
    rows = [row for row in run["rows"] if (row["link"], row["transport"]) in ways]
    results = {"runs": [run | {"rows": rows}]}
    digest = bench("result_pictures").digest(results)
    for name, figure in figures.items():
        figure.plot(results, tmp_path / f"{name}.svg")
        text = (tmp_path / f"{name}.svg").read_text()
        assert text.startswith("<?xml") and digest in text
    name = min(figures, key=lambda name: (tmp_path / f"{name}.svg").stat().st_size)
    figures[name].plot(results, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == (tmp_path / f"{name}.svg").read_text()


def test_losses_are_bold_for_users(bench, results):
    topic = bench("user_collectives").topic(results)
    lines = lines_of(topic.text)
    # The headings of a way name it; rows of ways share their first cells, so the last one's count.
    place = "4 GPUs, 2026-01-01"
    assert f"from GPU to GPU: {place}" in lines and f"by MPI, TCP: {place}" in lines
    line = lines["alltoall, 64 MB a pair"]
    assert line[0].startswith("**1.") and line[1] == "0.50"
    worst = next(line for line in topic.glance if line[0].startswith("Collective calls, raw"))
    assert worst[2].startswith("**1.50** (over NCCL")
    assert "1 of the jobs failed" in topic.text


def test_users_see_the_latest_of_a_machine(bench, results):
    """Of each operation by a way; what only an older run has, and other machines, stay."""
    [run] = results["runs"]
    of_alltoall = [row for row in run["rows"] if row["op"] == "alltoall"]
    again = run | {"date": "2026-02-02", "rows": of_alltoall}
    other = run | {"gpu": "OTHER", "date": "2025-12-31"}
    topic = bench("user_collectives").topic({"runs": [run, again, other]})
    tables = topic.text.split("\n\n")
    by_peer = {date: next(one for one in tables if f"from GPU to GPU: 4 {gpu}s, {date}" in one)
               for gpu, date in [("GPU", "2026-01-01"), ("GPU", "2026-02-02"),
                                 ("OTHER", "2025-12-31")]}  # fmt: skip
    assert "| alltoall, " in by_peer["2026-02-02"] and "| bcast, " not in by_peer["2026-02-02"]
    assert "| alltoall, " not in by_peer["2026-01-01"] and "| bcast, " in by_peer["2026-01-01"]
    assert "| alltoall, " in by_peer["2025-12-31"] and "| bcast, " in by_peer["2025-12-31"]


def test_pages_are_made_of_the_files_that_there_are(bench, results, tmp_path):
    report = bench("report")
    for path in report.RESULTS.glob("*.json"):
        if path.name in report.FILES.values() or path.match(report.SEVERAL["peer"]):
            (tmp_path / path.name).write_text(path.read_text())
    names = {path.name for path in report.pages(report.read(tmp_path))}
    assert not names & {"results-host-link.md", "results-cuda-aware.md", "results-collectives.md"}
    run = results["runs"][0]
    (tmp_path / "collectives-made-up.json").write_text(json.dumps(run))
    not_aware = {"rows": [], "mpi": "MPICH", "name": "not aware"}
    (tmp_path / "cuda-aware-other.json").write_text(json.dumps(not_aware))
    found = report.read(tmp_path)
    pages = report.pages(found)
    assert {path.name for path in pages} - names == {"results-collectives.md"}
    page = pages[report.DOCS / "performance.md"]
    assert "## Do collective calls get faster?" in page and "`collectives-made-up.json`" in page
    drawn = {path.name for path in report.drawings(found)}
    assert {path.name for path in report.COLLECTIVE_PLOTS.values()} <= drawn
