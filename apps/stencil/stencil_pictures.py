"""Pictures of the stencil program: fields, and the time of a step by the depth of its halos.

    python apps/stencil/stencil_pictures.py --output demo-output/stencil

Depths and codecs are measured as fast as this machine is, and over a link that is simulated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib
import numpy as np
import stencil_program as program

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BIN = Path(sys.executable).parent
RANKS = 2
CODECS = ("none", "mpc", "szp:abs=1e-4")
DEPTHS = (1, 2, 4, 8, 16, 32)
STEPS = 512
# Grids, and the rate of a link: None is as fast as this machine, others are simulated.
PANELS = (("64x64", None), ("1024x1024", None), ("1024x1024", "100Mbit"))
FIELD = ("240x160", 2000)  # cells, and steps of heat


@dataclass(frozen=True)
class Measured:
    grid: str
    link: str | None
    codec: str
    depth: int
    step_us: float  # of the fastest round
    exchanging_us: float  # in it
    wire_bytes: int  # that went to other processes, a step, of all processes


def call(command: list) -> str:
    words = [str(part) for part in command]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise program.ProgramError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def run(output: Path, options: list, codec: str, link: str | None = None) -> tuple[str, dict]:
    """What a run under mpress, with all compressed, prints and reports."""
    report = output / "report.json"
    command = [BIN / "mpress", "run", "-n", RANKS, "--mpiexec", BIN / "mpiexec", "--codec", codec,
               "--force", "--threshold", "0", "--report", report]  # fmt: skip
    command += ["--link-rate", link] if link else []
    printed = call([*command, "--", output / "stencil", *options])
    return printed, json.loads(report.read_text())


def measure(output: Path, rounds: int) -> Iterator[Measured]:
    """Rounds take turns, so that what else the machine does meets all alike."""
    cases = [(*panel, *how) for panel in PANELS for how in itertools.product(CODECS, DEPTHS)]
    found: dict[tuple, list[tuple]] = {case: [] for case in cases}
    for _ in range(rounds):
        for grid, link, codec, depth in cases:
            options = ["--grid", grid, "--depth", depth, "--steps", STEPS, "--border", "fixed"]
            printed, report = run(output, options, codec, link)
            times = program.times(printed)
            sent = report["totals"]["wire_bytes"] / STEPS
            found[grid, link, codec, depth].append((times.step, times.exchanging, sent))
    for case, times in found.items():
        step, exchanging, sent = min(times)
        yield Measured(*case, 1e6 * step, 1e6 * exchanging, round(sent))


def draw_depths(path: Path, rows: list[Measured]) -> None:
    figure, panels = plt.subplots(1, len(PANELS), figsize=(13, 4.4), layout="constrained",
                                  squeeze=False)  # fmt: skip
    for axes, (grid, link) in zip(panels.flat, PANELS, strict=True):
        for codec in CODECS:
            here = [r for r in rows if (r.grid, r.link, r.codec) == (grid, link, codec)]
            axes.plot([r.depth for r in here], [r.step_us for r in here], "o-", label=codec)
        where = f"a SIMULATED link of {link}/s" if link else "memory of one machine"
        axes.set_title(f"{grid} cells on {RANKS} ranks,\n{where}", fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_xticks(DEPTHS, map(str, DEPTHS))
        axes.set(xlabel="halo depth: steps for each exchange", ylabel="us a step")
        axes.set_ylim(0, 1.1 * max(r.step_us for r in rows if (r.grid, r.link) == (grid, link)))
        axes.grid(alpha=0.3)
    panels.flat[0].legend(title="codec", fontsize=9)
    figure.suptitle("apps/stencil: heat, 5 points, by the depth of the halos")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_fields(path: Path, output: Path) -> None:
    """Heat before and after, what a bound on halos changes, and the potential of charges."""
    text, steps = FIELD
    grid = tuple(map(int, text.split("x")))

    def field(codec: str, depth: int, *options: object) -> np.ndarray:
        own = ["--grid", text, "--border", "fixed", "--depth", depth, "--check", *options]
        run(output, [*own, "--output", output / "values.f64"], codec)
        return np.fromfile(output / "values.f64").reshape(grid)

    before = field("none", 1, "--steps", 1)
    after = field("none", 1, "--steps", steps)
    lossy = field(CODECS[-1], 8, "--steps", steps)
    potential = field("none", 8, "--problem", "jacobi", "--steps", 20 * steps)
    error = lossy - after
    shown = [
        (before, "heat: after a step", "coolwarm", 1.0),
        (after, f"heat: after {steps} steps", "coolwarm", 1.0),
        (error, f"its change by {CODECS[-1]}, depth 8: at most {np.abs(error).max():.1e}",
         "seismic", np.abs(error).max()),
        (potential, f"Poisson: two charges, {20 * steps} steps of Jacobi", "PuOr_r",
         np.abs(potential).max()),
    ]  # fmt: skip
    figure, panels = plt.subplots(2, 2, figsize=(11, 7.4), layout="constrained")
    for axes, (values, title, colours, limit) in zip(panels.flat, shown, strict=True):
        image = axes.imshow(values.T, cmap=colours, vmin=-limit, vmax=limit, origin="lower")
        axes.axvline(grid[0] / RANKS - 0.5, color="#606060", linewidth=1, linestyle="--")
        axes.set_title(title, fontsize=10)
        axes.set(xlabel="x (cells)", ylabel="y (cells)")
        figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    figure.suptitle("apps/stencil: 1 is held at the left border, 0 at the others; dashed: border "
                    "between ranks")  # fmt: skip
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output/stencil"))
    parser.add_argument("--rounds", type=int, default=3, help="the fastest counts")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    try:
        program.build(given.output / "stencil", BIN / "mpicc", ["-march=native"])
        draw_fields(given.output / "fields.png", given.output)
        rows = list(measure(given.output, given.rounds))
    except program.ProgramError as error:
        sys.exit(f"stencil: {error}")
    (given.output / "depths.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    draw_depths(given.output / "depths.png", rows)
    print(f"{'grid':>10} {'link':>6} {'codec':>14} {'depth':>5} {'us a step':>10} "
          f"{'exchanging':>10} {'bytes a step':>12}")  # fmt: skip
    for r in rows:
        print(f"{r.grid:>10} {r.link or '-':>6} {r.codec:>14} {r.depth:5} {r.step_us:10.2f} "
              f"{r.exchanging_us:10.2f} {r.wire_bytes:12,}")  # fmt: skip


if __name__ == "__main__":
    main()
