"""The options that commands of `mpress bench iso` share, and their checks."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mpress import fields
from mpress.bench import names, shapes
from mpress.cli.errors import UserError, checked_bytes, load_plots

_LARGEST = 1 << 30

Ranks = Annotated[int, typer.Option("-n", metavar="N", min=1, help="Ranks.")]
Grid = Annotated[
    str | None, typer.Option(metavar="AxBx...", help="Ranks in each dimension; default: MPI's.")
]
Dimensions = Annotated[
    int | None, typer.Option(metavar="D", min=1, help="Of the grid, without --grid; default 2.")
]
Periodic = Annotated[
    int | None, typer.Option(metavar="T", min=0, help="The first T dimensions; default: all.")
]
Shape = Annotated[str, typer.Option(metavar="|".join(shapes.SHAPES), help="Neighbourhood.")]
Radius = Annotated[int, typer.Option(metavar="K", min=0, help="Of the neighbourhood.")]
Inner = Annotated[
    int, typer.Option(metavar="K", min=-1, help="Without that of this radius; -1: with itself.")
]
Order = Annotated[str, typer.Option(metavar="|".join(shapes.ORDERS), help="Of the neighbours.")]
Skip = Annotated[int, typer.Option(metavar="N", min=0, help="Without the first N neighbours.")]
Field = Annotated[
    str, typer.Option(metavar="NAME", help=f"Of the elements: {', '.join(fields.NAMES)}, ...")
]
Force = Annotated[
    bool, typer.Option("--force", help="Encode with each --spec whether or not that pays.")
]
Repeat = Annotated[int, typer.Option(metavar="N", min=1, help="Rounds of a launch, at most.")]
Launches = Annotated[int, typer.Option(metavar="N", min=1, help="Runs of the launcher.")]
Seconds = Annotated[
    float, typer.Option(metavar="S", help="Of a launch for a size, as far as ten rounds allow.")
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Of the order of all that is run.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Draw pictures into this directory.")
]


def check_shape(plan: dict[str, Any]) -> None:
    """The neighbourhood of a plan."""
    shape, order = plan["shape"], plan["order"]
    if shape not in shapes.SHAPES:
        raise UserError(f"--shape {shape!r}: expected one of {', '.join(shapes.SHAPES)}")
    if order not in shapes.ORDERS:
        raise UserError(f"--order {order!r}: expected one of {', '.join(shapes.ORDERS)}")
    if plan["inner"] > plan["radius"]:
        raise UserError(f"--inner {plan['inner']}: expected at most the radius {plan['radius']}")


def has_cart(plan: dict[str, Any]) -> bool:
    """Whether MPI's own neighbours on a Cartesian communicator are these."""
    is_star = plan["shape"] == "von-neumann" or plan["dimensions"] == 1
    return is_star and (plan["radius"], plan["inner"], plan["skip"]) == (1, 0, 0)


def grid_of(option: str, text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = text.split("x")
    sizes = [int(part) for part in parts if part.isascii() and part.isdigit()]
    if len(sizes) != len(parts) or min(sizes) < 1:
        raise UserError(f"{option} {text!r}: expected numbers, such as 3x3x3")
    return sizes


def checked_grid(text: str | None, ranks: int) -> list[int] | None:
    sizes = grid_of("--grid", text)
    if sizes is not None and math.prod(sizes) != ranks:
        raise UserError(f"--grid {text}: expected {ranks} ranks in all, as -n says")
    return sizes


def checked_sizes(text: str, element: int) -> list[int]:
    """Ascending, of whole elements; A-B doubles from A on."""
    sizes = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        size, most = (checked_bytes(f"--sizes {text}:", end) for end in (first, last or first))
        if dash and most < size:
            raise UserError(f"--sizes {text}: expected the smaller size first")
        if not 0 < size <= most <= _LARGEST:
            raise UserError(f"--sizes {text}: expected sizes of 1 byte to 1 GiB")
        while size <= most:
            sizes.add(size)
            size *= 2
    wrong = [size for size in sorted(sizes) if size % element]
    if wrong:
        raise UserError(f"--sizes {text}: {wrong[0]} bytes are no whole elements of {element}")
    return sorted(sizes)


def methods(chosen: Sequence[str], specs: Sequence[str]) -> list[dict[str, str | None]]:
    """Each by itself, and those that encode with each codec, too."""
    found: list[dict[str, str | None]] = []
    for name in chosen:
        is_raw = specs and name in names.OF_MPRESS
        found.append({"name": name, "spec": "none" if is_raw else None})
        if name in names.ENCODING:
            found += [{"name": name, "spec": spec} for spec in specs if spec != "none"]
    return found


def checked_plots(folder: Path | None) -> Callable[[dict[str, Any], Path], None] | None:
    """What draws pictures, found out before anything is measured for them."""
    if folder is None:
        return None
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--plot {folder}: expected a directory")
    if not folder.absolute().parent.is_dir():
        raise UserError(f"--plot {folder}: the directory that it would be in does not exist")
    load_plots()
    from mpress.bench import iso_plots

    return iso_plots.draw
