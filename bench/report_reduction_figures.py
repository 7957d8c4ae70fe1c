"""The figures of reductions: MPI_Allreduce by size, and what gZCCL's figures 2, 3, 6 and 7 show,
drawn for the machine of the results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


def sizes_with(run: Row, way: Way, paths: Sequence[str]) -> list[int]:
    """At which all of them were measured."""
    return [n for n in sizes(run, way, OP) if all(one(run, way, OP, p, n) for p in paths)]


@dataclass(frozen=True)
class Place:
    """A link of a run, and the codec of its rounds."""

    run: Row
    way: Way
    spec: str

    @property
    def title(self) -> str:
        gpu = (self.run["gpu"] or "").removeprefix("NVIDIA ").split(" ")[0]
        where = f"{self.run['gpus']} x {gpu}: " if gpu else ""
        return where + name_of_way(self.run, self.way)


def places(document: Row, *forms: str) -> list[Place]:
    """Where MPI_Allreduce was measured; with `forms`, in all such rounds with a codec, too."""
    found = []
    for run in document["runs"]:
        spec = coded(run)
        if forms and spec is None:
            continue
        paths = [form + jobs.FORM + str(spec) for form in forms] or ["none"]
        found += [
            Place(run, way, str(spec)) for way in ways(run)
            if all(rows_of(run, way, op=OP, job="forced", path=path) for path in paths)
        ]  # fmt: skip
    return found


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
    columns = min(count, 3)
    lines = -(-count // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(5.5 * columns, 4 * lines), layout="constrained", squeeze=False
    )
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    return figure, list(axes.flat[:count])


def said(some: Sequence[Place]) -> str:
    """Of all runs."""
    runs = {id(place.run): place.run for place in some}.values()
    where = [f"{run['gpus']} x {run['gpu']}" if run["gpu"] else "host memory" for run in runs]
    return "; ".join(dict.fromkeys(
        f"{place}, {run['ranks']} ranks, {run['mpi']}"
        for place, run in zip(where, runs, strict=True)
    ))  # fmt: skip


def draw_sizes(document: Row, path: Path) -> None:
    """Time by size, a panel a link."""
    some = places(document)
    figure, axes = _panels(len(some))
    for axis, place in zip(axes, some, strict=True):
        data = main_data(place.run)
        rows = [row | {"path": _LABELS.get(row["path"], row["path"])}
                for row in rows_of(place.run, place.way, op=OP, data=data, job="forced")
                if jobs.form_of(row["path"]) is None]  # fmt: skip
        curves(axis, rows, _DASHED)
        axis.set_title(place.title, fontsize=10)
        axis.set_xlabel(f"bytes a rank of float32 ({data})")
        axis.set_ylabel("microseconds")
        axis.legend(fontsize=7)
    figure.suptitle(f"MPI_Allreduce: {said(some)}")
    result_pictures.save(figure, path, document)


def breakdown(document: Row) -> tuple[Place, int, dict[str, Row]] | None:
    """Figure 2: of which link and size it is, the first that has most of it, and its rows by what
    they are called."""
    for forms in ((jobs.STAGED + "ring", "ring"), ("ring",)):
        for place in places(document, *forms):
            names = {
                f"host-ring/{place.spec}": "ring, staged by the host",
                f"ring/{place.spec}": "ring, on the GPU",
                f"doubling/{place.spec}": "doubling, on the GPU", place.spec: "mpress's call",
            }  # fmt: skip
            needed = [form + jobs.FORM + place.spec for form in forms]
            if at := sizes_with(place.run, place.way, needed):
                rows = {name: one(place.run, place.way, OP, path, at[-1])
                        for path, name in names.items()}  # fmt: skip
                return place, at[-1], {name: row for name, row in rows.items() if row}
    return None


def draw_breakdown(document: Row, path: Path) -> None:
    result = breakdown(document)
    assert result is not None
    place, nbytes, rows = result
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
    axis.set_title(f"Allreduce, {size(nbytes)} a rank, {place.spec}, {place.title}", fontsize=10)
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
    some = places(document, jobs.STAGED + "ring", "ring")
    figure, axes = _panels(len(some))
    for axis, place in zip(axes, some, strict=True):
        run, way, spec = place.run, place.way, place.spec
        at = sizes_with(run, way, (f"host-ring/{spec}", f"ring/{spec}"))
        _bars(axis, [size(n) for n in at], {
            form: [quotient(run, way, f"host-{form}/{spec}", f"{form}/{spec}", n) for n in at]
            for form in ("ring", "doubling")
        })  # fmt: skip
        axis.set_title(f"{place.title}, {spec}", fontsize=10)
        axis.set_ylabel("speedup over the host's staging")
        axis.set_yscale("log")
    figure.suptitle(f"Allreduce in rounds on the GPU: {said(some)}")
    result_pictures.save(figure, path, document)


def draw_algorithms(document: Row, path: Path) -> None:
    """How much faster others are than the ring, by size, a panel a link."""
    some = places(document, "ring")
    figure, axes = _panels(len(some))
    for axis, place in zip(axes, some, strict=True):
        run, way, spec = place.run, place.way, place.spec
        at = sizes_with(run, way, (f"ring/{spec}",))
        others = {"doubling": f"doubling/{spec}", "two shots": f"two-shot/{spec}",
                  "mpress's call": spec, "NCCL": "nccl"}  # fmt: skip
        series = {label: [quotient(run, way, f"ring/{spec}", other, n) for n in at]
                  for label, other in others.items()}  # fmt: skip
        _bars(axis, [size(n) for n in at], {
            label: values for label, values in series.items() if any(values)
        })  # fmt: skip
        axis.set_title(f"{place.title}, {spec}", fontsize=10)
        axis.set_ylabel("speedup over the ring")
    figure.suptitle(f"Allreduce by algorithm: {said(some)}")
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
        "sizes": lambda: bool(places(document)),
        "breakdown": lambda: breakdown(document) is not None,
        "codec": lambda: True,
        "centric": lambda: bool(places(document, jobs.STAGED + "ring", "ring")),
        "algorithms": lambda: bool(places(document, "ring")),
    }
    return [name for name, is_there in has.items() if is_there()]
