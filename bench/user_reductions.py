"""The topic of docs/performance.md about reductions."""

import report_reductions as reductions
from machines import Latest, place_of
from report_collective_figures import Way, name_of_way, ways
from report_collectives import (
    label,
    nearest,
    of_block,
    ops,
    over_best,
    rows_of,
    sizes,
)
from report_collectives import over as over_fastest
from tables import table
from user_values import Cell, Row, Topic, extremes, over

MB = 1 << 20
TEXT = """\
## Do reductions get faster?

MPI_SUM of f32 in memory of GPUs, times over those of others in the same job, codecs forced; of what
was measured again, the latest. Sizes are bytes of a rank. First raw calls, beside NCCL, the MPI's
own call, and a program that copies to pageable memory and back; then codecs over NCCL, and over raw
calls. `szp` bounds the error of the result, and `szp:abs` has the bound of `szp:rel=0.001`, but
need not find it.
"""
AFTER = """\
{missing}NCCL takes what is like the way: the GPUs' own link, host memory, or TCP. Machines and
commits stand [at the end](#where-the-numbers-come-from). [All rows, figures, where the time
goes, and gZCCL's tables and figures](dev/results-reductions.md).
"""
_PEERS = ("nccl", "mpi", "plain")
_SHOWN = (0, MB, 16 * MB, 256 * MB)  # or what was measured near them


class _Cells:
    """What the first table of the page has of each question."""

    def __init__(self) -> None:
        self.raw: list[Cell] = []
        self.over_nccl: list[Cell] = []
        self.over_raw: list[Cell] = []
        self.autos: list[Cell] = []

    def lines(self) -> list[list[str]]:
        questions = (
            ("Reductions, raw over NCCL", self.raw),
            ("Reductions, forced codec over NCCL", self.over_nccl),
            ("Reductions, forced codec over raw", self.over_raw),
            ("Reductions, `auto` over the best uncompressed way", self.autos),
        )
        return [extremes(name, cells) for name, cells in questions if cells]


def topic(document: Row) -> Topic:
    cells, texts = _Cells(), []
    latest = Latest(document["runs"])
    for run in latest.runs:
        for way in ways(run):
            shown_ops = [
                op
                for op in ops(run, way)
                if reductions.data_of(run, way, op) and latest.has(run, way, op)
            ]
            both = raw(run, way, shown_ops, cells), coded(run, way, shown_ops, cells)
            texts += [text for text in both if text]
            name = name_of_way(run, way)
            cells.autos += [
                Cell(value, f"{of_block(row['op'], row['bytes'])}, {row['data']}, {name}")
                for row in rows_of(run, way, job="auto", path="auto")
                if latest.has(run, way, row["op"], "auto")
                and (value := over_best(run, row)) is not None
            ]
    failed = sum(bool(job["failure"]) for run in latest.shown() for job in run["jobs"])
    missing = f"{failed} of the jobs failed; what they lack is named there. " if failed else ""
    text = "\n".join([TEXT, *texts, AFTER.format(missing=missing)])
    return Topic(text, cells.lines())


def shown(run: Row, way: Way, op: str, data: str) -> list[int]:
    """The shortest, and some others."""
    found = sizes(run, way, op, data)
    near = (found[0] if wanted == 0 else nearest(run, way, op, wanted) for wanted in _SHOWN)
    return sorted({nbytes for nbytes in near if nbytes in found})


def raw(run: Row, way: Way, wanted: list[str], cells: _Cells) -> str:
    lines, name = [], name_of_way(run, way)
    for op in wanted:
        for data in reductions.data_of(run, way, op)[:1]:
            every = {n: [over_fastest(run, way, op, "none", n, (peer,), data=data)
                         for peer in _PEERS] for n in sizes(run, way, op, data)}  # fmt: skip
            cells.raw += [Cell(values[0], f"{of_block(op, n)}, {name}")
                          for n, values in every.items() if values[0] is not None]  # fmt: skip
            lines += [[of_block(op, n), *map(over, every[n])] for n in shown(run, way, op, data)]
    headings = (f"{name}: {place_of(run)}", *(f"raw over {label(p)}" for p in _PEERS))
    return table(headings, lines) if lines else ""


def coded(run: Row, way: Way, wanted: list[str], cells: _Cells) -> str:
    lines, name = [], name_of_way(run, way)
    measured = [(op, data) for op in wanted for data in reductions.data_of(run, way, op)]
    begins = list(dict.fromkeys(
        begin_of(path) for op, data in measured for path in reductions.codecs(run, way, op, data)
        if path != "none"
    ))  # fmt: skip
    for op, data in measured:
        for nbytes in sizes(run, way, op, data):
            line = []
            for begin in begins:
                path = reductions.path_of(run, way, op, data, begin)
                values = [over_fastest(run, way, op, path, nbytes, (peer,), data=data)
                          for peer in ("nccl", "none")]  # fmt: skip
                case = f"`{begin}`, {of_block(op, nbytes)}, {data}, {name}"
                for value, kept in zip(values, (cells.over_nccl, cells.over_raw), strict=True):
                    kept += [Cell(value, case)] if value is not None else []
                line.append("-" if values == [None, None] else " / ".join(map(over, values)))
            is_shown = op == "allreduce" or data == measured[0][1]
            if is_shown and nbytes in shown(run, way, op, data) and set(line) - {"-"}:
                lines.append([f"{of_block(op, nbytes)}, {data}", *line])
    first = f"{name}: {place_of(run)}: over NCCL / over raw"
    headings = (first, *(f"`{begin}`" for begin in begins))
    return table(headings, lines) if lines else ""


def begin_of(path: str) -> str:
    """Of a bound that depends on the data, the name alone."""
    return "szp:abs" if path.startswith("szp:abs=") else path
