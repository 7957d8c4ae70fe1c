"""mpress.iso against what follows from coordinates alone: iso_exchanges.py SEED [devices]."""

from __future__ import annotations

import importlib
import random
import sys
from typing import Any

import numpy as np
from mpi4py import MPI

import mpress
from mpress import iso

WORLD = MPI.COMM_WORLD
PLACE = sys.argv[2] if len(sys.argv) > 2 else "host"


def on_device(array: np.ndarray, chance: random.Random) -> Any:
    if PLACE == "devices" and chance.random() < 0.6:
        return importlib.import_module("cupy").asarray(array)
    return array


def host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def value(origin: int, index: int, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    return (np.arange(np.prod(shape)).reshape(shape) * 7 + origin * 100 + index).astype(dtype)


def grid(dims: int, chance: random.Random) -> MPI.Cartcomm:
    sizes = MPI.Compute_dims(WORLD.size, dims) if dims else []
    return WORLD.Create_cart(sizes, [chance.random() < 0.5 for _ in range(dims)])


def run(near: iso.Neighborhood, name: str, form: int, *given: Any, **named: Any) -> None:
    if form == 0:
        getattr(near, name)(*given, **named)
    elif form == 1:
        request = getattr(near, f"i{name}")(*given, **named)
        while not request.test():
            pass
    else:
        request = getattr(near, f"{name}_init")(*given, **named)
        for _ in range(2):
            request.start()
            outcome = request.wait()
        assert outcome.served


def exchanges(chance: random.Random) -> None:
    dims = chance.randint(0, 3)
    cart = grid(dims, chance)
    if cart == MPI.COMM_NULL:  # of a grid without dimensions, but for one process
        return
    s = chance.randint(0, 9)
    offsets = np.array(
        [[chance.randint(-2, 2) for _ in range(dims)] for _ in range(s)],
        np.int64,
    ).reshape(s, dims)
    algorithm = chance.choice(["auto", "direct", "combining"])
    near = iso.Neighborhood(cart, offsets, "mpc", algorithm=algorithm, uniform_sizes=True)
    assert len(near) == len(offsets) == len(near.sources) == len(near.targets)
    own = random.Random(chance.random() + WORLD.rank)
    form, length = chance.randint(0, 2), chance.choice([0, 1, 5, 600])
    there = [source != MPI.PROC_NULL for source in near.sources]
    # Each kind of call with what it is to bring.
    blocks = [value(WORLD.rank, i, (length,)) for i in range(s)]
    sent = on_device(np.array(blocks).reshape(s, length), own)
    received = on_device(np.full((s, length), -1.0), own)
    run(near, "alltoall", form, sent, received)
    for i, source in enumerate(near.sources):
        expected = value(source, i, (length,)) if there[i] else -1
        assert (host(received)[i] == expected).all()
    counts = [chance.randint(0, 3) * length for _ in range(s)]
    parts = [value(WORLD.rank, i, (n,)) for i, n in enumerate(counts)]
    sent = on_device(np.concatenate([*parts, np.empty(0)]), own)
    received = on_device(np.full(sum(counts), -1.0), own)
    run(near, "alltoallv", form, sent, counts, received, counts)
    found = np.split(host(received), np.cumsum(counts)) if s else []
    for i, source in enumerate(near.sources):
        assert (found[i] == (value(source, i, (counts[i],)) if there[i] else -1)).all()
    # Columns of arrays, on the host.
    wide = [np.full((4, 6), -1.0, np.float32) for _ in range(2 * s)]
    for i, one in enumerate(wide[:s]):
        one[:, 1::2] = value(WORLD.rank, i, (4, 3), np.float32)
    columns = [one[:, 1::2] for one in wide[:s]], [one[:, ::2] for one in wide[s:]]
    run(near, "alltoallw", form, *columns)
    for i, source in enumerate(near.sources):
        expected = value(source, i, (4, 3), np.float32) if there[i] else -1
        assert (wide[s + i][:, ::2] == expected).all() and (wide[s + i][:, 1::2] == -1).all()
    mine = on_device(value(WORLD.rank, 50, (length,)), own)
    received = on_device(np.full((s, length), -1.0), own)
    run(near, "allgather", form, mine, received)
    for i, source in enumerate(near.sources):
        assert (host(received)[i] == (value(source, 50, (length,)) if there[i] else -1)).all()
    flat = on_device(np.full(s * length, -1.0), own)
    run(near, "allgatherv", form, mine, flat, [length] * s)
    assert (host(flat).reshape(s, length) == host(received)).all()
    listed = [np.full(length, -1.0) for _ in range(s)]
    run(near, "allgatherw", form, mine, listed)
    assert all((a == b).all() for a, b in zip(listed, host(received), strict=True))
    total = on_device(np.full(length, -1.0), own)
    run(near, "reduce", form, mine, total, op=MPI.MAX)
    greatest = max((source for source in near.sources if source != MPI.PROC_NULL), default=None)
    expected = -1 if greatest is None else value(greatest, 50, (length,))
    assert (host(total) == expected).all()
    total = np.full(length, -1.0)
    run(near, "scatter_reduce", form, blocks, total)
    vectors = [value(source, i, (length,)) for i, source in enumerate(near.sources) if there[i]]
    assert (total == (sum(vectors) if vectors else -1)).all()
    near.free()
    cart.Free()


def bounds(chance: random.Random) -> None:
    """What is encoded with a loss is within the bound, on each element received."""
    cart = grid(2, chance)
    near = iso.Neighborhood(cart, iso.moore(2, 1, inner=-1), "szp:abs=1e-3")
    length, s = 30_000, len(near)
    there = [i for i, source in enumerate(near.sources) if source != MPI.PROC_NULL]

    def field(origin: int, index: int) -> np.ndarray:
        return np.sin(np.arange(length) / 500 + origin) * (index + 1)

    sent = np.array([field(WORLD.rank, i) for i in range(s)])
    received = np.zeros((s, length))
    near.alltoall(sent, received)
    lost = max(np.abs(received[i] - field(near.sources[i], i)).max() for i in there)
    assert lost <= near.outcome.bound <= 1.001e-3
    near.allgather(sent[0], received)
    lost = max(np.abs(received[i] - field(near.sources[i], 0)).max() for i in there)
    assert lost <= near.outcome.bound <= 1.001e-3
    total = np.zeros(length)
    for op, combined in ((MPI.MAX, np.max), (MPI.PROD, np.prod)):  # sums: iso_sums.py
        near.reduce(sent[0], total, op=op)
        exact = combined([field(near.sources[i], 0) for i in there], axis=0)
        lost = np.abs(total - exact).max()
        assert lost <= near.outcome.bound + 1e-12 and near.outcome.bound <= 1.001e-3
        if op == MPI.PROD:
            assert lost < 1e-12
    near.free()
    cart.Free()


def halos(chance: random.Random) -> None:
    dims = chance.randint(1, 3)
    cart = grid(dims, chance)
    shape = tuple(chance.randint(3, 6) for _ in range(dims))
    depth = [chance.randint(0, 3) for _ in range(dims)]
    corners = chance.random() < 0.7
    components = (2,) if chance.random() < 0.3 else ()
    halo = iso.HaloExchange(cart, (*shape, *components), depth, corners, cart.periods)
    whole = np.array(cart.dims) * shape
    cells = np.arange(np.prod(whole)).reshape(whole).astype(np.float64)
    if components:
        cells = np.stack([cells, -cells], -1)
    modes = [
        {"mode": "wrap"} if periodic else {"mode": "constant", "constant_values": -9}
        for periodic in cart.periods
    ]
    padded = cells
    for axis, (mode, d) in enumerate(zip(modes, depth, strict=True)):
        widths = [(0, 0)] * padded.ndim
        widths[axis] = (d, d)
        padded = np.pad(padded, widths, **mode)
    at = tuple(
        slice(c * n, c * n + n + 2 * d) for c, n, d in zip(cart.coords, shape, depth, strict=True)
    )
    inner = tuple(slice(d, d + n) for n, d in zip(shape, depth, strict=True))
    field = np.full(tuple(n + 2 * d for n, d in zip(shape, depth, strict=True)) + components, -9.0)
    expected = padded[at]
    field[inner] = expected[inner]
    other = np.array(field, np.float32, order="F")
    halo.start(field, other)
    halo.finish()
    for found in (field, other):
        if corners:
            assert (found == expected).all()
            continue
        for axis in range(dims):
            faces = (*inner[:axis], slice(None), *inner[axis + 1 :])
            assert (found[faces] == expected[faces]).all()
    halo.free()
    cart.Free()


def errors() -> None:
    cart = WORLD.Create_cart([WORLD.size], [True])
    for wrong, named, text in (
        ([[1, 2]], {}, "offsets"),
        ([[0.5]], {}, "integers"),
        ([[1]], {"algorithm": "magic"}, "iso_algorithm"),
        ([[1]], {"ports": 0}, "iso_ports"),
    ):
        try:
            iso.Neighborhood(cart, wrong, **named)
        except (TypeError, ValueError) as error:
            assert text in str(error), error
        else:
            raise AssertionError(wrong)
    near = iso.Neighborhood(cart, [[1], [-1]])
    fixed, swapped = np.ones(2), np.ones(2, np.dtype(np.float64).newbyteorder())
    fixed.flags.writeable = False
    near.alltoall(fixed, np.ones(2))
    for name, given in (
        ("alltoall", (np.ones(3), np.ones(2))),
        ("alltoall", (np.ones((2, 2))[:, :1], np.ones(2))),
        ("alltoallw", ([np.ones(1)], [np.ones(1)] * 2)),
        ("alltoall", (np.ones(2), np.ones(4))),
        ("reduce", (np.ones(2), np.ones(3))),
        ("alltoall", (np.ones(2), fixed)),
        ("allgatherw", (np.ones(2), [np.ones(2), fixed])),
        ("reduce", (swapped, np.ones(2))),
        ("alltoall", (np.array(["a", "b"]), np.ones(2))),
    ):
        try:
            getattr(near, name)(*given)
        except (TypeError, ValueError):
            continue
        raise AssertionError(name)
    long = np.ones(30_000), np.empty(30_000)
    for begin in (near.reduce, near.ireduce, near.reduce_init) if WORLD.size > 1 else ():
        try:
            begin(*long, codec=f"szp:abs=1e-{3 + WORLD.rank}").wait()
        except MPI.Exception as error:
            assert "different codecs" in str(error), error
        else:
            raise AssertionError(begin)
    near.free()
    cart.Free()


def main() -> None:
    seed = int(sys.argv[1])
    assert len(iso.moore(3, 1)) == 26 and len(iso.von_neumann(2, 2)) == 12
    mpress.Communicator(WORLD)
    errors()
    bounds(random.Random(seed))
    for number in range(5):
        exchanges(random.Random(seed * 1000 + number))
        halos(random.Random(seed * 1000 + number))
    if WORLD.rank == 0:
        print("ok")


main()
