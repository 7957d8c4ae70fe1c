"""What a collective call would take on more ranks, by algorithm: the model of `mpress simulate
--op`, which docs/simulate.md tells to users.

Rounds, and what ranks, hosts and codecs do in each, are counted in the schedules of all ranks
(src/simulation/rounds.hpp). Here they get prices: T = latency + bytes / rate a round, and codecs by
the overlap of docs/tuning.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mpress import _core
from mpress.codec_curves import seconds
from mpress.tune import Curve

Row = dict[str, Any]

MOVING = ("bcast", "scatter", "gather", "allgather", "alltoall")
REDUCTIONS = {
    "allreduce": ("two-shot", "ring", "doubling"),
    "reduce": ("two-shot", "binomial"),
    "reduce_scatter": ("two-shot", "ring", "halving"),
}
OPS = (*MOVING, *REDUCTIONS)

WAYS = ("raw", "compressed", "hops")
"""compressed: encoded once, by its origin, and decoded once, by each who wants it. hops: encoded
and decoded in every hop."""

MOST_AT_ONCE = 32  # as policy::most_at_once
PARTNER_SHARE = 0.1  # of a round's latency, for each further partner: as policy/methods.cpp
_LEAST_SEGMENT = 64 << 10  # the same
_MOST_SEGMENTS = 256

_FORWARD_NOTHING = ("linear", "scattered", "pairwise")

SUM_BITS = 1.5
"""Times log2 N: bits that a value of a sum takes on the grid of N contributions, beside one of the
data alone. Measured: 1.5 to 1.6 of the field turb, shifted for each rank."""


@dataclass(frozen=True)
class Network:
    """Rates: bytes a second, each way, between hosts of a host and within one of a rank."""

    rate: float
    latency: float
    rate_within: float = math.inf
    latency_within: float = 0.0
    members: int = 1  # ranks on a host


@dataclass(frozen=True)
class Codec:
    spec: str
    ratio: float
    encode: Curve
    decode: Curve
    chunk: float = math.inf
    """Bytes of what is encoded, sent and decoded at once; inf: one piece, of which nothing
    overlaps."""
    block_seconds: float = 0.0
    """Where an origin encodes many blocks: what each takes beside the first; 0: one launch."""

    @property
    def adds_quanta(self) -> bool:
        return _core.describe(self.spec)["codec"] == "szp"


@dataclass(frozen=True)
class Call:
    """`nbytes` as in `mpress bench`: of a broadcast's data, of the vector that each rank brings to
    a reduction, else of a block."""

    op: str
    nbytes: float
    bits: int = 32
    filled: float = 1.0  # the share of the values that a finer grid makes longer


@dataclass(frozen=True)
class Part:
    """Of a call; parts follow one another. Arrays by round, in blocks."""

    within: np.ndarray
    between: np.ndarray
    encoded: np.ndarray
    decoded: np.ndarray
    partners: np.ndarray
    total: tuple[float, int, float, int]


@dataclass(frozen=True)
class Method:
    algorithm: str
    segments: int
    block: float  # bytes
    parts: tuple[Part, ...]


def predict(call: Call, network: Network, codec: Codec, ranks: int) -> list[Row]:
    """A row for each algorithm and way; of broadcasts with the segments that take least."""
    best: dict[tuple[str, str], Row] = {}
    for method in _methods(call, ranks, network.members):
        for way in _ways(call.op, method):
            row = _price(call, network, codec, ranks, method, way)
            known = best.get((method.algorithm, way))
            if known is None or row["seconds"] < known["seconds"]:
                best[method.algorithm, way] = row
    return sorted(best.values(), key=lambda row: WAYS.index(row["way"]))


def fastest(rows: Sequence[Row]) -> list[Row]:
    """For each number of ranks: the least time raw, and that with a codec."""
    found = []
    for ranks in dict.fromkeys(row["ranks"] for row in rows):
        own = [row for row in rows if row["ranks"] == ranks]
        raw = min((r for r in own if r["way"] == "raw"), key=lambda row: row["seconds"])
        best = min((r for r in own if r["way"] != "raw"), key=lambda row: row["seconds"])
        found.append({
            "ranks": ranks, "raw": raw["algorithm"], "raw_seconds": raw["seconds"],
            "compressed": best["algorithm"], "way": best["way"],
            "compressed_seconds": best["seconds"],
            "speedup": raw["seconds"] / best["seconds"],
        })  # fmt: skip
    return found


def ratios(call: Call, codec: Codec, ranks: int, members: int, parts: int) -> list[float]:
    """Of each part of a reduction in two shots: the grid of N contributions is N times as fine, so
    that the sum keeps the bound, and sums are longer numbers than what they are made of."""
    if not codec.adds_quanta:
        return [codec.ratio] * parts
    finer = [math.log2(ranks)]
    on_hosts = 0 < members < ranks and members > 1
    if on_hosts:
        finer.append(math.log2(ranks) + (SUM_BITS - 1) * math.log2(members))
    if len(finer) < parts:
        finer.append(SUM_BITS * math.log2(ranks))
    bits = [call.bits / codec.ratio + call.filled * more for more in finer]
    return [max(1.0, call.bits / one) for one in bits]


def _ways(op: str, method: Method) -> Iterator[str]:
    yield "raw"
    if method.algorithm == "two-shot" and op in REDUCTIONS:
        yield "compressed"
    elif op in REDUCTIONS:
        yield "hops"
    else:
        yield "compressed"
        if method.algorithm not in _FORWARD_NOTHING:
            yield "hops"


def _price(
    call: Call, network: Network, codec: Codec, ranks: int, method: Method, way: str
) -> Row:  # fmt: skip
    latency = link = encode = decode = total = 0.0
    raw_bytes = wire_bytes = 0.0
    count = len(method.parts)
    shrunk = [1.0 if way == "raw" else codec.ratio] * count
    if way == "compressed" and call.op in REDUCTIONS:
        shrunk = ratios(call, codec, ranks, network.members, count)
    for part, ratio in zip(method.parts, shrunk, strict=True):
        starts = np.where(part.between > 0, network.latency, network.latency_within)
        starts = starts * (1 + PARTNER_SHARE * np.maximum(0, part.partners - 1))
        moved = method.block * np.maximum(
            part.within / network.rate_within, part.between / network.rate
        )
        raw_bytes += float(np.sum(part.within + part.between))
        wire_bytes += float(np.sum(part.within + part.between)) / ratio
        moved = moved / ratio
        latency += float(np.sum(starts))
        link += float(np.sum(moved))
        if way == "raw":
            total += float(np.sum(starts + moved))
            continue
        if way == "hops":
            encoding, first = _stage(codec.encode, method.block * part.encoded, codec.chunk)
            decoding, last = _stage(codec.decode, method.block * part.decoded, codec.chunk)
            total += float(np.sum(starts + _overlapped(moved, encoding, first, decoding, last)))
        else:
            blocks, goes, wanted, ends = part.total
            encoding, first = _stage(
                codec.encode, method.block * blocks / max(goes, 1), codec.chunk
            )
            encoding = encoding * goes + max(0.0, blocks - goes) * codec.block_seconds
            decoding, last = _stage(codec.decode, method.block * wanted / max(ends, 1), codec.chunk)
            decoding = decoding * ends
            if math.isinf(codec.chunk):
                first, last = encoding, decoding
            total += float(
                np.sum(starts) + _overlapped(np.sum(moved), encoding, first, decoding, last)
            )
        encode += float(np.sum(encoding))
        decode += float(np.sum(decoding))
    return {
        "ranks": ranks, "algorithm": method.algorithm, "way": way, "segments": method.segments,
        "rounds": sum(len(part.within) for part in method.parts), "seconds": total,
        "latency_seconds": latency, "link_seconds": link, "encode_seconds": encode,
        "decode_seconds": decode, "ratio": raw_bytes / wire_bytes,
    }  # fmt: skip


def _stage(curve: Curve, nbytes: np.ndarray | float, chunk: float) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of all, and of one chunk: N chunks take N times as long as one."""
    nbytes = np.asarray(nbytes, float)
    piece = np.where(nbytes >= 2 * chunk, chunk, nbytes) if math.isfinite(chunk) else nbytes
    one = seconds(curve, piece)
    return one * nbytes / np.maximum(piece, 1e-300), one


