"""docs/dev/results-wave.md: apps/wave on GPUs, its plot and its pictures."""

import base64
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import result_pictures
from tables import GENERATED, table

from mpress import halo_model

Row = dict[str, Any]

# By how much of a step with raw messages it is to be shorter, with four ranks.
CUTS = {"mpc": 0.10, "zfp:8": 0.26, "szp": 0.45}
PROJECTED = (2, 4, 16, 64, 512)
LATENCY = 1e-5

HEAD = """\
# Results: apps/wave on GPUs

{generated}
{gpu}; {cpu}; {mpi}; {date}, commit {commit}. `python bench/wave_scaling.py` measures this.

Weak scaling: {box} cells a rank, sources everywhere {spacing} cells apart, halos of {halo} layers
straight from and to device memory, by {transport} between the ranks of one host. Means of {steps}
steps, after {untimed} in which the wave comes to fill the grid; {runs}. "waiting" is the share of a
step in which the GPU had computed what it could and halos were on their way, "communication" that
by which the step is longer than that of one rank. Codecs are forced.

The goals are those of four ranks with a GPU each, at a size where raw communication takes about
half of a step; judged here is the largest number of ranks that had a GPU each. Lossless codecs find
no zeros in these halos, as the wave is everywhere; those of a run's first steps are mostly zeros.
"""
SHARED = """\
Where there are more ranks than GPUs, processes take turns on one, and codecs wait for the
computation of another rank: those rows are no measure of weak scaling.
"""
ACCURACY_HEAD = """\
What codecs do to the result: {box} cells a rank, {ranks} ranks, {steps} steps, computed on
{device}s (GPUs compute the same bits). Errors are fractions of the largest pressure of the last
step; the bound of szp, {bound:g} Pa, was chosen so that its result is as far off as that of zfp:8
(root mean square).
"""
PROJECTION_HEAD = """\
Dashed: a **projection** by `mpress simulate --app wave` (a cost model, docs/api.md), not a
measurement. It was calibrated with the steps of one rank and of {ranks}; links are as fast as those
measured, and not shared. Where steps were measured, it says {low:.0%} to {high:.0%} of them.
"""


def section(document: Row, plot: Path, picture: Path) -> str:
    rows = document["rows"]
    gpus, repeat = len(document["gpus"]), document["repeat"]
    facts = {key: document[key] for key in ("cpu", "mpi", "date", "commit", "halo", "steps")}
    parts = [
        HEAD.format(
            **facts, generated=GENERATED,
            gpu=f"{gpus} x {document['gpus'][0]}", box=by(document["box"]),
            spacing=document["shot_spacing"], transport=transport_of(document).upper(),
            untimed=document["untimed"],
            runs=f"medians of {repeat} runs a codec" if repeat > 1 else "one run a codec",
        ),
        table(("goal, of a step with raw messages", "wanted", "measured", "ranks", ""),
              goals(rows, gpus)),
        table(("ranks", "codec", "ms a step", "over none", "GFLOP/s", "waiting", "communication",
               "ratio", "encode ms"), lines(rows)),
    ]  # fmt: skip
    if any(row["ranks"] > gpus for row in rows):
        parts.append(SHARED)
    parts += [accuracy(document["accuracy"]), f"![sections of the wave]({picture.name})\n"]
    parts.append(projection(document, plot))
    return "\n".join(parts)


def by(numbers: list[int]) -> str:
    return " x ".join(map(str, numbers))


def raw_of(rows: list[Row], ranks: int) -> Row:
    return next(row for row in rows if row["ranks"] == ranks and row["spec"] == "none")


def goals(rows: list[Row], gpus: int) -> list[list[str]]:
    """With as many ranks as have a GPU each."""
    ranks = max(row["ranks"] for row in rows if row["ranks"] <= gpus)
    found = []
    for row in rows:
        wanted = CUTS.get(row["spec"].partition(":abs")[0])
        if row["ranks"] != ranks or wanted is None:
            continue
        cut = 1 - row["step_seconds"] / raw_of(rows, ranks)["step_seconds"]
        verdict = "reached" if cut >= wanted else "**missed**"
        found.append([f"`{row['spec']}`: shorter by", f"{wanted:.0%}", f"{cut:.0%}", str(ranks),
                      verdict])  # fmt: skip
    return found


def lines(rows: list[Row]) -> list[list[str]]:
    alone = raw_of(rows, 1)["step_seconds"]
    found = []
    for row in rows:
        seconds = row["step_seconds"]
        ratio = row["raw_bytes"] / row["wire_bytes"] if row["wire_bytes"] else None
        found.append([
            str(row["ranks"]), f"`{row['spec']}`", f"{1e3 * seconds:.3f}",
            f"{seconds / raw_of(rows, row['ranks'])['step_seconds']:.2f}",
            f"{row['flops'] / 1e9:,.0f}", f"{row['waited_share']:.0%}",
            f"{max(0.0, 1 - alone / seconds):.0%}", "-" if ratio is None else f"{ratio:.2f}",
            "-" if ratio is None else f"{1e3 * row['encode_seconds']:.3f}",
        ])  # fmt: skip
    return found


