"""`make demo`: what mpress does to an MPI program that knows nothing of it, and what that costs.

Builds apps/wave and runs it on 4 ranks: without mpress, with lossless and with error-bounded
messages (forced), and with mpress's default. Compares the results, draws them, looks at real
climate fields, and repeats the runs over a simulated slow link to show when compression pays.
Everything it writes goes to demo-output/.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import program as wave
from pictures import Grid, draw_error, draw_wave
from rich.console import Console
from rich.table import Table

BIN = Path(sys.executable).parent
RANKS = 4
CELLS, SPLIT = (160, 160, 128), (RANKS, 1, 1)
SPACING = 12.5  # m
STEPS, SNAPSHOT_EVERY = 600, 200
SHOWN = range(SNAPSHOT_EVERY, STEPS + 1, SNAPSHOT_EVERY)
THRESHOLD = 4096  # bytes: halo faces count, the odd small message does not
LOSSLESS = "mpc"
LOSSY = "szp:abs=0.01"  # Pa
# The error of a halo enters the field once a step and spreads with the wave; what a run may differ
# by is a fraction of the largest pressure, not the bound of one message.
TOLERANCE = 1e-3
LINK_RATE = "1Gbit"
ROUNDS, PACED_ROUNDS = 2, 1  # of which the fastest counts
FIELDS = (
    "MPI-ESM1-2-LR",
    "NESM3",
)  # CMIP6 models whose daily air temperature has no missing values

console = Console(width=None if sys.stdout.isatty() else 118, highlight=False)


class DemoError(Exception):
    """A run failed or a result is not what it must be."""


@dataclass
class Run:
    codec: str  # its spec, or "off"
    seconds: float  # stepping, as the program itself measured it
    time_step: float  # s
    snapshots: dict[str, Path]
    report: dict = field(default_factory=dict)

    @property
    def totals(self) -> dict:
        return self.report["totals"]


def check_call(command: list) -> str:
    """The standard output of a command that must succeed."""
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise DemoError(f"{' '.join(command)}\nended with {result.returncode}:\n"
                        f"{result.stdout}{result.stderr}")  # fmt: skip
    return result.stdout


def build(output: Path) -> Path:
    program = output / "wave"
    try:
        wave.build(program, BIN / "mpicc", ["-march=native"])
    except wave.ProgramError as error:
        raise DemoError(str(error)) from None
    return program


def run_all(program: Path, output: Path, codecs: dict[str, str | None], rounds: int,
            link_rate: str | None = None) -> dict[str, Run]:  # fmt: skip
    """The fastest of `rounds` runs with each codec; `codecs` maps names of files to codecs.

    In turns, so that whatever else the machine does meets all codecs alike.
    """
    runs: dict[str, Run] = {}
    for _ in range(rounds):
        for name, codec in codecs.items():
            one = run(program, output, name, codec, link_rate)
            if one.codec not in runs or one.seconds < runs[one.codec].seconds:
                runs[one.codec] = one
    return runs


def run(program: Path, output: Path, name: str, codec: str | None,
        link_rate: str | None) -> Run:  # fmt: skip
    """One run of the wave program; `codec` None leaves mpress out of it."""
    prefix, report = output / name, output / f"{name}.json"
    options = ["--grid", "x".join(map(str, CELLS)), "--split", "x".join(map(str, SPLIT))]
    options += ["--spacing", SPACING, "--steps", STEPS]
    if not link_rate:
        options += ["--output", prefix, "--snapshot-every", SNAPSHOT_EVERY]
    if codec is None:
        command = [BIN / "mpiexec", "-n", RANKS]
    else:
        command = [BIN / "mpress", "run", "-n", RANKS, "--codec", codec, "--report", report]
        command += ["--threshold", THRESHOLD]
        command += ["--force"] if codec in (LOSSLESS, LOSSY) else []
        command += ["--link-rate", link_rate, "--"] if link_rate else ["--"]
    text = check_call([*command, program, *options])
    try:
        times = wave.times(text)
    except wave.ProgramError as error:
        raise DemoError(str(error)) from None
    return Run(
        codec or "off",
        times.seconds,
        times.time_step,
        {
            name: output / f"{prefix.name}-{name}.f32"
            for name in ("velocity", *map(step_name, SHOWN))
        },
        json.loads(report.read_text()) if codec else {},
    )


def step_name(step: int) -> str:
    return f"{step:06d}"


def largest_error(reference: Run, other: Run) -> tuple[float, float]:
    """Over all snapshots, in Pa and as a fraction of each snapshot's largest pressure."""
    absolute = relative = 0.0
    for name, path in reference.snapshots.items():
        exact = np.fromfile(path, np.float32).astype(np.float64)
        error = np.abs(np.fromfile(other.snapshots[name], np.float32) - exact).max()
        # Unlike max(), these keep a NaN.
        absolute = np.maximum(absolute, error)
        relative = np.maximum(relative, error / np.abs(exact).max())
    return float(absolute), float(relative)


def check(runs: list[Run]) -> None:
    """Lossless runs must not differ from the first by a bit, the lossy one within the tolerance."""
    reference, *others = runs
    for one in others:
        if one.codec in (LOSSLESS, LOSSY) and not one.totals["compressed_messages"]:
            raise DemoError(f"{one.codec}: no message was compressed")
        if one.codec == LOSSY:
            _, error = largest_error(reference, one)
            if not error <= TOLERANCE:
                raise DemoError(
                    f"{LOSSY} changed the result by {error:.2g} of the largest pressure"
                )
        else:
            for name, path in reference.snapshots.items():
                if path.read_bytes() != one.snapshots[name].read_bytes():
                    raise DemoError(f"{one.codec} changed {path.name}")


