"""docs/dev/results-host-link.md: messages by host memory that two GPUs have pinned, the ceiling of
that, and its plot."""

from pathlib import Path
from typing import Any

import result_pictures
from machines import gpu_of
from report_p2p import curves, size, verdict
from tables import GENERATED, table

Row = dict[str, Any]

MB = 1 << 20
LARGEST = 256 * MB
CODECS = ("none", "szp:rel=0.001", "zfp:4", "mpc")
WAYS = {False: "one way", True: "both ways at once"}
# (both ways at once, bytes, the most microseconds that a raw message may take)
RAW_TIMES = (
    (False, 64 << 10, 16), (False, MB, 40), (False, 32 * MB, 700), (False, LARGEST, 5100),
    (True, 32 * MB, 780), (True, LARGEST, 5900),
)  # fmt: skip
# (codec, by how much of the time of raw messages it is shorter)
CUTS = (("szp:rel=0.001", 0.93), ("zfp:4", 0.85))

HEAD = """\
# Results: messages between GPUs that do not reach each other

{generated}
`MPRESS_LINK=host`: memory of the host that both processes map, and both GPUs have pinned. The
sender's GPU copies out, or encodes to it; the receiver's copies in, or decodes from it, piece by
piece while the next one comes. `python bench/host_link.py` measures this: `wave` in float32,
medians, codecs forced, beside the same messages by MPI (`MPRESS_LINK=mpi`), which gets pinned
staging memory.
"""
RUN_HEAD = """\
## {gpu}, {gpus} GPUs of one host

{date}, commit {commit}.
"""
CEILING_HEAD = """\
### The ceiling

GB/s of a GPU while so many copy at once, from or to pinned memory of a NUMA node, 256 MB a copy. A
message goes out of one GPU and into another, so one way is bound by the slower of these; both ways
at once by what a GPU carries each way while it copies both ways. (Short copies share the bus better
than long ones do: messages both ways at once may carry more.)
"""
MESSAGES_HEAD = """\
### Messages

Microseconds by size; in bold where MPI was faster, in italics where a codec is slower than a raw
message by the same link. "Of the ceiling": the bandwidth of raw messages over it.
"""
AUTO_HEAD = """\
### What `auto` takes

Time over that of raw messages by the same link, and of NCCL's without P2P where they were beside
it, one way, without any profile: in bold where those were faster. In brackets by how much it shrank
the data.
"""


def one(run: Row, codec: str, nbytes: int, both: bool = False, link: str = "host") -> Row | None:
    key = (link, codec, nbytes, both)
    return next((r for r in run["rows"]
                 if (r["link"], r["codec"], r["bytes"], r["both"]) == key), None)  # fmt: skip


def sizes(run: Row) -> list[int]:
    return sorted({row["bytes"] for row in run["rows"]})


def ceiling(run: Row, both: bool) -> float:
    """GB/s of messages between two GPUs: of the memory where they are fastest."""
    if both:
        most = max(row["gpus"] for row in run["ceiling"] if row["gpus"] <= 2)
        return max(row["both_gb_s"] for row in run["ceiling"] if row["gpus"] == most)
    return max(min(r["out_gb_s"], r["in_gb_s"]) for r in run["ceiling"] if r["gpus"] == 1)


def share(run: Row, nbytes: int, both: bool) -> float | None:
    """Of the ceiling that raw messages reach."""
    row = one(run, "none", nbytes, both)
    return row and nbytes / row["us"] / 1e3 / ceiling(run, both)


def over(run: Row, codec: str, nbytes: int, both: bool, other: str, link: str) -> float | None:
    """The time by the host link over that of another codec or link."""
    row, reference = one(run, codec, nbytes, both), one(run, other, nbytes, both, link)
    return row["us"] / reference["us"] if row and reference else None


def goals(run: Row) -> list[list[str]]:
    lines = []
    for both, nbytes, most in RAW_TIMES:
        row = one(run, "none", nbytes, both)
        if row:
            lines.append([f"{WAYS[both]}, {size(nbytes)}: raw, us", f"at most {most}",
                          f"{row['us']:.1f}", verdict(row["us"] <= most)])  # fmt: skip
    for codec, least in CUTS:
        value = over(run, codec, LARGEST, False, "none", "host")
        if value is not None:
            lines.append([
                f"one way, {size(LARGEST)}: `{codec}`, time cut by", f"{least:.0%}",
                f"{1 - value:.1%}", verdict(1 - value >= least),
            ])  # fmt: skip
    return lines


