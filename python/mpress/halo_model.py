"""What a stencil code with halo exchanges would take on more ranks, from measured steps.

The model, for the rank with the most neighbours (docs/api.md tells it to users):

- Its cells: those that need no halo are computed while faces travel, the shells after that.
- A face is `halo` layers. Faces leave and arrive one after another at the rate of the rank's link,
  both ways at once, plus a latency a message.
- A codec divides the bytes on the link by its ratio, and encodes and decodes at its own rates.
  Messages are cut into chunks, so of encoding, link and decoding the slowest counts in full, and
  the others for one chunk: the policy's T = Te + S / (ratio B) + Td where there is one chunk.
- step = max(interior, exchange) + shells.

Links are not shared, ranks do not wait for slower ones, and nothing grows with the number of ranks
but the number of a rank's neighbours. So results are bounds for a network without contention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Triple = tuple[int, int, int]
Row = dict[str, Any]

CHUNK_BYTES = 1 << 20  # as MPRESS_CHUNK by default


class ModelError(ValueError):
    """The measurements do not tell what the model needs."""


@dataclass(frozen=True)
class Machine:
    cell_seconds: float  # of computing a cell
    link_rate: float  # bytes a second out of a rank, and into it
    latency: float  # s a message


@dataclass(frozen=True)
class CodecCost:
    """What a codec makes of halos. `none` has ratio 1 and infinite rates."""

    spec: str
    ratio: float = 1.0
    encode_rate: float = math.inf  # raw bytes a second
    decode_rate: float = math.inf


@dataclass(frozen=True)
class Step:
    """Seconds; `interior` and `exchange` are under way at once."""

    interior: float
    shells: float
    exchange: float

    @property
    def seconds(self) -> float:
        return max(self.interior, self.exchange) + self.shells


def balanced_split(ranks: int, axes: Sequence[int] = (0, 1, 2)) -> Triple:
    """Ranks in each direction, as near to each other as possible; larger ones first."""
    best: tuple[int, ...] | None = None
    for parts in _factorings(ranks, len(axes)):
        if best is None or sum(parts) < sum(best):
            best = parts
    assert best is not None
    split = [1, 1, 1]
    for axis, count in zip(axes, best, strict=True):
        split[axis] = count
    return split[0], split[1], split[2]


def _factorings(number: int, count: int) -> list[tuple[int, ...]]:
    """All descending tuples of `count` factors with that product."""
    if count == 1:
        return [(number,)]
    return [
        (first, *rest)
        for first in range(number, 0, -1)
        if number % first == 0
        for rest in _factorings(number // first, count - 1)
        if rest[0] <= first
    ]


def neighbours(split: Triple) -> Triple:
    """In each direction, of the rank that has the most."""
    return tuple(min(parts - 1, 2) for parts in split)  # type: ignore[return-value]


def face_cells(box: Triple, split: Triple, halo: int) -> list[int]:
    """Cells of each message that the rank with the most neighbours sends in a step."""
    cells = math.prod(box)
    return [cells // box[axis] * halo for axis, n in enumerate(neighbours(split)) for _ in range(n)]


def interior_cells(box: Triple, split: Triple, halo: int) -> int:
    return math.prod(
        max(0, cells - halo * n) for cells, n in zip(box, neighbours(split), strict=True)
    )


def exchange_seconds(
    sizes: Sequence[int], machine: Machine, codec: CodecCost, chunk_bytes: int = CHUNK_BYTES
) -> float:
    """Messages of these bytes, before they are compressed."""
    total = sum(sizes)
    if total == 0:
        return 0.0
    stages = (
        total / codec.encode_rate,
        total / codec.ratio / machine.link_rate,
        total / codec.decode_rate,
    )
    chunks = sum(max(1, math.ceil(size / chunk_bytes)) for size in sizes)
    slowest = max(stages)
    return machine.latency * len(sizes) + slowest + (sum(stages) - slowest) / chunks


def step(
    box: Triple, split: Triple, machine: Machine, codec: CodecCost, halo: int, element_bytes: int
) -> Step:
    sizes = [cells * element_bytes for cells in face_cells(box, split, halo)]
    inner = interior_cells(box, split, halo)
    return Step(
        inner * machine.cell_seconds,
        (math.prod(box) - inner) * machine.cell_seconds,
        exchange_seconds(sizes, machine, codec),
    )


def calibrate(
    document: Mapping[str, Any], transport: str, latency: float
) -> tuple[Machine, list[CodecCost], int]:
    """The machine and the codecs of a file of bench/wave_scaling.py, and the number of ranks that
    they are taken from: the largest where no two share a GPU. Raises ModelError."""
    rows = [row for row in document["rows"] if row["transport"] == transport]
    single = next((row for row in rows if row["ranks"] == 1), None)
    most = len(document["gpus"]) if document["device"] == "cuda" else math.inf
    counts = {row["ranks"] for row in rows if 1 < row["ranks"] <= most}
    if single is None or not counts:
        raise ModelError(
            f"no steps by {transport} of one rank, and of several that have a GPU each"
        )
    ranks = max(counts)
    box = _triple(document["box"])
    cell_seconds = single["step_seconds"] / math.prod(box)
    used = [row for row in rows if row["ranks"] == ranks]
    raw = next((row for row in used if row["spec"] == "none"), None)
    if raw is None:
        raise ModelError(f"no steps of {ranks} ranks with raw messages")
    split = _triple(raw["split"])
    known = step(box, split, Machine(cell_seconds, math.inf, 0), CodecCost("none"),
                 document["halo"], document["element_bytes"])  # fmt: skip
    exchange = raw["step_seconds"] - known.shells
    if exchange <= known.interior:
        raise ModelError("raw messages were hidden by the computation: their rate is unknown")
    sizes = face_cells(box, split, document["halo"])
    seconds = exchange - latency * len(sizes)
    if seconds <= 0:
        raise ModelError(f"a latency of {latency:g} s is more than the exchange took")
    rate = sum(sizes) * document["element_bytes"] / seconds
    codecs = [
        CodecCost("none") if row["spec"] == "none" else _cost(row) for row in used
    ]  # fmt: skip
    return Machine(cell_seconds, rate, latency), codecs, ranks


def _cost(row: Row) -> CodecCost:
    raw = row["raw_bytes"]
    encode, decode = row["encode_seconds"], row["decode_seconds"]
    return CodecCost(
        row["spec"], raw / row["wire_bytes"],
        raw / encode if encode > 0 else math.inf, raw / decode if decode > 0 else math.inf,
    )  # fmt: skip


def _triple(values: Sequence[int]) -> Triple:
    x, y, z = values
    return x, y, z


@dataclass(frozen=True)
class Scaling:
    """Weak: every rank has `box`. Strong: the ranks share `grid`."""

    box: Triple | None = None
    grid: Triple | None = None

    def box_of(self, split: Triple, halo: int) -> Triple | None:
        """Of the rank with the most cells; None where a rank would have fewer than a halo."""
        if self.box is not None:
            return self.box
        assert self.grid is not None
        if any(cells // parts < halo for cells, parts in zip(self.grid, split, strict=True)):
            return None
        return _triple([-(-c // parts) for c, parts in zip(self.grid, split, strict=True)])


def project(
    document: Mapping[str, Any], machine: Machine, codecs: Sequence[CodecCost],
    scaling: Scaling, ranks: Sequence[int], axes: Sequence[int],
) -> list[Row]:  # fmt: skip
    """A row for each number of ranks and codec; efficiency is that of the cells a second and rank,
    beside a rank that has no neighbour."""
    halo, element_bytes = document["halo"], document["element_bytes"]
    flops = cell_flops(document)
    rows = []
    for count in ranks:
        split = balanced_split(count, axes)
        box = scaling.box_of(split, halo)
        if box is None:
            continue
        cells = math.prod(box) * count if scaling.grid is None else math.prod(scaling.grid)
        for codec in codecs:
            one = step(box, split, machine, codec, halo, element_bytes)
            raw = step(box, split, machine, CodecCost("none"), halo, element_bytes)
            rows.append({
                "ranks": count, "split": split, "box": box, "spec": codec.spec,
                "interior_seconds": one.interior, "shell_seconds": one.shells,
                "exchange_seconds": one.exchange, "step_seconds": one.seconds,
                "over_none": one.seconds / raw.seconds, "flops": flops * cells / one.seconds,
                "efficiency": cells * machine.cell_seconds / count / one.seconds,
            })  # fmt: skip
    return rows


def fit(
    document: Mapping[str, Any], transport: str, machine: Machine, codecs: Sequence[CodecCost]
) -> list[Row]:
    """What the model says of the steps that were measured with a GPU a rank, beside them."""
    most = len(document["gpus"]) if document["device"] == "cuda" else math.inf
    costs = {codec.spec: codec for codec in codecs}
    rows = []
    for row in document["rows"]:
        if row["transport"] != transport or row["ranks"] > most or row["spec"] not in costs:
            continue
        one = step(_triple(document["box"]), _triple(row["split"]), machine, costs[row["spec"]],
                   document["halo"], document["element_bytes"])  # fmt: skip
        rows.append({
            "ranks": row["ranks"], "spec": row["spec"], "measured_seconds": row["step_seconds"],
            "model_seconds": one.seconds,
        })  # fmt: skip
    return rows


def cell_flops(document: Mapping[str, Any]) -> float:
    """Floating-point operations of a cell, as the program counts them."""
    row = document["rows"][0]
    return row["flops"] * row["step_seconds"] / (math.prod(document["box"]) * row["ranks"])


def with_link(machine: Machine, rate: float | None) -> Machine:
    return machine if rate is None else replace(machine, link_rate=rate)
