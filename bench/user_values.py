"""What the topics of docs/performance.md share: how values and their sources are written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Topic:
    text: str
    glance: Sequence[Sequence[str]]  # lines of the first table: question, best, worst


@dataclass(frozen=True)
class Cell:
    """A value over the peer's, and of which case it is."""

    over: float
    case: str


def over(value: float | None) -> str:
    """Bold where the peer wins."""
    if value is None:
        return "-"
    text = f"{value:.2f}" if value < 9.95 else f"{value:.0f}"
    return f"**{text}**" if float(text) > 1 else text


def extremes(question: str, cells: Iterable[Cell]) -> list[str]:
    """A line of the first table."""
    ordered = sorted(cells, key=lambda cell: cell.over)
    return [question, *(f"{over(cell.over)} ({cell.case})" for cell in (ordered[0], ordered[-1]))]


def mpi(document: Row) -> str:
    return document["mpi"].replace(" Version:", "")


def commits(document: Row) -> str:
    """Those of the runs and of the rows that were measured apart from them, as they appear."""
    runs = document.get("runs", [document])
    found = [run["commit"] for run in runs]
    found += [row["commit"] for run in runs for row in run["rows"] if "commit" in row]
    return ", ".join(f"`{commit[:7]}`" for commit in dict.fromkeys(found))
