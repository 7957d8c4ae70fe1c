"""Random cases (tests/iso_cases.py), as hypothesis draws and shrinks them. Only the rank that draws
loads it, which takes as long as most of a run."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st
from iso_cases import ALGORITHMS, FORMS, LAYOUTS, MOVES, SUMS, Call, Case


@st.composite
def grids(draw: st.DrawFn, ranks: int) -> tuple[int, ...]:
    sizes: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        sizes.append(draw(st.integers(1, min(5, ranks // prod(sizes)))))
    return tuple(draw(st.permutations(sizes)))


@st.composite
def lists(draw: st.DrawFn, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Some are one-sided, some have no offset along an axis, and some go around grids."""
    kind = draw(st.sampled_from(("any", "near", "one-sided", "no axis")))
    places = []
    for size in sizes:
        most = 1 if kind == "near" else 2 * size
        place = st.integers(0 if kind == "one-sided" else -most, most)
        places.append(place.filter(bool) if kind == "no axis" else place)
    offset = st.tuples(*places)
    several = draw(st.lists(offset, max_size=10))
    if several:  # some of them again
        several += draw(st.lists(st.sampled_from(several), max_size=4))
    return tuple(several)


def some(values: tuple, most: int) -> st.SearchStrategy[tuple]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=most).map(tuple)


@st.composite
def calls(draw: st.DrawFn, devices: int) -> Call:
    name = draw(st.sampled_from(MOVES + SUMS))
    is_sum = name in SUMS
    length = st.one_of(st.integers(0, 7), st.sampled_from((0, 1, 2, 3000)))
    places = tuple(range(-1, devices))
    return Call(
        name=name,
        form=draw(st.sampled_from(FORMS)),
        dtype=draw(st.sampled_from(("int32", "float32", "float64", "int64"))),
        lengths=draw(st.lists(length, min_size=1, max_size=5).map(tuple)),
        layouts=draw(some(LAYOUTS, 3)),
        gaps=draw(st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)),
        devices=draw(some(places, 5)),
        is_smooth=draw(st.booleans()),
        overlaps=draw(st.booleans()) and name in ("alltoallv", "alltoallw"),
        is_joined=draw(st.booleans()),
        codec=draw(st.sampled_from((None, "mpc", "none"))),
        op=draw(st.sampled_from(("sum", "max", "min", "bxor", "own"))) if is_sum else "",
        second=draw(st.booleans()),
        between=draw(st.sampled_from(("", "message", "allreduce", "barrier", "bcast"))),
        turn=draw(st.integers(0, 4)),
        tests=draw(st.booleans()),
        algorithm=draw(st.sampled_from((None, *ALGORITHMS))),
    )


@st.composite
def cases(draw: st.DrawFn, ranks: int, devices: int = 0) -> Case:
    sizes = draw(grids(ranks))
    return Case(
        sizes=sizes,
        periodic=tuple(draw(st.booleans()) for _ in sizes),
        offsets=draw(lists(sizes)),
        algorithm=draw(st.sampled_from(ALGORITHMS)),
        ports=draw(st.integers(0, 3)),
        is_uniform=draw(st.booleans()),
        is_reproducible=draw(st.booleans()),
        is_attribute=draw(st.booleans()),
        is_duplicate=draw(st.booleans()),
        frees_early=draw(st.booleans()),
        calls=tuple(draw(st.lists(calls(devices), min_size=1, max_size=4))),
    )
