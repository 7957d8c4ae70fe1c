"""The figures of collective calls: what three figures of the ISC'22 paper on compressed all-to-alls
and one of the IPDPS'21 paper on compressed messages show, drawn for the machine of the results."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import result_pictures
from report_p2p import curves, size

from mpress.p2p import jobs

Row = dict[str, Any]
Way = tuple[str | None, str]  # link, transport

_SEEN = {"peer": "from GPU to GPU", "host": "by host memory of both GPUs", "mpi": "by MPI"}
_LABELS = {
    "none": "mpress, raw", "plain": "copies and MPI", "mpi": "MPI's own", "nccl": "NCCL",
}  # fmt: skip
_PEERS = ("plain", "mpi", "nccl")


def ways(run: Row) -> list[Way]:
    """Links and transports, in the order of the rows."""
    return list(dict.fromkeys((row["link"], row["transport"]) for row in run["rows"]))


def way_taken(run: Row, way: Way) -> str | None:
    """By most calls that go raw; None where mpress served none."""
    seen = [row["way"] for row in run["rows"] if "way" in row and row["path"] == "none"
            and (row["link"], row["transport"]) == way and row["job"] == "forced"]  # fmt: skip
    return max(dict.fromkeys(seen), key=seen.count, default=None)


def name_of_way(run: Row, way: Way) -> str:
    link, transport = way
    taken = way_taken(run, way) or link
    if link in ("auto", None):
        name = _SEEN.get(taken or "mpi", "by several ways")
    else:
        name = _SEEN[link]
        if taken not in (link, "auto", None):
            name += f" (asked for; taken: {taken})"
    by_mpi = link == "mpi" or (link is None and taken in ("mpi", None))
    return name + ((", TCP" if transport == "tcp" else ", its choice") if by_mpi else "")


def _forced(run: Row, way: Way, op: str, data: str | None = None) -> list[Row]:
    return [
        row for row in run["rows"]
        if (row["link"], row["transport"]) == way and row["op"] == op and row["job"] == "forced"
        and data in (None, row["data"])
    ]  # fmt: skip


def _main_data(run: Row) -> str:
    return next((row["data"] for row in run["rows"] if row["job"] == "forced"), "wave")


def _is_own(path: str) -> bool:
    return path not in jobs.BASELINES and jobs.form_of(path) is None


def _named(row: Row) -> Row:
    return row | {"path": _LABELS.get(row["path"], row["path"])}


def _ways_with(run: Row, *ops: str) -> list[Way]:
    return [way for way in ways(run) if any(_forced(run, way, op) for op in ops)]


def _panels(rows: int, columns: int) -> tuple[Any, Any]:
    plt = result_pictures.pyplot()
    return plt.subplots(
        max(rows, 1), columns, figsize=(5.5 * columns, 3.8 * max(rows, 1)), layout="constrained",
        squeeze=False,
    )  # fmt: skip


def _panels_of_ways(found: list[Way]) -> tuple[Any, Any, list[tuple[Any, Way]]]:
    """Two panels a row, one a way; a panel that is left over is not shown."""
    figure, axes = _panels((len(found) + 1) // 2, 2)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    return figure, axes, list(zip(axes.flat, found, strict=False))


def _said(run: Row) -> str:
    where = f"{run['gpus']} x {run['gpu']}" if run["gpu"] else "host memory"
    return f"{where}, {run['ranks']} ranks, {run['mpi']}"


def _drawn(document: Row) -> Row:
    """The run that tells most of codecs that are forced."""
    return max(document["runs"], key=lambda run: sum(row["job"] == "forced" for row in run["rows"]))


def draw_alltoall(document: Row, path: Path) -> None:
    """Time by size, a panel a link."""
    run = _drawn(document)
    figure, axes, panels = _panels_of_ways(_ways_with(run, "alltoall"))
    data = _main_data(run)
    for axis, way in panels:
        rows = [_named(row) for row in _forced(run, way, "alltoall", data)
                if jobs.form_of(row["path"]) is None]  # fmt: skip
        curves(axis, rows, [_LABELS[peer] for peer in _PEERS])
        axis.set_title(name_of_way(run, way), fontsize=10)
        axis.set_xlabel(f"bytes a pair of float32 ({data})")
        axis.set_ylabel("microseconds")
    axes[0][0].legend(fontsize=7)
    figure.suptitle(f"MPI_Alltoall: {_said(run)}")
    result_pictures.save(figure, path, document)


def _compared_size(run: Row, op: str) -> int | None:
    """The size at which most data were measured; of several, the largest."""
    data: dict[int, set[str]] = {}
    for row in run["rows"]:
        if row["op"] == op and row["job"] == "forced":
            data.setdefault(row["bytes"], set()).add(row["data"])
    return max(data, key=lambda nbytes: (len(data[nbytes]), nbytes), default=None)


def _bars(axis: Any, run: Row, way: Way, op: str) -> None:
    """Milliseconds by data, a bar a path."""
    nbytes = _compared_size(run, op)
    rows = [row for row in _forced(run, way, op) if row["bytes"] == nbytes
            and (_is_own(row["path"]) or row["path"] in _PEERS)]  # fmt: skip
    names = list(dict.fromkeys(row["data"] for row in rows))
    paths = sorted(dict.fromkeys(row["path"] for row in rows), key=lambda p: p not in _PEERS)
    width = 0.85 / max(len(paths), 1)
    for number, path in enumerate(paths):
        values = {row["data"]: row["seconds"] * 1e3 for row in rows if row["path"] == path}
        at = [names.index(name) + (number + 0.5) * width - 0.425 for name in values]
        axis.bar(at, list(values.values()), width, label=_LABELS.get(path, path))
    axis.set_yscale("log")
    if rows:  # from a power of ten on, at least a factor of two below all
        axis.set_ylim(bottom=10 ** math.floor(math.log10(500 * min(r["seconds"] for r in rows))))
    axis.set_xticks(range(len(names)), names)
    axis.set_ylabel("milliseconds")
    axis.set_title(f"{op}, {size(nbytes or 0)}, {name_of_way(run, way)}", fontsize=10)
    axis.grid(alpha=0.3, axis="y")


def draw_data(document: Row, path: Path) -> None:
    run = _drawn(document)
    figure, axes, panels = _panels_of_ways(_ways_with(run, "alltoall"))
    for axis, way in panels:
        _bars(axis, run, way, "alltoall")
    axes[0][0].legend(fontsize=7)
    figure.suptitle(f"MPI_Alltoall by data, bytes a pair: {_said(run)}")
    result_pictures.save(figure, path, document)


def draw_algorithms(document: Row, path: Path) -> None:
    """Time by size: a row of panels a link, a column a codec."""
    run = _drawn(document)
    data = _main_data(run)
    found = _ways_with(run, "alltoall")
    specs = list(dict.fromkeys(
        row["path"] for way in found for row in _forced(run, way, "alltoall", data)
        if _is_own(row["path"]) and row["path"] != "none"
    ))[:4]  # fmt: skip
    figure, axes = _panels(len(found), max(len(specs), 1))
    for line, way in zip(axes, found, strict=False):
        for axis, spec in zip(line, specs, strict=False):
            names = {
                "plain": "copies and MPI, raw", "mpi": "MPI's own, raw",
                f"scattered/{spec}": f"Isend and Irecv, {spec}",
                f"pairwise/{spec}": f"Sendrecv by turns, {spec}", spec: f"mpress, {spec}",
            }  # fmt: skip
            measured = _forced(run, way, "alltoall", data)
            rows = [r | {"path": names[r["path"]]} for r in measured if r["path"] in names]
            curves(axis, rows, [names["plain"], names["mpi"]])
            axis.set_title(f"{spec}, {name_of_way(run, way)}", fontsize=10)
            axis.set_xlabel(f"bytes a pair of float32 ({data})")
            axis.legend(fontsize=7)
        line[0].set_ylabel("microseconds")
    figure.suptitle(f"MPI_Alltoall and the same blocks as messages: {_said(run)}")
    result_pictures.save(figure, path, document)


def draw_others(document: Row, path: Path) -> None:
    """Time by data: a row of panels a link, broadcast and all-gather."""
    run = _drawn(document)
    both = ("bcast", "allgather")
    found = _ways_with(run, *both)
    figure, axes = _panels(len(found), 2)
    for line, way in zip(axes, found, strict=False):
        for axis, op in zip(line, both, strict=True):
            if _forced(run, way, op):
                _bars(axis, run, way, op)
            else:
                axis.set_visible(False)
    axes[0][0].legend(fontsize=7)
    figure.suptitle(f"MPI_Bcast (bytes in all) and MPI_Allgather (a rank): {_said(run)}")
    result_pictures.save(figure, path, document)


@dataclass(frozen=True)
class Figure:
    title: str
    caption: str
    plot: Callable[[Row, Path], None]
    """Of the first run of a document; on its page, too."""


_HOSTS = (
    "the papers have nodes of four (or two) V100 or RTX 5000 with InfiniBand between them; here "
    "all GPUs are of one host, and TCP by its loopback stands in for a network."
)
FIGURES = {
    "alltoall": Figure(
        "MPI_Alltoall by size",
        "As figure 7 of the ISC'22 paper: MPI_Alltoall by size, compressed and not. What differs: "
        f"{_HOSTS} A panel is a link, not a number of nodes. Their baseline is an MPI that stages "
        "device memory; beside that stand copies around the MPI's call, mpress's raw blocks, and "
        "NCCL. Their data compress alike at any rate; these are a field.\n",
        draw_alltoall,
    ),
    "data": Figure(
        "MPI_Alltoall by data",
        "As figure 8 of that paper: by data, of one size. What differs: these data are generated "
        "fields (smooth `wave`, turbulent `turb`, Gaussian `rand`), where the paper has messages "
        "recorded of programs; and besides fixed rates there are codecs whose ratio depends on the "
        "data.\n",
        draw_data,
    ),
    "algorithms": Figure(
        "MPI_Alltoall beside point-to-point compression",
        "As figure 9 of that paper: the call, and the same blocks as messages that are compressed "
        "one by one, all at once (their Scatter Destination) and in rounds (their Pairwise "
        "Exchange). What differs: messages are compressed by mpress, too, where the paper takes "
        "MVAPICH2-GDR; so this shows what the collective call gains alone.\n",
        draw_algorithms,
    ),
    "others": Figure(
        "MPI_Bcast and MPI_Allgather by data",
        "As figure 11 of the IPDPS'21 paper: broadcast and all-gather by data. What differs: the "
        "ranks of one host where the paper has 8 nodes of two GPUs; the data, as above; and what "
        "several ranks get is lossy only where all get the same bits.\n",
        draw_others,
    ),
}
