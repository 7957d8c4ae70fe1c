"""The decaying vortex beside what is published of it, and with each codec beside none.

Runs apps/turbulence/turbulence.py, which knows nothing of mpress: plain, without loss, within
bounds and at fixed rates, all forced. Compares energy and dissipation with the published solution
(at Reynolds number 1600), the energy spectrum with a published model once the vortex has decayed to
turbulence, and each codec's velocity with the plain one. Tables are printed, and a picture goes to
demo-output/turbulence/.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from published import DNS_1600, model_spectrum
from rich.console import Console
from rich.table import Table

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
PLAIN, LOSSLESS = "none", "mpc"
CODECS = (LOSSLESS, "zfp:24", "zfp:16", "szp:rel=1e-6", "szp:rel=1e-5")
TURBULENT_FROM = 8  # time; before it the vortex is too regular for spectra of turbulence

console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)


class DemoError(Exception):
    """A run failed, or a result is not what it must be."""


@dataclass
class Run:
    codec: str
    told: dict  # by turbulence.py
    velocity: np.ndarray  # at the end
    totals: dict  # of mpress's report

    def at(self, name: str, time: float) -> float:
        return float(np.interp(time, self.told["times"], self.told[name]))


def run(codec: str, options: argparse.Namespace) -> Run:
    prefix = options.output / codec.replace(":", "-")
    report = options.output / f"{prefix.name}-report.json"
    command = [BIN / "mpress", "run", "-n", options.ranks, "--mpiexec", options.mpiexec,
               "--codec", codec, "--force", "--threshold", "4K", "--report", report, "--",
               sys.executable, HERE / "turbulence.py", "--points", options.points, "--reynolds",
               options.reynolds, "--until", options.until, "--output", prefix]  # fmt: skip
    command += ["--device"] if options.device else []
    # The program has one thread. Where mpi4py asks for more, some MPIs keep collective calls.
    env = {"MPI4PY_RC_THREAD_LEVEL": "funneled", **os.environ}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise DemoError(f"{shlex.join(words)}\nended with {done.returncode}:\n"
                        f"{done.stdout}{done.stderr}")  # fmt: skip
    slabs = [np.load(f"{prefix}-velocity-{rank}.npy") for rank in range(options.ranks)]
    return Run(
        codec, json.loads(prefix.with_suffix(".json").read_text()),
        np.concatenate(slabs, axis=1), json.loads(report.read_text())["totals"],
    )  # fmt: skip


def largest(plain: Run, other: Run) -> float:
    """Difference of a component of the velocity at the end; the fastest is about 1."""
    return float(np.abs(other.velocity.astype(np.float64) - plain.velocity).max())


def largest_relative(plain: Run, other: Run, name: str) -> float:
    """Of energy or dissipation, at any time."""
    reference = np.array(plain.told[name])
    return float(np.abs(np.array(other.told[name]) / reference - 1).max())


def check(plain: Run, others: list[Run]) -> None:
    for one in others:
        if not one.totals["compressed_messages"]:
            raise DemoError(f"{one.codec}: nothing was compressed")
        if one.codec == LOSSLESS and one.velocity.tobytes() != plain.velocity.tobytes():
            raise DemoError(f"{LOSSLESS} changed the result")
        if not np.isfinite(one.velocity).all():
            raise DemoError(f"{one.codec}: the result is not finite")


def beside_published(plain: Run) -> Table:
    points = plain.told["points"]
    table = Table(title=f"Re = 1600, {points}^3 points, beside the published solution on 512^3",
                  title_justify="left")  # fmt: skip
    for heading in ("t", "energy", "published", "off by", "dissipation", "published", "off by"):
        table.add_column(heading, justify="right")
    for time, published in DNS_1600.items():
        if time > plain.told["times"][-1] + 1e-9:
            break
        cells = [f"{time:g}"]
        for name, expected in zip(("energy", "dissipation"), published, strict=True):
            found = plain.at(name, time)
            cells += [f"{found:.6f}", f"{expected:.6f}", f"{100 * (found / expected - 1):+.2f} %"]
        table.add_row(*cells)
    return table


def modelled(plain: Run, k: np.ndarray) -> np.ndarray:
    """The spectrum at the end, by the model of isotropic turbulence."""
    energy, dissipation = plain.told["energy"][-1], plain.told["dissipation"][-1]
    return model_spectrum(k, energy, dissipation, 1 / plain.told["reynolds"])


def beside_model(plain: Run) -> Table:
    table = Table(title=f"energy spectrum at t = {plain.told['times'][-1]:g}, beside Pope's model "
                        "of isotropic turbulence", title_justify="left")  # fmt: skip
    for heading in ("wave numbers", "energy in them", "model", "over it"):
        table.add_column(heading, justify="right")
    spectrum = np.array(plain.told["spectrum"])
    first, most = 2, plain.told["points"] // 3
    while first <= most:  # octaves: shells differ from each other by what is left of the symmetry
        last = min(2 * first - 1, most)
        shells = np.arange(first, last + 1)
        found, expected = spectrum[shells].sum(), modelled(plain, shells).sum()
        table.add_row(f"{first} to {last}", f"{found:.2e}", f"{expected:.2e}",
                      f"{found / expected:.2f}")  # fmt: skip
        first = last + 1
    return table


def beside_plain(plain: Run, others: list[Run]) -> Table:
    table = Table(title=f"codecs beside none, at t = {plain.told['times'][-1]:g}",
                  title_justify="left")  # fmt: skip
    table.add_column("codec")
    for heading in ("ratio", "velocity, largest", "root mean square", "energy", "dissipation"):
        table.add_column(heading, justify="right")
    for one in others:
        ratio = one.totals["raw_bytes"] / one.totals["wire_bytes"]
        square = (one.velocity.astype(np.float64) - plain.velocity) ** 2
        differences = [largest(plain, one), float(np.sqrt(square.mean()))]
        differences += [largest_relative(plain, one, name) for name in ("energy", "dissipation")]
        cells = [f"{value:.1e}" if value else "none" for value in differences]
        table.add_row(one.codec, f"{ratio:.2f}", *cells)
    return table


def draw(path: Path, plain: Run, others: list[Run]) -> None:
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    times = np.array(plain.told["times"])
    left.plot(times, plain.told["dissipation"], label=f"{plain.told['points']}^3 points")
    left.set(xlabel="time", title="dissipation of energy")
    if plain.told["reynolds"] == 1600:
        shown = [time for time in DNS_1600 if time <= times[-1]]
        left.plot(shown, [DNS_1600[time][1] for time in shown], "ko", markersize=4,
                  label="512^3 points, published")  # fmt: skip
    left.legend(frameon=False)
    for one in (plain, *others):
        shells = np.arange(2, plain.told["points"] // 3 + 1)  # the vortex has no longer waves
        middle.loglog(shells, np.array(one.told["spectrum"])[shells], label=one.codec)
    if times[-1] >= TURBULENT_FROM:
        k = np.geomspace(2, plain.told["points"] / 3)
        middle.loglog(k, modelled(plain, k), "k--", label="isotropic turbulence, Pope's model")
    middle.set(xlabel="wave number", title=f"energy spectrum at t = {times[-1]:g}")
    middle.legend(frameon=False, fontsize=8)
    for one in others:
        difference = np.abs(np.array(one.told["dissipation"]) / plain.told["dissipation"] - 1)
        if difference.any():
            right.semilogy(times, np.where(difference, difference, np.nan), label=one.codec)
    right.set(xlabel="time", title="dissipation: relative difference from none")
    right.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, default=2, help="default 2")
    parser.add_argument("--points", type=int, default=64, metavar="N", help="an axis; default 64")
    parser.add_argument("--reynolds", type=float, default=1600, help="default 1600")
    parser.add_argument("--until", type=float, default=4, metavar="T", help="time; default 4")
    parser.add_argument("--codecs", nargs="*", default=CODECS, metavar="SPEC",
                        help=f"default {' '.join(CODECS)}")  # fmt: skip
    parser.add_argument("--device", action="store_true", help="on GPUs, with CuPy")
    parser.add_argument("--mpiexec", default=str(BIN / "mpiexec"), metavar="CMD")
    parser.add_argument("--output", type=Path, default=Path("demo-output/turbulence"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        plain = run(PLAIN, options)
        if options.reynolds == 1600:
            console.print(beside_published(plain))
        if options.until >= TURBULENT_FROM:
            console.print(beside_model(plain))
        others = [run(codec, options) for codec in options.codecs]
        check(plain, others)
    except DemoError as error:
        sys.exit(f"demo: {error}")
    if others:
        console.print(beside_plain(plain, others))
    draw(options.output / "vortex.png", plain, others)
    console.print(f"picture: {options.output / 'vortex.png'}", soft_wrap=True)


if __name__ == "__main__":
    main()
