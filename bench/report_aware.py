"""docs/dev/results-cuda-aware.md: messages between GPUs under MPIs that take their memory, and the
plot."""

from pathlib import Path
from typing import Any

import result_pictures
from machines import gpu_of
from report_p2p import curves, size, verdict
from tables import GENERATED, table

Row = dict[str, Any]

MB = 1 << 20
RAW = ("none", "auto")
SPECS = ("szp:rel=0.001", "zfp:4", "mpc")
SHAPES = {"latency": "one way", "window": "window of 16", "both": "windows both ways"}
SHORT_US, LONG_OVER, OVER_NOT_AWARE = 0.12, 1.03, 1.05

HEAD = """\
# Results: messages under MPIs that take memory of GPUs

{generated}
Two GPUs of one host, device buffers. `python bench/cuda_aware.py` measures this. Messages that stay
raw, with mpress that compresses nothing (`none`) and one that decides (`auto`), take turns with the
MPI alone (`plain`) in one process, where receives of a window share a buffer; medians of pairs.
Codecs that are forced, by the link between the GPUs and by MPI (`MPRESS_LINK=mpi`), take turns with
it as jobs, on `wave` in float32; medians of the jobs' medians. Microseconds a message, one way.
"""
RAW_HEAD = """\
Messages that stay raw, over `plain`; bold: slower.
"""
CODED_HEAD = """\
Forced codecs, one way, microseconds; bold: slower than the MPI alone.
"""
NOT_AWARE_HEAD = """\
Forced codecs by the link between the GPUs, over the same under {name}, which knows no GPUs:
"""


def is_aware(run: Row) -> bool:
    """Files of an MPI that knows no GPUs have forced codecs alone, to compare with."""
    return any(row["path"] == "plain" for row in run["rows"])


def aware_runs(document: Row) -> list[Row]:
    return [run for run in document["runs"] if is_aware(run)]


def other_runs(document: Row, beside: Row | None = None) -> list[Row]:
    """Of the machine of `beside`, where that is given."""
    return [run for run in document["runs"]
            if not is_aware(run) and (beside is None or gpu_of(run) == gpu_of(beside))]  # fmt: skip


def one(run: Row, path: str, nbytes: int, shape: str = "latency", of: str = "us") -> float | None:
    """Microseconds a message, or what else a row has of it."""
    key = (path, shape, nbytes)
    return next((row[of] for row in run["rows"]
                 if (row["path"], row["shape"], row["bytes"]) == key), None)  # fmt: skip


def plain(run: Row, nbytes: int, shape: str = "latency") -> float | None:
    """Of the MPI alone; one way it was measured twice, beside raw messages and beside codecs."""
    found = one(run, "plain", nbytes, shape)
    return found or (one(run, "plain, long", nbytes) if shape == "latency" else None)


def sizes(run: Row, path: str, shape: str = "latency") -> list[int]:
    return sorted({r["bytes"] for r in run["rows"] if (r["path"], r["shape"]) == (path, shape)})


def ratio(mine: float | None, other: float | None) -> float | None:
    return mine / other if mine and other else None


def raw_over(run: Row, path: str, shape: str, nbytes: int) -> float | None:
    """Over the MPI alone, of pairs."""
    return one(run, path, nbytes, shape, "over")


def coded_over(run: Row, spec: str, way: str, nbytes: int) -> float | None:
    """A forced codec over the MPI alone, in the jobs beside it."""
    return ratio(one(run, f"{spec}, {way}", nbytes), one(run, "plain, long", nbytes))


def not_aware_over(run: Row, other: Row, spec: str, nbytes: int) -> float | None:
    return ratio(one(run, f"{spec}, peer", nbytes), one(other, f"{spec}, peer", nbytes))


def name_of(run: Row) -> str:
    """One MPI may have been measured on several machines."""
    return f"{run['mpi']}, {run['name']}, {gpu_of(run)}"


def gpus_of(run: Row) -> str:
    name, _, driver = run["gpu"][0].partition(", ")
    return f"{name}, driver {driver}" if driver else name


def bold(value: float | None, limit: float = 1.0) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}" if value < 10 else f"{value:.1f}"
    return f"**{text}**" if value > limit else text


