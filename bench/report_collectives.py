"""docs/dev/results-collectives.md: collective calls, all paths over all links; the goals."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from report_collective_figures import FIGURES, name_of_way, way_taken, ways
from report_p2p import size, verdict
from tables import GENERATED, table

from mpress.p2p import jobs

Row = dict[str, Any]
Way = tuple[str | None, str]  # link, transport

MB = 1 << 20
AUTO_LIMIT = 1.03
_NEAR = 2  # powers of two
UNITS = {
    "alltoall": "a pair", "alltoallv": "a pair, on average", "allgather": "a rank",
    "scatter": "a rank", "gather": "a rank", "bcast": "in all",
    "allreduce": "a rank", "reduce_scatter": "a rank", "reduce": "a rank",
}  # fmt: skip
UNCOMPRESSED = ("none", "mpi", "nccl", "scattered/none")
NAMES = {"none": "raw", "mpi": "MPI's own", "nccl": "NCCL", "plain": "copies and MPI"}

HEAD = """\
# Results: collective calls

{generated}
`python bench/collectives.py` measures this; `mpress bench alltoall` and its like any part of it. A
time is that of one call of the rank for which it is longest, after a barrier; medians, all paths of
a link by turns in one job. Raw and codecs are mpress's, forced. "Copies and MPI": the program
copies all out to pageable memory, makes the MPI's own call there, and copies all in. "MPI's own":
that call on device memory, which mpress stages unless the MPI takes it. NCCL: enqueue and
synchronise, by what is like the link (each heading says what it might take). "As messages": the
same blocks by MPI_Irecv and MPI_Isend all at once (`scattered`), or in rounds of MPI_Sendrecv
(`pairwise`); these, and NCCL's groups, leave out what a rank has for itself.
"""
MAIN_HEAD = """\
Microseconds; in italics where a codec is slower than raw blocks, in bold where raw blocks are
slower than the peer. A dash: not measured.
"""
FORMS_HEAD = """\
As messages, microseconds, and mpress's call over the better of both; bold: slower.
"""
AUTO_HEAD = """\
`auto`, which takes no error, over `none`, and over the best uncompressed way that was measured
beside it; with 95 % intervals of the former. Bold: more than 3 % slower.
"""
TIMES_HEAD = """\
Where the time goes, of the largest blocks: what mpress counted of a call, on the rank that took
most, in microseconds. Chunks overlap, so parts may add up to more than the whole. Calls that MPI
served are not there.
"""


def matching(run: Row, way: Way | None, wanted: dict[str, Any]) -> Iterator[Row]:
    if way:
        wanted = {**wanted, "link": way[0], "transport": way[1]}
    for row in run["rows"]:
        for name, value in wanted.items():  # pages ask so often that a loop's speed is felt
            if row.get(name) != value:
                break
        else:
            yield row


def rows_of(run: Row, way: Way | None = None, **wanted: Any) -> list[Row]:
    return list(matching(run, way, wanted))


def one(
    run: Row, way: Way, op: str, path: str, nbytes: int, *, data: str = "wave", job: str = "forced"
) -> Row | None:
    wanted = {"bytes": nbytes, "path": path, "op": op, "data": data, "job": job}
    return next(matching(run, way, wanted), None)


def sizes(run: Row, way: Way, op: str, data: str = "wave", job: str = "forced") -> list[int]:
    return sorted({row["bytes"] for row in rows_of(run, way, op=op, data=data, job=job)})


def ops(run: Row, way: Way) -> list[str]:
    found = {row["op"] for row in rows_of(run, way)}
    return [op for op in UNITS if op in found]


def nearest(run: Row, way: Way, op: str, nbytes: int) -> int | None:
    """The measured size that is most like one that is wanted; None where none is like it."""
    found = [one for one in sizes(run, way, op) if abs(math.log2(one / nbytes)) <= _NEAR]
    return min(found, key=lambda one: abs(math.log2(one / nbytes)), default=None)


def ratio(mine: Row | None, other: Row | None) -> float | None:
    return mine["seconds"] / other["seconds"] if mine and other else None


def over(
    run: Row, way: Way, op: str, path: str, nbytes: int, others: Sequence[str], **where: str
) -> float | None:
    """A path's time over that of the fastest of others."""
    rows = [row for other in others if (row := one(run, way, op, other, nbytes, **where))]
    mine = one(run, way, op, path, nbytes, **where)
    return ratio(mine, min(rows, key=seconds, default=None))


