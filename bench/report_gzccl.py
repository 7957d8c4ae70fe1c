"""The part of docs/dev/results-reductions.md about gZCCL (ICS 2024, arXiv 2308.05199): its tables 1
and 2 and its figures 2, 3, 6 and 7, for the machine of the results."""

from pathlib import Path
from typing import Any

import gzccl_table
import report_reduction_figures as figures
from report_collective_figures import Way
from report_collectives import label, machine, of_block, one
from tables import table

from mpress.p2p import jobs

Row = dict[str, Any]

HEAD = """\
## gZCCL's tables and figures, for our machine

J. Huang et al., "gZCCL: Compression-Accelerated Collective Communication Framework for GPU
Clusters", ICS 2024, arXiv 2308.05199. Its figures 8 to 12 are [beside the model](gzccl.md).
"""
TABLE_1 = """\
### Table 1: ratio and quality

`szp` on the early snapshot `wave_sparse` of {edge}^3 cells, scaled to a range of 1, beside what
the paper prints of cuSZp for two simulation settings. What differs: the paper's data are of
reverse time migration in a model that is not public in that form. Errors that are spread evenly
within 1e-3 of the range make 64.8 dB: ours is mostly empty, and exact there, while the paper's
ranges must be below 1, so that its bounds are wider. {cpu}, {date}, commit {commit}:
`python bench/gzccl_table.py`.
"""
TABLE_2 = """\
### Table 2: speedups and where the time goes

The paper stacks images on 64 A100, and has speedups over Cray MPI: ring 4.15 (compression 84.67 %
of the time, communication 13.35 %, reduction 1.35 %), doubling 10.16 (45.82 %, 41.99 %, 12.12 %),
NCCL 5.47. Here it is {case} {way}, over the MPI's own call ({mpi}). What differs: {ranks} ranks
of one host, a field in the place of images (`apps/stacking` has these), and an MPI that reduces
in memory of the host. Compression is encoding and decoding; mpress's sum is part of its encoding;
where chunks overlap, parts are shares of the call.
"""
FIGURE = """\
### Figure {number}: {title}
"""
NUMBERS = {"breakdown": 2, "codec": 3, "centric": 6, "algorithms": 7}
_PEER = "mpi"


def quality(document: Row) -> list[str]:
    headings = ("bound", *(text for name in gzccl_table.NAMES for text in (name, "PSNR")))
    facts = {name: document[name] for name in ("edge", "cpu", "date", "commit")}
    return [TABLE_1.format(**facts), table(headings, gzccl_table.lines(document))]


def speedups(found: Row) -> list[str]:
    """Of the largest size of MPI_Allreduce at which the MPI's own call was measured beside rounds,
    by the first link that has them."""
    for place in figures.places(found.get("reductions", {"runs": []}), "ring"):
        run, way, spec = place.run, place.way, place.spec
        if at := figures.sizes_with(run, way, (f"ring/{spec}", _PEER)):
            names = {
                f"ring/{spec}": "ring, a codec in every hop",
                f"doubling/{spec}": "doubling, the same",
                spec: f"mpress, {label(spec)}", "none": "mpress, raw", "nccl": "NCCL",
            }  # fmt: skip
            lines = [line for path, name in names.items()
                     if (line := speedup(run, way, path, name, at[-1]))]  # fmt: skip
            about = TABLE_2.format(
                case=f"{of_block(figures.OP, at[-1])}, {figures.main_data(run)},",
                way=place.title, mpi=f"{run['mpi']}, {machine(run)}", ranks=run["ranks"],
            )  # fmt: skip
            return [about, table(("", "speedup", *figures.PARTS), lines)]
    return []


def speedup(run: Row, way: Way, path: str, name: str, nbytes: int) -> list[str] | None:
    row = one(run, way, figures.OP, path, nbytes)
    gain = figures.quotient(run, way, _PEER, path, nbytes)
    if row is None or gain is None:
        return None
    parts = figures.split(row)
    has_parts = path not in jobs.BASELINES and path != "none"
    shares = [f"{parts[part] / row['seconds']:.1%}" if has_parts else "-" for part in parts]
    return [name, f"{gain:.2f}", *shares]


def section(found: Row, pictures: dict[str, Path], shown: list[str]) -> list[str]:
    parts = [HEAD]
    if "quality" in found:
        parts += quality(found["quality"]["runs"][0])
    parts += speedups(found)
    for name, number in NUMBERS.items():
        if name in shown:
            figure = figures.FIGURES[name]
            title = figure.title[0].lower() + figure.title[1:]
            parts += [
                FIGURE.format(number=number, title=title),
                f"![{figure.title}]({pictures[name].name})\n", figure.caption,
            ]  # fmt: skip
    if missing := [str(n) for name, n in NUMBERS.items() if name not in shown]:
        parts.append(f"Not drawn, as no results are there: figure {', '.join(missing)}.\n")
    return parts
