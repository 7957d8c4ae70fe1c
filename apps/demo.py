"""`make demo`: three MPI programs that know nothing of mpress, over a network that they wait for.

apps/wave exchanges messages, apps/turbulence transposes by MPI_Alltoall, apps/stacking averages
images by MPI_Allreduce. Each runs as it is, with mpress's default, which loses nothing, and within
an error bound. The network is simulated: each program gets a link at which half of its plain run is
communication. Tables, pictures and reports go to demo-output/.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table

matplotlib.use("Agg")
import matplotlib.pyplot as plt

APPS = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
# Ranks that share a core would wait for each other, and not for the network.
RANKS = max(2, min(4, len(os.sched_getaffinity(0))))
THRESHOLD = "4K"  # the data is as small as two minutes make it
RAW, DEFAULT = "none", "auto"

console = Console(width=None if sys.stdout.isatty() else 118, highlight=False)


class DemoError(Exception):
    """A program failed, or a result is not what it must be."""


@dataclass
class Run:
    codec: str
    seconds: float
    result: np.ndarray  # what the program is run for
    report: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """One of apps/, at a size for the demo."""

    name: str
    about: str
    lossy: str  # a codec with a bound that suits its data
    overlaps: bool  # it computes while messages are under way
    tolerance: float  # of the largest value of the result, for that codec
    command: Callable[[Path], list]  # with the prefix of what it writes
    seconds: Callable[[str, Path], float]  # from what it printed, and wrote
    result: Callable[[Path], np.ndarray]
    draw: Callable[[Path, Run, Run], None]  # the plain run and the lossy one


def call(command: list, env: dict[str, str] | None = None) -> str:
    """The standard output of a command that must succeed."""
    words = [str(part) for part in command]
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise DemoError(f"{' '.join(words)}\nended with {done.returncode}:\n"
                        f"{done.stdout}{done.stderr}")  # fmt: skip
    return done.stdout


def run(program: Program, output: Path, codec: str, link_rate: float | None) -> Run:
    """`link_rate`: bytes a second into each rank; None: as fast as the machine is."""
    prefix = output / f"{program.name}-{codec.partition(':')[0]}"
    report = output / f"{prefix.name}-report.json"
    command = [BIN / "mpress", "run", "-n", RANKS, "--mpiexec", BIN / "mpiexec", "--codec", codec,
               "--threshold", THRESHOLD, "--report", report]  # fmt: skip
    # Raw collective calls go by mpress, too, so that the same link is simulated for all.
    command += ["--force"] if codec == RAW else []
    command += ["--link-rate", f"{8 * link_rate / 1e9:.6f}Gbit"] if link_rate else []
    # The programs have one thread. Where mpi4py asks for more, some MPIs keep collective calls.
    env = {**os.environ, "MPI4PY_RC_THREAD_LEVEL": "funneled", "OMP_NUM_THREADS": "1"}
    printed = call([*command, "--", *program.command(prefix)], env)
    return Run(
        codec, program.seconds(printed, prefix), program.result(prefix),
        json.loads(report.read_text()),
    )  # fmt: skip


def link_for(program: Program, fast: Run) -> float:
    """At which the plain run takes twice as long as on this machine alone."""
    received = fast.report["totals"]["raw_bytes"] / RANKS
    seconds = fast.seconds * (2 if program.overlaps else 1)
    return received / seconds


def largest_error(reference: Run, other: Run) -> float:
    """As a fraction of the largest value; NaN where there is one."""
    difference = np.abs(other.result.astype(np.float64) - reference.result)
    return float(difference.max() / np.abs(reference.result).max())


def check(program: Program, runs: list[Run]) -> None:
    plain, default, lossy = runs
    if default.result.tobytes() != plain.result.tobytes():
        raise DemoError(f"{program.name}: {default.codec} changed the result")
    if not lossy.report["totals"]["compressed_messages"]:
        raise DemoError(f"{program.name}: nothing was compressed with {lossy.codec}")
    error = largest_error(plain, lossy)
    if not error <= program.tolerance:
        raise DemoError(f"{program.name}: {lossy.codec} changed the result by {error:.2g}")


def table_of(program: Program, runs: list[Run], rate: float) -> Table:
    table = Table(
        title=f"{program.name}: {program.about}; {RANKS} ranks, a SIMULATED link of "
              f"{8 * rate / 1e9:.2g} Gbit/s into each",
        title_justify="left",
    )  # fmt: skip
    table.add_column("codec")
    for column in ("raw MB", "sent MB", "ratio", "codec s", "largest error", "run s", "faster"):
        table.add_column(column, justify="right")
    plain = runs[0]
    for one in runs:
        totals = one.report["totals"]
        error = largest_error(plain, one)
        table.add_row(
            one.codec,
            f"{totals['raw_bytes'] / 1e6:,.0f}",
            f"{totals['wire_bytes'] / 1e6:,.0f}",
            f"{totals['raw_bytes'] / totals['wire_bytes']:.2f}",
            f"{(totals['encode_seconds'] + totals['decode_seconds']) / RANKS:.2f}",
            "reference" if one is plain else f"{error:.1g} of the largest" if error else "none",
            f"{one.seconds:.2f}",
            f"{plain.seconds / one.seconds:.2f}",
        )
    return table


def gain(plain: Run, other: Run) -> str:
    """A run or two on a machine that does other things tells no twentieth."""
    ratio = plain.seconds / other.seconds
    if 0.95 <= ratio < 1.05:
        return "as fast"
    return f"{ratio:.1f} times as fast" if ratio > 1 else f"SLOWER, {1 / ratio:.2f} times as long"


def sentence(program: Program, runs: list[Run]) -> str:
    plain, default, lossy = runs
    return (
        f"{program.name}: {gain(plain, lossy)} within a bound ({lossy.codec}), and the result "
        f"differs by {largest_error(plain, lossy):.0e} of its largest value; without loss "
        f"({DEFAULT}) {gain(plain, default)}."
    )


def demonstrate(program: Program, output: Path) -> list[Run]:
    fast = run(program, output, RAW, None)
    rate = link_for(program, fast)
    runs = [run(program, output, codec, rate) for codec in (RAW, DEFAULT, program.lossy)]
    check(program, runs)
    console.print(table_of(program, runs, rate))
    picture = output / f"{program.name}.png"
    program.draw(picture, runs[0], runs[2])
    console.print(sentence(program, runs), style="bold")
    console.print(f"picture: {picture}; more: mpress report {output}/{program.name}-"
                  f"{program.lossy.partition(':')[0]}-report.json\n", soft_wrap=True)  # fmt: skip
    return runs


# ---- The programs --------------------------------------------------------------------------------


def load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def wave(output: Path, cells: tuple[int, int, int], steps: int) -> Program:
    program = load("wave_program", APPS / "wave" / "program.py")
    pictures = load("pictures", APPS / "wave" / "pictures.py")
    executable = output / "wave"
    try:
        program.build(executable, BIN / "mpicc", ["-march=native"])
    except program.ProgramError as error:
        raise DemoError(str(error)) from None
    split, spacing = (RANKS, 1, 1), 12.5
    time_steps: list[float] = []  # s, of each run: all the same

    def command(prefix: Path) -> list:
        return [executable, "--grid", "x".join(map(str, cells)), "--split",
                "x".join(map(str, split)), "--spacing", spacing, "--steps", steps, "--output",
                prefix, "--snapshot-every", steps]  # fmt: skip

    def seconds(printed: str, _: Path) -> float:
        times = program.times(printed)
        time_steps.append(times.time_step)
        return times.seconds

    def snapshot(prefix: Path) -> Path:
        return prefix.with_name(f"{prefix.name}-{steps:06d}.f32")

    def draw(path: Path, plain: Run, lossy: Run) -> None:
        first, last = (output / f"wave-{one.codec.partition(':')[0]}" for one in (plain, lossy))
        velocity = first.with_name(f"{first.name}-velocity.f32")
        grid = pictures.Grid(cells, spacing, split, time_steps[0])
        pictures.draw_error(path, grid, velocity, steps, snapshot(first), snapshot(last),
                            lossy.codec)  # fmt: skip

    return Program(
        "wave", "a sound wave underground, halos by MPI_Isend", "szp:abs=0.01", True, 1e-3,
        command, seconds, lambda prefix: np.fromfile(snapshot(prefix), np.float32), draw,
    )  # fmt: skip


def turbulence(points: int, reynolds: float, until: float) -> Program:
    def command(prefix: Path) -> list:
        return [sys.executable, APPS / "turbulence" / "turbulence.py", "--points", points,
                "--reynolds", reynolds, "--until", until, "--output", prefix]  # fmt: skip

    def told(prefix: Path) -> dict:
        return json.loads(prefix.with_suffix(".json").read_text())

    def velocity(prefix: Path) -> np.ndarray:
        slabs = [np.load(f"{prefix}-velocity-{rank}.npy") for rank in range(RANKS)]
        return np.concatenate(slabs, axis=1)

    def draw(path: Path, plain: Run, lossy: Run) -> None:
        middle = points // 8  # at the plane of symmetry nothing moves
        sections = [np.linalg.norm(one.result[:, :, :, middle], axis=0) for one in (plain, lossy)]
        draw_pair(path, *sections, plain.codec, lossy.codec, "speed")

    return Program(
        "turbulence", "a vortex that decays, transposes by MPI_Alltoall", "szp:rel=3e-5", False,
        1e-2, command, lambda _, prefix: sum(told(prefix)["step_seconds"]), velocity, draw,
    )  # fmt: skip


def stacking(output: Path, image: str, images: int, shots: int) -> Program:
    demo = load("stacking_demo", APPS / "stacking" / "demo.py")
    field_file = output / "stacking-field.npy"
    has_fields = importlib.util.find_spec("esmvaltool_sample_data") is not None
    np.save(field_file, demo.make_field("air" if has_fields else "turb", None))

    def command(prefix: Path) -> list:
        return [sys.executable, APPS / "stacking" / "stacking.py", "--field", field_file,
                "--image", image, "--images", images, "--shots", shots, "--output",
                prefix]  # fmt: skip

    def draw(path: Path, plain: Run, lossy: Run) -> None:
        draw_pair(path, plain.result, lossy.result, plain.codec, lossy.codec, "the stack")

    return Program(
        "stacking", "noisy images averaged by MPI_Allreduce", "szp:abs=2e-3", False, 4e-3, command,
        lambda _, prefix: json.loads(prefix.with_suffix(".json").read_text())["seconds"],
        lambda prefix: np.load(prefix.with_suffix(".npy")), draw,
    )  # fmt: skip


def draw_pair(path: Path, plain: np.ndarray, lossy: np.ndarray, plain_codec: str,
              lossy_codec: str, what: str) -> None:  # fmt: skip
    """Two images beside each other, and their difference on a scale of its own."""
    figure, panels = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    limits = {"vmin": float(plain.min()), "vmax": float(plain.max())}
    for axes, image, codec in ((panels[0], plain, plain_codec), (panels[1], lossy, lossy_codec)):
        drawn = axes.imshow(image, cmap="viridis", aspect="auto", **limits)
        axes.set_title(f"{what}, {codec}", fontsize=10)
        figure.colorbar(drawn, ax=axes, fraction=0.04, pad=0.02)
    difference = lossy.astype(np.float64) - plain
    largest = float(np.abs(difference).max()) or 1.0
    drawn = panels[2].imshow(difference, cmap="seismic", vmin=-largest, vmax=largest, aspect="auto")
    panels[2].set_title(f"their difference: at most {largest:.1e}", fontsize=10)
    figure.colorbar(drawn, ax=panels[2], fraction=0.04, pad=0.02)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def programs(output: Path) -> list[Program]:
    return [
        wave(output, (160, 160, 128), 600),
        turbulence(48, 800, 4),
        stacking(output, "4M", 10, 32),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    if shutil.which("mpiexec", path=str(BIN)) is None:
        sys.exit(f"demo: {BIN} has no mpiexec; make demo installs one")
    try:
        told = [sentence(program, demonstrate(program, output)) for program in programs(output)]
    except DemoError as error:
        sys.exit(f"demo: {error}")
    console.rule("in short")
    for line in told:
        console.print(line)
    console.print(
        "Within this machine ranks exchange through memory, which is faster than a codec: there "
        "mpress leaves messages alone.\nWhat your network is like it finds out by itself; "
        "`mpress simulate` tells what a larger machine would gain."
    )


if __name__ == "__main__":
    main()
