"""mpress inspect: what each codec would do to the fields of a file."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from mpress import _core, cuda_bench, measure
from mpress.cli.console import NO, make_console, make_table, print_table
from mpress.cli.errors import UserError, checked_device, checked_spec
from mpress.files import FileError, read_fields

_DEFAULT_SPECS = ("mpc", "zfp:8", "zfp:16", "szp:rel=1e-3", "szp:rel=1e-4")


def inspect(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help=".npy, .f32, .f64 (raw), or .nc")
    ],
    codec: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="A codec to try; may be repeated."),
    ] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="netCDF variable; may be repeated. Default: all floats."),
    ] = None,
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Repetitions; the fastest counts.")
    ] = 3,
    device: Annotated[
        str, typer.Option(metavar="cpu|cuda", help="One core, or the first GPU.")
    ] = "cpu",
) -> None:
    """Print ratio, speed, largest error and PSNR of codecs on the fields of files."""
    on_gpu = checked_device(device)
    specs = list(codec or _DEFAULT_SPECS)
    for spec in specs:
        checked_spec("--codec", spec)
    console = make_console()
    shown = 0
    for path in files:
        try:
            fields, notes = read_fields(path, variable)
        except FileError as error:
            raise UserError(str(error)) from None
        for note in notes:
            console.print(f"{path.name}: {note}", style="dim")
        for name, array in fields:
            print_table(console, _table(name, array, specs, repeat, on_gpu))
            shown += 1
    if not shown:
        raise UserError("FILE: no float32 or float64 field was found")


def _table(name: str, array: np.ndarray, specs: list[str], repeat: int, on_gpu: bool) -> Table:
    extents = " x ".join(str(n) for n in array.shape) or "scalar"
    table = make_table(
        f"{name}: {extents} {array.dtype}, {array.nbytes / 1e6:.2f} MB",
        "codec",
        ("ratio", "encode GB/s", "decode GB/s", "max error", "bound", "kept?", "PSNR dB"),
    )
    type_name = "f32" if array.dtype.itemsize == 4 else "f64"
    for spec in specs:
        try:
            _core.validate(spec, type_name)
        except ValueError as error:
            raise UserError(f"--codec: {error}") from None
        m = measure.measure(array, spec, 1 if on_gpu else repeat)
        if on_gpu and m.spec != "none":
            times = cuda_bench.seconds(array, m.spec, repeat)
            m = replace(
                m,
                encode_rate=array.nbytes / times["encode"],
                decode_rate=array.nbytes / times["decode"],
            )
        exact = m.quality.identical
        table.add_row(
            f"auto ({m.spec})" if spec == "auto" else spec,
            f"{m.ratio:.2f}",
            f"{m.encode_rate / 1e9:.2f}",
            f"{m.decode_rate / 1e9:.2f}",
            "0" if exact else f"{m.quality.max_error:.3g}",
            "-" if m.bound is None else f"{m.bound:.3g}",
            {True: "yes", False: NO, None: "-"}[m.keeps_promise],
            "exact" if exact else _decibels(m.quality.psnr),
        )
    return table


def _decibels(psnr: float) -> str:
    return f"{psnr:.1f}" if math.isfinite(psnr) else str(psnr)
