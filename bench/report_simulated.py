"""docs/dev/gzccl.md: figures 8 to 12 of gZCCL (ICS 2024) beside `mpress simulate`'s model.

Everything comes from the paper's hardware, its ratios, and table 2, which tells what its codec
takes. `python bench/report_simulated.py` writes the page and its picture.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import table

from mpress import codec_curves
from mpress.collective_model import Call, Codec, Network, predict

DOCS = Path(__file__).parent.parent / "docs" / "dev"
TEXT = Path(__file__).parent / "gzccl_page.txt"
PAGE, PICTURE = DOCS / "gzccl.md", DOCS / "gzccl-simulated.svg"

MB = 1 << 20
WHOLE = 849 * 849 * 235 * 4  # table 1, setting 2: the "646 MB" of the paper
RATIO = 63.94  # of it, at an absolute bound of 1e-4
LINK, GPUS_A_NODE = 12.5e9, 4  # Slingshot 10: 100 Gbit/s
NVLINK = 200e9  # not in the paper
RAW_ROUND = 20e-6  # the same
CODED_ROUND = 140e-6  # from table 2
LAUNCH = 20e-6  # of a block of gZ-Scatter, beside the first one: its kernel and its packing
FILLED = 0.05  # of the values: at that ratio most are empty

SIZES = (10, 50, 100, 200, 300, 400, 500, 600)
COUNTS = (8, 16, 32, 64, 128, 256, 512)

# Table 2: times over each other, and shares of each.
NCCL, RING, DOUBLING = 5.47, 4.15, 10.16
SHARES = {"ring": (0.8467, 0.1335), "doubling": (0.4582, 0.4199)}

RAW = Network(LINK, RAW_ROUND, NVLINK, RAW_ROUND / 2, GPUS_A_NODE)
CODED = Network(LINK, CODED_ROUND, NVLINK, CODED_ROUND, GPUS_A_NODE)
CODEC = Codec("szp:abs=1e-4", RATIO, *codec_curves.of_gpu("a100-cuszp", "szp:abs=1e-4"))

Times = dict[str, float]


def calibrated() -> Times:
    """What table 2 says of the codec, if it is of 64 GPUs and the whole data, and NCCL's ring is as
    fast as the links."""
    nccl = allreduce(64, WHOLE)["nccl"]
    ring, doubling = nccl * NCCL / RING, nccl * NCCL / DOUBLING
    of_whole = SHARES["doubling"][0] * doubling / 12  # six hops: encoding and decoding
    of_piece = SHARES["ring"][0] * ring / (64 + 2 * 63)
    slope = (of_whole - of_piece) / (WHOLE * 63 / 64)
    moved = 2 * 63 / 64 * WHOLE / RATIO / LINK
    return {
        "call": of_whole - slope * WHOLE, "rate": 1 / slope,
        "round": (SHARES["ring"][1] * ring - moved) / (2 * 63),
    }  # fmt: skip


def allreduce(ranks: int, nbytes: float) -> Times:
    call = Call("allreduce", nbytes, filled=FILLED)
    raw, coded = (_seconds(call, network, CODEC, ranks) for network in (RAW, CODED))
    return {
        "nccl": raw["ring", "raw"], "doubling": coded["doubling", "hops"],
        "ring": coded["ring", "hops"], "two-shot": coded["two-shot", "compressed"],
    }  # fmt: skip


def scatter(ranks: int, nbytes: float) -> Times:
    """`nbytes` of all blocks together."""
    call = Call("scatter", nbytes / ranks)
    key = ("binomial", "compressed")
    each = {
        "one launch": CODEC,
        "streams": replace(CODEC, block_seconds=LAUNCH),
        "calls": replace(CODEC, block_seconds=codec_curves.A100_CALL_SECONDS),
    }
    times = {name: _seconds(call, CODED, codec, ranks)[key] for name, codec in each.items()}
    return {"raw": _seconds(call, RAW, CODEC, ranks)["binomial", "raw"]} | times


def _seconds(call: Call, network: Network, codec: Codec, ranks: int) -> dict[tuple[str, str], Any]:
    rows = predict(call, network, codec, ranks)
    return {(row["algorithm"], row["way"]): row["seconds"] for row in rows}


def _ms(value: float) -> str:
    return f"{1e3 * value:.1f}"


def _allreduce_rows(cases: list[tuple[str, Times]]) -> str:
    heads = ["", "raw ring (NCCL)", "gZ doubling", "gZ ring", "two shots", "NCCL over doubling"]
    rows = [
        [name, *(_ms(times[key]) for key in ("nccl", "doubling", "ring", "two-shot")),
         f"{times['nccl'] / times['doubling']:.2f}"]
        for name, times in cases
    ]  # fmt: skip
    return table(heads, rows).rstrip()


def _scatter_rows(cases: list[tuple[str, Times]]) -> str:
    heads = ["", "raw tree", "a call a block", "gZ-Scatter", "one launch", "raw over gZ",
             "calls over gZ"]  # fmt: skip
    rows = [
        [name, *(_ms(times[key]) for key in ("raw", "calls", "streams", "one launch")),
         f"{times['raw'] / times['streams']:.2f}", f"{times['calls'] / times['streams']:.2f}"]
        for name, times in cases
    ]  # fmt: skip
    return table(heads, rows).rstrip()


def cases() -> dict[str, list[tuple[str, Times]]]:
    return {
        "sums by size": [(f"{size} MB", allreduce(64, size * MB)) for size in SIZES],
        "sums by ranks": [(f"{count} GPUs", allreduce(count, WHOLE)) for count in COUNTS],
        "scatter by size": [(f"{size} MB", scatter(64, size * MB)) for size in SIZES],
        "scatter by ranks": [(f"{count} GPUs", scatter(count, WHOLE)) for count in COUNTS],
    }


def page(found: dict[str, list[tuple[str, Times]]]) -> str:
    def over(name: str, slow: str, fast: str) -> list[float]:
        return [times[slow] / times[fast] for _, times in found[name]]

    by_size, by_count = (
        over("sums by size", "nccl", "doubling"),
        over("sums by ranks", "nccl", "doubling"),
    )
    rings = over("sums by ranks", "nccl", "ring")
    scattered = over("scatter by ranks", "raw", "streams")
    sized = over("scatter by size", "raw", "streams")
    gains = over("scatter by size", "calls", "streams")
    peak = COUNTS[scattered.index(max(scattered))]
    beats = max(count for count, ratio in zip(COUNTS, rings, strict=True) if ratio > 1)
    shots = max(
        count for count, (_, times) in zip(COUNTS, found["sums by ranks"], strict=True)
        if times["two-shot"] < times["doubling"]
    )  # fmt: skip
    table_2 = calibrated()
    return TEXT.read_text().format(
        whole=WHOLE / 1e6, ratio=RATIO, nvlink=NVLINK / 1e9, raw_round=RAW_ROUND * 1e6,
        coded_round=CODED_ROUND * 1e6, launch=LAUNCH * 1e6, filled=FILLED,
        shots=shots, call=codec_curves.A100_CALL_SECONDS * 1e3, rate=codec_curves.A100_RATE / 1e9,
        own_call=table_2["call"] * 1e3, own_rate=table_2["rate"] / 1e9,
        own_round=table_2["round"] * 1e6, picture=PICTURE.name,
        size_first=by_size[0], size_last=by_size[-1],
        size_wins=next(s for s, r in zip(SIZES, by_size, strict=True) if r > 1),
        count_first=by_count[0], count_last=by_count[-1], beats=beats,
        ring_last=1 / rings[-1], peak=peak, peak_gain=max(scattered), last_gain=scattered[-1],
        sized_first=sized[0], sized_last=sized[-1], gain_first=gains[0], gain_last=gains[-1],
        sums_by_size=_allreduce_rows(found["sums by size"]),
        sums_by_ranks=_allreduce_rows(found["sums by ranks"]),
        scatter_by_size=_scatter_rows(found["scatter by size"]),
        scatter_by_ranks=_scatter_rows(found["scatter by ranks"]),
    )  # fmt: skip


def digest(text: str) -> str:
    """What the picture has of its page, by which a test sees that both are of one model."""
    return f"page {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def draw(found: dict[str, list[tuple[str, Times]]], path: Path) -> None:
    from mpress.plots import plt

    plt.rcParams["svg.hashsalt"] = "mpress"
    figure, axes = plt.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
    sums = {"nccl": "raw ring (NCCL)", "doubling": "gZ doubling", "ring": "gZ ring",
            "two-shot": "two shots, in quanta"}  # fmt: skip
    blocks = {"raw": "raw tree", "calls": "a call a block", "streams": "gZ-Scatter",
              "one launch": "one launch for all"}  # fmt: skip
    panels = (
        ("sums by size", "figure 9: all-reduce, 64 GPUs", SIZES, "MB", sums),
        ("sums by ranks", "figure 10: all-reduce, 646 MB", COUNTS, "GPUs", sums),
        ("scatter by size", "figures 8, 11: scatter, 64 GPUs", SIZES, "MB", blocks),
        ("scatter by ranks", "figure 12: scatter, 646 MB", COUNTS, "GPUs", blocks),
    )
    for axis, (name, title, xs, unit, curves) in zip(axes.flat, panels, strict=True):
        for key, label in curves.items():
            ys = [1e3 * times[key] for _, times in found[name]]
            axis.plot(xs, ys, marker="o", markersize=3, label=label)
        axis.set_title(title)
        axis.set_xlabel(unit)
        axis.set_yscale("log")
        axis.set_ylabel("ms")
        if unit == "GPUs":
            axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small")
    figure.suptitle("PREDICTION by a model, not measured: gZCCL's figures on A100s at 100 Gbit/s")
    figure.savefig(path, metadata={"Date": None, "Description": digest(page(found))})
    plt.close(figure)


def main() -> None:
    found = cases()
    PAGE.write_text(page(found))
    draw(found, PICTURE)


if __name__ == "__main__":
    main()
