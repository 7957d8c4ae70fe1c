"""mpress simulate: what a program, or a collective call, would take on more ranks, by a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mpress import codec_curves, collective_model
from mpress.cli import simulate_collectives, simulate_wave
from mpress.cli.errors import UserError, checked_output, checked_picture

_MOST_RANKS = 16384  # where schedules take minutes to count
_WAVE_RANKS = "4,16,64,512"
_INSTEAD = {"--link-rate": "--link", "--link": "--link-rate"}


def simulate(
    app: Annotated[
        str | None, typer.Option("--app", metavar="wave", help="The program: measured steps.")
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(metavar="|".join(collective_model.OPS), help="The collective call."),
    ] = None,
    ranks: Annotated[str | None, typer.Option(metavar="N,N,...", help="Numbers of ranks.")] = None,
    latency: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Of a message, or a round (1e-5)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the projection here.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it here.")] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE.json", help="Written by bench/wave_scaling.py."),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(metavar="weak|strong", help="Cells a rank stay, or those of the grid."),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="NXxNYxNZ", help="Strong scaling: cells (default: as measured)."),
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(metavar="xy", help="Directions that are split (default: as measured)."),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the measured rows (default: the first).")
    ] = None,
    link_rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Of a rank's link: 200Gbit (default: as measured)."),
    ] = None,
    nbytes: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="BYTES", help="As in mpress bench: of a block, or a rank's vector."
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(metavar="RATE", help="Of a host's link, each way: 100Gbit.")
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(metavar="R", help="Of the data, alone; zfp's is its rate's.")
    ] = None,
    spec: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Codec (default: szp:rel=1e-3).")
    ] = None,
    element_type: Annotated[
        str | None, typer.Option("--type", metavar="f32|f64", help="Of elements (default: f32).")
    ] = None,
    filled: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Of the values, those that a finer grid lengthens."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(metavar="|".join(codec_curves.GPUS), help="Whose codecs (default: h200)."),
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Written by mpress tune: its codecs.")
    ] = None,
    chunk: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="What overlaps (default: 4M; 0: in one piece)."),
    ] = None,
    hosts_of: Annotated[
        int | None, typer.Option(metavar="G", help="Ranks on each host (default: 1).")
    ] = None,
    link_within: Annotated[
        str | None, typer.Option(metavar="RATE", help="Of a rank, within its host (1600Gbit).")
    ] = None,
    latency_within: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Of a round there (1e-5).")
    ] = None,
    beside: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Of mpress bench: the model beside that."),
    ] = None,
) -> None:
    """Project measured steps, or a collective call, to other numbers of ranks. A projection by a
    model: nothing is run."""
    of_wave: dict[str, Any] = {
        "--from": source, "--scaling": scaling, "--grid": grid, "--axes": axes,
        "--transport": transport, "--link-rate": link_rate,
    }  # fmt: skip
    of_call: dict[str, Any] = {
        "--bytes": nbytes, "--link": link, "--ratio": ratio, "--spec": spec,
        "--type": element_type, "--filled": filled, "--gpu": gpu, "--profile": profile,
        "--chunk": chunk, "--hosts-of": hosts_of, "--link-within": link_within,
        "--latency-within": latency_within, "--beside": beside,
    }  # fmt: skip
    if (app is None) == (op is None):
        raise UserError("expected --app wave, or --op and a collective call")
    mode, other, foreign = ("--app", "--op", of_call) if app else ("--op", "--app wave", of_wave)
    for option, value in foreign.items():
        if value is not None:
            instead = f" ({mode} has {_INSTEAD[option]})" if option in _INSTEAD else ""
            raise UserError(f"{option} belongs to {other}, not to {mode}{instead}")
    if app is not None:
        _simulate_wave(app, source, ranks, latency, json_file, plot, of_wave)
        return
    for option, path, check in (
        ("--json", json_file, checked_output), ("--plot", plot, checked_picture)
    ):  # fmt: skip
        if path is not None:
            check(option, path)
    counts = None if ranks is None else checked_ranks(ranks, least=2)
    simulate_collectives.simulate(op or "", counts, latency, of_call, json_file, plot)


def checked_ranks(text: str, least: int = 1) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) >= least for part in parts):
        expected = "positive numbers" if least == 1 else f"numbers, {least} or more"
        raise UserError(f"--ranks {text!r}: expected {expected}, such as 4,16,64")
    if least > 1 and max(map(int, parts)) > _MOST_RANKS:
        raise UserError(f"--ranks {text!r}: expected {_MOST_RANKS} at most")
    return sorted({int(part) for part in parts})


def _simulate_wave(
    app: str, source: Path | None, ranks: str | None, latency: float | None, json_file: Path | None,
    plot: Path | None, options: dict[str, Any],
) -> None:  # fmt: skip
    if app != "wave":
        raise UserError(f"--app {app!r}: expected wave")
    if source is None:
        raise UserError("--app wave: expected --from and a file of bench/wave_scaling.py")
    simulate_wave.simulate(
        source, checked_ranks(ranks or _WAVE_RANKS), options["--scaling"] or "weak",
        options["--grid"], options["--axes"], options["--transport"], options["--link-rate"],
        1e-5 if latency is None else latency, json_file, plot,
    )  # fmt: skip
