"""docs/dev/results-gpu-to-gpu.md: messages from GPU to GPU of one host, and its plot."""

from pathlib import Path
from typing import Any

import result_pictures
from report_p2p import AUTO_LIMIT, autos, curves, one, rows_of, size, verdict
from tables import GENERATED, table

Row = dict[str, Any]

MB = 1 << 20
SHORT = 64 << 10
REFERENCES = ("peer-copy", "nccl")
NAMES = {
    "none": "raw messages",
    "staged": "raw messages by way of the host",
    "peer-copy": "one copy",
    "nccl": "NCCL send and receive",
}
# (bytes, the share of one copy's bandwidth that raw messages reach)
RAW_SHARES = ((32 * MB, 0.85), (256 * MB, 0.95))
# (path, data, bytes, by how much of the faster of one copy and NCCL it is shorter)
CUTS = (
    ("zfp:4", "wave", 32 * MB, 0.30),
    ("zfp:4", "wave", 256 * MB, 0.55),
    ("szp:rel=0.001", "wave", 32 * MB, 0.30),
    ("szp:rel=0.001", "wave", 256 * MB, 0.55),
    ("szp:rel=0.001", "turb", 256 * MB, 0.35),
    ("szp:abs", "wave", 32 * MB, 0.30),
    ("szp:abs", "wave", 256 * MB, 0.55),
    ("szp:abs", "turb", 256 * MB, 0.35),
)
SHORT_OVER_NCCL, SHORT_FACTOR = 1.5, 3

HEAD = """\
# Results: messages from GPU to GPU

{generated}
GPUs of one host, a rank each. `python bench/p2p_peer.py` measures this; `mpress bench latency
--link peer` any part of it.

One way of a ping-pong between device buffers, whose data go from GPU to GPU while MPI carries a
header: medians, all paths by turns in one job, and ratios of times in the same rounds. "One copy"
is the driver's, from one GPU to the other, until the host sees it done: what the link can do. Goals
of compressed messages are against the faster of that and NCCL, by medians. By way of the host are
raw messages of a job of its own, with `MPRESS_LINK=mpi`.
"""
RUN_HEAD = """\
## {most_ranks} x {gpu}

{cpu}; {mpi}; {date}, commit {commit}.
"""
TURNS_HEAD = """\
By size; in italics where a codec that was forced is slower than raw messages.
"""
AUTO_HEAD = """\
The default, `auto`: times over those of `none`, and of NCCL where it was beside them, in a job of
their own, with 95 % intervals. Bold: more than 3 % slower, the interval as a whole. Where a message
was compressed at all, its ratio is in the last table.
"""
TIMELINE_HEAD = """\
### One message

`mpress run --trace` of messages of a typical time, in microseconds after the call of `MPI_Send`;
noting takes a few per cent. A piece of work begins when it is queued and ends when the host sees it
done. Raw messages are one copy, queued as soon as the header is there: nothing but the link counts.
Of compressed ones all chunks are encoded in one launch, whose stores cross the link while it works;
each is decoded as soon as it is there. The first chunk's encoding and the last one's decoding
overlap with nothing; between, the encoder, the slowest of the three, is never idle. `szp:rel` finds
the range of the elements before its first chunk.
"""
STAGES = {
    "encode": "rank 0 encodes",
    "copy out": "rank 0 copies aside",
    "copy in": "rank 1 copies",
    "decode": "rank 1 decodes",
}


def part(document: Row, benchmark: str, ranks: int = 2) -> Row:
    """Of one benchmark, as report_p2p has runs."""
    rows = [r for r in document["rows"] if (r["benchmark"], r["ranks"]) == (benchmark, ranks)]
    return {**document, "rows": rows}


def title(benchmark: str, ranks: int) -> str:
    if benchmark == "latency":
        return "one way"
    return "both ways at once" if ranks == 2 else f"all pairs of {ranks} at once"


def fastest(run: Row, data: str, nbytes: int) -> Row | None:
    """Of the ways to move the data as they are that are not ours."""
    found = [row for path in REFERENCES if (row := one(run, path, data, nbytes))]
    return min(found, key=lambda row: row["seconds"], default=None)


def share_goals(run: Row, name: str) -> list[list[str]]:
    lines = []
    for nbytes, least in RAW_SHARES:
        raw = one(run, "none", "wave", nbytes)
        where = f"{name}, {size(nbytes)}: raw"
        if raw and "over_peer-copy" in raw:
            share = 1 / raw["over_peer-copy"]
            lines.append([
                f"{where}, bandwidth of one copy's", f"{least:.0%}", f"{share:.1%}",
                verdict(share >= least),
            ])  # fmt: skip
        if raw and "over_nccl" in raw:
            over = raw["over_nccl"]
            lines.append([f"{where}, time over NCCL's", "at most 1", f"{over:.3f}",
                          verdict(over <= 1)])  # fmt: skip
    return lines


