"""Write docs/dev/results-model.md and its picture from bench/results/model-check.json, of
bench/model_check.py: what `mpress simulate` predicts beside what was measured."""

import json
import math
from pathlib import Path
from typing import Any

import result_pictures
from tables import filled, generated_by, table

from mpress import _core
from mpress.cli import simulate_beside
from mpress.collective_model import Call, Codec, Network, Row
from mpress.p2p import jobs

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "model-check.json"
PAGE = ROOT / "docs" / "dev" / "results-model.md"
PICTURE = PAGE.parent / "model-check.svg"
NEAR = 1.2

TEXT = """\
# Results: the model beside measurements

{generated}
`python bench/model_check.py` measures calls between network namespaces as hosts, one rank each;
TCP; memory of the host; the field turb in single precision; medians. The model
([simulate.md](../simulate.md)) then says what they take: nothing is fitted. It gets the rate and
the latency of single messages between two hosts ({rate:.1f} Mbit/s of {nominal:g}, {latency:.0f}
us), the ratios that were seen, and the times of codecs on one core, times the ranks a core. {mpi};
{cpu}, {cores} cores for all ranks; {date}, commit `{commit}`. Within 20 %: {near} of {all}.

Algorithms are fixed (`MPRESS_ALGORITHM`), and `UCX_RNDV_SCHEME=am` keeps both directions of an
exchange under way. "Its own": mpress's call by the algorithm that is named. "In messages": that
algorithm written with messages, a codec in each.
"""
AFTER = """\
![Predicted over measured, by the time that was measured]({picture})

The whole of it, in milliseconds:
"""


def is_near(row: Row) -> bool:
    return abs(math.log(over(row))) <= math.log(NEAR)


def over(row: Row) -> float:
    return row["model_seconds"] / row["measured_seconds"]


def spec_of(row: Row) -> str:
    return row["path"].rpartition(simulate_beside.FORM)[2]


def compared(document: dict[str, Any]) -> tuple[Network, list[Row]]:
    """The network, and the rows with what the model says of each."""
    network = Network(document["link"]["rate"], document["link"]["latency"])
    rows = []
    for run in document["runs"]:
        call = Call(run["benchmark"], 0)
        crowd = max(1.0, run["ranks"] / document["cores"])
        ours = [row for row in run["rows"] if row["path"] not in jobs.BASELINES]
        for spec in dict.fromkeys(map(spec_of, ours)):
            known = document["codecs"].get(_core.describe(spec)["codec"])
            curves = [
                {size: crowd * seconds for size, seconds in points}
                for points in known or ([(0, 0)], [(0, 0)])
            ]
            codec = Codec(spec if known else "mpc", 1.0, *curves)
            own = run | {"rows": [row for row in ours if spec_of(row) == spec]}
            found = simulate_beside.compare(own, call, network, codec)
            rows += [row | {"op": run["benchmark"], "spec": spec} for row in found]
    return network, rows


def summary(rows: list[Row]) -> str:
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in rows:
        whose = "in messages" if simulate_beside.FORM in row["path"] else "its own"
        groups.setdefault((row["ranks"], row["spec"], whose), []).append(row)
    lines = [
        [f"{ranks} hosts, `{spec}`, {whose}", f"{sum(map(is_near, own))} of {len(own)}",
         f"{min(map(over, own)):.2f}", f"{max(map(over, own)):.2f}"]
        for (ranks, spec, whose), own in groups.items()
    ]  # fmt: skip
    return table(["rows", "within 20 %", "model over measured, least", "most"], lines)


def whole(rows: list[Row]) -> str:
    lines = [
        [f"{row['ranks']} hosts, {row['op']}, {row['bytes'] >> 10}K, `{row['path']}`",
         row["algorithm"], f"{row['ratio']:.1f}", f"{1e3 * row['measured_seconds']:.3g}",
         f"{1e3 * row['model_seconds']:.3g}", f"{over(row):.2f}" if is_near(row)
         else f"**{over(row):.2f}**"]
        for row in rows
    ]  # fmt: skip
    headings = ["call", "model's algorithm", "ratio", "measured", "model", "over measured"]
    return table(headings, lines, 2)


def page(document: dict[str, Any]) -> str:
    network, rows = compared(document)
    text = TEXT.format(
        generated=generated_by("report_model.py"), rate=network.rate * 8e-6,
        nominal=document["rate"] / 1e6, latency=1e6 * network.latency, mpi=document["mpi"],
        cpu=document["cpu"], cores=document["cores"], date=document["date"],
        commit=document["commit"][:7], near=sum(map(is_near, rows)), all=len(rows),
    )  # fmt: skip
    after = AFTER.format(picture=PICTURE.name)
    return filled("\n\n".join([text.strip(), summary(rows), after.strip(), whole(rows)]))


def draw(document: dict[str, Any], path: Path) -> None:
    _, rows = compared(document)
    plt = result_pictures.pyplot()
    figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for number, spec in enumerate(dict.fromkeys(row["spec"] for row in rows)):
        for marker, ranks in zip("o^s", dict.fromkeys(row["ranks"] for row in rows), strict=False):
            own = [row for row in rows if (row["spec"], row["ranks"]) == (spec, ranks)]
            axis.plot(
                [1e3 * row["measured_seconds"] for row in own],
                [over(row) for row in own],
                marker,
                color=f"C{number}",
                markersize=4,
                label=f"{spec}, {ranks} hosts",
            )
    axis.axhspan(1 / NEAR, NEAR, color="0.9", zorder=0)
    axis.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="model over measured")
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="lower left")
    axis.set_ylim(bottom=0.2)
    axis.set_yticks((0.3, 0.5, 0.7, 1))
    axis.yaxis.set_minor_formatter("")
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_formatter("{x:g}")
    result_pictures.save(figure, path, document)


def main() -> None:
    document = json.loads(RESULT.read_text())
    PAGE.write_text(page(document))
    draw(document, PICTURE)
    print(f"wrote {PAGE}, {PICTURE}")


if __name__ == "__main__":
    main()
