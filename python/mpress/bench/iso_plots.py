"""Pictures of neighbourhoods' times, in the manner of figures 2 to 9 of the paper: means with the
95 % confidence intervals of launches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Row = dict[str, Any]


def draw(document: dict[str, Any], folder: Path) -> None:
    """Times, and of exchanges also their ratios to the reference: TIMES.svg, RATIOS.svg."""
    folder.mkdir(exist_ok=True)
    if document["plan"]["stage"] == "communication":
        _curves(document, folder / "times.svg", "seconds", "interval", 1e6, "microseconds")
        over = f"time over {document['reference']}"
        _curves(document, folder / "ratios.svg", "over", "over_interval", 1, over)
    else:
        _bars(document, folder / "times.svg")


def _label(row: Row) -> str:
    return row["method"] if row["spec"] in (None, "none") else f"{row['method']} {row['spec']}"


def _curves(
    document: dict[str, Any], path: Path, value: str, interval: str, unit: float, title: str
) -> None:
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for label in dict.fromkeys(map(_label, document["rows"])):
        rows = [row for row in document["rows"] if _label(row) == label and value in row]
        if not rows:
            continue
        sizes = [row["bytes"] for row in rows]
        middle = np.array([row[value] for row in rows]) * unit
        axis.errorbar(sizes, middle, _errors(rows, middle, interval, unit), label=label,
                      marker=".", capsize=2, linewidth=1)  # fmt: skip
    axis.set_xscale("log", base=2)
    axis.set_xlabel("bytes of a block")
    axis.set_ylabel(title)
    if value == "seconds":
        axis.set_yscale("log")
    else:
        axis.axhline(1, color="black", linewidth=0.6)
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
    axis.set_title(_title(document), fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _bars(document: dict[str, Any], path: Path) -> None:
    rows = document["rows"]
    figure, axis = plt.subplots(figsize=(7, 0.4 * len(rows) + 1.5), layout="constrained")
    middle = np.array([row["seconds"] for row in rows]) * 1e6
    errors = _errors(rows, middle, "interval", 1e6)
    axis.barh(range(len(rows)), middle, xerr=errors, color="#2f6f9f", capsize=2)
    axis.set_yticks(range(len(rows)), map(_label, rows))
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("microseconds")
    axis.set_title(_title(document), fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _errors(rows: list[Row], middle: np.ndarray, name: str, unit: float) -> np.ndarray:
    """What is below and above; 0 where there is no interval."""
    ends = np.array([row[name] or (row_middle / unit,) * 2
                     for row, row_middle in zip(rows, middle, strict=True)]) * unit  # fmt: skip
    return np.clip(np.stack([middle - ends[:, 0], ends[:, 1] - middle]), 0, None)


def _title(document: dict[str, Any]) -> str:
    plan = document["plan"]
    grid = "x".join(map(str, plan["grid"])) if plan["grid"] else f"{plan['dimensions']}-D"
    if plan["stage"] == "stencil":
        what = f"{plan['points']} points, {plan['extent']} cells, depth {plan['depth']}"
    else:
        what = f"{plan['shape']}, radius {plan['radius']}"
    return f"{document['mpi']}, {plan['ranks']} ranks, {grid}; {what}"
