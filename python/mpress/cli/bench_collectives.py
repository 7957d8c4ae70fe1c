"""mpress bench bcast, scatter, gather, allgather, alltoall: collective calls."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mpress.cli import bench_messages
from mpress.cli.console import make_console
from mpress.cli.errors import (
    UserError,
    checked_link,
    checked_output,
    checked_picture,
    checked_seconds,
    checked_spec,
    checked_transport,
    load_plots,
)
from mpress.p2p import data, jobs, memory, nccl

_BESIDE = ("mpi", "messages", "nccl")
_TEXTS = {
    "bcast": "MPI_Bcast",
    "scatter": "MPI_Scatter",
    "gather": "MPI_Gather",
    "allgather": "MPI_Allgather",
    "alltoall": "MPI_Alltoall",
}


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    for name in jobs.COLLECTIVES:
        app.command(name, help=f"Measure {_TEXTS[name]}, beside the MPI's own.")(_command(name))


def _command(op: str) -> Callable[..., None]:
    def command(
        ranks: Annotated[int, typer.Option("-n", metavar="N", help="Ranks.")] = 2,
        place: Annotated[
            str, typer.Option("--memory", metavar="H|D", help="Of all ranks: host, device.")
        ] = "host",
        sizes: Annotated[
            str, typer.Option(metavar="SIZES", help="1M; 64K,1M,32M; 64K-256M, by --factor.")
        ] = "64K-16M",
        factor: Annotated[int, typer.Option(metavar="N", min=2, help="Between sizes.")] = 4,
        field: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help=f"{', '.join(data.NAMES)}; may be repeated."),
        ] = None,
        file: Annotated[
            list[Path] | None,
            typer.Option(metavar="FILE", help="Data of a .npy, .f32, .f64 or .nc; repeatable."),
        ] = None,
        element_type: Annotated[
            str, typer.Option("--type", metavar="f32|f64", help="Elements of the fields.")
        ] = "f32",
        spec: Annotated[
            list[str] | None, typer.Option(metavar="SPEC", help="A codec; may be repeated.")
        ] = None,
        beside: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help=f"{', '.join(_BESIDE)}; may be repeated."),
        ] = None,
        transport: Annotated[
            str, typer.Option(metavar="mpi|shm|tcp", help="Of the host's MPI; mpi: its choice.")
        ] = "mpi",
        link: Annotated[
            str | None,
            typer.Option(metavar="auto|mpi|peer|host", help="Between GPUs; default: MPRESS_LINK."),
        ] = None,
        mpiexec: Annotated[
            str | None, typer.Option(metavar="CMD", help="The launcher, with its own options.")
        ] = None,
        warmup: Annotated[
            int, typer.Option(metavar="N", min=1, help="Calls before those that count.")
        ] = 5,
        repeat: Annotated[
            int, typer.Option(metavar="N", min=1, help="Samples of a path, at most.")
        ] = 25,
        seconds: Annotated[
            float, typer.Option(metavar="S", help="For a size, as far as few samples allow.")
        ] = 2.0,
        json_file: Annotated[
            Path | None, typer.Option("--json", metavar="FILE", help="Write the results here.")
        ] = None,
        plot: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Draw time by size here.")
        ] = None,
    ) -> None:
        if ranks < 2:
            raise UserError(f"-n {ranks}: expected 2 ranks or more")
        kind = bench_messages.checked_memory("--memory", place)
        specs = [checked_spec("--spec", text)
                 for text in spec or (*bench_messages.DEFAULT_SPECS, "auto")]  # fmt: skip
        names = _checked_beside(beside, kind, ranks)
        all_sizes = bench_messages.checked_sizes(sizes, factor)
        if element_type not in ("f32", "f64"):
            raise UserError(f"--type {element_type!r}: expected f32 or f64")
        checked_transport(transport)
        checked_link(link)
        checked_seconds("--seconds", seconds)
        if json_file is not None:
            checked_output("--json", json_file)
        if plot is not None:
            checked_picture("--plot", plot)
        plan: dict[str, Any] = {
            "benchmark": op, "ranks": ranks, "from": kind, "to": kind, "warmup": warmup,
            "repeat": repeat, "seconds": seconds, "window": 1,
        }  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="mpress-bench-") as folder:
            fields = field or ([] if file else ["wave"])
            nbytes = min(max(all_sizes), bench_messages.MOST_GENERATED)
            found = bench_messages.make_data(fields, file or [], nbytes, element_type)
            bench_messages.check_types(specs, found)
            plan["files"] = bench_messages.write_data(Path(folder), found)
            shares = bench_messages.job_shares(specs, names, False)
            if "auto" in shares:
                shares["auto"] += [name for name in names if name != "nccl"]
            document = bench_messages.measure_shares(
                plan, all_sizes, shares, transport, link, mpiexec
            )
        bench_messages.print_document(make_console(), document)
        if json_file is not None:
            json_file.write_text(json.dumps(document, indent=1) + "\n")
        if plot is not None:
            load_plots().draw_messages(document, plot)

    return command


def _checked_beside(names: list[str] | None, kind: str, ranks: int) -> list[str]:
    has_nccl = kind == "device" and memory.devices() >= ranks and nccl.library() is not None
    if names is None:
        return ["mpi", *(["nccl"] if has_nccl else [])]
    for name in names:
        if name not in _BESIDE:
            raise UserError(f"--beside {name!r}: expected one of {', '.join(_BESIDE)}")
        if name == "nccl" and not has_nccl:
            raise UserError("--beside nccl: expected NCCL, a GPU a rank, and --memory device")
    return names
