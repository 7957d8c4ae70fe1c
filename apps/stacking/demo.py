"""Image stacking without mpress, and with lossless, error-bounded and fixed-rate reductions.

Runs apps/stacking/stacking.py, which knows nothing of mpress, once each way. Compares the stacks
and the times, checks what mpress promises, and draws the images. The field is the daily air
temperature at eight points of a climate model, an image each: days across, years down. Everything
it writes goes to demo-output/stacking/.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table

from mpress import fields
from mpress.files import FileError, read_fields

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
BOUND = 2e-4  # of the range of an image, which is 1: that of gZCCL's image stacking
LOSSY = "szp:abs=2e-4"
FIXED_RATE = "zfp:16"
CODECS = ("mpc", LOSSY, FIXED_RATE)
THRESHOLD = 4096  # bytes: small images count, too
AIR_MODEL = "NESM3"  # of CMIP6; without missing values
DAYS = 365  # of a year
GENERATED = (128, 128, 128)

console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)


class DemoError(Exception):
    """A run failed or a result is not what it must be."""


@dataclass(frozen=True)
class Way:
    """How the program is run."""

    name: str
    codec: str | None  # None: without mpress
    own_call: bool = False  # MPI_Allreduce is left to MPI

    @property
    def lossless(self) -> bool:
        return self.codec in ("none", "mpc") and not self.own_call


@dataclass
class Run:
    way: Way
    seconds: list[float]  # in MPI_Allreduce, of each image
    digests: list[list[str]]  # of each image's stack, as each rank got it
    stack: np.ndarray  # of the last image
    report: dict = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def totals(self) -> dict:
        return self.report.get("totals", {})


def ways_to_run(device: bool) -> list[Way]:
    """The first is what the others are compared with.

    Few MPIs take memory of GPUs: mpress stages the data of MPI's own call in host memory.
    """
    codecs = [Way(codec, codec) for codec in CODECS]
    if device:
        return [Way("plain", "none", own_call=True), Way("none", "none"), *codecs]
    return [Way("plain", None), *codecs]


def run(way: Way, output: Path, options: argparse.Namespace, field_file: Path) -> Run:
    prefix = output / way.name.partition(":")[0]
    report = output / f"{prefix.name}-report.json"
    # The program has one thread. Where mpi4py asks for more, some MPIs keep collective calls.
    env = {"MPI4PY_RC_THREAD_LEVEL": "funneled", **os.environ}
    if way.codec is None:
        command = [*options.mpiexec, "-n", options.ranks]
    else:
        command = [BIN / "mpress", "run", "-n", options.ranks, "--codec", way.codec]
        command += ["--mpiexec", shlex.join(options.mpiexec), "--threshold", THRESHOLD]
        command += ["--report", report, *(["--force"] if way.codec in CODECS else []), "--"]
    if way.own_call:
        env["MPRESS_DISABLE_ALLREDUCE"] = "1"
    program = [sys.executable, HERE / "stacking.py", "--field", field_file, "--output", prefix]
    program += ["--image", options.image, "--images", options.images, "--shots", options.shots]
    program += ["--noise", options.noise, "--parts"]
    program += ["--device"] if options.device else []
    words = [str(word) for word in [*command, *program]]
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise DemoError(f"{shlex.join(words)}\nended with {done.returncode}:\n"
                        f"{done.stdout}{done.stderr}")  # fmt: skip
    result = json.loads(prefix.with_suffix(".json").read_text())
    return Run(
        way,
        result["allreduce_seconds"],
        result["digests"],
        np.load(prefix.with_suffix(".npy")),
        json.loads(report.read_text()) if way.codec else {},
    )


def read_parts(output: Path, options: argparse.Namespace) -> list[np.ndarray]:
    """What each rank added to the last image: the same in every run."""
    parts: dict[int, np.ndarray] = {}
    for path in output.glob("*-part-*.npy"):
        rank = int(path.stem.rpartition("-")[2])
        part = np.load(path)
        if not np.array_equal(parts.setdefault(rank, part), part):
            raise DemoError(f"{path}: rank {rank} took other shots than in another run")
    return [parts[rank] for rank in range(options.ranks)]


def largest_error(stack: np.ndarray, parts: Sequence[np.ndarray]) -> float:
    """Of a stack, beside the sum of the parts in double precision."""
    exact = np.sum(parts, axis=0, dtype=np.float64)
    return float(np.abs(stack - exact).max())


def bound_of(way: Way, parts: Sequence[np.ndarray]) -> float | None:
    """What a stack may be wrong by: of sums that nothing else changes, their rounding."""
    if way.codec == FIXED_RATE:
        return None
    if way.codec == LOSSY:
        return BOUND
    largest_sum = float(np.sum(np.abs(parts), axis=0).max())
    return len(parts) * float(np.finfo(np.float32).eps) * largest_sum


def psnr(reference: np.ndarray, other: np.ndarray) -> float:
    """In dB, of the reference's range; infinite where the bits are the same."""
    error = other.astype(np.float64) - reference
    mean_square = float(np.mean(error * error))
    if mean_square == 0:
        return np.inf
    return 20 * np.log10(float(np.ptp(reference))) - 10 * np.log10(mean_square)


