"""docs/performance.md and docs/dev: the pages and pictures are those of the committed results."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from execution import ROOT

DOCS = ROOT / "docs"
AGAIN = "make it again: python bench/report.py"
ELSEWHERE = (
    DOCS / "dev" / "gzccl-simulated.svg",  # by bench/report_simulated.py
    DOCS / "dev" / "model-check.svg",  # by bench/report_model.py
    DOCS / "dev" / "turbulence.png",  # by apps/turbulence/demo.py
    DOCS / "dev" / "stencil-depths.png",  # by apps/stencil/stencil_pictures.py
    DOCS / "dev" / "stencil-fields.png",
    DOCS / "dev" / "neighbourhoods-2x2x1.svg",  # by bench/report_iso.py
    DOCS / "dev" / "neighbourhoods-2x2x2x3.svg",
    DOCS / "dev" / "neighbourhoods-2x2x2x3-openmpi.svg",
    DOCS / "dev" / "neighbourhoods-3x3x3.svg",
    DOCS / "dev" / "neighbourhoods-3x3x3-openmpi.svg",
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("report")


def test_pages_are_made_of_the_committed_results(report):
    for path, text in report.pages(report.read()).items():
        assert path.read_text() == text, f"{path} is stale; {AGAIN}"


def test_pictures_are_drawn_from_the_committed_results(report):
    result_pictures = importlib.import_module("result_pictures")
    drawings = report.drawings(report.read())
    for path, (_, results) in drawings.items():
        digest = result_pictures.digest(results).encode()
        assert digest in path.read_bytes(), f"{path} is stale; {AGAIN}"
    drawn = {path.relative_to(DOCS) for path in (*drawings, *ELSEWHERE)}
    assert drawn == {p.relative_to(DOCS) for p in DOCS.rglob("*") if p.suffix in (".svg", ".png")}


def test_every_commit_of_a_result_is_named(report):
    found = report.read()
    page = (DOCS / "performance.md").read_text()
    for document in found.values():
        for run in document.get("runs", [document]):
            commits = {run["commit"], *(row.get("commit", run["commit"]) for row in run["rows"])}
            assert all(f"`{commit[:7]}`" in page for commit in commits)


def test_each_result_makes_a_page(report):
    """The overview, and one page more, tell the date of a result."""
    found = report.read()
    dates = {name: f"19{i:02}-12-31" for i, name in enumerate(found)}
    others = {name: document | {"date": dates[name]} for name, document in found.items()}
    for name, document in others.items():
        if "runs" in document:
            document["runs"] = [run | {"date": dates[name]} for run in document["runs"]]
    pages = report.pages(others)
    for name, date in dates.items():
        telling = [path for path, text in pages.items() if date in text]
        assert DOCS / "performance.md" in telling and len(telling) == 2, name


def test_where_the_peer_wins_is_bold(report):
    over = importlib.import_module("user_values").over
    assert [over(value) for value in (0.5, 1.0, 1.004, 1.006, 34.2, None)] == [
        "0.50", "1.00", "1.00", "**1.01**", "**34**", "-",
    ]  # fmt: skip


def test_a_loss_in_the_results_is_a_loss_on_the_page(report):
    found = report.read()
    rows = found["peer"]["runs"][0]["rows"]
    row = next(r for r in rows if r["path"] == "none" and r["bytes"] == 1 << 20)
    row["over_nccl"] = 7.77
    page = report.pages(found)[DOCS / "performance.md"]
    assert "| one way, 1 MB | **7.77** |" in page
    assert "| **7.77** (H200, one way, 1 MB) |" in page  # among the extremes


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