def seconds(row: Row) -> float:
    return row["seconds"]


def machine(run: Row) -> str:
    return f"{run['gpus']} x {run['gpu']}" if run["gpu"] else run["cpu"]


def of_block(op: str, nbytes: int) -> str:
    return f"{op}, {size(nbytes)} {UNITS[op]}"


def spec_of(run: Row, begin: str) -> str:
    """As the rows spell it."""
    paths = dict.fromkeys(row["path"] for row in run["rows"])
    return next((path for path in paths if path.startswith(begin)), begin)


# What is wanted of a way: (operation, bytes, codec, peers, most of their time). Bytes are of a
# block, but of all-gather and scatter in all; None: of all that were measured, the worst.
_SZP = "szp:rel"
_RAW_PEER = [(op, None, "none", ("nccl",), 1.0) for op in ("alltoall", "allgather", "bcast")]
WANTED: dict[str, list[tuple[str, int | None, str, tuple[str, ...], float]]] = {
    "peer": [
        *_RAW_PEER,
        ("alltoall", 64 * MB, "zfp:4", ("none", "nccl"), 0.45),
        ("alltoall", 64 * MB, _SZP, ("none", "nccl"), 0.55),
        ("allgather", 256 * MB, "zfp:4", ("none", "nccl"), 0.35),
        ("allgather", 256 * MB, _SZP, ("none", "nccl"), 0.43),
        ("bcast", 256 * MB, "zfp:4", ("none", "nccl"), 0.35),
        ("bcast", 256 * MB, _SZP, ("none", "nccl"), 0.43),
        ("alltoallv", 16 * MB, "none", ("scattered/none",), 1.0),
    ],
    "host": [
        ("allgather", 256 * MB, "none", ("nccl",), 0.6),
        ("bcast", 256 * MB, "none", ("nccl",), 0.6),
        ("alltoall", 64 * MB, "none", ("nccl",), 0.8),
        ("alltoall", 16 * MB, "zfp:4", ("nccl",), 0.2),
        ("alltoall", 16 * MB, _SZP, ("nccl",), 0.15),
        ("alltoallv", 16 * MB, "none", ("scattered/none",), 1.0),
    ],
    "tcp": [
        ("alltoall", 16 * MB, "zfp:4", ("plain",), 0.13),
        ("alltoall", 16 * MB, "zfp:4", ("none",), 0.16),
        ("alltoall", 16 * MB, "zfp:24", ("scattered/zfp:24", "pairwise/zfp:24"), 1.0),
        ("alltoall", 16 * MB, "zfp:24", ("none",), 0.8),
        ("bcast", 16 * MB, "zfp:4", ("plain",), 0.15),
        ("allgather", 16 * MB, "zfp:4", ("plain",), 0.16),
        ("scatter", 256 * MB, _SZP, ("plain",), 1 / 15),
    ],
}


def kind_of(run: Row, way: Way) -> str:
    """Whose goals are a way's: peer, host, tcp, or mpi, which has none."""
    return "tcp" if way[1] == "tcp" else way_taken(run, way) or "mpi"


def goals(run: Row) -> list[list[str]]:
    lines = []
    for way in ways(run):
        name = name_of_way(run, way)
        for op, nbytes, begin, others, most in WANTED.get(kind_of(run, way), ()):
            path = spec_of(run, begin)
            wanted = nbytes
            if nbytes is not None and op in ("allgather", "scatter"):
                wanted = nbytes // run["ranks"]
            among = sizes(run, way, op) if wanted is None else [nearest(run, way, op, wanted)]
            found = [(value, n) for n in among if n is not None
                     and (value := over(run, way, op, path, n, others)) is not None]  # fmt: skip
            if not found:
                continue
            value, at = max(found)
            worst = f", the worst of {len(found)}" if wanted is None else ""
            peers = " and ".join(label(other) for other in others)
            lines.append([
                f"{name}: {of_block(op, at)}{worst}: {label(path)} over "
                f"{'the faster of ' if len(others) > 1 else ''}{peers}",
                f"at most {most:.2f}", f"{value:.3f}", verdict(value <= most),
            ])  # fmt: skip
        lines += auto_goals(run, way, name)
    checks = [row["check"]["kept"] for row in run["rows"] if row.get("check")]
    lines.append(["what arrived, where that was looked at", "as promised",
                  f"{sum(checks)} of {len(checks)}", verdict(all(checks))])  # fmt: skip
    return lines