def error_text(reference: Run, other: Run) -> str:
    absolute, relative = largest_error(reference, other)
    return f"{absolute:.2g} Pa ({relative:.0e})" if absolute else "none: same bits"


def results_table(runs: list[Run]) -> Table:
    table = Table(title=f"apps/wave, {STEPS} steps of {'x'.join(map(str, CELLS))} cells, "
                        f"{RANKS} ranks on this machine", title_justify="left")  # fmt: skip
    table.add_column("run")
    for column in ("messages", "raw MB", "wire MB", "ratio", "codec s", "largest error", "run s"):
        table.add_column(column, justify="right")
    for one in runs:
        if one.report:
            totals = one.totals
            cells = [
                f"{totals['messages']:,}",
                f"{totals['raw_bytes'] / 1e6:,.0f}",
                f"{totals['wire_bytes'] / 1e6:,.0f}",
                f"{totals['raw_bytes'] / totals['wire_bytes']:.2f}",
                f"{totals['encode_seconds'] + totals['decode_seconds']:.2f}",
            ]
        else:
            cells = ["not counted", "", "", "", ""]
        error = "reference" if one is runs[0] else error_text(runs[0], one)
        table.add_row(one.codec, *cells, error, f"{one.seconds:.2f}")
    return table


def paced_table(runs: dict[str, Run]) -> Table:
    table = Table(title=f"the same over a SIMULATED link of {LINK_RATE}/s into each rank "
                        "(received messages are delayed)", title_justify="left")  # fmt: skip
    table.add_column("codec")
    for column in ("wire MB", "waiting s a rank", "run s", "speed-up"):
        table.add_column(column, justify="right")
    raw = runs["none"]
    for codec, one in runs.items():
        table.add_row(
            codec,
            f"{one.totals['wire_bytes'] / 1e6:,.0f}",
            f"{one.totals['wait_seconds'] / RANKS:.2f}",
            f"{one.seconds:.2f}",
            f"{raw.seconds / one.seconds:.2f}",
        )
    return table


def break_even(one: Run) -> float:
    """Link rate in Gbit/s at which the bytes saved take as long as the codec, without overlap."""
    totals = one.totals
    codec_seconds = totals["encode_seconds"] + totals["decode_seconds"]
    return (totals["raw_bytes"] - totals["wire_bytes"]) * 8 / 1e9 / codec_seconds


def verdict(runs: dict[str, Run], paced: dict[str, Run]) -> None:
    console.print("\n[bold]When does it pay?[/bold]")
    for codec in (LOSSLESS, LOSSY):
        change = runs[codec].seconds / runs["off"].seconds - 1
        gain = paced["none"].seconds / paced[codec].seconds
        taken = f"{abs(change):.0%} {'longer' if change > 0 else 'less (noise)'}"
        console.print(
            f"  {codec}: here, forced, the program took {taken}; over the simulated {LINK_RATE}/s "
            f"link it ran {gain:.2f} times as fast.\n    Codec time and saved bytes break even at "
            f"about {break_even(runs[codec]):.1f} Gbit/s a rank: slower links gain."
        )
    totals = runs["auto"].totals
    console.print(
        "  Ranks of one machine exchange through shared memory, which is faster than any CPU "
        f"codec.\n  There mpress's default, auto, compressed {totals['compressed_messages']:,} of "
        f"{totals['messages']:,} messages; over the slow link "
        f"{paced['auto'].totals['compressed_messages']:,}."
    )


def inspect_fields() -> None:
    package = importlib.util.find_spec("esmvaltool_sample_data")
    if package is None:
        raise DemoError("esmvaltool-sample-data is not installed; make demo installs it")
    (root,) = package.submodule_search_locations
    files = []
    for model in FIELDS:
        found = sorted(Path(root).glob(f"**/{model}/historical/**/day/**/ta_day_*.nc"))
        if not found:
            raise DemoError(f"esmvaltool-sample-data holds no daily temperature of {model}")
        files.append(found[0])
    if subprocess.run([BIN / "mpress", "inspect", "--variable", "ta", *files]).returncode:
        raise DemoError("mpress inspect failed")


def demonstrate(output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    console.rule("an MPI program, unmodified")
    program = build(output)
    codecs = {"off": None, "mpc": LOSSLESS, "szp": LOSSY, "auto": "auto"}
    runs = run_all(program, output, codecs, ROUNDS)
    check(list(runs.values()))
    console.print(results_table(list(runs.values())))

    exact, lossy = runs["off"].snapshots, runs[LOSSY].snapshots
    grid = Grid(CELLS, SPACING, SPLIT, runs["off"].time_step)
    draw_wave(output / "wave-field.png", grid, exact["velocity"],
              {step: exact[step_name(step)] for step in SHOWN})  # fmt: skip
    last = step_name(STEPS)
    draw_error(output / "wave-error.png", grid, exact["velocity"], STEPS, exact[last],
               lossy[last], LOSSY)  # fmt: skip
    console.print(f"Pictures: {output}/wave-field.png, {output}/wave-error.png", soft_wrap=True)
    console.print(f"More about a run: mpress report {output}/mpc.json\n", soft_wrap=True)

    console.rule("real fields: CMIP6 air temperatures")
    inspect_fields()

    console.rule(f"a slower link, simulated: {LINK_RATE}/s")
    codecs = {"paced-none": "none", "paced-mpc": LOSSLESS, "paced-szp": LOSSY, "paced-auto": "auto"}
    paced = run_all(program, output, codecs, PACED_ROUNDS, LINK_RATE)
    console.print(paced_table(paced))
    verdict(runs, paced)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    try:
        demonstrate(parser.parse_args().output)
    except DemoError as error:
        sys.exit(f"demo: {error}")


if __name__ == "__main__":
    main()
