"""docs/dev/results-device-messages.md: messages in device memory that go by MPI, and its plot."""

from collections.abc import Container
from pathlib import Path
from typing import Any

import result_pictures
from tables import GENERATED, table

Row = dict[str, Any]

TARGET = 32 << 20
NAMES = {"shm": "shared memory", "tcp": "TCP"}
BESIDE = {
    "plain": "copy out, MPI_Send, MPI_Recv, copy in; pageable",
    "host": "MPI alone, between host buffers",
    "copy": "copy between GPU and pinned memory alone",
    "nccl": "NCCL send and receive",
}
# (path, data, by how much of the time of raw messages it is shorter)
CUTS = (
    ("zfp:4", "wave", 0.83),
    ("szp:rel=0.001", "wave", 0.88),
    ("mpc", "wave", 0.40),
    ("mpc", "constant", 0.90),
)
RAW_SHARE, RAW_FACTOR, AUTO_LIMIT = 0.90, 3, 1.03

HEAD = """\
# Results: messages in device memory, by MPI

{generated}
{gpu}, two GPUs of one host, a rank each; {cpu}. `python bench/p2p_device.py` measures this;
`mpress bench latency` any part of it.

One way of a ping-pong between device buffers that the MPI itself does not take: medians, all paths
by turns in one job. "none" is mpress's own staging of raw messages, "over none" the median of the
times over those of `none` in the same rounds. What arrived was compared with what was sent. `wave`
and the others are fields of 32 MB; shorter messages are made of pieces from all over them, longer
ones repeat them. Which transport the MPI took was seen by the loopback's counter of bytes.
"""
BY_SIZE = """\
By size; in italics where a codec that was forced is slower than raw messages. `plain`: copy out,
MPI_Send, MPI_Recv, copy in, pageable; `host`: MPI alone, between host buffers; `copy`: the copy
between GPU and pinned memory alone.
"""
BREAKDOWN_HEAD = """\
What a message takes whose parts follow one another (`MPRESS_CHUNK=0`), and the time of the one
whose chunks overlap.
"""
AUTO_HEAD = """\
## The default, `auto`, beside `none`

Times over those of `none` in a job of their own, with 95 % intervals. `air`: air temperatures of
CMIP6 models; `rand`: Gaussian noise; `bits`: random bits; `compressed`: what zlib wrote. Bold: more
than 3 % slower, the interval as a whole. `mpress tune` had measured the machine before.
"""


def size(nbytes: int) -> str:
    if nbytes < 1 << 10:
        return f"{nbytes} B"
    return f"{nbytes >> 10} KB" if nbytes < 1 << 20 else f"{nbytes >> 20} MB"


def rows_of(run: Row, job: str, data: str | None = None, nbytes: int | None = None) -> list[Row]:
    return [
        row
        for row in run["rows"]
        if row["job"] == job and data in (None, row["data"]) and nbytes in (None, row["bytes"])
    ]


def one(run: Row, path: str, data: str = "wave", nbytes: int = TARGET) -> Row | None:
    """The forced job's row; of a size that was measured twice, the first, which has more rounds."""
    return next((r for r in rows_of(run, "forced", data, nbytes) if r["path"] == path), None)


def verdict(reached: bool) -> str:
    return "reached" if reached else "**missed**"


