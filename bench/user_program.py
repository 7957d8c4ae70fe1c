"""The topic of docs/performance.md about a program."""

from report_wave import by, raw_of
from tables import table
from user_values import Cell, Row, Topic, commits, extremes, over

TEXT = """\
## What does a program gain?

`apps/wave`, a wave propagation code: {box} cells a rank, {halo} layers of halo straight from and to
GPU memory, by {transport} between ranks of one host, codecs forced. "Waiting" is the share of a
step in which the GPU has nothing to compute because halos are in flight.
"""
AFTER = """\
TCP is a slow link; on a faster one there is less to gain. One rank alone takes {alone:.3f} ms a
step: the rest is communication. Errors are those of the last step, as fractions of the largest
pressure, in a run of {error_box} cells a rank.

{gpus} x {gpu}; {cpu}; {mpi}; {date}, commit {commit}. [All rows, pictures, and a projection to more
ranks](dev/results-wave.md).
"""


def topic(document: Row) -> Topic:
    rows = document["rows"]
    errors = {row["spec"]: row for row in document["accuracy"]["rows"]}
    lines, cells = [], []
    for row in (row for row in rows if row["ranks"] > 1):
        raw = raw_of(rows, row["ranks"])
        share = row["step_seconds"] / raw["step_seconds"]
        is_raw = row["spec"] == "none"
        error = errors.get(row["spec"])
        told = "-" if error is None else (
            "same bits" if error["max_error"] == 0
            else f"{error['max_error']:.1e} / {error['rms_error']:.1e}"
        )  # fmt: skip
        lines.append([
            f"{row['ranks']} ranks, " + ("raw" if is_raw else f"`{row['spec']}`"),
            f"{1e3 * row['step_seconds']:.2f}", "-" if is_raw else over(share),
            f"{row['waited_share']:.0%}",
            "-" if is_raw else f"{row['raw_bytes'] / row['wire_bytes']:.2f}", told,
        ])  # fmt: skip
        if not is_raw:
            cells.append(Cell(share, f"`{row['spec']}`, {row['ranks']} ranks"))
    facts = {key: document[key] for key in ("cpu", "mpi", "date")}
    text = "\n".join([
        TEXT.format(box=by(document["box"]), halo=document["halo"],
                    transport=rows[0]["transport"].upper()),
        table(("", "ms a step", "step over raw", "waiting", "bytes shrink by",
               "error: largest / r.m.s."), lines),
        AFTER.format(
            **facts, alone=1e3 * raw_of(rows, 1)["step_seconds"], gpus=len(document["gpus"]),
            gpu=document["gpus"][0], error_box=by(document["accuracy"]["box"]),
            commit=commits(document),
        ),
    ])  # fmt: skip
    return Topic(text, [extremes("A step of `apps/wave` over TCP, codec over raw", cells)])