def auto_goals(run: Row, way: Way, name: str) -> list[list[str]]:
    found = [(value, row) for row in rows_of(run, way, job="auto", path="auto")
             if (value := over_best(run, row)) is not None]  # fmt: skip
    if not found:
        return []
    value, row = max(found, key=lambda one: one[0])
    return [[
        f"{name}: `auto` over the best uncompressed way, the worst of {len(found)} "
        f"({of_block(row['op'], row['bytes'])}, {row['data']})",
        f"at most {AUTO_LIMIT}", f"{value:.3f}", verdict(value <= AUTO_LIMIT),
    ]]  # fmt: skip


def over_best(run: Row, row: Row) -> float | None:
    """`auto` over the fastest of what compresses nothing, in the same job."""
    way, where = (row["link"], row["transport"]), {"data": row["data"], "job": "auto"}
    rows = [other for path in UNCOMPRESSED
            if (other := one(run, way, row["op"], path, row["bytes"], **where))]  # fmt: skip
    return ratio(row, min(rows, key=seconds, default=None))


def label(path: str) -> str:
    return NAMES.get(path, f"`{path}`")


def codecs(run: Row, way: Way, op: str) -> list[str]:
    """Raw first."""
    paths = dict.fromkeys(row["path"] for row in rows_of(run, way, op=op, job="forced"))
    return [p for p in paths if p not in jobs.BASELINES and jobs.form_of(p) is None]


def main_table(run: Row, way: Way, op: str) -> str:
    own = codecs(run, way, op)
    beside = [path for path in ("mpi", "plain", "nccl")
              if rows_of(run, way, op=op, path=path, job="forced")]  # fmt: skip
    lines = []
    for nbytes in sizes(run, way, op):
        found = {path: one(run, way, op, path, nbytes) for path in (*own, *beside)}
        raw = found.get("none")
        lines.append([
            size(nbytes), *(cell(found[path], raw) for path in own),
            *(cell(found[path], None) for path in beside),
            *(bold(ratio(raw, found[path])) for path in beside),
        ])  # fmt: skip
    headings = (f"us, {op}, {UNITS[op]}", *map(label, own), *map(label, beside),
                *(f"raw over {label(path)}" for path in beside))  # fmt: skip
    return table(headings, lines)


def cell(row: Row | None, raw: Row | None) -> str:
    if row is None:
        return "-"
    text = f"{row['seconds'] * 1e6:.0f}" if row["seconds"] > 1e-4 else f"{row['seconds'] * 1e6:.1f}"
    is_slower = raw is not None and row is not raw and row["seconds"] > raw["seconds"]
    return f"*{text}*" if is_slower else text


def bold(value: float | None, limit: float = 1.0) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}"
    return f"**{text}**" if value > limit else text


def forms_table(run: Row, way: Way, op: str) -> str:
    lines = []
    specs = [spec for spec in codecs(run, way, op)
             if rows_of(run, way, op=op, path=f"scattered/{spec}", job="forced")]  # fmt: skip
    for nbytes in sizes(run, way, op):
        for spec in specs:
            paths = [f"{form}{jobs.FORM}{spec}" for form in jobs.FORMS]
            found = [one(run, way, op, path, nbytes) for path in paths]
            if any(found):
                lines.append([
                    f"{size(nbytes)}, {label(spec)}", *(cell(row, None) for row in found),
                    bold(over(run, way, op, spec, nbytes, paths)),
                ])  # fmt: skip
    return table((f"us, {op}, {UNITS[op]}", *jobs.FORMS, "call over the better"), lines)