def goals(run: Row) -> list[list[str]]:
    name = f"{run['mpi']}, {name_of(run)}"
    lines = []
    for path, data, least in CUTS:
        row = one(run, path, data)
        if row is not None:
            cut = 1 - row["over_none"]
            lines.append([
                f"{name}, 32 MB: `{path}` on {data}, latency cut by", f"{least:.0%}", f"{cut:.1%}",
                verdict(cut >= least),
            ])  # fmt: skip
    raw, host, copy, plain = (one(run, path) for path in ("none", "host", "copy", "plain"))
    if run["transport"]["asked"] == "shm" and raw and host and copy and plain:
        share = max(host["seconds"], copy["seconds"]) / raw["seconds"]
        factor = plain["seconds"] / raw["seconds"]
        lines.append([
            f"{name}, 32 MB: raw, of the slower of GPU copy and MPI alone", f"{RAW_SHARE:.0%}",
            f"{share:.1%}", verdict(share >= RAW_SHARE),
        ])  # fmt: skip
        lines.append([
            f"{name}, 32 MB: raw, over copies and MPI with pageable memory", f"{RAW_FACTOR}x",
            f"{factor:.2f}x", verdict(factor >= RAW_FACTOR),
        ])  # fmt: skip
    autos = [row for row in rows_of(run, "auto") if row["path"] == "auto"]
    if autos:
        worst = max(autos, key=lambda row: row["over_none"])
        slower = sum(row["over_none_interval"][0] > AUTO_LIMIT for row in autos)
        lines.append([
            f"{name}: `auto` over `none`, the worst of {len(autos)} "
            f"({worst['data']}, {size(worst['bytes'])}); surely slower: {slower}",
            f"at most {AUTO_LIMIT}", f"{worst['over_none']:.3f}",
            verdict(worst["over_none"] <= AUTO_LIMIT),
        ])  # fmt: skip
    return lines


def at_target(run: Row) -> str:
    lines = []
    for data in ("wave", "constant"):
        seen = set()
        for row in rows_of(run, "forced", data, TARGET):
            if row["path"] not in seen:
                seen.add(row["path"])
                lines.append(line(row))
    return table(
        ("32 MB", "us", "quartiles", "GB/s", "over none", "ratio", "encode us", "decode us",
         "largest error"),
        lines,
    )  # fmt: skip


def line(row: Row) -> list[str]:
    counted = "ratio" in row
    check = row.get("check")
    path = BESIDE.get(row["path"], f"`{row['path']}`, {row['data']}")
    low, high = (q * 1e6 for q in row["quartiles"])
    return [
        path, f"{row['seconds'] * 1e6:.0f}", f"{low:.0f} to {high:.0f}",
        f"{row['bandwidth'] / 1e9:.2f}",
        f"{row['over_none']:.3f}" if "over_none" in row else "-",
        f"{row['ratio']:.2f}" if counted else "-",
        f"{row['encode_seconds'] * 1e6:.0f}" if counted else "-",
        f"{row['decode_seconds'] * 1e6:.0f}" if counted else "-",
        "-" if check is None else f"{check['max_error']:.2g}" if check["kept"] else "**broken**",
    ]  # fmt: skip


def sweep(run: Row) -> str:
    """Microseconds by size; where a codec loses to raw messages, in italics."""
    rows = rows_of(run, "forced", "wave")
    paths = list(dict.fromkeys(row["path"] for row in rows))
    lines = []
    for nbytes in sorted({row["bytes"] for row in rows}):
        found = {path: one(run, path, "wave", nbytes) for path in paths}
        lines.append([size(nbytes), *(cell(found[path]) for path in paths)])
    return table(("us, wave", *paths), lines)


def cell(row: Row | None) -> str:
    if row is None:
        return "-"
    text = f"{row['seconds'] * 1e6:.0f}"
    return f"*{text}*" if "ratio" in row and row.get("over_none", 0) > 1 else text


def breakdown(run: Row) -> str:
    """What encoding, decoding and the rest (copies and wire) take in one piece, beside the message
    whose chunks overlap."""
    lines = []
    for nbytes in sorted({row["bytes"] for row in rows_of(run, "sequential")}):
        for row in rows_of(run, "sequential", "wave", nbytes):
            overlapped = one(run, row["path"], "wave", nbytes)
            rest = row["seconds"] - row["encode_seconds"] - row["decode_seconds"]
            times = (row["encode_seconds"], rest, row["decode_seconds"], row["seconds"])
            lines.append([
                f"{size(nbytes)}, `{row['path']}`", *(f"{t * 1e6:.0f}" for t in times),
                f"{overlapped['seconds'] * 1e6:.0f}" if overlapped else "-",
            ])  # fmt: skip
    return table(
        ("us, wave", "encode", "copies, wire", "decode", "in one piece", "overlapped"), lines
    )


