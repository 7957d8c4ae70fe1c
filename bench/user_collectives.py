"""The topic of docs/performance.md about collective calls."""

import report_collectives as collectives
from machines import Latest, place_of
from report_collective_figures import name_of_way, ways
from tables import table
from user_values import Cell, Row, Topic, extremes, over

from mpress.p2p import jobs

TEXT = """\
## Do collective calls get faster?

Times of calls, over those of others in the same job: the smallest and the largest blocks of `wave`
that were measured, codecs forced; of what was measured again, the latest. "Copies and MPI": the
program copies all out to pageable memory, makes the MPI's call there, and copies all in.
"Messages": the same raw blocks by MPI_Isend and MPI_Irecv under mpress.
"""
AFTER = """\
{missing}NCCL takes what is like the way: the GPUs' own link, host memory, or TCP. Machines and
commits stand [at the end](#where-the-numbers-come-from). [All rows, figures, and where the time
goes](dev/results-collectives.md).
"""
_PEERS = ("nccl", "plain", "mpi")


def topic(document: Row) -> Topic:
    texts, raw, coded, autos = [], [], [], []
    latest = Latest(document["runs"])
    for run in latest.runs:
        lossy = [path for path in dict.fromkeys(row["path"] for row in run["rows"])
                 if is_codec(path)]  # fmt: skip
        for way in ways(run):
            lines = []
            name = name_of_way(run, way)
            for op in collectives.ops(run, way):
                sizes = collectives.sizes(run, way, op)
                if not sizes or not latest.has(run, way, op):
                    continue
                for nbytes in dict.fromkeys((sizes[0], sizes[-1])):
                    case = collectives.of_block(op, nbytes)
                    found = {p: value(run, way, op, "none", nbytes, p) for p in _PEERS}
                    as_messages = value(run, way, op, "none", nbytes, "scattered/none")
                    codecs = [value(run, way, op, path, nbytes, "none") for path in lossy]
                    lines.append([case, *map(over, found.values()), over(as_messages),
                                  *map(over, codecs)])  # fmt: skip
                    raw += [Cell(v, f"over {collectives.label(p)}, {case}, {name}")
                            for p, v in found.items() if v is not None]  # fmt: skip
                    coded += [Cell(v, f"`{path}`, {case}, {name}")
                              for path, v in zip(lossy, codecs, strict=True)
                              if v is not None]  # fmt: skip
            autos += [
                Cell(v, f"{collectives.of_block(row['op'], row['bytes'])}, {row['data']}, {name}")
                for row in collectives.rows_of(run, way, job="auto", path="auto")
                if latest.has(run, way, row["op"], "auto")
                and (v := collectives.over_best(run, row)) is not None
            ]  # fmt: skip
            headings = (f"{name}: {place_of(run)}",
                        *(f"raw over {collectives.label(path)}" for path in _PEERS),
                        "raw over messages", *(f"`{path}` over raw" for path in lossy))  # fmt: skip
            if lines:
                texts.append(table(headings, lines))
    failed = sum(bool(job["failure"]) for run in latest.shown() for job in run["jobs"])
    missing = f"{failed} of the jobs failed; what they lack is named there. " if failed else ""
    text = "\n".join([TEXT, *texts, AFTER.format(missing=missing)])
    questions = (
        ("Collective calls, raw over a peer", raw),
        ("Collective calls, forced codec over raw", coded),
        ("Collective calls, `auto` over the best uncompressed way", autos),
    )
    return Topic(text, [extremes(name, cells) for name, cells in questions if cells])


def is_codec(path: str) -> bool:
    return path not in (*jobs.BASELINES, "none", "auto") and jobs.form_of(path) is None


def value(
    run: Row, way: collectives.Way, op: str, path: str, nbytes: int, other: str
) -> float | None:
    return collectives.over(run, way, op, path, nbytes, (other,))
