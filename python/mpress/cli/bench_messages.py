"""mpress bench latency, bandwidth, bibandwidth: messages between two ranks."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpress import _core, links
from mpress.cli import bench_options
from mpress.cli.console import NO, make_console, make_table, print_table, size_text
from mpress.cli.errors import (
    UserError,
    checked_bytes,
    checked_link,
    checked_output,
    checked_picture,
    checked_seconds,
    checked_spec,
    checked_transport,
    load_plots,
)
from mpress.files import FileError
from mpress.p2p import data, jobs, memory, nccl

DEFAULT_SPECS = ("mpc", "zfp:8", "szp:rel=1e-3")
_MOST_GENERATED = 32 << 20  # larger messages repeat it
_TITLES = {
    "latency": "one way",
    "bandwidth": "one direction",
    "bibandwidth": "both directions",
    "bcast": "bytes in all; the slowest rank",
    "scatter": "bytes a rank; the slowest rank",
    "gather": "bytes a rank; the slowest rank",
    "allgather": "bytes a rank; the slowest rank",
    "alltoall": "bytes a pair; the slowest rank",
    "alltoallv": "bytes a pair, on average; the slowest rank",
    "allreduce": "bytes a rank; the slowest rank",
    "reduce": "bytes a rank; the slowest rank",
    "reduce_scatter": "bytes a rank that are summed up; the slowest rank",
}
_MEMORY = {"h": "host", "d": "device", "host": "host", "device": "device"}
_BESIDE = {
    "plain": "copies and MPI",
    "host": "MPI on the host",
    "copy": "GPU copies",
    "peer-copy": "copy, GPU to GPU",
    "nccl": "NCCL",
    "mpi": "MPI's own",
}
_FORMS = {
    "scattered": "Isend and Irecv", "pairwise": "Sendrecv by turns", "two-shot": "two shots, hops",
    "ring": "ring, hops", "doubling": "doubling, hops", "halving": "halving, hops",
    "binomial": "tree, hops",
}  # fmt: skip

_OF_MESSAGES = ("plain", "host", "copy", "peer-copy", "nccl")


def add_to(app: typer.Typer) -> None:
    """Adds the three commands."""
    for name, text in (
        ("latency", "Measure the time of a message, by turns between two ranks."),
        ("bandwidth", "Measure the rate of a window of messages to another rank."),
        ("bibandwidth", "Measure the rate of windows of messages both ways at once."),
    ):
        app.command(name, help=text)(_command(name))


def _command(benchmark: str) -> Callable[..., None]:
    def command(
        source: Annotated[
            str, typer.Option("--from", metavar="H|D", help="Memory of rank 0: host, device.")
        ] = "host",
        target: Annotated[
            str, typer.Option("--to", metavar="H|D", help="Memory of rank 1: host, device.")
        ] = "host",
        sizes: bench_options.Sizes = "64K-16M",
        factor: bench_options.Factor = 4,
        field: bench_options.Field = None,
        file: bench_options.File = None,
        element_type: bench_options.ElementType = "f32",
        spec: bench_options.Specs = None,
        beside: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help=f"{', '.join(_OF_MESSAGES)}; may be repeated."),
        ] = None,
        sequential: Annotated[
            bool,
            typer.Option("--sequential", help="Also in one piece: encode, send, decode in turn."),
        ] = False,
        transport: bench_options.Transport = "mpi",
        link: bench_options.Link = None,
        mpiexec: bench_options.Mpiexec = None,
        warmup: Annotated[
            int, typer.Option(metavar="N", min=1, help="Messages before those that count.")
        ] = 5,
        repeat: bench_options.Repeat = 25,
        seconds: bench_options.Seconds = 2.0,
        window: Annotated[
            int, typer.Option(metavar="N", min=1, help="Messages under way; not for latency.")
        ] = 16,
        json_file: bench_options.JsonFile = None,
        plot: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Draw time or rate by size here.")
        ] = None,
    ) -> None:
        places = {"from": checked_memory("--from", source), "to": checked_memory("--to", target)}
        specs = [checked_spec("--spec", text) for text in spec or (*DEFAULT_SPECS, "auto")]
        names = _checked_beside(beside, places, benchmark)
        all_sizes = checked_sizes(sizes, factor)
        check_options(element_type, transport, link, seconds, json_file, plot)
        plan: dict[str, Any] = {
            "benchmark": benchmark, **places, "warmup": warmup, "repeat": repeat,
            "seconds": seconds, "window": window,
        }  # fmt: skip
        shares = job_shares(specs, names, sequential)
        with written_data(field, file, max(all_sizes), element_type, specs) as files:
            document = measure(plan | {"files": files}, all_sizes, shares, transport, link, mpiexec)
        show_document(document, json_file, plot)
        if not document["transport"]["right"]:
            share = document["transport"]["loopback_share"]
            raise UserError(
                f"--transport {transport}: the MPI took another way, {share:.0%} of the bytes went "
                "through the loopback"
            )
        seen = document["link"]["seen"]
        if link in links.BY_NAME and seen != link:
            some = "some" if seen == "several" else "the"
            print(f"mpress: --link {link}: {some} messages went by MPI", file=sys.stderr)

    return command


def check_options(
    element_type: str,
    transport: str,
    link: str | None,
    seconds: float,
    json_file: Path | None,
    plot: Path | None,
) -> None:
    """Those that every such command has."""
    if element_type not in ("f32", "f64"):
        raise UserError(f"--type {element_type!r}: expected f32 or f64")
    checked_transport(transport)
    checked_link(link)
    checked_seconds("--seconds", seconds)
    if json_file is not None:
        checked_output("--json", json_file)
    if plot is not None:
        checked_picture("--plot", plot)


@contextmanager
def written_data(
    fields: list[str] | None,
    files: list[Path] | None,
    nbytes: int,
    kind: str,
    specs: list[str],
) -> Iterator[dict[str, str]]:
    """Files of what messages of up to `nbytes` hold, by name, which the specs suit."""
    with tempfile.TemporaryDirectory(prefix="mpress-bench-") as folder:
        names = fields or ([] if files else ["wave"])
        found = _data(names, files or [], min(nbytes, _MOST_GENERATED), kind)
        _check_types(specs, found)
        yield _write_data(Path(folder), found)


def show_document(document: dict[str, Any], json_file: Path | None, plot: Path | None) -> None:
    """Prints what was measured, and writes and draws it where that is asked for."""
    _print(make_console(), document)
    if json_file is not None:
        json_file.write_text(json.dumps(document, indent=1) + "\n")
    if plot is not None:
        load_plots().draw_messages(document, plot)


def job_shares(specs: list[str], beside: list[str], sequential: bool) -> dict[str, list[str]]:
    """The paths of each job. Named codecs share one that forces them, and another where messages
    are not cut into chunks; `auto` has one of its own, which decides."""
    named = [spec for spec in specs if spec not in ("none", "auto")]
    shares = {}
    if named or beside or "auto" not in specs:
        shares["forced"] = ["none", *named, *beside]
    if sequential:
        shares["sequential"] = ["none", *named]
    if "auto" in specs:
        shares["auto"] = ["none", "auto"]
    return shares


def measure(
    plan: dict[str, Any],
    sizes: list[int],
    shares: dict[str, list[str]],
    transport: str,
    link: str | None,
    mpiexec: str | None,
    nccl_transport: str | None = None,
) -> dict[str, Any]:
    document: dict[str, Any] | None = None
    for job, paths in shares.items():
        cases = [
            {"data": name, "bytes": nbytes, "paths": paths}
            for name in plan["files"]
            for nbytes in sizes
        ]
        try:
            result = jobs.run(
                plan | {"cases": cases}, job, transport=transport, link=link, mpiexec=mpiexec,
                nccl_transport=nccl_transport,
            )  # fmt: skip
        except jobs.JobError as error:
            raise UserError(str(error)) from None
        document = document or jobs.document(plan, result, transport, nccl_transport)
        document["rows"] += jobs.summary(result, plan["benchmark"], job, ("none", "mpi"))
    assert document is not None
    return document | {"link": jobs.link_seen(document["rows"], link)}


def checked_memory(option: str, text: str) -> str:
    kind = _MEMORY.get(text.lower())
    if kind is None:
        raise UserError(f"{option} {text!r}: expected H, host, D or device")
    if kind == "device" and memory.devices() == 0:
        raise UserError(f"{option} {text}: no GPU was found")
    return kind


def _checked_beside(names: list[str] | None, places: dict[str, str], benchmark: str) -> list[str]:
    on_devices = set(places.values()) == {"device"} and memory.devices() > 1
    if names is None:
        return ["nccl"] if on_devices and nccl.library() else []
    for name in names:
        if name not in _OF_MESSAGES:
            raise UserError(f"--beside {name!r}: expected one of {', '.join(_OF_MESSAGES)}")
        if name == "nccl" and not (on_devices and nccl.library()):
            raise UserError("--beside nccl: expected NCCL, two GPUs, and device memory on both")
        if name == "peer-copy" and not on_devices:
            raise UserError("--beside peer-copy: expected two GPUs, and device memory on both")
        if name == "copy" and "device" not in places.values():
            raise UserError("--beside copy: expected device memory on a side")
        if name in ("plain", "copy") and benchmark != "latency":
            raise UserError(f"--beside {name}: only latency is measured of it")
    return names


def checked_sizes(text: str, factor: int) -> list[int]:
    """Ascending sizes in bytes, whole numbers of 8-byte elements."""
    first, dash, last = text.partition("-")
    if dash:
        least, most = (checked_bytes(f"--sizes {text}:", end) for end in (first, last))
        if most < least:
            raise UserError(f"--sizes {text}: expected the smaller size first")
        sizes = [least]
        while 0 < sizes[-1] * factor <= most:
            sizes.append(sizes[-1] * factor)
    else:
        sizes = sorted(checked_bytes(f"--sizes {text}:", part) for part in text.split(","))
    if sizes[0] < 8 or any(size % 8 for size in sizes):
        raise UserError(f"--sizes {text}: expected multiples of 8 bytes")
    return sizes


def _data(fields: list[str], files: list[Path], nbytes: int, kind: str) -> dict[str, np.ndarray]:
    """What messages hold, by the names that rows have."""
    found: dict[str, np.ndarray] = {}
    for name in fields:
        if name not in data.NAMES:
            raise UserError(f"--field {name!r}: expected one of {', '.join(data.NAMES)}")
        found[name] = data.make(name, max(nbytes, data.LEAST_BYTES), kind)
    for path in files:
        name = str(path) if path.name in found else path.name
        try:
            found[name] = data.read(path)
        except FileError as error:
            raise UserError(f"--file {error}") from None
        if found[name].size == 0:
            raise UserError(f"--file {path}: no elements")
    return found


def _check_types(specs: list[str], found: dict[str, np.ndarray]) -> None:
    """Codecs may not suit all element types."""
    for spec in specs:
        for name, values in found.items():
            try:
                _core.validate(spec, "f32" if values.itemsize == 4 else "f64")
            except ValueError as error:
                raise UserError(f"--spec: {error} ({name})") from None


def _write_data(folder: Path, found: dict[str, np.ndarray]) -> dict[str, str]:
    """Files of numpy's for the ranks."""
    written = {}
    for number, (name, values) in enumerate(found.items()):
        written[name] = str(folder / f"{number}.npy")
        np.save(written[name], values)
    return written