def spelled(run: Row, path: str, data: str, nbytes: int) -> Row | None:
    """The row of a path that begins so: absolute bounds are those of the data."""
    paths = dict.fromkeys(row["path"] for row in rows_of(run, "forced", data))
    return next((one(run, p, data, nbytes) for p in paths if p.startswith(path)), None)


def cut_goals(run: Row, name: str) -> list[list[str]]:
    lines = []
    for path, data, nbytes, least in CUTS:
        row, reference = spelled(run, path, data, nbytes), fastest(run, data, nbytes)
        if row and reference:
            cut = 1 - row["seconds"] / reference["seconds"]
            lines.append([
                f"{name}, {size(nbytes)}: `{row['path']}` on {data}, time cut by", f"{least:.0%}",
                f"{cut:.1%}", verdict(cut >= least),
            ])  # fmt: skip
    return lines


def lossless_goals(run: Row, name: str) -> list[list[str]]:
    """mpc at the largest size: no loss, or left alone."""
    forced = one(run, "mpc", "wave", 256 * MB)
    auto = [r for r in rows_of(run, "auto", "wave", 256 * MB) if r["path"] == "auto"]
    if not forced:
        return []
    over = forced["over_none"]
    refused = bool(auto) and auto[0]["ratio"] < 1.01  # raw messages have a header as well
    measured = f"{over:.3f}" + (", refused" if refused else "")
    return [[f"{name}, 256 MB: `mpc` on wave, over raw", "at most 1, or refused", measured,
             verdict(over <= 1 or refused)]]  # fmt: skip


def auto_goals(run: Row, name: str) -> list[list[str]]:
    rows = [row for row in rows_of(run, "auto") if row["path"] == "auto"]
    if not rows:
        return []
    lines = []
    for beside, text in (("none", "`none`"), ("nccl", "NCCL")):
        over = f"over_{beside}"
        own = [row for row in rows if over in row]
        if not own:
            continue
        worst = max(own, key=lambda row: row[over])
        slower = sum(row[f"{over}_interval"][0] > AUTO_LIMIT for row in own)
        lines.append([
            f"{name}: `auto` over {text}, the worst of {len(own)} ({worst['data']}, "
            f"{size(worst['bytes'])}); surely slower: {slower}",
            f"at most {AUTO_LIMIT}", f"{worst[over]:.3f}", verdict(worst[over] <= AUTO_LIMIT),
        ])  # fmt: skip
    return lines


def short_goals(run: Row, name: str) -> list[list[str]]:
    raw, staged = one(run, "none", "wave", SHORT), staged_row(run, SHORT)
    lines = []
    if raw and "over_nccl" in raw:
        over = raw["over_nccl"]
        lines.append([f"{name}, 64 KB: raw, time over NCCL's", f"at most {SHORT_OVER_NCCL}",
                      f"{over:.2f}", verdict(over <= SHORT_OVER_NCCL)])  # fmt: skip
    if raw and staged:
        factor = staged["seconds"] / raw["seconds"]
        lines.append([f"{name}, 64 KB: raw, faster than by way of the host", f"{SHORT_FACTOR}x",
                      f"{factor:.2f}x", verdict(factor >= SHORT_FACTOR)])  # fmt: skip
    return lines


def arrival_goals(run: Row, name: str) -> list[list[str]]:
    checks = [row["check"]["kept"] for row in run["rows"] if row.get("check")]
    shares = [row["peer"] for row in run["rows"] if "peer" in row and row["job"] != "staged"]
    return [
        [f"{name}: messages that arrived as promised", "all", f"{sum(checks)} of {len(checks)}",
         verdict(all(checks))],
        [f"{name}: of messages, went from GPU to GPU", "all", f"{min(shares):.1%} at least",
         verdict(min(shares) > 0.99)],
    ]  # fmt: skip


def staged_row(run: Row, nbytes: int) -> Row | None:
    return next(iter(rows_of(run, "staged", "wave", nbytes)), None)


def goals(run: Row, name: str) -> list[list[str]]:
    wanted = (share_goals, cut_goals, lossless_goals, short_goals, auto_goals, arrival_goals)
    return [line for of in wanted for line in of(run, name)]


def turns(run: Row, data: str) -> str:
    """Microseconds of all paths by size, and of raw messages how they compare."""
    rows = rows_of(run, "forced", data)
    paths = list(dict.fromkeys(row["path"] for row in rows))
    has_staged = bool(rows_of(run, "staged", data))
    lines = []
    for nbytes in sorted({row["bytes"] for row in rows}):
        found = {path: one(run, path, data, nbytes) for path in paths}
        line = [size(nbytes), *(cell(found[path]) for path in paths)]
        line += [cell(staged_row(run, nbytes))] if has_staged else []
        raw = found["none"] or {}
        lines.append([*line, *(compared(raw, name) for name in REFERENCES)])
    headings = [NAMES.get(path, f"`{path}`") for path in paths]
    headings += [NAMES["staged"]] if has_staged else []
    return table(
        (f"us, {data}", *headings, "raw over one copy", "raw over NCCL"),
        lines,
    )  # fmt: skip


