"""The figures of reductions: MPI_Allreduce by size, and what gZCCL's figures 2, 3, 6 and 7 show,
drawn for the machine of the results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import result_pictures
from report_collective_figures import Figure, Way, name_of_way, ways
from report_collectives import one, rows_of, sizes
from report_p2p import curves, size

from mpress.p2p import jobs

Row = dict[str, Any]

OP = "allreduce"
PARTS = ("compression", "copies", "sums", "communication and others")
_LABELS = {
    "none": "mpress, raw", "plain": "copies and MPI", "mpi": "MPI's own", "nccl": "NCCL",
}  # fmt: skip
_DASHED = [_LABELS[path] for path in ("plain", "mpi", "nccl")]
_COLOURS = ("tab:red", "tab:orange", "tab:green", "tab:blue")


def main_data(run: Row) -> str:
    return next((row["data"] for row in run["rows"] if row["job"] == "forced"), "wave")


def coded(run: Row) -> str | None:
    """The codec of rounds."""
    specs = [jobs.codec_of(row["path"]) for row in run["rows"] if jobs.form_of(row["path"])]
    return next((spec for spec in specs if spec != "none"), None)


def ways_with(run: Row, *paths: str) -> list[Way]:
    """Those that have such rows of MPI_Allreduce, all of them."""
    return [
        way for way in ways(run)
        if all(rows_of(run, way, op=OP, job="forced", path=path) for path in paths)
    ]  # fmt: skip


def sizes_with(run: Row, way: Way, paths: Sequence[str]) -> list[int]:
    """At which all of them were measured."""
    return [n for n in sizes(run, way, OP) if all(one(run, way, OP, p, n) for p in paths)]


def run_with(document: Row, *forms: str) -> Row | None:
    """The first run with such rounds with a codec; without forms, with calls."""
    for run in document["runs"]:
        spec = coded(run)
        paths = [form + jobs.FORM + spec for form in forms] if spec else []
        if ways_with(run, *(paths or ["none"])) and (paths or not forms):
            return run
    return None


def split(row: Row) -> dict[str, float]:
    """Seconds of PARTS. Where chunks overlap, these may take longer than the call: then they are
    shares of it."""
    compression = row.get("encode_seconds", 0) + row.get("decode_seconds", 0)
    known = [compression, row.get("copy_seconds", 0), row.get("sum_seconds", 0)]
    scale = min(1.0, row["seconds"] / sum(known)) if sum(known) > 0 else 1.0
    known = [value * scale for value in known]
    return dict(zip(PARTS, (*known, max(row["seconds"] - sum(known), 0.0)), strict=True))


def _panels(count: int) -> tuple[Any, list[Any]]:
    plt = result_pictures.pyplot()
    figure, axes = plt.subplots(
        1, count, figsize=(5.5 * count, 4), layout="constrained", squeeze=False
    )
    return figure, list(axes.flat)


def said(run: Row) -> str:
    where = f"{run['gpus']} x {run['gpu']}" if run["gpu"] else "host memory"
    return f"{where}, {run['ranks']} ranks, {run['mpi']}"


def draw_sizes(document: Row, path: Path) -> None:
    """Time by size, a panel a link."""
    run = run_with(document)
    assert run is not None
    data, some = main_data(run), ways_with(run, "none")
    figure, axes = _panels(len(some))
    for axis, way in zip(axes, some, strict=True):
        rows = [row | {"path": _LABELS.get(row["path"], row["path"])}
                for row in rows_of(run, way, op=OP, data=data, job="forced")
                if jobs.form_of(row["path"]) is None]  # fmt: skip
        curves(axis, rows, _DASHED)
        axis.set_title(name_of_way(run, way), fontsize=10)
        axis.set_xlabel(f"bytes a rank of float32 ({data})")
        axis.set_ylabel("microseconds")
        axis.legend(fontsize=7)
    figure.suptitle(f"MPI_Allreduce: {said(run)}")
    result_pictures.save(figure, path, document)


def breakdown(document: Row) -> tuple[Row, Way, int, dict[str, Row]] | None:
    """The run, link and size of figure 2, and its rows by what they are called."""
    run = run_with(document, jobs.STAGED + "ring", "ring") or run_with(document, "ring")
    spec = run and coded(run)
    if not run or not spec:
        return None
    names = {
        f"host-ring/{spec}": "ring, staged by the host", f"ring/{spec}": "ring, on the GPU",
        f"doubling/{spec}": "doubling, on the GPU", spec: "mpress's call",
    }  # fmt: skip
    needed = [path for path in names if rows_of(run, op=OP, job="forced", path=path)]
    for way in ways(run):
        if at := sizes_with(run, way, needed):
            rows = {names[path]: one(run, way, OP, path, at[-1]) for path in needed}
            return run, way, at[-1], {name: row for name, row in rows.items() if row}
    return None


def draw_breakdown(document: Row, path: Path) -> None:
    result = breakdown(document)
    assert result is not None
    run, way, nbytes, rows = result
    figure, (axis,) = _panels(1)
    names = [f"{name}\n{row['seconds'] * 1e3:.2f} ms" for name, row in rows.items()]
    floor = [0.0] * len(rows)
    for part, colour in zip(PARTS, _COLOURS, strict=True):
        values = [100 * split(row)[part] / row["seconds"] for row in rows.values()]
        axis.bar(names, values, 0.6, bottom=floor, label=part, color=colour)
        floor = [low + value for low, value in zip(floor, values, strict=True)]
    axis.set_ylabel("% of the call")
    axis.set_ylim(0, 135)  # room for the legend
    axis.tick_params(axis="x", labelsize=7)
    axis.legend(fontsize=8, ncols=2)
    axis.set_title(
        f"Allreduce, {size(nbytes)} a rank, {coded(run)}, {name_of_way(run, way)}", fontsize=10
    )
    result_pictures.save(figure, path, document)


def draw_codec(cuda: Row, path: Path) -> None:
    """Time to encode and to decode by size: of one size on, it stagnates."""
    sweep = cuda["sweep"]
    figure, axes = _panels(2)
    for axis, way in zip(axes, ("encode", "decode"), strict=True):
        rows = [{"path": row["codec"], "bytes": row["bytes"], "seconds": row[way]}
                for row in sweep if "nvCOMP" not in row["codec"]]  # fmt: skip
        curves(axis, rows, ())
        axis.set_title(f"{way}, {cuda['gpu']}", fontsize=10)
        axis.set_xlabel("bytes of float32 (turb)")
        axis.set_ylabel("microseconds")
    axes[0].legend(fontsize=8)
    result_pictures.save(figure, path, cuda)


def _bars(axis: Any, names: Sequence[str], series: dict[str, list[float | None]]) -> None:
    width = 0.8 / max(len(series), 1)
    for number, (label, values) in enumerate(series.items()):
        at = [i - 0.4 + (number + 0.5) * width for i, v in enumerate(values) if v is not None]
        heights = [value for value in values if value is not None]
        axis.bar(at, heights, width, label=label)
    axis.set_xticks(range(len(names)), names)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.grid(alpha=0.3, axis="y")
    axis.legend(fontsize=8)


def quotient(run: Row, way: Way, path: str, other: str, nbytes: int) -> float | None:
    """The time of one over that of the other."""
    above, below = (one(run, way, OP, p, nbytes) for p in (path, other))
    return above["seconds"] / below["seconds"] if above and below else None


def draw_centric(document: Row, path: Path) -> None:
    """How much faster rounds are on the GPU, by size, a panel a link."""
    run = run_with(document, jobs.STAGED + "ring", "ring")
    assert run is not None
    spec = coded(run)
    some = ways_with(run, f"host-ring/{spec}", f"ring/{spec}")
    figure, axes = _panels(len(some))
    for axis, way in zip(axes, some, strict=True):
        at = sizes_with(run, way, (f"host-ring/{spec}", f"ring/{spec}"))
        _bars(axis, [size(n) for n in at], {
            form: [quotient(run, way, f"host-{form}/{spec}", f"{form}/{spec}", n) for n in at]
            for form in ("ring", "doubling")
        })  # fmt: skip
        axis.set_title(name_of_way(run, way), fontsize=10)
        axis.set_ylabel("speedup over the host's staging")
        axis.set_yscale("log")
    figure.suptitle(f"Allreduce in rounds on the GPU, {spec}: {said(run)}")
    result_pictures.save(figure, path, document)


def draw_algorithms(document: Row, path: Path) -> None:
    """How much faster others are than the ring, by size, a panel a link."""
    run = run_with(document, "ring")
    assert run is not None
    spec = coded(run)
    some = ways_with(run, f"ring/{spec}")
    figure, axes = _panels(len(some))
    for axis, way in zip(axes, some, strict=True):
        at = sizes_with(run, way, (f"ring/{spec}",))
        others = {"doubling": f"doubling/{spec}", "two shots": f"two-shot/{spec}",
                  "mpress's call": spec, "NCCL": "nccl"}  # fmt: skip
        series = {label: [quotient(run, way, f"ring/{spec}", other, n) for n in at]
                  for label, other in others.items()}  # fmt: skip
        _bars(axis, [size(n) for n in at], {
            label: values for label, values in series.items() if any(values)
        })  # fmt: skip
        axis.set_title(name_of_way(run, way), fontsize=10)
        axis.set_ylabel("speedup over the ring")
    figure.suptitle(f"Allreduce by algorithm, {spec}: {said(run)}")
    result_pictures.save(figure, path, document)


_CLUSTER = "the paper has 64 A100 of 16 nodes at 100 Gbit/s, here all GPUs are of one host"
FIGURES = {
    "sizes": Figure(
        "MPI_Allreduce by size",
        "MPI_Allreduce by size, a panel a link: what is not compressed is dashed, but for mpress's "
        "own raw calls.\n",
        draw_sizes,
    ),
    "breakdown": Figure(
        "Where the time of an Allreduce goes",
        "As figure 2: an Allreduce in a ring with a codec in every hop, staged by the host (the "
        "paper's CPRP2P and C-Coll), beside rounds on the GPU and mpress's call. Compression is "
        "encoding and decoding, of the call with the sum, which is fused with it; where chunks "
        f"overlap, parts are shares of the call. What differs: {_CLUSTER}; the field; and mpress "
        "compresses the messages.\n",
        draw_breakdown,
    ),
    "codec": Figure(
        "Time of the codecs by size",
        "As figure 3: what a call of the codec takes by size. What differs: turbulence where the "
        "paper has uniform data on an A100, and `mpc` and `zfp` beside the codec with a bound.\n",
        draw_codec,
    ),
    "centric": Figure(
        "Rounds on the GPU over rounds staged by the host",
        "As figure 6: how much faster the same rounds are on the GPU than staged by the host. What "
        f"differs: {_CLUSTER}, so nothing but the link is between them; and these are rounds with "
        "a codec in both.\n",
        draw_centric,
    ),
    "algorithms": Figure(
        "Algorithms of an Allreduce",
        "As figure 7: algorithms over the ring, with the codec in every hop, and mpress's call. "
        f"What differs: {_CLUSTER}; with two ranks a ring is two shots, and doubling one exchange "
        "of all. The ring here overlaps chunks, as the paper's optimised one does.\n",
        draw_algorithms,
    ),
}  # fmt: skip


def drawing(name: str, found: Row) -> tuple[Callable[[Row, Path], None], Row]:
    """What draws a figure, and the results that it shows."""
    shows = found["cuda"] if name == "codec" else found["reductions"]
    return FIGURES[name].plot, shows


def shown(found: Row) -> list[str]:
    """Those that there are results for."""
    document = found.get("reductions", {"runs": []})
    has: dict[str, Callable[[], bool]] = {
        "sizes": lambda: run_with(document) is not None,
        "breakdown": lambda: breakdown(document) is not None,
        "codec": lambda: True,
        "centric": lambda: run_with(document, jobs.STAGED + "ring", "ring") is not None,
        "algorithms": lambda: run_with(document, "ring") is not None,
    }
    return [name for name, is_there in has.items() if is_there()]