def auto_table(run: Row, way: Way) -> str:
    lines = []
    for row in rows_of(run, way, job="auto", path="auto"):
        low, high = row["over_none_interval"]
        lines.append([
            f"{of_block(row['op'], row['bytes'])}, {row['data']}", f"{row['seconds'] * 1e6:.0f}",
            f"{bold(row['over_none'], AUTO_LIMIT)} ({low:.2f} to {high:.2f})",
            bold(over_best(run, row), AUTO_LIMIT),
            f"{row['ratio']:.2f}" if "ratio" in row else "-",
        ])  # fmt: skip
    return table(("call", "us", "over `none`", "over the best", "ratio"), lines)


def times_table(run: Row, way: Way) -> str:
    lines = []
    for op in ops(run, way):
        for path in codecs(run, way, op):
            nbytes = max(sizes(run, way, op), default=0)
            row = one(run, way, op, path, nbytes)
            if row is None or "ratio" not in row:
                continue
            parts = (row[name] for name in ("seconds", *jobs.TIMES))
            lines.append([
                f"{of_block(op, nbytes)}, {label(path)}", *(f"{part * 1e6:.0f}" for part in parts),
                f"{row['ratio']:.2f}", row["way"], arrived(row),
            ])  # fmt: skip
    return table(("us", "call", "encode", "decode", "wait", "ratio", "way", "arrived"), lines)


def arrived(row: Row) -> str:
    check = row.get("check")
    return "not looked at" if check is None else "as promised" if check["kept"] else "**broken**"


def losses(run: Row) -> list[str]:
    """What failed, and what no time was left for."""
    found = []
    for job in run["jobs"]:
        name = f"{job['job']}, {name_of_way(run, (job['link'], job['transport']))}"
        left = "; ".join(left_out(job["left_out"]))
        if job["failure"]:
            said = job["failure"].partition("\n===")[0]  # what the launcher adds does not count
            found.append(f"- {name}: failed: {' '.join(said.split())[:200]}")
        if left:
            found.append(f"- {name}: not measured: {left}")
    return found


def left_out(cases: Sequence[Row]) -> list[str]:
    """By operation and data."""
    found: dict[tuple[str, str], list[int]] = {}
    for case in cases:
        found.setdefault((case["op"], case["data"]), []).append(case["bytes"])
    return [f"{op} of {data} ({', '.join(map(size, sorted(every)))} {UNITS[op]})"
            for (op, data), every in found.items()]  # fmt: skip


def of_way(run: Row, way: Way) -> list[str]:
    may = {job["nccl"] for job in run["jobs"] if (job["link"], job["transport"]) == way}
    may_take = ", ".join(sorted(filter(None, may)))
    parts = [f"### {name_of_way(run, way)}" + (f" (NCCL: {may_take})" if may_take else "") + "\n"]
    parts += [MAIN_HEAD, *(main_table(run, way, op) for op in ops(run, way) if sizes(run, way, op))]
    with_forms = [op for op in ops(run, way) if any(
        jobs.form_of(row["path"]) for row in rows_of(run, way, op=op, job="forced")
    )]  # fmt: skip
    if with_forms:
        parts += [FORMS_HEAD, *(forms_table(run, way, op) for op in with_forms)]
    parts += [TIMES_HEAD, times_table(run, way)]
    if rows_of(run, way, job="auto", path="auto"):
        parts += [AUTO_HEAD, auto_table(run, way)]
    return parts


def section(document: Row, pictures: dict[str, Path]) -> str:
    parts = [HEAD.format(generated=GENERATED)]
    for number, run in enumerate(document["runs"]):
        lost = losses(run)
        parts += [
            f"## {machine(run)}, {run['ranks']} ranks, {run['memory']} memory, {run['mpi']}\n",
            f"{run['date']}, commit {run['commit']}; {run['seconds']:.0f} s in all."
            + (f" Of this run: {run['note']}." if "note" in run else "") + "\n",
            *(["\n".join(lost) + "\n"] if lost else []),
            table(("goal", "wanted", "measured", ""), goals(run)),
        ]  # fmt: skip
        if number == 0:
            for name, figure in FIGURES.items():
                parts += [f"![{figure.title}]({pictures[name].name})\n", figure.caption]
        for way in ways(run):
            parts += of_way(run, way)
    return "\n".join(parts)
