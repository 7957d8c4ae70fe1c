"""mpress bench bcast, scatter, gather, allgather, alltoall, and allreduce, reduce, reduce_scatter:
collective calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mpress.cli import bench_messages, bench_options
from mpress.cli.errors import UserError, checked_spec
from mpress.p2p import jobs, memory, nccl

_UNEVEN = (
    "Only of alltoall: MPI_Alltoallv, blocks as in a 3-D FFT whose grid the ranks do not divide. "
    "Half of them have three planes of it where the others have two, before and after. --sizes are "
    "means."
)
_TEXTS = {
    "bcast": "MPI_Bcast",
    "scatter": "MPI_Scatter",
    "gather": "MPI_Gather",
    "allgather": "MPI_Allgather",
    "alltoall": "MPI_Alltoall",
    "allreduce": "MPI_Allreduce, MPI_SUM",
    "reduce": "MPI_Reduce, MPI_SUM",
    "reduce_scatter": "MPI_Reduce_scatter_block, MPI_SUM",
}


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    for name in (*jobs.COLLECTIVES, *jobs.REDUCTIONS):
        app.command(name, help=f"Measure {_TEXTS[name]}, beside the MPI's own.")(_command(name))


def _command(op: str) -> Callable[..., None]:
    def command(
        ranks: Annotated[int, typer.Option("-n", metavar="N", help="Ranks.")] = 2,
        place: Annotated[
            str, typer.Option("--memory", metavar="H|D", help="Of all ranks: host, device.")
        ] = "host",
        sizes: bench_options.Sizes = "64K-16M",
        factor: bench_options.Factor = 4,
        uneven: Annotated[bool, typer.Option("--uneven", help=_UNEVEN)] = False,
        field: bench_options.Field = None,
        file: bench_options.File = None,
        element_type: bench_options.ElementType = "f32",
        spec: bench_options.Specs = None,
        beside: Annotated[
            list[str] | None,
            typer.Option(metavar="NAME", help=f"{', '.join(_beside_of(op))}; may be repeated."),
        ] = None,
        transport: bench_options.Transport = "mpi",
        link: bench_options.Link = None,
        nccl_transport: Annotated[
            str | None,
            typer.Option("--nccl", metavar="|".join(nccl.TRANSPORTS), help="What NCCL may take."),
        ] = None,
        mpiexec: bench_options.Mpiexec = None,
        warmup: Annotated[
            int, typer.Option(metavar="N", min=1, help="Calls before those that count.")
        ] = 5,
        repeat: bench_options.Repeat = 25,
        seconds: bench_options.Seconds = 2.0,
        json_file: bench_options.JsonFile = None,
        plot: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Draw time by size here.")
        ] = None,
    ) -> None:
        if ranks < 2:
            raise UserError(f"-n {ranks}: expected 2 ranks or more")
        if uneven and op != "alltoall":
            raise UserError(f"--uneven: expected it of alltoall, not of {op}")
        kind = bench_messages.checked_memory("--memory", place)
        specs = [checked_spec("--spec", text)
                 for text in spec or (*bench_messages.DEFAULT_SPECS, "auto")]  # fmt: skip
        names = _checked_beside(beside, op, kind, ranks)
        if nccl_transport is not None and nccl_transport not in nccl.TRANSPORTS:
            expected = ", ".join(nccl.TRANSPORTS)
            raise UserError(f"--nccl {nccl_transport!r}: expected one of {expected}")
        all_sizes = bench_messages.checked_sizes(sizes, factor)
        bench_messages.check_options(element_type, transport, link, seconds, json_file, plot)
        plan: dict[str, Any] = {
            "benchmark": "alltoallv" if uneven else op, "ranks": ranks, "from": kind, "to": kind,
            "warmup": warmup, "repeat": repeat, "seconds": seconds, "window": 1,
        }  # fmt: skip
        data_of = bench_messages.written_data(field, file, max(all_sizes), element_type, specs)
        with data_of as files:
            document = bench_messages.measure(
                plan | {"files": files}, all_sizes, job_shares(specs, names, op), transport, link,
                mpiexec, nccl_transport,
            )  # fmt: skip
        bench_messages.show_document(document, json_file, plot)

    return command


def _beside_of(op: str) -> tuple[str, ...]:
    return ("plain", "mpi", *jobs.forms_of(op), "nccl")


def job_shares(specs: list[str], beside: list[str], op: str) -> dict[str, list[str]]:
    """The paths of each job, as bench_messages.job_shares has them; `beside` names of
    jobs.forms_of() mean each codec of the job that way, and raw messages."""
    forms = [name for name in beside if name in jobs.forms_of(op)]
    others = [name for name in beside if name not in forms]
    shares = bench_messages.job_shares(specs, others, False)
    if "forced" not in shares and forms:
        shares = {"forced": ["none"], **shares}
    if "auto" in shares:
        shares["auto"] += [name for name in others if name != "nccl"]
    for paths in shares.values():
        own = [path for path in paths if path not in jobs.BASELINES]
        paths += [form + jobs.FORM + path for form in forms for path in own]
    return shares


def _checked_beside(names: list[str] | None, op: str, kind: str, ranks: int) -> list[str]:
    has_nccl = kind == "device" and memory.devices() >= ranks and nccl.library() is not None
    if names is None:
        return ["mpi", *(["nccl"] if has_nccl else [])]
    for name in names:
        if name not in _beside_of(op):
            raise UserError(f"--beside {name!r}: expected one of {', '.join(_beside_of(op))}")
        if name == "nccl" and not has_nccl:
            raise UserError("--beside nccl: expected NCCL, a GPU a rank, and --memory device")
        if (name == "plain" or name.startswith(jobs.STAGED)) and kind != "device":
            raise UserError(f"--beside {name}: expected --memory device")
    return names
