"""The part of docs/dev/results-codecs.md about GPUs, and its plot."""

from pathlib import Path
from typing import Any

import result_pictures
from tables import table

Row = dict[str, Any]

HEAD = """\
## CUDA twins

{gpu}, driver's CUDA {driver}, runtime {runtime}; {date}, commit {commit}. `python
bench/codec_cuda.py` measures this.

GB of the field a second between events on the device, medians, buffers beyond the caches; sum adds
the decoded elements to those that are there. A copy of the field on the device ran in the same
process. Every payload and every decoded field was compared with the host twin's: "as on host".
Relative bounds were timed as the absolute ones that they come to; "range" is what finding the range
adds to the encoder. "us" is the time until the host sees the report of a call on an idle device.
Fields of 256 MB: `wave`, `turb`, `rand` as above.
"""

# (codec, field, at least GB/s encode, decode, ratio), of f32 fields.
GOALS = (
    ("szp:rel=1e-3", "wave", 2200, 2000, 22),
    ("szp:rel=1e-3", "turb", 1150, 1150, 5.7),
    ("szp:rel=1e-4", "turb", 950, 950, 3.5),
    ("szp:rel=1e-3", "rand", 1000, 1000, 3.75),
    ("szp:rel=1e-3,mode=dense", "wave", 700, 700, 24),
    ("szp:rel=1e-3,mode=dense", "turb", 700, 700, 6.0),
    ("zfp:4", "turb", 1800, 1800, 8),
    ("zfp:8", "turb", 1400, 1400, 4),
    ("zfp:16", "turb", 900, 900, 2),
    ("zfp:24", "turb", 600, 600, 1.33),
    ("mpc", "wave", 900, 900, 1.9),
    ("mpc", "turb", 700, 700, 1.22),
)
F64_SHARE = 0.8
SMALL = ((1 << 20, 15e-6, 12e-6), (4 << 20, 20e-6, 16e-6))


def verdict(reached: bool) -> str:
    return "reached" if reached else "**missed**"


def find(rows: list[Row], spec: str, field: str, kind: str) -> Row | None:
    found = [r for r in rows if (r["spec"], r["field"], r["type"]) == (spec, field, kind)]
    return found[0] if found else None


def goals(document: Row) -> str:
    lines = []
    rows = document["rows"]
    for spec, field, encode, decode, ratio in GOALS:
        row = find(rows, spec, field, "f32")
        if row is None:
            continue
        got = (row["encode_rate"] / 1e9, row["decode_rate"] / 1e9, row["ratio"])
        reached = got[0] >= encode and got[1] >= decode and got[2] >= ratio * 0.999
        lines.append([
            f"`{spec}`, {field}", f"{encode} / {decode} / {ratio}",
            f"{got[0]:.0f} / {got[1]:.0f} / {got[2]:.2f}", verdict(reached),
        ])  # fmt: skip
    for row in (r for r in rows if r["type"] == "f64"):
        single = find(rows, row["spec"], row["field"], "f32")
        if single is None:
            continue
        shares = [row[k] / single[k] for k in ("encode_rate", "decode_rate")]
        if min(shares) < F64_SHARE:
            lines.append([
                f"`{row['spec']}`, {row['field']}, f64 over f32", f"{F64_SHARE:.0%}",
                f"{shares[0]:.0%} / {shares[1]:.0%}", verdict(False),
            ])  # fmt: skip
    for nbytes, encode, decode in SMALL:
        for row in (r for r in document["sweep"] if r["bytes"] == nbytes and "sum" in r):
            took = row["encode_to_host"], row["decode_to_host"]
            lines.append([
                f"`{row['codec']}`, {nbytes >> 20} MiB, us until the host knows",
                f"{encode * 1e6:.0f} / {decode * 1e6:.0f}",
                f"{took[0] * 1e6:.1f} / {took[1] * 1e6:.1f}",
                verdict(took[0] <= encode and took[1] <= decode),
            ])  # fmt: skip
    for one, many in zip(document["batches"][::2], document["batches"][1::2], strict=True):
        factors = [many[k] / one[k] for k in ("encode", "decode")]
        lines.append([
            f"`{one['codec']}`, 64 segments of 256 KiB over one of 16 MiB", "1.15",
            f"{factors[0]:.2f} / {factors[1]:.2f}", verdict(max(factors) <= 1.15),
        ])  # fmt: skip
    worst = max(rows, key=lambda r: r["decode_rate"] / r["sum_rate"])
    factor = worst["decode_rate"] / worst["sum_rate"]
    lines.append([
        f"decode and sum over decode; worst: `{worst['spec']}`, {worst['field']} {worst['type']}",
        "1.3", f"{factor:.2f}", verdict(factor <= 1.3),
    ])  # fmt: skip
    return table(("goal", "encode / decode / ratio", "measured", ""), lines)