def _overlapped(
    moved: np.ndarray, encode: np.ndarray, first: np.ndarray, decode: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Encoder, link and decoder each work on another chunk: the slowest counts in full."""
    slowest = np.maximum(moved, np.maximum(encode - first, decode - last))
    return first + slowest + last


def _methods(call: Call, ranks: int, members: int) -> Iterator[Method]:
    if call.op in REDUCTIONS:
        for algorithm in REDUCTIONS[call.op]:
            for sharing in _sharing(algorithm, call.op, ranks, members):
                pieces, parts = _sum_parts(algorithm, call.op, ranks, members, sharing)
                yield Method(algorithm, 1, call.nbytes / pieces, parts)
        return
    for algorithm in _core.data_algorithms(call.op, ranks, members):
        for segments in _segments(algorithm, call, ranks, members):
            part = _data_part(algorithm, call.op, ranks, members, segments)
            yield Method(algorithm, segments, call.nbytes / segments, (part,))


def _sharing(algorithm: str, op: str, ranks: int, members: int) -> list[str]:
    """Algorithms of the second shot, of which the best counts."""
    if algorithm != "two-shot" or op == "reduce_scatter":
        return ["none"]
    if op == "reduce":
        return ["linear"]
    known = _core.data_algorithms("allgather", ranks, members)
    return [name for name in known if name in ("by-host", "ring", "scattered")]


def _segments(algorithm: str, call: Call, ranks: int, members: int) -> list[int]:
    """As the engine tries them (src/policy/methods.cpp)."""
    is_mixed = 1 < members < ranks
    if call.op != "bcast" or algorithm == "linear" or (algorithm == "binomial" and not is_mixed):
        return [1]
    if algorithm.startswith("scatter-"):
        return [ranks]
    unit = 1
    if algorithm == "two-shot":
        unit = max(1, (-(-ranks // members) if is_mixed else ranks) - 1)
    found = [unit]
    while 2 * found[-1] <= _MOST_SEGMENTS and call.nbytes / (2 * found[-1]) >= _LEAST_SEGMENT:
        found.append(2 * found[-1])
    return found


@lru_cache(maxsize=512)
def _data_part(algorithm: str, op: str, ranks: int, members: int, segments: int) -> Part:
    window = 1 if algorithm == "pairwise" else min(MOST_AT_ONCE, ranks - 1)
    return _part(_core.data_rounds(algorithm, op, ranks, members, segments, window))


@lru_cache(maxsize=512)
def _sum_parts(
    algorithm: str, op: str, ranks: int, members: int, sharing: str
) -> tuple[int, tuple[Part, ...]]:
    window = min(MOST_AT_ONCE, ranks - 1)
    pieces, parts = _core.sum_rounds(algorithm, op, ranks, members, sharing, window)
    return pieces, tuple(_part(part) for part in parts)


def _part(counted: tuple[list[Any], tuple[float, int, float, int]]) -> Part:
    rounds, total = counted
    columns = np.array(rounds, float).reshape(-1, 7).T
    return Part(columns[0], columns[1], columns[4], columns[5], columns[6], total)
