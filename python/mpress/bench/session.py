"""What the ranks of `mpress bench iso` share: their grid, the loop over rounds, and what mpress has
counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _core, trace
from mpress.bench import exchanges, loops
from mpress.bench.exchanges import Method, Neighbours
from mpress.bench.names import algorithm_of

LEAST_ROUNDS = 10
_WARMUPS = 2

Row = dict[str, Any]


class Session:
    """A launch: the plan's grid, and random numbers that all ranks have alike."""

    def __init__(self, plan: dict[str, Any], dimensions: int) -> None:
        world = MPI.COMM_WORLD
        self.plan = plan
        self.together = world.Dup()
        sizes = plan["grid"] or MPI.Compute_dims(world.size, dimensions)
        if math.prod(sizes) != world.size or len(sizes) != dimensions:
            raise ValueError(f"a grid of {sizes} for {world.size} ranks in {dimensions} dimensions")
        count = dimensions if plan["periodic"] is None else plan["periodic"]
        self.sizes = list(sizes)
        self.periodic = [j < count for j in range(dimensions)]
        self.cart = world.Create_cart(self.sizes, self.periodic)
        self.chance = np.random.default_rng(plan["seed"])

    @property
    def rank(self) -> int:
        return self.cart.rank

    def most(self, values: Any) -> np.ndarray:
        """The greatest of all ranks, element by element."""
        own = np.ascontiguousarray(values, np.float64)
        found = np.empty_like(own)
        self.together.Allreduce(own, found, MPI.MAX)
        return found

    def timed(self, operations: Sequence[loops.Operation]) -> np.ndarray:
        """Seconds of (operation, round), the greatest of all ranks: in each round all operations
        once, in random order. As many rounds as `repeat` says, or, but for LEAST_ROUNDS, as fit
        into `seconds`."""
        every = np.arange(len(operations))
        for _ in range(_WARMUPS):
            took = self.most(loops.measure(operations, every, self.together)).sum()
        rounds = self.plan["repeat"]
        fitting = int(self.plan["seconds"] / max(took, 1e-9))
        rounds = min(rounds, max(fitting, LEAST_ROUNDS))
        order = np.concatenate([self.chance.permutation(every) for _ in range(rounds)])
        seconds = self.most(loops.measure(operations, order, self.together))
        found = np.empty((len(operations), rounds))
        for number in every:
            found[number] = seconds[order == number]
        return found

    def counted(self, operation: loops.Operation) -> Row:
        """What mpress counts in one run, of the rank that has most: messages and their bytes, and
        the algorithms that it took."""
        before = _sent()
        loops.measure([operation], np.zeros(1), self.together)
        after = _sent()
        ways = sorted({key[0] for key, row in after.items()
                       if key[0] and row[0] > before.get(key, (0, 0, 0))[0]})  # fmt: skip
        change = np.zeros(3)
        for key, row in after.items():
            change += np.subtract(row, before.get(key, (0, 0, 0)))
        messages, _, wire = self.most(change)
        total = np.empty(3)
        self.together.Allreduce(change, total)
        return {
            "messages": int(messages), "wire_bytes": int(wire),
            "ratio": float(total[1] / total[2]) if total[2] else None,
            "ways": sorted(set().union(*self.together.allgather(ways))),
        }  # fmt: skip

    def compared(
        self,
        near: Neighbours,
        methods: Sequence[Method],
        check: Callable[[Method, loops.Operation], Row],
        operation_of: Callable[[Method], loops.Operation],
        bytes_of: Callable[[int], int],
    ) -> list[Row]:
        """A row for each method, which is freed. `check` makes one exchange and looks at it;
        `operation_of` tells what is timed, and `bytes_of` how many bytes so many blocks have."""
        plain = [loops.exchanging(one.exchange) for one in methods]
        checks = [check(*one) for one in zip(methods, plain, strict=True)]
        counts = [self.counted(one) for one in plain]
        operations = [operation_of(one) for one in methods]
        seconds = self.timed(operations)
        rows = []
        for method, times, checked, count in zip(methods, seconds, checks, counts, strict=True):
            work = self.work(method, near, count["ways"])
            rows.append({
                "method": method.name, "spec": method.spec, **work,
                "sent_bytes": count["wire_bytes"] or bytes_of(work["blocks"]),
                "messages": count["messages"] or None, "ratio": count["ratio"],
                **checked, "seconds": times.tolist(),
            })  # fmt: skip
            exchanges.free(method)
        return rows

    def schedule(
        self, algorithm: str, near: Neighbours, sizes: list[int] | None = None
    ) -> tuple[int, int, float]:
        """Rounds where a process sends one message at a time, blocks that a rank sends, the most of
        all ranks; and the seconds in which this rank made its schedule. `sizes`: of another grid
        than that of the ranks."""
        sizes = sizes or self.sizes
        rounds, _, blocks, seconds = _core.neighbour_alltoall(
            algorithm, sizes, [int(one) for one in self.periodic],
            near.offsets.reshape(-1).tolist(), len(near.offsets), self.rank % math.prod(sizes),
        )  # fmt: skip
        return rounds, int(self.most([blocks])[0]), seconds

    def work(self, method: Method, near: Neighbours, ways: Sequence[str]) -> Row:
        """Rounds and blocks of a method; MPI's, which are not known, are taken for direct."""
        algorithm = algorithm_of(method.name)
        # What encodes goes direct, and so do persistent calls under MPIs without a progress hook.
        if not method.is_mpress or "combining" not in ways:
            algorithm = "direct"
        elif algorithm == "auto":
            algorithm = "combining"
        rounds, blocks, _ = self.schedule(algorithm, near)
        return {"algorithm": algorithm, "rounds": rounds, "blocks": blocks}


def _sent() -> dict[tuple[Any, ...], tuple[int, int, int]]:
    record = trace.own_record()
    found: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for row in record.rows if record else []:
        if row["direction"] != "send":
            continue
        key = tuple(row[name] for name in ("algorithm", "operation", "peer", "codec", "reason",
                                           "way"))  # fmt: skip
        old = found.get(key, (0, 0, 0))
        found[key] = (old[0] + row["messages"], old[1] + row["raw_bytes"],
                      old[2] + row["wire_bytes"])  # fmt: skip
    return found
