"""mpress simulate --app wave: what a measured program would take on more ranks, by a cost model."""

import json
import math
from pathlib import Path
from typing import Any

from rich.table import Table

from mpress import _core, halo_model
from mpress.cli.console import make_console, make_table, print_table
from mpress.cli.errors import UserError, checked_output, load_plots, read_json

_AXES = "xyz"


def simulate(
    source: Path, ranks: list[int], scaling: str, grid: str | None, axes: str | None,
    transport: str | None, link_rate: str | None, latency: float, json_file: Path | None,
    plot: Path | None,
) -> None:  # fmt: skip
    """Projects measured steps to other numbers of ranks."""
    if scaling not in ("weak", "strong"):
        raise UserError(f"--scaling {scaling!r}: expected weak or strong")
    if grid is not None and scaling == "weak":
        raise UserError("--grid is for --scaling strong: weak scaling keeps the cells of a rank")
    for option, path in (("--json", json_file), ("--plot", plot)):
        if path is not None:
            checked_output(option, path)
    measured = _load(source)
    transport = transport or measured["rows"][0]["transport"]
    try:
        machine, codecs, calibrated = halo_model.calibrate(measured, transport, latency)
    except halo_model.ModelError as error:
        raise UserError(f"--from {source}: {error}") from None
    fitted = halo_model.fit(measured, transport, machine, codecs)
    machine = halo_model.with_link(machine, _rate(link_rate))
    split = max((row["split"] for row in measured["rows"]), key=math.prod)
    numbers = [axis for axis in range(3) if split[axis] > 1] if axes is None else _axes(axes)
    box = tuple(measured["box"])
    if scaling == "weak":
        how = halo_model.Scaling(box=box)
    else:
        whole = tuple(c * parts for c, parts in zip(box, split, strict=True))
        how = halo_model.Scaling(grid=_grid(grid) if grid else whole)
    rows = halo_model.project(measured, machine, codecs, how, ranks, numbers)
    if not rows:
        raise UserError(
            f"--ranks {ranks[0]}: too many for a grid of {how.grid}: too few cells a rank"
        )
    document = {
        "format": 1, "kind": "wave-projection", "projection": True, "app": "wave",
        "from": {name: measured.get(name) for name in ("date", "commit", "gpus", "mpi")},
        "transport": transport, "scaling": scaling, "grid": how.grid,
        "calibrated_with_ranks": calibrated, "link_rate_measured": link_rate is None,
        "machine": {"cell_seconds": machine.cell_seconds, "link_rate": machine.link_rate,
                    "latency": machine.latency},
        "codecs": [_finite(codec) for codec in codecs],
        "fit": fitted, "rows": rows,
    }  # fmt: skip
    _print(document)
    if json_file is not None:
        json_file.write_text(json.dumps(document, indent=1) + "\n")
    if plot is not None:
        load_plots().draw_projection(document, plot)


def _load(path: Path) -> dict[str, Any]:
    document = read_json(f"--from {path}:", path)
    if not isinstance(document, dict) or document.get("kind") != "wave-scaling":
        raise UserError(f"--from {path}: was not written by bench/wave_scaling.py")
    if not document.get("rows"):
        raise UserError(f"--from {path}: holds no measured steps")
    return document


def _rate(text: str | None) -> float | None:
    try:
        return None if text is None else _core.parse_rate(text)
    except ValueError as error:
        raise UserError(f"--link-rate {error}") from None


def _axes(text: str) -> list[int]:
    if not text or len(set(text)) != len(text) or not set(text) <= set(_AXES):
        raise UserError(f"--axes {text!r}: expected some of x, y and z, such as xy")
    return sorted(_AXES.index(axis) for axis in text)


def _grid(text: str) -> tuple[int, int, int]:
    parts = text.split("x")
    if len(parts) != 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError(f"--grid {text!r}: expected NXxNYxNZ")
    return int(parts[0]), int(parts[1]), int(parts[2])


def _finite(codec: halo_model.CodecCost) -> dict[str, Any]:
    """JSON has no infinity: rates of what is not done are null."""
    rates = {"encode_rate": codec.encode_rate, "decode_rate": codec.decode_rate}
    kept = {name: rate if math.isfinite(rate) else None for name, rate in rates.items()}
    return {"spec": codec.spec, "ratio": codec.ratio, **kept}


def _print(document: dict[str, Any]) -> None:
    console = make_console()
    machine = document["machine"]
    link = "measured" if document["link_rate_measured"] else "ASSUMED"
    console.print(
        f"PROJECTION by a cost model, not a measurement: wave, {document['scaling']} scaling; "
        f"cells of {machine['cell_seconds'] * 1e12:.2f} ps, links of "
        f"{machine['link_rate'] / 1e9:.3g} GB/s a rank ({link}), {machine['latency'] * 1e6:g} us "
        f"a message; from {document['calibrated_with_ranks']} ranks by {document['transport']}"
    )
    print_table(console, _fit_table(document["fit"]))
    print_table(console, _table(document["rows"]))


def _fit_table(rows: list[dict[str, Any]]) -> Table:
    table = make_table("what was measured, and the model", "ranks  codec",
                       ("measured ms", "model ms", "model over measured"))  # fmt: skip
    for row in rows:
        measured, model = row["measured_seconds"], row["model_seconds"]
        table.add_row(f"{row['ranks']:<5}  {row['spec']}", f"{1e3 * measured:.3f}",
                      f"{1e3 * model:.3f}", f"{model / measured:.2f}")  # fmt: skip
    return table


def _table(rows: list[dict[str, Any]]) -> Table:
    table = make_table(
        "projected", "ranks  split  codec",
        ("interior ms", "shells ms", "exchange ms", "step ms", "over none", "TFLOP/s",
         "efficiency"),
    )  # fmt: skip
    for row in rows:
        split = "x".join(map(str, row["split"]))
        table.add_row(
            f"{row['ranks']:<5}  {split:<8}  {row['spec']}",
            *(f"{1e3 * row[name]:.3f}" for name in ("interior_seconds", "shell_seconds",
                                                    "exchange_seconds", "step_seconds")),
            f"{row['over_none']:.2f}", f"{row['flops'] / 1e12:.2f}", f"{row['efficiency']:.0%}",
        )  # fmt: skip
    return table
