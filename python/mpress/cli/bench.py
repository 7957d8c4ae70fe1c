"""mpress bench: measurements on synthetic fields, and of messages."""

import json
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from mpress import _core, codec_bench, cuda_bench, fields
from mpress.cli import bench_collectives, bench_iso, bench_messages, bench_options
from mpress.cli.console import NO, make_console, make_table, print_table
from mpress.cli.errors import UserError, checked_bytes, checked_device, checked_output, checked_spec

app = typer.Typer(
    help="Measure codecs, messages between ranks, collective calls and neighbourhoods.",
    no_args_is_help=True,
)
bench_messages.add_to(app)
bench_collectives.add_to(app)
app.add_typer(bench_iso.app, name="iso")

_DEFAULT_FIELDS = ("wave", "turb", "rand")
_DEFAULT_SPECS = ("mpc", "zfp:4", "zfp:8", "zfp:16", "szp:rel=1e-3", "szp:rel=1e-4")
_LEAST_BYTES = 8**3 * 8


@app.command("codec")
def codec_command(
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"{', '.join(fields.NAMES)}; may be repeated."),
    ] = None,
    size: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of a field: 64M, 1M; made cubic.")
    ] = "64M",
    element_type: Annotated[
        str, typer.Option("--type", metavar="TYPES", help="f32, f64 or f32,f64.")
    ] = "f32,f64",
    spec: bench_options.Specs = None,
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Repetitions; the fastest counts.")
    ] = 5,
    device: Annotated[
        str, typer.Option(metavar="cpu|cuda", help="One core, or the first GPU.")
    ] = "cpu",
    json_file: bench_options.JsonFile = None,
) -> None:
    """Measure codecs on a GPU, or on one core, there beside libzfp where zfpy is installed."""
    on_gpu = checked_device(device)
    names = field or list(_DEFAULT_FIELDS)
    for name in names:
        if name not in fields.NAMES:
            raise UserError(f"--field {name!r}: expected one of {', '.join(fields.NAMES)}")
    nbytes = checked_bytes("--size", size)
    if nbytes < _LEAST_BYTES:
        raise UserError(f"--size {size}: expected at least {_LEAST_BYTES} bytes")
    types = element_type.split(",")
    for kind in types:
        if kind not in ("f32", "f64"):
            raise UserError(f"--type {element_type!r}: expected f32, f64 or f32,f64")
    specs = list(spec or _DEFAULT_SPECS)
    for text in specs:
        checked_spec("--spec", text)
    if json_file is not None:
        checked_output("--json", json_file)
    for kind in types:
        for text in specs:
            try:
                _core.validate(text, kind)
            except ValueError as error:
                raise UserError(f"--spec: {error}") from None

    console = make_console()
    rows = []
    for kind in types:
        for name in names:
            array = fields.make(name, _cube(nbytes, kind), kind)
            if on_gpu:
                found = cuda_bench.measure_field(name, array, specs, repeat)
                print_table(console, _gpu_table(name, array, found))
            else:
                found = codec_bench.measure_field(name, array, specs, repeat)
                print_table(console, _table(name, array, found))
            rows += found
    if not on_gpu and not codec_bench.has_libzfp():
        console.print("libzfp was not measured: install zfpy (pip install 'mpress[bench]')")
    if json_file is not None:
        document = codec_bench.document(rows)
        if on_gpu:
            document["gpu"] = _core.cuda_device_name(0)
        json_file.write_text(json.dumps(document, indent=1) + "\n")


def _cube(nbytes: int, kind: str) -> tuple[int, int, int]:
    elements = nbytes // (4 if kind == "f32" else 8)
    edge = int(np.floor(np.cbrt(elements) + 1e-9))
    return (edge, edge, edge)


def _table(name: str, array: np.ndarray, rows: list[dict]) -> Table:
    ceiling = rows[0]["memcpy_rate"]
    table = make_table(
        f"{name} {array.dtype}, {array.nbytes / 2**20:.1f} MiB, one core; "
        f"memcpy {ceiling / 1e9:.1f} GB/s",
        "codec",
        ("ratio", "encode GB/s", "decode GB/s", "of memcpy", "over libzfp", "max error", "kept?"),
    )
    for row in rows:
        table.add_row(
            row["spec"],
            f"{row['ratio']:.2f}",
            f"{row['encode_rate'] / 1e9:.2f}",
            f"{row['decode_rate'] / 1e9:.2f}",
            f"{row['encode_rate'] / ceiling:.0%} / {row['decode_rate'] / ceiling:.0%}",
            _factors(row),
            "0" if row["identical"] else f"{row['max_error']:.3g}",
            {True: "yes", False: NO, None: "-"}[row["keeps_promise"]],
        )
    return table


def _gpu_table(name: str, array: np.ndarray, rows: list[dict]) -> Table:
    ceiling = rows[0]["memcpy_rate"]
    table = make_table(
        f"{name} {array.dtype}, {array.nbytes / 2**20:.1f} MiB, {_core.cuda_device_name(0)}; "
        f"copy {ceiling / 1e9:.0f} GB/s",
        "codec",
        ("ratio", "encode GB/s", "decode GB/s", "sum GB/s", "of copy", "encode us", "decode us",
         "as on host"),
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row["spec"],
            f"{row['ratio']:.2f}",
            f"{row['encode_rate'] / 1e9:.0f}",
            f"{row['decode_rate'] / 1e9:.0f}",
            f"{row['sum_rate'] / 1e9:.0f}",
            f"{row['encode_rate'] / ceiling:.0%} / {row['decode_rate'] / ceiling:.0%}",
            f"{row['encode_to_host'] * 1e6:.1f}",
            f"{row['decode_to_host'] * 1e6:.1f}",
            "yes" if row["same_bytes_as_host"] else NO,
        )
    return table


def _factors(row: dict) -> str:
    if "libzfp_encode_rate" not in row:
        return "-"
    encode = row["encode_rate"] / row["libzfp_encode_rate"]
    decode = row["decode_rate"] / row["libzfp_decode_rate"]
    return f"{encode:.1f}x / {decode:.1f}x"
