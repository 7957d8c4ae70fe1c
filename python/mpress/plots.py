"""Pictures of a report, of measured messages, and of projections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from mpress.p2p.jobs import OPERATIONS

_RAW, _WIRE = "#9aa5b1", "#2f6f9f"
_TIMES = (("encode_seconds", "encoding", "#2f6f9f"), ("decode_seconds", "decoding", "#6fae75"),
          ("wait_seconds", "waiting", "#d9a441"))  # fmt: skip


def draw_report(document: dict[str, Any], paths: Sequence[Path]) -> None:
    """Draws one figure of a merged report into each path, in the format of its suffix: bytes an
    operation, bytes between ranks, seconds a rank."""
    rows = document["rows"]
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    title = "mpress"
    if document.get("command"):
        title += ": " + Path(document["command"][0]).name
    if document["simulated_link"]:
        title += " (simulated link)"
    figure.suptitle(f"{title}, ratio {document['totals']['ratio']:.2f}")
    _draw_bytes(axes[0], [row for row in rows if row["direction"] == "send"])
    _draw_pairs(figure, axes[1], rows, len(document["ranks"]))
    _draw_seconds(axes[2], rows)
    for path in paths:
        figure.savefig(path, dpi=120)
    plt.close(figure)


def _sum_by(rows: list[dict[str, Any]], key: str, value: str) -> dict[Any, float]:
    sums: dict[Any, float] = defaultdict(float)
    for row in rows:
        sums[row[key]] += row[value]
    return dict(sums)


def _draw_bytes(axis: Any, sent: list[dict[str, Any]]) -> None:
    raw = _sum_by(sent, "operation", "raw_bytes")
    wire = _sum_by(sent, "operation", "wire_bytes")
    names = sorted(raw)
    at = np.arange(len(names))
    axis.barh(at + 0.2, [raw[n] / 1e6 for n in names], 0.4, label="raw", color=_RAW)
    axis.barh(at - 0.2, [wire[n] / 1e6 for n in names], 0.4, label="on the wire", color=_WIRE)
    axis.set_yticks(at, names)
    axis.set_xlabel("MB")
    axis.set_title("sent")
    if names:
        axis.legend()


def _draw_pairs(figure: Any, axis: Any, rows: list[dict[str, Any]], ranks: int) -> None:
    sent = [r for r in rows if r["direction"] == "send" and r["peer"] is not None]
    size = max([ranks, 1, *(max(r["rank"], r["peer"]) + 1 for r in sent)])
    wire = np.zeros((size, size))
    for row in sent:
        wire[row["rank"], row["peer"]] += row["wire_bytes"] / 1e6
    picture = axis.imshow(wire, cmap="viridis")
    figure.colorbar(picture, ax=axis, label="MB on the wire")
    axis.set_xlabel("to rank")
    axis.set_ylabel("from rank")
    axis.set_title("who sent to whom")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.yaxis.get_major_locator().set_params(integer=True)


def _draw_seconds(axis: Any, rows: list[dict[str, Any]]) -> None:
    ranks = sorted({row["rank"] for row in rows})
    bottom = np.zeros(len(ranks))
    for name, label, color in _TIMES:
        sums = _sum_by(rows, "rank", name)
        seconds = np.array([sums[rank] for rank in ranks])
        axis.bar(ranks, seconds, bottom=bottom, label=label, color=color)
        bottom += seconds
    axis.set_xlabel("rank")
    axis.set_ylabel("seconds")
    axis.set_title("time spent")
    axis.xaxis.get_major_locator().set_params(integer=True)
    if ranks:
        axis.margins(y=0.3)  # room for the legend above the bars
        axis.legend(ncols=len(_TIMES), loc="upper center", fontsize="small")


def draw_messages(document: dict[str, Any], path: Path) -> None:
    """Draws time (latency) or rate by size into `path`, in the format of its suffix: a panel for
    each kind of data, a curve for each path, with quartiles."""
    rows = document["rows"]
    names = list(dict.fromkeys(row["data"] for row in rows))
    is_call = document["benchmark"] in OPERATIONS
    latency = is_call or document["benchmark"] == "latency"
    figure, axes = plt.subplots(
        1, len(names), figsize=(6 * len(names), 4.5), layout="constrained", squeeze=False,
        sharey=True,
    )  # fmt: skip
    for axis, name in zip(axes[0], names, strict=True):
        own = [row for row in rows if row["data"] == name]
        for job, curve in dict.fromkeys((row["job"], row["path"]) for row in own):
            if job == "sequential" or (job, curve) == ("auto", "none"):
                continue
            points = [row for row in own if (row["job"], row["path"]) == (job, curve)]
            _draw_curve(axis, sorted(points, key=lambda row: row["bytes"]), curve, latency)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel(f"bytes of a {'block' if is_call else 'message'}")
        axis.set_title(name)
        axis.grid(alpha=0.3)
    times = "microseconds, the slowest rank" if is_call else "microseconds, one way"
    axes[0][0].set_ylabel(times if latency else "GB/s")
    axes[0][0].legend(fontsize="small")
    transport = document["transport"]["seen"] or document["transport"]["asked"]
    places = f"{document['from']} to {document['to']}"
    if is_call:
        places = f"{document['benchmark']}, {document['ranks']} ranks, {document['from']}"
    figure.suptitle(f"{places}, {document['mpi']}, {transport}")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_curve(axis: Any, rows: list[dict[str, Any]], label: str, latency: bool) -> None:
    sizes = [row["bytes"] for row in rows]
    if latency:
        scale = [1e6] * len(rows)
    else:  # quartiles of the time become those of the rate
        scale = [row["bandwidth"] * row["seconds"] / 1e9 for row in rows]
    power = 1 if latency else -1
    middle = [s * row["seconds"] ** power for s, row in zip(scale, rows, strict=True)]
    edges = [
        sorted(s * q**power for q in row["quartiles"]) for s, row in zip(scale, rows, strict=True)
    ]
    (line,) = axis.plot(sizes, middle, marker="o", markersize=3, label=label)
    axis.fill_between(sizes, *zip(*edges, strict=True), alpha=0.2, color=line.get_color())


def draw_projection(document: dict[str, Any], path: Path) -> None:
    """Draws what `mpress simulate` projects into `path`, in the format of its suffix: time a step
    and flops by ranks, a curve a codec, with what was measured as points."""
    figure, (times, flops) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for spec in dict.fromkeys(row["spec"] for row in document["rows"]):
        rows = sorted(
            (row for row in document["rows"] if row["spec"] == spec), key=lambda row: row["ranks"]
        )
        ranks = [row["ranks"] for row in rows]
        (line,) = times.plot(
            ranks, [1e3 * row["step_seconds"] for row in rows], "--o", markersize=3, label=spec
        )
        flops.plot(ranks, [row["flops"] / 1e12 for row in rows], "--o", markersize=3, label=spec)
        seen = [row for row in document["fit"] if row["spec"] == spec]
        times.plot([row["ranks"] for row in seen], [1e3 * row["measured_seconds"] for row in seen],
                   "s", color=line.get_color())  # fmt: skip
    for axis, name in ((times, "ms a step (squares: measured)"), (flops, "TFLOP/s")):
        axis.set_xscale("log", base=2)
        axis.set_xlabel("ranks")
        axis.set_ylabel(name)
        axis.grid(alpha=0.3)
    flops.set_yscale("log")
    times.set_ylim(bottom=0)
    times.legend(fontsize="small")
    figure.suptitle(
        f"PROJECTION, not measured: {document['app']}, {document['scaling']} scaling, "
        f"{document['machine']['link_rate'] / 1e9:.3g} GB/s a rank"
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


_WAYS = {"raw": "-", "compressed": "--", "hops": ":"}


def draw_collectives(document: dict[str, Any], path: Path) -> None:
    """Draws what `mpress simulate --op` predicts into `path`, in the format of its suffix: time by
    ranks, a colour for each algorithm, a kind of line for each way."""
    figure, axis = plt.subplots(figsize=(7.5, 5), layout="constrained")
    rows = document["rows"]
    for number, algorithm in enumerate(dict.fromkeys(row["algorithm"] for row in rows)):
        for way, line in _WAYS.items():
            own = [row for row in rows if (row["algorithm"], row["way"]) == (algorithm, way)]
            if not own:
                continue
            label = f"{algorithm}, {'a codec a hop' if way == 'hops' else way}"
            ranks, times = zip(*((row["ranks"], 1e3 * row["seconds"]) for row in own), strict=True)
            axis.plot(ranks, times, line, color=f"C{number}", marker="o", markersize=3, label=label)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("ranks")
    axis.set_ylabel("ms")
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small")
    network = document["network"]
    axis.set_title(
        f"PREDICTION, not measured: {document['op']}, {document['bytes'] / 1e6:.4g} MB, "
        f"{document['spec']}, ratio {document['ratio']:.3g}\n{network['rate'] / 1e9:.4g} GB/s a "
        f"host of {network['ranks_a_host']}, {network['latency'] * 1e6:g} us, codecs of "
        f"{document['codecs_of']}", fontsize="medium",
    )  # fmt: skip
    figure.savefig(path, dpi=120)
    plt.close(figure)