def cell(row: Row | None) -> str:
    if row is None:
        return "-"
    text = f"{row['seconds'] * 1e6:.1f}"
    return f"*{text}*" if row["path"] not in NAMES and row["over_none"] > 1 else text


def compared(row: Row, name: str) -> str:
    if f"over_{name}" not in row:
        return "-"
    low, high = row[f"over_{name}_interval"]
    return f"{row[f'over_{name}']:.3f} ({low:.2f} to {high:.2f})"


def ratios(run: Row) -> str:
    """What `auto` made of messages."""
    rows = [row for row in rows_of(run, "auto") if row["path"] == "auto"]
    sizes = sorted({row["bytes"] for row in rows})
    found = {(row["data"], row["bytes"]): f"{row['ratio']:.2f}" for row in rows}
    lines = [
        [data, *(found.get((data, nbytes), "-") for nbytes in sizes)]
        for data in dict.fromkeys(row["data"] for row in rows)
    ]
    return table(("ratio", *map(size, sizes)), lines)


def timeline(found: Row) -> str:
    """When the pieces of work of one message were queued, and seen done."""
    pieces: dict[str, dict[float, float]] = {}
    for event in found["events"]:
        stage = STAGES.get(event["what"].rpartition(" ")[0])
        if stage:  # what was queued at once is one piece, of several chunks
            ends = pieces.setdefault(stage, {})
            ends[event["begin"]] = max(event["end"], ends.get(event["begin"], 0))
    whole = max(event["end"] for event in found["events"] if event["what"] == "MPI_Recv from 0")
    caption = f"`{found['path']}`, {found['data']}, {size(found['bytes'])}: {whole:.0f} in all"
    rows = [
        [stage, "; ".join(f"{begin:.0f} to {ends[begin]:.0f}" for begin in sorted(ends))]
        for stage, ends in pieces.items()
    ]
    return table((caption, "from when to when"), rows)


def plot(document: Row, path: Path) -> None:
    """Latency by size: a panel a machine."""
    runs = document["runs"]
    plt = result_pictures.pyplot()
    figure, axes = plt.subplots(
        1, len(runs), figsize=(1 + 5 * len(runs), 4.5), layout="constrained", sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axis, whole in zip(axes[0], runs, strict=True):
        run = part(whole, "latency")
        staged = [row | {"path": "staged"} for row in rows_of(run, "staged")]
        rows = [*rows_of(run, "forced", "wave"), *staged]
        named = [row | {"path": NAMES.get(row["path"], row["path"])} for row in rows]
        curves(axis, named, [NAMES[path] for path in (*REFERENCES, "staged")])
        axis.set_title(machine(whole))
    axes[0][0].set_ylabel("microseconds, one way")
    axes[0][0].legend(fontsize=8)
    figure.suptitle("from GPU to GPU")
    result_pictures.save(figure, path, document)


def machine(run: Row) -> str:
    return f"{run['most_ranks']} x {run['gpu']}, commit {run['commit'][:7]}"


def parts(run: Row) -> dict[str, Row]:
    kinds = [("latency", 2), *(("bibandwidth", n) for n in sorted({2, run["most_ranks"]}))]
    return {title(*kind): part(run, *kind) for kind in kinds}


def of_run(run: Row, picture: str) -> list[str]:
    """The rows of one machine, behind `picture`."""
    facts = {key: run[key] for key in ("gpu", "cpu", "mpi", "date", "commit", "most_ranks")}
    found = parts(run)
    lines = [line for name, of in found.items() for line in goals(of, name)]
    texts = [RUN_HEAD.format(**facts), table(("goal", "wanted", "measured", ""), lines), picture]
    for name, of in found.items():
        texts += [f"### {name[0].upper()}{name[1:]}\n", TURNS_HEAD]
        texts += [turns(of, data) for data in ("wave", "turb") if rows_of(of, "forced", data)]
        texts += [AUTO_HEAD, autos(of, "over none"), autos(of, "over NCCL", "nccl"), ratios(of)]
    if "timelines" in run:
        texts += [TIMELINE_HEAD, *map(timeline, run["timelines"])]
    return texts


def section(document: Row, picture: Path) -> str:
    texts = [HEAD.format(generated=GENERATED)]
    for number, run in enumerate(document["runs"]):
        image = f"![Latency of messages from GPU to GPU]({picture.name})\n"
        texts += of_run(run, "" if number else image)
    return "\n".join(text for text in texts if text)