def _print(console: Console, document: dict[str, Any]) -> None:
    console.print(
        f"{document['mpi']}, {_way(document)}; {_places(document)}"
        + (f", {document['gpu']}" if document["gpu"] else "")
    )
    for name in dict.fromkeys(row["data"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["data"] == name]
        print_table(console, _table(document["benchmark"], name, rows))


def _places(document: dict[str, Any]) -> str:
    if document["benchmark"] in jobs.OPERATIONS:
        aware = ", which the MPI takes itself" if document["gpu_aware"] else ""
        has_nccl = any(row["path"] == "nccl" for row in document["rows"])
        way = f", NCCL by {document['nccl']}" if has_nccl else ""
        return f"{document['ranks']} ranks, {document['from']} memory{aware}{way}"
    return f"{document['from']} to {document['to']}"


def _way(document: dict[str, Any]) -> str:
    """How the messages travelled, as far as that was seen."""
    link = document["link"]["seen"]
    if link in links.BY_NAME:
        return links.BY_NAME[link].phrase
    seen = {"tcp": "TCP", "shm": "shared memory", "network": "the network between hosts",
            None: "a transport that the host does not tell"}  # fmt: skip
    by_mpi = f"by {seen[document['transport']['seen']]}"
    return f"{by_mpi}, and in part between GPUs" if link == "several" else by_mpi


def _table(benchmark: str, name: str, rows: Iterable[dict[str, Any]]) -> Table:
    is_call = benchmark in jobs.OPERATIONS
    latency = is_call or benchmark == "latency"
    references = {"none": "none"} | ({"mpi": "MPI's own"} if is_call else {})
    columns = ("median", "quartiles") if latency else ("GB/s", "median")
    times = jobs.TIMES if is_call else jobs.TIMES[:2]
    table = make_table(
        f"{benchmark}, {_TITLES[benchmark]}: {name}; times in microseconds",
        "size  path",
        (*columns, *(f"over {name}" for name in references.values()), "ratio",
         *(time.partition("_")[0] for time in times), "arrived"),
    )  # fmt: skip
    last = None
    for row in sorted(rows, key=lambda row: (row["bytes"], jobs.JOBS.index(row["job"]))):
        low, high = map(_microseconds, row["quartiles"])
        median, rate = _microseconds(row["seconds"]), f"{row['bandwidth'] / 1e9:.2f}"
        counted = "ratio" in row
        table.add_row(
            f"{'' if row['bytes'] == last else size_text(row['bytes']):<5} {_path(row, is_call)}",
            *((median, f"{low} {high}") if latency else (rate, median)),
            *(_compared(row, name) for name in references),
            f"{row['ratio']:.2f}" if counted else "-",
            *(_microseconds(row[time]) if counted else "-" for time in times),
            _arrived(row),
        )
        last = row["bytes"]
    return table


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.{1 if seconds < 1e-3 else 0}f}"


def _path(row: dict[str, Any], is_call: bool) -> str:
    form, spec = jobs.form_of(row["path"]), jobs.codec_of(row["path"])
    name = _BESIDE.get(row["path"], row["path"])
    if form:
        place = " on the host" if form.startswith(jobs.STAGED) else ""
        what = _FORMS[form.removeprefix(jobs.STAGED)]
        name = f"{what}{place}, {'raw' if spec == 'none' else spec}"
    if row["job"] == "sequential":
        name += ", sequential"
    elif row["job"] == "auto" and spec != "auto":
        name += ", beside auto"
    way = row.get("way")
    return name + (f", {way}" if way and (is_call or way in links.BY_NAME) else "")


def _compared(row: dict[str, Any], reference: str) -> str:
    """Time over that of another path, with its 95 % interval."""
    over = f"over_{reference}"
    if over not in row:
        return "-"
    return "{:.2f} ({:.2f} to {:.2f})".format(row[over], *row[f"{over}_interval"])


def _arrived(row: dict[str, Any]) -> str | Text:
    check = row.get("check")
    if check is None:
        return "-"
    if not check["kept"]:
        return NO
    error = check["max_error"]
    return "exact" if error == 0 else "inf" if error is None else f"{error:.2g}"
