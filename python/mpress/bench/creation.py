"""What it takes to make neighbourhoods: `mpress bench iso creation`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress.bench import exchanges, loops, shapes
from mpress.bench.exchanges import Neighbours
from mpress.bench.names import SCHEDULE
from mpress.bench.session import Row, Session

_KINDS = {"graph-adjacent": "adjacent", "graph-general": "graph"}


def creating(name: str, near: Neighbours, info: MPI.Info) -> tuple[loops.Creation, Any]:
    """How a communicator is made, of names.COMMUNICATORS, and what has to live as long. `info`: of
    mpress's own."""
    made = loops.Creation()
    made.kind = loops.CREATIONS.index(_KINDS.get(name, name))
    cart = near.cart
    made.comm = MPI._addressof(cart)
    if name == "cart":
        made.comm = MPI._addressof(MPI.COMM_WORLD)
        sizes, periods = np.array(cart.dims, np.int32), np.array(cart.periods, np.int32)
        made.dimensions = cart.ndim
        made.sizes, made.periodic = sizes.ctypes.data, periods.ctypes.data
        return made, (sizes, periods)
    if name in _KINDS:
        sources = np.ascontiguousarray(near.sources[near.existing_sources()])
        targets = np.ascontiguousarray(near.targets[near.existing_targets()])
        made.comm = MPI._addressof(MPI.COMM_WORLD)
        made.sources_count, made.sources = len(sources), sources.ctypes.data
        made.targets_count, made.targets = len(targets), targets.ctypes.data
        return made, (sources, targets)
    if name == "duplicate":
        return made, None
    made.count, made.offsets = len(near.offsets), near.offsets.ctypes.data
    made.info = MPI._addressof(info)
    return made, info


def run(plan: dict[str, Any], keep: Callable[[list[Row]], None]) -> None:
    """Gives `keep` a row for each method."""
    session = Session(plan, plan["dimensions"])
    near = Neighbours(session.cart, shapes.offsets(plan, plan["dimensions"], session.rank))
    # Its attribute comes and goes.
    other = Neighbours(MPI.COMM_WORLD.Create_cart(session.sizes, session.periodic), near.offsets)
    names = [one["name"] for one in plan["methods"]]
    made = [name for name in names if not name.startswith(SCHEDULE)]
    kept, operations = [], []
    for name in made:
        is_attribute = name == "attribute"
        info = MPI.INFO_NULL
        if is_attribute:
            info = exchanges.info_of({"iso_attribute": "true"})
        struct, needs = creating(name, other if is_attribute else near, info)
        kept += [struct, needs]
        operations.append(loops.Operation(ctypes.pointer(struct)))
    seconds = session.timed(operations)
    times = dict(zip(made, seconds.tolist(), strict=True))
    rounds = seconds.shape[1] if made else plan["repeat"]
    for name in names:
        if name.startswith(SCHEDULE):
            algorithm = name.removeprefix(SCHEDULE)
            grid = plan["schedule_grid"]
            own = [session.schedule(algorithm, near, grid)[2] for _ in range(rounds)]
            times[name] = session.most(own).tolist()
    keep([
        {"bytes": 0, "method": name, "spec": None, "neighbours": len(near.offsets),
         "seconds": times[name]}
        for name in names
    ])  # fmt: skip
