"""mpress info: how this installation was built, every knob, and every info key."""

import os

import numpy as np
from rich.markup import escape
from rich.table import Table

from mpress import _core
from mpress.cli import mpis
from mpress.cli.console import make_console
from mpress.cli.launch import backend, preload_library


def info() -> None:
    """Show how mpress was built, every environment variable with its value, and the info keys."""
    console = make_console()
    build = _core.build_info()
    library = preload_library()
    facts = Table(title="build", show_header=False, title_justify="left")
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("version", build["version"])
    facts.add_row("frame version", str(build["frame_version"]))
    facts.add_row("preload library", str(library) if library else "not built: no `mpress run`")
    for family, headers, _ in build["mpis"]:
        facts.add_row(f"for {mpis.NAMES[family]}", f"{backend(family)} (headers: {headers})")
    facts.add_row("launcher", mpis.default_launcher() or "none found")
    facts.add_row("CUDA", "yes" if build["cuda"] else "no")
    gpus = backend("cuda")
    facts.add_row("messages on GPUs", str(gpus) if gpus else "not built: needs nvcc")
    facts.add_row("instruction set", f"{build['isa']} (in use)")
    facts.add_row("compiler", build["compiler"])
    facts.add_row("numpy", np.__version__)
    console.print(facts)

    knobs = Table(title="environment", title_justify="left")
    knobs.add_column("variable", style="bold", no_wrap=True)
    knobs.add_column("value now", overflow="fold")
    knobs.add_column("default")
    knobs.add_column("meaning", overflow="fold")
    for name, meaning, default in _core.knobs():
        knobs.add_row(name, escape(os.environ.get(name, "")), default, escape(meaning))
    console.print(knobs)

    keys = Table(title="MPI_Info keys of a communicator", title_justify="left")
    keys.add_column("key", style="bold", no_wrap=True)
    keys.add_column("default")
    keys.add_column("meaning", overflow="fold")
    for name, meaning, default in _core.info_keys():
        keys.add_row(name, default, escape(meaning))
    console.print(keys)
