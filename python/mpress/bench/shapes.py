"""Generalised Moore and von Neumann neighbourhoods, after section 7 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

SHAPES = ("moore", "von-neumann")
ORDERS = ("row", "column", "random", "random-each")
"""Of the list: the last coordinate varies fastest; the first; at random, the same on all ranks, or
on each its own, which only MPI's graphs may have."""


def offsets(plan: dict[str, Any], dimensions: int, rank: int) -> np.ndarray:
    """The list of a plan, (number, dimensions): its shape, radius, inner, order, skip, seed."""
    from mpress import iso  # which needs an MPI

    make = iso.moore if plan["shape"] == "moore" else iso.von_neumann
    found = make(dimensions, plan["radius"], plan["inner"])
    order = np.arange(len(found))
    if plan["order"] == "column":
        order = np.lexsort(found.T)
    elif plan["order"] == "random":
        order = np.random.default_rng(plan["seed"]).permutation(len(found))
    elif plan["order"] == "random-each":
        order = np.random.default_rng((plan["seed"], rank)).permutation(len(found))
    return np.ascontiguousarray(found[order][plan["skip"] :], np.int32)