def accuracy(document: Row) -> str:
    names = {"cpu": "CPU", "cuda": "GPU"}
    head = ACCURACY_HEAD.format(
        box=by(document["box"]), ranks=document["ranks"], steps=document["steps"],
        device=names[document["device"]], bound=document["bound"],
    )  # fmt: skip
    found = []
    for row in document["rows"]:
        exact = row["max_error"] == 0
        found.append([f"`{row['spec']}`", "same bits" if exact else f"{row['max_error']:.1e}",
                      "-" if exact else f"{row['rms_error']:.1e}"])  # fmt: skip
    return head + "\n" + table(("codec", "largest error", "root mean square"), found)


def unpack(packed: Row) -> np.ndarray:
    """A plane of bench/wave_scaling.py's packed_section, depth downwards."""
    levels = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), np.int8)
    return (levels.reshape(packed["shape"]) * packed["scale"]).T


def draw_sections(document: Row, path: Path) -> None:
    plt = result_pictures.pyplot()
    sections = {name: unpack(packed) for name, packed in document["sections"].items()}
    figure, axes = plt.subplots(1, len(sections), figsize=(4 * len(sections), 3),
                                layout="constrained")  # fmt: skip
    for axis, (name, values) in zip(axes, sections.items(), strict=True):
        if name == "velocity":
            image = axis.imshow(values, cmap="viridis")
        else:
            limit = float(np.percentile(np.abs(values), 99.5)) or 1.0
            image = axis.imshow(values, cmap="seismic", vmin=-limit, vmax=limit)
        for border in range(1, document["split"][0]):
            axis.axvline(border * document["box"][0], color="#e0a000", linewidth=1, linestyle="--")
        axis.set_title(f"{name} ({'m/s' if name == 'velocity' else 'Pa'})", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
        figure.colorbar(image, ax=axis, fraction=0.046, pad=0.02)
    result_pictures.save(figure, path, document)


def model(document: Row) -> tuple[Any, Any]:
    """The machine and the codecs of the cost model, from the measured rows."""
    machine, codecs, _ = halo_model.calibrate(document, transport_of(document), LATENCY)
    return machine, codecs


def transport_of(document: Row) -> str:
    return document["rows"][0]["transport"]


def projection(document: Row, picture: Path) -> str:
    """How far the model is from what was measured."""
    fitted = halo_model.fit(document, transport_of(document), *model(document))
    ratios = [row["model_seconds"] / row["measured_seconds"] for row in fitted]
    _, _, ranks = halo_model.calibrate(document, transport_of(document), LATENCY)
    head = PROJECTION_HEAD.format(ranks=ranks, low=min(ratios), high=max(ratios))
    return f"{head}\n![time a step and flops by ranks]({picture.name})\n"


def plot(document: Row, path: Path) -> None:
    """Time a step and flops by ranks: measured, and projected by the model."""
    plt = result_pictures.pyplot()
    machine, codecs = model(document)
    x, y, z = document["box"]
    rows = halo_model.project(document, machine, codecs, halo_model.Scaling(box=(x, y, z)),
                              PROJECTED, (0, 1))  # fmt: skip
    figure, (times, flops) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for codec in codecs:
        own = [row for row in rows if row["spec"] == codec.spec]
        seen = [row for row in document["rows"]
                if row["spec"] == codec.spec and row["ranks"] <= len(document["gpus"])]  # fmt: skip
        counts = [row["ranks"] for row in own]
        curves = (
            (times, [1e3 * row["step_seconds"] for row in own],
             [1e3 * row["step_seconds"] for row in seen]),
            (flops, [row["flops"] / 1e12 for row in own], [row["flops"] / 1e12 for row in seen]),
        )  # fmt: skip
        for axis, projected, measured in curves:
            (line,) = axis.plot(counts, projected, "--", label=codec.spec)
            axis.plot([row["ranks"] for row in seen], measured, "s", color=line.get_color())
    for axis, name in ((times, "ms a step"), (flops, "TFLOP/s")):
        axis.set_xscale("log", base=2)
        axis.set_xticks((1, *PROJECTED), map(str, (1, *PROJECTED)))
        axis.set(xlabel="ranks, a GPU each", ylabel=name)
        axis.grid(alpha=0.3)
    flops.set_yscale("log")
    times.set_ylim(bottom=0)
    times.legend(fontsize="small")
    figure.suptitle(f"apps/wave, weak scaling, {transport_of(document).upper()}: squares measured, "
                    "dashed PROJECTED", fontsize=11)  # fmt: skip
    result_pictures.save(figure, path, document)
