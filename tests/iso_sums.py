"""Sums of neighbourhoods with szp's absolute bound, which are added up in quanta: within the bound
whatever vectors hold, and with the same bits in any order of the list: iso_sums.py [devices]."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
from mpi4py import MPI

import mpress
from mpress import iso

WORLD = MPI.COMM_WORLD
DEVICES = sys.argv[1:] == ["devices"]
E = 1e-3
LONG = 20_011  # in chunks
MIXED = [[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)]
KINDS = ("smooth", "rough", "wild", "strewn", "mixed")


def vector(origin: int, index: int, kind: str, count: int, dtype: Any) -> np.ndarray:
    chance = np.random.default_rng([origin, index])
    x = np.sin(np.arange(count) / 500 + origin) * (index + 1)
    if kind != "smooth":
        x += chance.normal(size=count) * 0.3
    if kind == "wild":  # most blocks have something that is no quantum
        most, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
        odd = [np.nan, np.inf, -np.inf, most, -most, most / 4, 1e30, least, -7 * least, -0.0, 300]
        places = chance.integers(0, count, 3 * count // 100)
        x[places] = chance.choice(odd, len(places))
    if kind == "strewn":  # all magnitudes
        x *= 10.0 ** chance.integers(-44, 30, count)
    if kind == "mixed" and origin % 2:  # does not become shorter, and goes as it is
        x = chance.normal(size=count) * 1e20
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def check(total: np.ndarray, vectors: list[np.ndarray], bound: float) -> None:
    """Beside the exact sum. Magnitudes beyond those that the bound covers are rounded besides."""
    assert 0 <= bound <= E
    wide = np.array(vectors, np.longdouble)
    with np.errstate(invalid="ignore", over="ignore"):
        exact, size = wide.sum(axis=0), np.abs(wide).sum(axis=0)
        finite = np.isfinite(size) & (size < np.finfo(total.dtype).max)
        is_known = np.isfinite(wide).all(axis=0)
        covered = E / len(vectors) * (2**17 if total.dtype == np.float32 else 2**25)
        rounding = np.where(size <= covered, 1e-18, 2 * np.finfo(total.dtype).eps * size)
        error = np.abs(total - exact)
    assert (error[finite] <= (bound + rounding)[finite]).all()
    same = (total == exact) | (np.isnan(total) & np.isnan(exact))
    assert same[~is_known].all()


def place(array: np.ndarray) -> Any:
    if DEVICES and WORLD.rank % 2 == 0:
        return importlib.import_module("cupy").asarray(array)
    return array


def unaligned(array: np.ndarray) -> np.ndarray:
    """What a process is sure to send as it is."""
    there = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    there[:] = array
    return there


def host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def strided(array: np.ndarray) -> np.ndarray:
    wide = np.full((array.size, 2), -9, array.dtype)
    wide[:, 0] = array
    return wide[:, 0]


def run(near: iso.Neighborhood, form: str, name: str, sent: Any, total: Any, named: Any) -> float:
    if form == "blocking":
        getattr(near, name)(sent, total, **named)
        return near.outcome.bound
    if form == "immediate":
        return getattr(near, f"i{name}")(sent, total, **named).wait().bound
    request = getattr(near, f"{name}_init")(sent, total, **named)
    kept = host(sent).copy()
    sent[:] = place(kept * 0)  # what the first start brings
    request.start()
    request.wait()
    assert (host(total) == 0).all() or len(near) == 0
    sent[:] = place(kept)
    request.start()
    return request.wait().bound


class Lists:
    """Neighbourhoods of one list in several orders, which lead to the same sources."""

    def __init__(self, cart: MPI.Cartcomm, offsets: list[list[int]], **named: Any) -> None:
        self.orders = [np.random.default_rng(7 * i).permutation(len(offsets)) for i in range(2)]
        self.orders.insert(0, np.arange(len(offsets)))
        self.nears = [
            iso.Neighborhood(cart, np.array(offsets)[order], f"szp:abs={E}", **named)
            for order in self.orders
        ]
        self.there = [i for i, s in enumerate(self.nears[0].sources) if s != MPI.PROC_NULL]

    def sum(self, name: str, kind: str, count: int, dtype: Any, raw_of: int = -1) -> bytes:
        sources, found = self.nears[0].sources, set()
        is_one = name == "reduce"
        vectors = [vector(sources[i], 0 if is_one else i, kind, count, dtype) for i in self.there]
        for order, near, form in zip(
            self.orders, self.nears, ("blocking", "immediate", "persistent"), strict=True
        ):
            total = place(np.full(count, -1, dtype))
            if is_one:
                sent = vector(WORLD.rank, 0, kind, count, dtype)
                sent = unaligned(sent) if WORLD.rank == raw_of else place(sent)
                form = form if kind == "smooth" else "blocking"
            else:
                sent = [vector(WORLD.rank, i, kind, count, dtype) for i in order]
                sent = [place(one) if i % 3 else strided(one) for i, one in enumerate(sent)]
                form = "immediate" if form == "persistent" else form
            bound = run(near, form, name, sent, total, {})
            if vectors:
                check(host(total), vectors, bound)
                assert bound > 0 or len(vectors) == 1
            else:
                assert (host(total) == -1).all()
            found.add(host(total).tobytes())
        assert len(found) == 1, (name, kind, count, dtype)
        return found.pop()


def relative(cart: MPI.Cartcomm) -> None:
    """Bounds of their own ranges, as no process knows all ranges: decoded, in the list's order."""
    near = iso.Neighborhood(cart, MIXED, "szp:rel=1e-4")
    total = np.zeros(LONG)
    near.reduce(vector(WORLD.rank, 0, "rough", LONG, float) * 2.0**WORLD.rank, total)
    there = [s for s in near.sources if s != MPI.PROC_NULL]
    vectors = [vector(s, 0, "rough", LONG, float) * 2.0**s for s in there]
    allowed = sum(1e-4 * np.ptp(one) for one in vectors) / len(near)
    assert 0 < np.abs(total - sum(vectors)).max() <= allowed + 1e-12


