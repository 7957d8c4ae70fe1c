"""mpress bench iso communication, creation, stencil: neighbourhoods, beside MPI's own calls."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mpress import _core, fields
from mpress.bench import iso_jobs, names
from mpress.cli import bench_iso_options as options
from mpress.cli import bench_iso_tables, bench_options, launch
from mpress.cli.errors import UserError, checked_output, checked_seconds, checked_spec
from mpress.p2p import data

app = typer.Typer(
    help="Measure exchanges with neighbours on a Cartesian grid, beside MPI's own calls.",
    no_args_is_help=True,
)


@app.command()
def communication(
    ranks: options.Ranks = 4,
    grid: options.Grid = None,
    dimensions: options.Dimensions = None,
    periodic: options.Periodic = None,
    shape: options.Shape = "moore",
    radius: options.Radius = 1,
    inner: options.Inner = 0,
    order: options.Order = "row",
    skip: options.Skip = 0,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="SIZES", help="Of a block: 1-64,256,4K; by twos.")
    ] = "1,8,64,512,4K,32K,256K",
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"{', '.join(names.METHODS)}; may be repeated."),
    ] = None,
    spec: bench_options.Specs = None,
    element_type: Annotated[
        str, typer.Option("--type", metavar="f32|f64", help="Of the elements, with --spec.")
    ] = "f64",
    field: options.Field = "turb",
    force: options.Force = False,
    launches: options.Launches = 5,
    repeat: options.Repeat = 100,
    seconds: options.Seconds = 10.0,
    seed: options.Seed = 1,
    mpiexec: bench_options.Mpiexec = None,
    json_file: bench_options.JsonFile = None,
    plot: options.Plot = None,
) -> None:
    """Measure exchanges of blocks of one size."""
    plan = _grid_plan(ranks, grid, dimensions, periodic) | {
        "stage": "communication", "shape": shape, "radius": radius, "inner": inner, "order": order,
        "skip": skip, "type": element_type if spec else "bytes", "field": field,
    }  # fmt: skip
    options.check_shape(plan)
    if element_type not in ("f32", "f64"):
        raise UserError(f"--type {element_type!r}: expected f32 or f64")
    default = [*names.DEFAULTS, *(["cart"] if options.has_cart(plan) else [])]
    if order == "random-each":
        default = ["graph", "alltoallv"]
    chosen = _checked_names("--method", method or default, names.METHODS)
    if "cart" in chosen and not options.has_cart(plan):
        raise UserError("--method cart: expected a von Neumann neighbourhood of radius 1")
    if order == "random-each" and not set(chosen) <= set(names.OF_MPI) - {"cart"}:
        raise UserError("--order random-each: expected no other methods than graph and alltoallv")
    specs = _checked_specs(spec, chosen, plan["type"])
    plan["methods"] = options.methods(chosen, specs)
    plan["sizes"] = options.checked_sizes(sizes, {"bytes": 1, "f32": 4, "f64": 8}[plan["type"]])
    _measure(plan, names.REFERENCE, launches, repeat, seconds, seed, mpiexec, force, json_file,
             plot)  # fmt: skip


@app.command()
def creation(
    ranks: options.Ranks = 4,
    grid: options.Grid = None,
    dimensions: options.Dimensions = None,
    periodic: options.Periodic = None,
    shape: options.Shape = "moore",
    radius: options.Radius = 1,
    inner: options.Inner = 0,
    order: options.Order = "row",
    skip: options.Skip = 0,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"{', '.join(names.CREATIONS)}; may be repeated."),
    ] = None,
    schedule_grid: Annotated[
        str | None,
        typer.Option(metavar="AxBx...", help="Of schedules, if not that of the ranks."),
    ] = None,
    launches: options.Launches = 5,
    repeat: options.Repeat = 10,
    seconds: options.Seconds = 10.0,
    seed: options.Seed = 1,
    mpiexec: bench_options.Mpiexec = None,
    json_file: bench_options.JsonFile = None,
    plot: options.Plot = None,
) -> None:
    """Measure how long it takes to make neighbourhoods, and their schedules."""
    plan = _grid_plan(ranks, grid, dimensions, periodic) | {
        "stage": "creation", "shape": shape, "radius": radius, "inner": inner, "order": order,
        "skip": skip, "schedule_grid": options.grid_of("--schedule-grid", schedule_grid),
    }  # fmt: skip
    options.check_shape(plan)
    if order == "random-each":
        raise UserError("--order random-each: expected it of communication alone")
    if len(plan["schedule_grid"] or [0] * plan["dimensions"]) != plan["dimensions"]:
        raise UserError(
            f"--schedule-grid {schedule_grid}: expected {plan['dimensions']} dimensions"
        )
    chosen = _checked_names("--method", method or list(names.CREATIONS), names.CREATIONS)
    plan["methods"] = options.methods(chosen, [])
    _measure(plan, names.CREATION_REFERENCE, launches, repeat, seconds, seed, mpiexec, False,
             json_file, plot)  # fmt: skip


@app.command()
def stencil(
    ranks: options.Ranks = 4,
    points: Annotated[
        int, typer.Option(metavar="5|9|7|27", help="Of the stencil: 2-D, 2-D, 3-D, 3-D.")
    ] = 9,
    extent: Annotated[
        int, typer.Option(metavar="N", min=1, help="Doubles of a rank in each dimension.")
    ] = 100,
    depth: Annotated[int, typer.Option(metavar="K", min=1, help="Of the halo, in cells.")] = 1,
    grid: options.Grid = None,
    periodic: options.Periodic = None,
    exchange_only: Annotated[
        bool, typer.Option("--exchange-only", help="Without the stencil's K steps.")
    ] = False,
    setup: Annotated[
        bool, typer.Option("--setup", help="Make the neighbourhood each time, too.")
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"{', '.join(names.OF_HALOS)}; may be repeated."),
    ] = None,
    spec: bench_options.Specs = None,
    field: options.Field = "turb",
    force: options.Force = False,
    launches: options.Launches = 5,
    repeat: options.Repeat = 100,
    seconds: options.Seconds = 10.0,
    seed: options.Seed = 1,
    mpiexec: bench_options.Mpiexec = None,
    json_file: bench_options.JsonFile = None,
    plot: options.Plot = None,
) -> None:
    """Measure halo exchanges, with the stencil between them."""
    if points not in names.STENCILS:
        raise UserError(f"--points {points}: expected 5, 9, 7 or 27")
    if depth > extent:
        raise UserError(f"--depth {depth}: expected at most the {extent} cells of --extent")
    plan = _grid_plan(ranks, grid, names.STENCILS[points], periodic) | {
        "stage": "stencil", "points": points, "extent": extent, "depth": depth,
        "update": not exchange_only, "setup": setup, "field": field,
    }  # fmt: skip
    is_star = points in (5, 7) and depth == 1
    default = [*names.HALO_DEFAULTS, *(["cart"] if is_star and not setup else [])]
    chosen = _checked_names("--method", method or default, names.OF_HALOS)
    if "cart" in chosen and not is_star:
        raise UserError("--method cart: expected 5 or 7 points and a halo of depth 1")
    again = [name for name in chosen if name == "cart" or name.startswith(names.PERSISTENT)]
    if setup and again:
        raise UserError(f"--method {again[0]}: expected no --setup, as it makes no neighbourhood")
    specs = _checked_specs(spec, chosen, "f64")
    plan["methods"] = options.methods(chosen, specs)
    _measure(plan, names.REFERENCE, launches, repeat, seconds, seed, mpiexec, force, json_file,
             plot)  # fmt: skip


def _grid_plan(
    ranks: int, grid: str | None, dimensions: int | None, periodic: int | None
) -> dict[str, Any]:
    sizes = options.checked_grid(grid, ranks)
    if sizes is not None and dimensions not in (None, len(sizes)):
        raise UserError(f"--grid {grid}: expected {dimensions} dimensions")
    count = len(sizes) if sizes is not None else dimensions or 2
    if periodic is not None and periodic > count:
        raise UserError(f"--periodic {periodic}: expected at most the {count} dimensions")
    return {"ranks": ranks, "grid": sizes, "dimensions": count, "periodic": periodic}


def _checked_names(option: str, given: Sequence[str], known: Sequence[str]) -> list[str]:
    for name in given:
        if name not in known:
            raise UserError(f"{option} {name!r}: expected one of {', '.join(known)}")
    return list(dict.fromkeys(given))


def _checked_specs(given: list[str] | None, chosen: Sequence[str], kind: str) -> list[str]:
    specs = [checked_spec("--spec", text) for text in given or []]
    for text in specs:
        try:
            _core.validate(text, kind)
        except ValueError as error:
            raise UserError(f"--spec: {error}") from None
    if specs and not set(chosen) & set(names.ENCODING):
        raise UserError(f"--spec: expected one of the methods {', '.join(names.ENCODING)}")
    return specs


def _measure(
    plan: dict[str, Any],
    reference: str,
    launches: int,
    repeat: int,
    seconds: float,
    seed: int,
    mpiexec: str | None,
    force: bool,
    json_file: Path | None,
    plot: Path | None,
) -> None:
    known = fields.NAMES if plan["stage"] == "stencil" else data.NAMES
    if plan.get("field", known[0]) not in known:
        raise UserError(f"--field {plan['field']!r}: expected one of {', '.join(known)}")
    checked_seconds("--seconds", seconds)
    if json_file is not None:
        checked_output("--json", json_file)
    draw = options.checked_plots(plot)
    program = iso_jobs.PROGRAM
    launcher = launch.find_mpiexec(mpiexec, program)
    settings = {"MPI4PY_RC_THREAD_LEVEL": "single"}
    if force:
        settings |= {"MPRESS_FORCE": "1", "MPRESS_THRESHOLD": "0"}
    plan |= {"repeat": repeat, "seconds": seconds, "seed": seed, "force": force}
    try:
        results = iso_jobs.run(
            plan, launches, lambda words: launch.rank_command(words, settings, plan["ranks"],
                                                              launcher)
        )  # fmt: skip
    except iso_jobs.JobError as error:
        raise UserError(str(error)) from None
    document = iso_jobs.document(plan, results, reference)
    bench_iso_tables.show(document)
    if json_file is not None:
        json_file.write_text(json.dumps(document, indent=1) + "\n")
    if draw is not None and plot is not None:
        draw(document, plot)
