"""mpress info: how this installation was built, every knob, and every info key."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import mpress
from mpress import _core
from mpress.cli import info_algorithms, info_gpu, info_protocols, job_tables, mpis
from mpress.cli.console import make_console, print_facts
from mpress.cli.errors import UserError, checked_link, checked_output
from mpress.cli.launch import backend, preload_library


def info(
    prefix: Annotated[
        bool,
        typer.Option(
            "--prefix", help="Instead: the directory of include/ and lib/, for compilers."
        ),
    ] = False,
    gpu: Annotated[
        bool,
        typer.Option("--gpu", help="Instead: start ranks, and see which way their messages take."),
    ] = False,
    protocols: Annotated[
        bool,
        typer.Option(
            "--protocols",
            help="Instead: start ranks, and see by which protocol messages of which sizes go.",
        ),
    ] = False,
    algorithms: Annotated[
        bool,
        typer.Option(
            "--algorithms",
            help="Instead: start ranks, and see by which algorithm collective calls go.",
        ),
    ] = False,
    ranks: Annotated[
        int | None,
        typer.Option("-n", metavar="N", help="Ranks of --gpu (else one a GPU), or the others (2)."),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(metavar="auto|mpi|peer|host", help="Of these; default: MPRESS_LINK."),
    ] = None,
    mpiexec: Annotated[
        str | None, typer.Option(metavar="CMD", help="The launcher of these, with its options.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Of these: the results.")
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Of --protocols, --algorithms: what another job wrote, in place of one of theirs.",
        ),
    ] = None,
) -> None:
    """Show how mpress was built, every environment variable with its value, and the info keys."""
    if prefix:
        print(Path(mpress.__file__).parent)
        return
    console = make_console()
    if gpu or protocols or algorithms:
        checked_link(link)
        if ranks is not None and ranks < 2:
            raise UserError(f"-n {ranks}: expected 2 ranks or more, between which messages go")
        if json_file is not None:
            checked_output("--json", json_file)
    if gpu:
        info_gpu.show(console, ranks, link, mpiexec, json_file)
        return
    if protocols or algorithms:
        found = job_tables.tables(ranks, link, mpiexec, from_file, calls=not protocols)
        (info_protocols if protocols else info_algorithms).print_tables(console, found)
        if json_file is not None:
            json_file.write_text(json.dumps(found, indent=1) + "\n")
        return
    given = {"-n": ranks, "--link": link, "--mpiexec": mpiexec, "--json": json_file}
    for option, value in given.items():
        if value is not None:
            raise UserError(f"{option}: expected --gpu, --protocols or --algorithms beside it")
    if from_file is not None:
        raise UserError("--from: expected --protocols or --algorithms beside it")
    build = _core.build_info()
    library = preload_library()
    gpus = backend("cuda")
    print_facts(console, "build", {
        "version": build["version"],
        "frame version": str(build["frame_version"]),
        "C and C++": f"{Path(mpress.__file__).parent}/lib/libmpress.so (and include/mpress)",
        "preload library": str(library) if library else "not built: no `mpress run`",
        **{f"for {mpis.NAMES[family]}": f"{backend(family)} (headers: {headers})"
           for family, headers, _ in build["mpis"]},
        "launcher": mpis.default_launcher() or "none found",
        "CUDA": "yes" if build["cuda"] else "no",
        "messages on GPUs": str(gpus) if gpus else "not built: needs nvcc, and MPRESS_CUDA not OFF",
        "instruction set": f"{build['isa']} (in use)",
        "compiler": build["compiler"],
        "numpy": np.__version__,
    })  # fmt: skip

    knobs = _core.knobs()
    named = {name: os.environ[name] for name, _, _ in knobs if name in os.environ}
    print_facts(console, "\nenvironment now" + ("" if named else ": no variable is set"), named)
    _print_settings(console, "\nenvironment variables, their defaults and meaning", knobs)
    _print_settings(console, "\nMPI_Info keys of a communicator", _core.info_keys())


def _print_settings(console: Console, title: str, settings: list[tuple[str, str, str]]) -> None:
    """Prints names, meanings and defaults, a line each; on terminals long ones are folded."""
    console.print(title, style="italic")
    names = max(len(name) for name, _, _ in settings)
    defaults = max(len(default) for _, _, default in settings)
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, meaning, default in settings:
        cells = Text(f"  {name:<{names}}", "bold"), Text(f"{default:<{defaults}}"), Text(meaning)
        table.add_row(*cells)
        if not sys.stdout.isatty():
            console.print(Text("  ").join(cells))
    if sys.stdout.isatty():
        console.print(table, soft_wrap=False)
