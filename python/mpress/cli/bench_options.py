"""The options that commands of `mpress bench` share."""

from pathlib import Path
from typing import Annotated

import typer

from mpress.p2p import data

# Where a metavar is the name itself, versions of typer take it for the name, unless that is given.
Sizes = Annotated[
    str, typer.Option("--sizes", metavar="SIZES", help="1M; 64K,1M,32M; 64K-256M, by --factor.")
]
Factor = Annotated[int, typer.Option(metavar="N", min=2, help="Between sizes.")]
Field = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help=f"{', '.join(data.NAMES)}; may be repeated."),
]
File = Annotated[
    list[Path] | None,
    typer.Option("--file", metavar="FILE", help="Data of a .npy, .f32, .f64 or .nc; repeatable."),
]
ElementType = Annotated[
    str, typer.Option("--type", metavar="f32|f64", help="Elements of the fields.")
]
Specs = Annotated[
    list[str] | None, typer.Option("--spec", metavar="SPEC", help="A codec; may be repeated.")
]
Transport = Annotated[
    str, typer.Option(metavar="mpi|shm|tcp", help="Of the host's MPI; mpi: its choice.")
]
Link = Annotated[
    str | None,
    typer.Option(metavar="auto|mpi|peer|host", help="Between GPUs; default: MPRESS_LINK."),
]
Mpiexec = Annotated[
    str | None, typer.Option(metavar="CMD", help="The launcher, with its own options.")
]
Repeat = Annotated[int, typer.Option(metavar="N", min=1, help="Samples of a path, at most.")]
Seconds = Annotated[
    float, typer.Option(metavar="S", help="For a size, as far as few samples allow.")
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the results here.")
]