def cell(run: Row, codec: str, nbytes: int, both: bool) -> str:
    row = one(run, codec, nbytes, both)
    if row is None:
        return "-"
    text = f"{row['us']:.1f}"
    if codec != "none" and (over(run, codec, nbytes, both, "none", "host") or 0) > 1:
        text = f"*{text}*"
    beside = over(run, codec, nbytes, both, codec, "mpi")
    return f"**{text}**" if beside and beside > 1 else text


def messages(run: Row, both: bool) -> str:
    lines = []
    for nbytes in sizes(run):
        part = share(run, nbytes, both)
        by_mpi = [one(run, codec, nbytes, both, "mpi") for codec in CODECS]
        lines.append([
            size(nbytes), *(cell(run, codec, nbytes, both) for codec in CODECS),
            "-" if part is None else f"{part:.0%}",
            *("-" if row is None else f"{row['us']:.1f}" for row in by_mpi),
        ])  # fmt: skip
    names = ["raw", *(f"`{codec}`" for codec in CODECS[1:])]
    return table((f"us, {WAYS[both]}", *names, "of the ceiling",
                  *(f"{name}, by MPI" for name in names)), lines)  # fmt: skip


def ceilings(run: Row) -> str:
    return table(
        ("GPUs at once", "memory of node", "GB/s out", "in", "each way, both at once"),
        [
            [str(row["gpus"]), str(row["memory_node"]),
             *(f"{row[name]:.1f}" for name in ("out_gb_s", "in_gb_s", "both_gb_s"))]
            for row in run["ceiling"]
        ],
        words=2,
    )  # fmt: skip


def autos(run: Row, beside: str) -> str:
    """Empty where that was not measured."""
    over = f"over_{beside}"
    rows = {(row["data"], row["bytes"]): row for row in run["auto"]
            if row["path"] == "auto" and over in row}  # fmt: skip
    if not rows:
        return ""
    wide = sorted({nbytes for _, nbytes in rows})
    lines = []
    for name in dict.fromkeys(name for name, _ in rows):
        cells = []
        for nbytes in wide:
            value, ratio = rows[name, nbytes][over], rows[name, nbytes]["ratio"]
            text = f"{value:.2f}" if value <= 1 else f"**{value:.2f}**"
            cells.append(text if ratio < 1.01 else f"{text} ({ratio:.1f})")
        lines.append([f"`{name}`", *cells])
    heading = "over raw" if beside == "none" else "over NCCL"
    return table((heading, *(size(nbytes) for nbytes in wide)), lines)


def plot(document: Row, path: Path) -> None:
    """Time by size: a row of panels a machine, one way and both ways at once."""
    runs = document["runs"]
    plt = result_pictures.pyplot()
    figure, axes = plt.subplots(
        len(runs), 2, figsize=(11, 0.5 + 4 * len(runs)), layout="constrained", sharey=True,
        squeeze=False,
    )  # fmt: skip
    for line, run in zip(axes, runs, strict=True):
        for axis, (both, title) in zip(line, WAYS.items(), strict=True):
            rows = [
                {"path": ("raw" if row["codec"] == "none" else row["codec"])
                         + (", by MPI" if row["link"] == "mpi" else ""),
                 "bytes": row["bytes"], "seconds": row["us"] / 1e6}
                for row in run["rows"] if row["both"] == both
            ]  # fmt: skip
            curves(axis, rows, [row["path"] for row in rows if row["path"].endswith("by MPI")])
            axis.set_title(f"{gpu_of(run)}, {title}")
        line[0].set_ylabel("microseconds")
    axes[0][0].legend(fontsize=8)
    figure.suptitle("by host memory that both GPUs have pinned")
    result_pictures.save(figure, path, document)


def section(document: Row, picture: Path) -> str:
    parts = [HEAD.format(generated=GENERATED)]
    for number, run in enumerate(document["runs"]):
        parts += [
            RUN_HEAD.format(**{key: run[key] for key in ("gpu", "gpus", "date", "commit")}),
            *([run["note"] + ".\n"] if "note" in run else []),
            table(("goal", "wanted", "measured", ""), goals(run)),
            *([] if number else [f"![Messages by the host link]({picture.name})\n"]),
            CEILING_HEAD, ceilings(run), MESSAGES_HEAD,
            messages(run, False), messages(run, True),
            *([AUTO_HEAD, autos(run, "none"), autos(run, "nccl")] if "auto" in run else []),
        ]  # fmt: skip
    return "\n".join(parts)
