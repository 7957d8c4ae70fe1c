"""Table 1 of gZCCL (ICS'24, arXiv 2308.05199) for szp: ratio and quality on sparse wave fields.

The paper compresses snapshots of reverse time migration in the SEG/EAGE Overthrust model, most of
whose blocks are empty. Those data are not public in that form; ours is the early snapshot
`wave_sparse` of mpress.fields, scaled to a range of 1, so that absolute bounds mean the same
fraction of it. On it a plain fixed-length code reaches 87, 72 and 59 at the three bounds, close to
what the paper reports for cuSZp.

bench/report.py puts bench/results/gzccl-quality.json into docs/dev/results-reductions.md.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from mpress import codec_bench, fields
from mpress.measure import measure

# (bound, ratio and PSNR of simulation setting 1, the same of setting 2), as printed in the paper.
PAPER = (
    ("1e-3", 92.28, 53.23, 94.41, 53.41),
    ("1e-4", 73.35, 65.67, 63.94, 70.38),
    ("1e-5", 55.65, 78.83, 46.74, 88.57),
)
MODES = ("fast", "dense")
NAMES = (*(f"szp {mode}" for mode in MODES), "cuSZp [1]", "cuSZp [2]")
CAPTION = "ratio and PSNR (dB); [1], [2]: gZCCL's simulation settings, other data"


def measured(edge: int) -> dict[str, Any]:
    field = fields.make("wave_sparse", (edge, edge, edge))
    field /= np.ptp(field)
    rows = []
    for bound, *_ in PAPER:
        for mode in MODES:
            result = measure(field, f"szp:abs={bound},mode={mode}", repeat=1)
            if not result.keeps_promise:
                raise SystemExit(f"szp:abs={bound},mode={mode} missed its bound")
            quality = {"ratio": result.ratio, "psnr": result.quality.psnr}
            rows.append({"bound": bound, "mode": mode, **quality})
    document = codec_bench.document(rows) | {"kind": "quality", "field": "wave_sparse"}
    commit = os.environ.get("COMMIT") or document["commit"]
    return document | {"edge": edge, "commit": commit}


def lines(document: dict[str, Any]) -> list[list[str]]:
    """Of the table: bound, and ratio and PSNR of each of NAMES."""
    found = {(row["bound"], row["mode"]): row for row in document["rows"]}
    return [
        [bound, *(f"{value:.2f}" for value in (
            *(found[bound, mode][name] for mode in MODES for name in ("ratio", "psnr")), *paper,
        ))]
        for bound, *paper in PAPER
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edge", type=int, default=256, help="cells of the snapshot's edges")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    document = measured(options.edge)
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    table = Table(
        title=f"szp on wave_sparse, {options.edge}^3 f32, range 1",
        title_justify="left",
        caption_justify="left",
        caption=CAPTION,
    )
    table.add_column("abs")
    for name in NAMES:
        table.add_column(name, justify="right")
        table.add_column("PSNR", justify="right")
    for line in lines(document):
        table.add_row(*line)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