def autos(run: Row, heading: str, beside: str = "none") -> str:
    """Of the default, over `beside`; empty where that was not measured."""
    rows = [row for row in rows_of(run, "auto") if row["path"] == "auto"]
    sizes = sorted({row["bytes"] for row in rows})
    lines = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = {row["bytes"]: row for row in rows if row["data"] == data}
        lines.append([data, *(auto_cell(own.get(nbytes), beside) for nbytes in sizes)])
    has_any = any(f"over_{beside}" in row for row in rows)
    return table((heading, *map(size, sizes)), lines) if has_any else ""


def dated_autos(run: Row) -> str:
    # Rows that were measured apart from the rest of their run tell when.
    first = next(row for row in rows_of(run, "auto") if row["path"] == "auto")
    date, commit = ((run | first)[name] for name in ("date", "commit"))
    head = f"{run['mpi']}, {name_of(run)}; {date}, commit {commit}:\n"
    return "\n".join((head, autos(run, name_of(run))))


def auto_cell(row: Row | None, beside: str) -> str:
    if row is None or f"over_{beside}" not in row:
        return "-"
    low, high = row[f"over_{beside}_interval"]
    text = f"{row[f'over_{beside}']:.3f}"
    return f"{f'**{text}**' if low > AUTO_LIMIT else text} ({low:.2f} to {high:.2f})"


def name_of(run: Row) -> str:
    return NAMES[run["transport"]["asked"]]


def plot(document: Row, path: Path) -> None:
    """Latency curves, as in figure 9 of the MPC-OPT paper."""
    runs = document["runs"]
    plt = result_pictures.pyplot()
    figure, axes = plt.subplots(
        (len(runs) + 1) // 2, 2, figsize=(11, 2 * len(runs)), layout="constrained", sharey=True,
        sharex=True, squeeze=False,
    )  # fmt: skip
    for axis, run in zip(axes.flat, runs, strict=False):
        rows = [row for row in rows_of(run, "forced", "wave") if row["path"] != "copy"]
        curves(axis, rows, BESIDE)
        axis.set_title(f"{run['mpi']}, {name_of(run)}")
    for row in axes:
        row[0].set_ylabel("microseconds, one way")
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"device to device, {runs[0]['gpu']}")
    result_pictures.save(figure, path, document)


def curves(axis: Any, rows: list[Row], dashed: Container[str]) -> None:
    """Time by size, a line a path."""
    for name in dict.fromkeys(row["path"] for row in rows):
        points = {row["bytes"]: row["seconds"] * 1e6 for row in rows if row["path"] == name}
        style = "--" if name in dashed else "-"
        ordered = sorted(points.items())
        axis.plot(*zip(*ordered, strict=True), style, marker="o", markersize=3, label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    sizes = sorted({row["bytes"] for row in rows})[::2]
    axis.set_xticks(sizes, [size(nbytes) for nbytes in sizes])
    axis.set_xlabel("bytes of float32 (wave)")
    axis.grid(alpha=0.3)


def section(document: Row, picture: Path) -> str:
    runs = document["runs"]
    parts = [
        HEAD.format(generated=GENERATED, **{key: runs[0][key] for key in ("gpu", "cpu")}),
        table(("goal", "wanted", "measured", ""), [goal for run in runs for goal in goals(run)]),
        f"![Latency of messages between GPUs]({picture.name})\n",
    ]
    for run in runs:
        seen = run["transport"]
        told = "seen" if seen["seen"] == seen["asked"] else "**not verified**"
        parts += [
            f"## {run['mpi']}, {NAMES[seen['asked']]} ({told})\n",
            f"{run['date']}, commit {run['commit']}.\n",
            at_target(run),
            BY_SIZE,
            sweep(run),
        ]
        if rows_of(run, "sequential"):
            parts += [BREAKDOWN_HEAD, breakdown(run)]
    dated = (dated_autos(run) for run in runs if rows_of(run, "auto"))
    return "\n".join([*parts, AUTO_HEAD, *dated])