def check(runs: Sequence[Run], parts: Sequence[np.ndarray]) -> None:
    """Raises DemoError where a result is not what mpress, or MPI, promises."""
    in_order = parts[0].copy()
    for part in parts[1:]:
        in_order += part
    for one in runs:
        name = one.way.name
        for image, digests in enumerate(one.digests):
            if len(digests) != len(parts) or len(set(digests)) != 1:
                raise DemoError(f"{name}: the ranks got different stacks of image {image}")
        if one.way.codec in CODECS and not one.totals["compressed_messages"]:
            raise DemoError(f"{name}: nothing was sent compressed")
        if one.way.lossless and one.stack.tobytes() != in_order.tobytes():
            raise DemoError(f"{name}: the stack is not the sum in the order of the ranks")
        bound, error = bound_of(one.way, parts), largest_error(one.stack, parts)
        if bound is not None and not error <= bound:
            raise DemoError(f"{name}: the stack is wrong by {error:.3g}, the bound is {bound:.3g}")


def rows_of(runs: Sequence[Run], parts: Sequence[np.ndarray]) -> list[dict]:
    """What the table tells, for programs."""
    first = runs[0]
    rows = []
    for one in runs:
        wire = one.totals.get("wire_bytes", 0)
        quality = psnr(first.stack, one.stack)
        rows.append({
            **asdict(one.way),
            "seconds": one.seconds,
            "median": one.median,
            "of_plain": one.median / first.median,
            "ratio": one.totals["raw_bytes"] / wire if wire else None,
            "psnr": quality if np.isfinite(quality) else None,
            "largest_error": largest_error(one.stack, parts),
            "bound": bound_of(one.way, parts),
        })  # fmt: skip
    return rows