def raw(cart: MPI.Cartcomm) -> None:
    """What nobody encodes is the sum of quanta where the same bits are wanted, else exact."""
    for is_reproducible in (False, True):
        lists = Lists(cart, MIXED, reproducible=is_reproducible)
        encoded = lists.sum("reduce", "smooth", LONG, np.float32)
        near = lists.nears[0]
        hints = MPI.Info.Create({"mpress_threshold": str(1 << 30)})
        near.comm.Set_info(hints)
        total = np.zeros(LONG, np.float32)
        near.reduce(vector(WORLD.rank, 0, "smooth", LONG, np.float32), total)
        assert (near.outcome.bound == 0) != is_reproducible
        assert (total.tobytes() == encoded) == is_reproducible


def main() -> None:
    mpress.Communicator(WORLD)
    cart = WORLD.Create_cart([2, WORLD.size // 2], [True, False])
    # With the process itself, borders, and sources that are there twice.
    lists = Lists(cart, MIXED)
    for kind in KINDS:
        for dtype in (np.float32, np.float64):
            lists.sum("reduce", kind, LONG if kind != "smooth" else 2000, dtype)
    lists.sum("scatter_reduce", "mixed", LONG, np.float32)
    lists.sum("scatter_reduce", "wild", 3000, np.float64)
    # One source, or none, and one beyond a border.
    for offsets in ([[0, 1]], [[0, 1], [0, -1]], [[0, 1], [0, 1]], [[0, 0], [0, 0], [0, 1]]):
        Lists(cart, offsets).sum("reduce", "wild", 3000, np.float32)
    # Whether a vector is encoded, and by whom it is decoded, changes no bit.
    assert lists.sum("reduce", "rough", 3000, np.float32) == lists.sum(
        "reduce", "rough", 3000, np.float32, raw_of=WORLD.size - 1
    )
    if not DEVICES:
        relative(cart)
        raw(cart)
    if WORLD.rank == 0:
        print("ok")


main()
