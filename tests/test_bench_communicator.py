"""bench/communicator.py and its page."""

from __future__ import annotations

import json
import sys

from execution import ROOT, execute


def test_the_page_is_made_of_the_committed_results(bench):
    report = bench("report_communicator")
    document = json.loads(report.RESULTS.read_text())
    again = "make it again: python bench/report_communicator.py"
    assert report.PAGE.read_text() == report.page(document), f"{report.PAGE} is stale; {again}"
    for wanted in (document["date"], document["commit"][:7], document["cpu"]):
        assert wanted in report.PAGE.read_text()
    # What docs/communicator.md says is the least and the greatest.
    added = [row["added_us"] for row in document["rows"]]
    said = f"{min(added):.1f} to {max(added):.1f} µs a call"
    assert said in (ROOT / "docs" / "communicator.md").read_text(), said


def test_another_result_makes_another_verdict(bench):
    report = bench("report_communicator")
    document = json.loads(report.RESULTS.read_text())
    for interval, verdict in (
        ([1.0, 2.9], "| 1.00 to 2.90 | reached |"),
        ([3.1, 3.2], "| 3.10 to 3.20 | **missed** |"),
        ([2.9, 3.1], "| 2.90 to 3.10 | unsettled |"),
    ):
        row = document["rows"][0] | {"interval_us": interval}
        assert verdict in report.page(document | {"rows": [row]})


def test_every_call_is_measured_both_ways(tmp_path):
    """In earnest, with as little as goes."""
    file = tmp_path / "found.json"
    command = [sys.executable, ROOT / "bench" / "communicator.py", "--blocks", "2", "--jobs", "1"]
    done = execute([*command, "--json", file], cwd=ROOT)
    assert done.status == 0, done.output
    found = json.loads(file.read_text())
    assert {(row["beside"], row["ranks"], row["call"], row["bytes"]) for row in found["rows"]} == {
        (beside, ranks, call, nbytes)
        for beside in ("preload", "plain")
        for ranks in (1, 2)
        for call in ("Allreduce", "Bcast", "Sendrecv")
        for nbytes in (8, 1024)
    }
    for row in found["rows"]:
        low, high = row["interval_us"]
        assert row["mpi4py_us"] > 0 and low <= row["added_us"] <= high
    assert found["commit"] and set(found["versions"]) == {"mpress", "python", "mpi4py", "numpy"}
