"""docs/dev/results-reductions.md: reductions, all paths over all links; the goals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import call_timeline
import report_gzccl
import report_reduction_figures as figures
from report_collective_figures import Way, name_of_way, ways
from report_collectives import (
    AUTO_LIMIT,
    MB,
    arrived,
    auto_table,
    bold,
    cell,
    kind_of,
    label,
    losses,
    machine,
    nearest,
    of_block,
    one,
    ops,
    over,
    over_best,
    ratio,
    rows_of,
    sizes,
)
from report_p2p import size, verdict
from tables import GENERATED, table

from mpress.p2p import jobs

Row = dict[str, Any]

HEAD = """\
# Results: reductions

{generated}
`python bench/reductions.py` measures this; `mpress bench allreduce` and its like any part of it.
Sums of f32, bytes of a rank. A time is that of one call of the rank for which it is longest,
after a barrier; medians, all paths of a link by turns in one job. Raw and codecs are mpress's,
forced. `szp:abs` has the bound of `szp:rel=0.001` and need not find it. "Copies and MPI": the
program copies to pageable memory, makes the MPI's own call there, and copies the result back.
"MPI's own": that call on device memory, which mpress stages unless the MPI takes it. NCCL:
enqueue and synchronise, by what is like the link (each heading says what it might take).
"""
NOT_MEASURED = """\
Calls were not measured yet.
"""
RAW_HEAD = """\
Raw calls, microseconds, and their time over that of others; bold: slower. A dash: not measured.
"""
CODED_HEAD = """\
Codecs: microseconds, and behind them the time over NCCL's, and over that of raw calls; bold:
slower.
"""
ROUNDS_HEAD = """\
Beside the rounds of algorithms as messages, with the codec in every hop as in gZCCL, which bounds
no error of the result; `host-`: staged in memory of the host. Microseconds, and mpress's call
over the fastest; bold: slower.
"""
PARTS_HEAD = """\
Where the time goes, of one traced call, microseconds on the rank for which it took longest. A
part lasts from the end of the part before it to its own last event, so what overlaps counts for
what ends later: the range of the own data; all tell each other theirs; what others sum is
encoded, or copied out; what this rank sums has come; it is summed, encoded, and given to its
readers; what others have summed has come; that is decoded, or copied in. Raw calls of one kernel
have no parts.
"""
TIMES_HEAD = """\
What mpress counted of a call, of the largest size, on the rank that took most, in microseconds.
Chunks overlap, so parts may add up to more than the whole. Encoding includes the sum.
"""
AUTO_HEAD = """\
`auto`, which takes no error, over `none`, and over the best uncompressed way that was measured
beside it; with 95 % intervals of the former. Bold: more than 3 % slower.
"""
NONE_HEAD = """\
`none` over the best of all that compresses nothing, in the same jobs. Bold: more than 3 % slower.
"""

# What is wanted of a way: (operation, data, bytes, path, peer, most of its time). Bytes in a tuple:
# of all sizes up to that, the worst.
_REL, _FINE, _ABS = "szp:rel=0.001", "szp:rel=1e-04", "szp:abs"
_ALL, _SHORT = (256 * MB,), (MB,)
Goal = tuple[str, str, int | tuple[int], str, str, float]
WANTED: dict[str, list[Goal]] = {
    "peer": [
        ("allreduce", "wave", 256 * MB, _REL, "nccl", 1 / 2.2),
        ("allreduce", "turb", 256 * MB, _REL, "nccl", 1 / 1.8),
        ("allreduce", "wave", 256 * MB, _ABS, "nccl", 1 / 2.5),
        ("allreduce", "turb", 256 * MB, _ABS, "nccl", 1 / 2.0),
        ("allreduce", "wave", 64 * MB, _REL, "nccl", 1 / 1.5),
        ("allreduce", "wave", 16 * MB, _REL, "nccl", 1.0),
        *((op, "wave", up_to, "none", "nccl", most) for op in ("allreduce", "reduce_scatter")
          for up_to, most in ((_ALL, 1.0), (_SHORT, 0.7))),
        ("reduce_scatter", "wave", 256 * MB, _REL, "nccl", 1 / 1.7),
    ],
    "host": [
        ("allreduce", "wave", 256 * MB, "none", "nccl", 0.7),
        ("allreduce", "wave", 256 * MB, _FINE, "nccl", 1 / 12),
        ("allreduce", "turb", 256 * MB, _REL, "nccl", 1 / 5.5),
        ("allreduce", "wave", 16 * MB, _FINE, "nccl", 1 / 3),
        ("allreduce", "turb", 16 * MB, _REL, "nccl", 1 / 2),
        ("reduce_scatter", "wave", 256 * MB, _REL, "nccl", 1 / 10),
    ],
    "tcp": [
        ("allreduce", "wave", 256 * MB, _FINE, "nccl", 1 / 6),
        ("allreduce", "wave", 16 * MB, _FINE, "nccl", 1 / 3.5),
    ],
}  # fmt: skip
_OWN_IN_AWARE = ("allreduce", "wave", 16 * MB, "none", "mpi", 1 / 200)


def path_of(run: Row, way: Way, op: str, data: str, begin: str) -> str:
    """As the rows of these data spell it: a bound that is known depends on them."""
    return next((path for path in codecs(run, way, op, data) if path.startswith(begin)), begin)


def codecs(run: Row, way: Way, op: str, data: str) -> list[str]:
    """Raw first."""
    rows = rows_of(run, way, op=op, data=data, job="forced")
    paths = dict.fromkeys(row["path"] for row in rows)
    return [p for p in paths if p not in jobs.BASELINES and jobs.form_of(p) is None]


def data_of(run: Row, way: Way, op: str) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows_of(run, way, op=op, job="forced")))


def goals(run: Row) -> list[list[str]]:
    lines = []
    for way in ways(run):
        kind, name = kind_of(run, way), name_of_way(run, way)
        wanted = list(WANTED.get(kind, ()))
        if kind == "peer" and any(job.get("gpu_aware") for job in run["jobs"]):
            wanted.append(_OWN_IN_AWARE)
        for op, data, wanted_bytes, begin, peer, most in wanted:
            path = path_of(run, way, op, data, begin)
            if isinstance(wanted_bytes, tuple):
                among = [n for n in sizes(run, way, op, data) if n <= wanted_bytes[0]]
            else:
                among = [nearest(run, way, op, wanted_bytes)]
            found = [(value, n) for n in among if n is not None and
                     (value := over(run, way, op, path, n, (peer,), data=data)) is not None
                     ]  # fmt: skip
            if found:
                value, at = max(found)
                worst = f", the worst of {len(found)}" if isinstance(wanted_bytes, tuple) else ""
                lines.append([
                    f"{name}: {of_block(op, at)}, {data}{worst}: {label(path)} over {label(peer)}",
                    f"at most {most:.3g}", f"{value:.3f}", verdict(value <= most),
                ])  # fmt: skip
        lines += auto_goals(run, way, name)
    checks = [row["check"]["kept"] for row in run["rows"] if row.get("check")]
    if checks:
        lines.append(["what came, where that was looked at", "as promised",
                      f"{sum(checks)} of {len(checks)}", verdict(all(checks))])  # fmt: skip
    return lines


def auto_goals(run: Row, way: Way, name: str) -> list[list[str]]:
    lines = []
    for path in ("auto", "none"):
        found = [(value, row) for row in rows_of(run, way, job="auto", path=path)
                 if (value := over_best(run, row)) is not None]  # fmt: skip
        if found:
            value, row = max(found, key=lambda one: one[0])
            lines.append([
                f"{name}: `{path}` over the best uncompressed way, the worst of {len(found)} "
                f"({of_block(row['op'], row['bytes'])}, {row['data']})",
                f"at most {AUTO_LIMIT}", f"{value:.3f}", verdict(value <= AUTO_LIMIT),
            ])  # fmt: skip
    return lines


def raw_table(run: Row, way: Way, op: str, data: str) -> str:
    beside = [path for path in ("nccl", "mpi", "plain")
              if rows_of(run, way, op=op, data=data, path=path, job="forced")]  # fmt: skip
    lines = []
    for nbytes in sizes(run, way, op, data):
        raw = one(run, way, op, "none", nbytes, data=data)
        others = [one(run, way, op, path, nbytes, data=data) for path in beside]
        lines.append([
            size(nbytes), cell(raw, None), *(cell(other, None) for other in others),
            *(bold(ratio(raw, other)) for other in others),
        ])  # fmt: skip
    headings = (f"us, {op}", "raw", *map(label, beside), *(f"over {label(p)}" for p in beside))
    return table(headings, lines)


def coded_table(run: Row, way: Way, op: str, data: str) -> str:
    paths = [path for path in codecs(run, way, op, data) if path != "none"]
    lines = []
    for nbytes in sizes(run, way, op, data):
        cells = [coded_cell(run, way, op, data, path, nbytes) for path in paths]
        if any(text != "-" for text in cells):
            raw, nccl = (one(run, way, op, p, nbytes, data=data) for p in ("none", "nccl"))
            lines.append([size(nbytes), cell(raw, None), cell(nccl, None), *cells])
    return table((f"us, {op}, {data}", "raw", "NCCL", *map(label, paths)), lines) if lines else ""


def coded_cell(run: Row, way: Way, op: str, data: str, path: str, nbytes: int) -> str:
    row = one(run, way, op, path, nbytes, data=data)
    if row is None:
        return "-"
    overs = [bold(over(run, way, op, path, nbytes, (peer,), data=data))
             for peer in ("nccl", "none")]  # fmt: skip
    return f"{cell(row, None)}: {' / '.join(overs)}"


def rounds_table(run: Row, way: Way, op: str) -> str:
    rows = rows_of(run, way, op=op, job="forced")
    forms = [f for f in jobs.forms_of(op) if any(jobs.form_of(r["path"]) == f for r in rows)]
    specs = dict.fromkeys(jobs.codec_of(r["path"]) for r in rows if jobs.form_of(r["path"]))
    lines = []
    for nbytes in sizes(run, way, op):
        for spec in specs:
            paths = [form + jobs.FORM + spec for form in forms]
            found = [one(run, way, op, path, nbytes) for path in paths]
            if any(found):
                lines.append([
                    f"{size(nbytes)}, {label(spec)}", cell(one(run, way, op, spec, nbytes), None),
                    *(cell(row, None) for row in found),
                    bold(over(run, way, op, spec, nbytes, paths)),
                ])  # fmt: skip
    return table((f"us, {op}", "the call", *forms, "call over the fastest"), lines) if lines else ""


def parts_table(run: Row, way: Way) -> str:
    lines = []
    for one_of in run.get("timelines", ()):
        if (one_of["link"], one_of["transport"]) == way:
            found = call_timeline.parts(one_of, run["ranks"])
            lines.append([
                f"{of_block(one_of['op'], one_of['bytes'])}, {one_of['data']}, "
                f"{label(one_of['path'])}",
                *(f"{found[part]:.0f}" if part in found else "-"
                  for part in ("call", *call_timeline.PARTS)),
            ])  # fmt: skip
    return table(("us", "call", *call_timeline.PARTS), lines) if lines else ""


def times_table(run: Row, way: Way) -> str:
    lines = []
    for op in ops(run, way):
        for data in data_of(run, way, op)[: None if op == "allreduce" else 1]:
            nbytes = max(sizes(run, way, op, data))
            for path in codecs(run, way, op, data):
                row = one(run, way, op, path, nbytes, data=data)
                if row is None or "ratio" not in row:
                    continue
                parts = (row[name] for name in ("seconds", *jobs.TIMES))
                lines.append([
                    f"{of_block(op, nbytes)}, {data}, {label(path)}",
                    *(f"{part * 1e6:.0f}" for part in parts), f"{row['ratio']:.2f}",
                ])  # fmt: skip
    headings = ("us", "call", "encode", "decode", "wait", "ratio")
    return table(headings, lines) if lines else ""


def none_table(run: Row, way: Way) -> str:
    lines = [
        [f"{of_block(row['op'], row['bytes'])}, {row['data']}", cell(row, None),
         bold(over_best(run, row), AUTO_LIMIT)]
        for row in rows_of(run, way, job="auto", path="none")
    ]  # fmt: skip
    return table(("call", "us", "over the best"), lines) if lines else ""


def accuracy_table(run: Row) -> str:
    """The largest errors, where there is a promise, and where hops have none: of MPI_Allreduce, of
    the largest size that was looked at, by the first link."""
    rows = [row for row in run["rows"] if row["op"] == "allreduce" and row["job"] == "forced"
            and row.get("check") and row["check"]["promise"] != "exact"
            and (row["link"], row["transport"]) == ways(run)[0]]  # fmt: skip
    most = {row["data"]: max(r["bytes"] for r in rows if r["data"] == row["data"]) for row in rows}
    lines = []
    for row in rows:
        if row["bytes"] == most[row["data"]]:
            bound = row["check"].get("bound")
            lines.append([
                f"{of_block(row['op'], row['bytes'])}, {row['data']}, {label(row['path'])}",
                f"{row['check']['max_error']:.3g}", f"{bound:.3g}" if bound else "none",
                arrived(row),
            ])  # fmt: skip
    headings = ("largest error of a result", "error", "promised", "kept")
    return table(headings, lines) if lines else ""


def of_way(run: Row, way: Way) -> list[str]:
    may = {job["nccl"] for job in run["jobs"] if (job["link"], job["transport"]) == way}
    may_take = ", ".join(sorted(filter(None, may)))
    parts = [f"### {name_of_way(run, way)}" + (f" (NCCL: {may_take})" if may_take else "") + "\n"]
    measured = [(op, data) for op in ops(run, way) for data in data_of(run, way, op)]
    first = {op: data_of(run, way, op)[0] for op, _ in measured}
    some = [
        (RAW_HEAD, [raw_table(run, way, op, data) for op, data in first.items()]),
        (CODED_HEAD, [coded_table(run, way, op, data) for op, data in measured]),
        (ROUNDS_HEAD, [rounds_table(run, way, op) for op in first]),
        (PARTS_HEAD, [parts_table(run, way)]),
        (TIMES_HEAD, [times_table(run, way)]),
        (NONE_HEAD, [none_table(run, way)]),
    ]
    if rows_of(run, way, job="auto", path="auto"):
        some.append((AUTO_HEAD, [auto_table(run, way)]))
    for head, tables in some:
        if any(tables):
            parts += [head, *filter(None, tables)]
    return parts


def section(found: Row, pictures: dict[str, Path]) -> str:
    """Of reductions, the quality of szp, and the codec on a GPU, as far as they are there."""
    runs: Sequence[Row] = found.get("reductions", {"runs": []})["runs"]
    parts = [HEAD.format(generated=GENERATED), *([] if runs else [NOT_MEASURED])]
    shown = figures.shown(found)
    for run in runs:
        lost = losses(run)
        parts += [
            f"## {machine(run)}, {run['ranks']} ranks, {run['memory']} memory, {run['mpi']}\n",
            f"{run['date']}, commit {run['commit']}; {run['seconds']:.0f} s in all."
            + (f" Of this run: {run['note']}." if "note" in run else "") + "\n",
            *(["\n".join(lost) + "\n"] if lost else []),
        ]  # fmt: skip
        if lines := goals(run):
            parts.append(table(("goal", "wanted", "measured", ""), lines))
        if run is runs[0] and "sizes" in shown:
            figure = figures.FIGURES["sizes"]
            parts += [f"![{figure.title}]({pictures['sizes'].name})\n", figure.caption]
        for way in ways(run):
            parts += of_way(run, way)
        if errors := accuracy_table(run):
            parts += ["### What came\n", errors]
    parts += report_gzccl.section(found, pictures, shown)
    return "\n".join(parts)