def results_table(rows: Sequence[dict], title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("run")
    for column in ("ms an Allreduce", "of plain", "ratio", "PSNR", "largest error", "bound"):
        table.add_column(column, justify="right")
    for number, row in enumerate(rows):
        table.add_row(
            row["name"],
            f"{1e3 * row['median']:.2f}",
            f"{row['of_plain']:.2f}" if number else "1",
            f"{row['ratio']:.2f}" if row["ratio"] else "",
            ("same bits" if row["psnr"] is None else f"{row['psnr']:.1f} dB") if number
            else "reference",
            f"{row['largest_error']:.2g}",
            "none" if row["bound"] is None else f"{row['bound']:.2g}",
        )  # fmt: skip
    return table


def draw(path: Path, plain: Run, lossy: Run) -> None:
    """Two stacks and, many times larger, their difference."""
    difference = lossy.stack.astype(np.float64) - plain.stack
    largest = float(np.abs(difference).max())
    # As much as a scale as wide as an image's has room for, to one digit.
    room = 0.5 / largest if largest else 1.0
    digit = 10.0 ** np.floor(np.log10(room))
    fold = digit * np.floor(room / digit)
    figure, panels = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    for axes, one in zip(panels[:2], (plain, lossy), strict=True):
        image = axes.imshow(one.stack, cmap="viridis", vmin=0, vmax=1, aspect="auto")
        axes.set_title(f"the stack, {one.way.name}", fontsize=10)
        figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    image = panels[2].imshow(fold * difference, cmap="seismic", vmin=-0.5, vmax=0.5, aspect="auto")
    panels[2].set_title(
        f"their difference, {fold:,.0f}-fold: at most {largest:.2g}, "
        f"PSNR {psnr(plain.stack, lossy.stack):.1f} dB",
        fontsize=10,
    )
    figure.colorbar(image, ax=panels[2], fraction=0.04, pad=0.02)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def make_field(name: str, variable: str | None) -> np.ndarray:
    """Images: `air`, a field of `mpress bench`, or those of a file."""
    if name == "air":
        return air_temperatures()
    if name in ("wave", "turb"):
        # The wave leaves the planes at the domain's end empty.
        edge = GENERATED[0]
        return fields.make(name, GENERATED)[edge // 4 : 3 * edge // 4]
    try:
        return read_fields(Path(name), [variable] if variable else None)[0][0][1]
    except (FileError, IndexError) as error:
        raise DemoError(f"--field {name}: {error}") from None


def air_temperatures() -> np.ndarray:
    package = importlib.util.find_spec("esmvaltool_sample_data")
    if package is None:
        raise DemoError(
            "esmvaltool-sample-data is not installed: pip install 'mpress[demo]', or --field turb"
        )
    (root,) = package.submodule_search_locations
    found = sorted(Path(root).glob(f"**/{AIR_MODEL}/historical/**/day/**/ta_day_*.nc"))
    if not found:
        raise DemoError(f"esmvaltool-sample-data holds no daily temperature of {AIR_MODEL}")
    values = read_fields(found[0], ["ta"])[0][0][1]
    years = len(values) // DAYS
    return values[: years * DAYS].reshape(years * DAYS, -1).T.reshape(-1, years, DAYS)


def demonstrate(options: argparse.Namespace) -> None:
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    field_file = output / "field.npy"
    for left in output.glob("*-part-*.npy"):
        left.unlink()
    np.save(field_file, make_field(options.field, options.variable))
    runs = [run(way, output, options, field_file) for way in ways_to_run(options.device)]
    parts = read_parts(output, options)
    check(runs, parts)
    rows = rows_of(runs, parts)
    (output / "results.json").write_text(json.dumps(rows, indent=1))
    plain, lossy = runs[0], next(one for one in runs if one.way.codec == LOSSY)
    console.print(results_table(rows, (
        f"{options.images} stacks of {options.shots} shots, {plain.stack.nbytes / 1e6:.1f} MB "
        f"each, {options.ranks} ranks, on {'GPUs' if options.device else 'CPUs'}"
    )))  # fmt: skip
    draw(output / "stack.png", plain, lossy)
    console.print(f"Picture: {output}/stack.png", soft_wrap=True)
    console.print(f"More about a run: mpress report {output}/szp-report.json", soft_wrap=True)
    if not options.device:
        verdict(lossy)


def verdict(lossy: Run) -> None:
    """Link rate at which the bytes saved take as long as the codec, without overlap."""
    totals = lossy.totals
    seconds = totals["encode_seconds"] + totals["decode_seconds"]
    rate = (totals["raw_bytes"] - totals["wire_bytes"]) * 8 / 1e9 / seconds
    console.print(
        "Ranks of one machine share its memory, which is faster than a CPU's codec: left to "
        f"itself, mpress\nleaves these calls to MPI. Between machines, {LOSSY} pays below about "
        f"{rate:.0f} Gbit/s a rank."
    )


def parse_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, default=2, help="default 2")
    parser.add_argument("--device", action="store_true", help="on GPUs, by CuPy")
    parser.add_argument("--field", default="air", metavar="air|wave|turb|FILE",
                        help="temperatures, a field of mpress bench, or images of a .npy or .nc "
                             "file; default air")  # fmt: skip
    parser.add_argument("--variable", metavar="NAME", help="of a .nc file")
    parser.add_argument("--image", default="4M", help="size, as of stacking.py; default 4M")
    parser.add_argument("--images", type=int, default=8, help="default 8")
    parser.add_argument("--shots", type=int, default=32, help="of an image; default 32")
    parser.add_argument("--noise", type=float, default=0.05, help="of a shot; default 0.05")
    parser.add_argument("--mpiexec", type=shlex.split, default=[str(BIN / "mpiexec")],
                        metavar="CMD", help="the launcher, with its own options")  # fmt: skip
    parser.add_argument("--output", type=Path, default=Path("demo-output/stacking"))
    options = parser.parse_args(words)
    if options.ranks < 2:
        parser.error("--ranks: one rank sends nothing")
    return options


def main() -> None:
    try:
        demonstrate(parse_options())
    except DemoError as error:
        sys.exit(f"demo: {error}")


if __name__ == "__main__":
    main()