def measurements(document: Row) -> str:
    parts = []
    for kind in dict.fromkeys(row["type"] for row in document["rows"]):
        for field in dict.fromkeys(row["field"] for row in document["rows"]):
            rows = [r for r in document["rows"] if (r["field"], r["type"]) == (field, kind)]
            peers = [r for r in document["peers"] if (r["field"], r["type"]) == (field, kind)]
            if not rows:
                continue
            copy = max(r["memcpy_rate"] for r in rows) / 1e9
            parts.append(f"### {field}, {kind}, on the GPU: copy {copy:.0f} GB/s\n")
            lines = [line(row, copy) for row in rows]
            lines += [peer_line(row, copy) for row in peers]
            parts.append(table(
                ("codec", "ratio", "encode", "decode", "sum", "of copy", "range us", "as on host"),
                lines,
            ))  # fmt: skip
    return "\n".join(parts)


def line(row: Row, copy: float) -> list[str]:
    encode, decode, total = (row[f"{k}_rate"] / 1e9 for k in ("encode", "decode", "sum"))
    return [
        f"`{row['spec']}`", f"{row['ratio']:.2f}", f"{encode:.0f}", f"{decode:.0f}", f"{total:.0f}",
        f"{encode / copy:.0%} / {decode / copy:.0%}",
        f"{row['range_seconds'] * 1e6:.0f}" if "range_seconds" in row else "-",
        "yes" if row["same_bytes_as_host"] else "**no**",
    ]  # fmt: skip


def peer_line(row: Row, copy: float) -> list[str]:
    encode, decode = row["encode_rate"] / 1e9, row["decode_rate"] / 1e9
    return [
        f"nvCOMP {row['codec']}", f"{row['ratio']:.2f}", f"{encode:.0f}", f"{decode:.0f}", "-",
        f"{encode / copy:.0%} / {decode / copy:.0%}", "-", "-",
    ]  # fmt: skip


def plot(document: Row, path: Path) -> None:
    """Codec time against size, ours beside nvCOMP's (as in gZCCL's figure 3)."""
    plt = result_pictures.pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", sharey=True)
    colours = plt.get_cmap("tab10").colors
    names = list(dict.fromkeys(row["codec"] for row in document["sweep"]))
    for axis, what in zip(axes, ("encode", "decode"), strict=True):
        for name, colour in zip(names, colours, strict=False):
            rows = [row for row in document["sweep"] if row["codec"] == name]
            style = "--" if name.startswith("nvCOMP") else "-"
            axis.plot(
                [row["bytes"] for row in rows], [row[what] * 1e6 for row in rows],
                style, marker="o", markersize=3, color=colour, label=name,
            )  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        ticks = [64 << 10 << 2 * k for k in range(8)]
        axis.set_xticks(ticks, [f"{t >> 10}K" if t < 1 << 20 else f"{t >> 20}M" for t in ticks])
        axis.set_xlabel("bytes of float32 (turb)")
        axis.set_title(what)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds on the device")
    axes[0].legend(fontsize=8)
    figure.suptitle(document["gpu"])
    result_pictures.save(figure, path, document)


def section(document: Row, picture: Path) -> str:
    facts = {key: document[key] for key in ("gpu", "driver", "runtime", "date", "commit")}
    return "\n".join([
        HEAD.format(**facts),
        goals(document),
        f"![Codec time against size]({picture.name})\n",
        measurements(document),
    ])  # fmt: skip