def goals(run: Row, others: list[Row]) -> list[list[str]]:
    name, lines = name_of(run), []
    cases = [(path, shape, nbytes) for path in RAW for shape in SHAPES
             for nbytes in sizes(run, path, shape)]  # fmt: skip
    for is_long, wanted in ((False, f"at most {SHORT_US} us"), (True, f"at most {LONG_OVER}")):
        found = []
        for path, shape, nbytes in cases:
            over = raw_over(run, path, shape, nbytes)
            if over is not None and (nbytes >= MB) == is_long:
                added = one(run, path, nbytes, shape, "added_us")
                found.append((over if is_long else added, path, shape, nbytes))
        if found:
            worst, path, shape, nbytes = max(found)
            limit = LONG_OVER if is_long else SHORT_US
            what = "time over plain" if is_long else "added to plain"
            lines.append([
                f"{name}: raw messages {'from' if is_long else 'below'} 1 MB, {what}, the worst of "
                f"{len(found)} (`{path}`, {SHAPES[shape]}, {size(nbytes)})",
                wanted, f"{worst:.3f}" if is_long else f"{worst:.2f} us", verdict(worst <= limit),
            ])  # fmt: skip
    for other in others:
        found = [(over, spec, nbytes) for spec in SPECS for nbytes in sizes(run, f"{spec}, peer")
                 if (over := not_aware_over(run, other, spec, nbytes)) is not None]  # fmt: skip
        if found:
            worst, spec, nbytes = max(found)
            lines.append([
                f"{name}: forced codecs, over those under {name_of(other)}, the worst of "
                f"{len(found)} (`{spec}`, {size(nbytes)})",
                f"at most {OVER_NOT_AWARE}", f"{worst:.3f}", verdict(worst <= OVER_NOT_AWARE),
            ])  # fmt: skip
    return lines


def raws(run: Row) -> str:
    lines = []
    for shape, title in SHAPES.items():
        for nbytes in sizes(run, "plain", shape):
            base = plain(run, nbytes, shape)
            lines.append([
                f"{title}, {size(nbytes)}", f"{base:.2f}",
                *(bold(raw_over(run, path, shape, nbytes), 1.005) for path in RAW),
            ])  # fmt: skip
    return table(("message", "`plain`, us", *(f"`{path}` over it" for path in RAW)), lines)


def coded(run: Row) -> str:
    ways = [(spec, way) for spec in SPECS for way in ("peer", "mpi")]
    lines = []
    for nbytes in sizes(run, "plain, long"):
        line = [size(nbytes), f"{one(run, 'plain, long', nbytes):.1f}"]
        for spec, way in ways:
            taken, over = one(run, f"{spec}, {way}", nbytes), coded_over(run, spec, way, nbytes)
            text = "-" if taken is None else f"{taken:.1f}"
            line.append(f"**{text}**" if over and over > 1 else text)
        lines.append(line)
    names = {"peer": "", "mpi": ", by MPI"}
    return table(("us", "`plain`", *(f"`{spec}`{names[way]}" for spec, way in ways)), lines)


def not_aware(run: Row, other: Row) -> str:
    lines = [
        [size(nbytes), *(bold(not_aware_over(run, other, spec, nbytes), 1.005) for spec in SPECS)]
        for nbytes in sorted({n for spec in SPECS for n in sizes(run, f"{spec}, peer")})
    ]
    return table(("over", *(f"`{spec}`" for spec in SPECS)), lines)


def plot(document: Row, path: Path) -> None:
    """Time by size, one way: a panel an MPI."""
    runs = aware_runs(document)
    plt = result_pictures.pyplot()
    figure, axes = plt.subplots(
        1, len(runs), figsize=(6 * len(runs), 4.5), layout="constrained", sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axis, run in zip(axes[0], runs, strict=True):
        paths = ["plain, long", *(f"{spec}, {way}" for spec in SPECS for way in ("peer", "mpi"))]
        rows = [
            {"path": p, "bytes": nbytes, "seconds": one(run, p, nbytes) / 1e6}
            for p in paths for nbytes in sizes(run, p)
        ]  # fmt: skip
        names = {"plain, long": "the MPI alone"}
        named = [row | {"path": names.get(row["path"], row["path"])} for row in rows]
        curves(axis, named, [p for p in paths if p.endswith("mpi")])
        axis.set_title(name_of(run))
    axes[0][0].set_ylabel("microseconds, one way")
    axes[0][0].legend(fontsize=8)
    figure.suptitle("codecs under MPIs that take memory of GPUs")
    result_pictures.save(figure, path, document)


def section(document: Row, picture: Path) -> str:
    runs = aware_runs(document)
    parts = [
        HEAD.format(generated=GENERATED),
        table(("goal", "wanted", "measured", ""),
              [line for run in runs for line in goals(run, other_runs(document, run))]),
        f"![Codecs under MPIs that take memory of GPUs]({picture.name})\n",
    ]  # fmt: skip
    for run in runs:
        parts += [
            f"## {name_of(run)}\n",
            f"{gpus_of(run)}; {run['date']}, commit {run['commit']}."
            + (f" Of this run: {run['note']}." if "note" in run else "") + "\n",
            RAW_HEAD, raws(run), CODED_HEAD, coded(run),
        ]  # fmt: skip
        for other in other_runs(document, run):
            parts += [NOT_AWARE_HEAD.format(name=name_of(other)), not_aware(run, other)]
    if others := other_runs(document):
        told = "; ".join(f"{name_of(run)}: {run['date']}, commit {run['commit']}" for run in others)
        parts.append(f"To compare with: {told}.\n")
    return "\n".join(parts)
