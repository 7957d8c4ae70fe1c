"""Random calls of neighbourhoods on all ranks of a job: rank 0 draws them, and shrinks what fails.

    mpiexec -n N python -m mpi4py iso_random.py EXAMPLES SEED FILE [devices]
    mpiexec -n N python -m mpi4py iso_random.py replay FILE

FILE has the case that ranks are at, for those that end or hang them.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import iso_cases
import numpy as np
from iso_calls import Running, invoke
from iso_cases import Case
from mpi4py import MPI

import mpress

WORLD = MPI.COMM_WORLD
STARTS = 3  # of a persistent call
GRAPHS = {"are_right": False, "compared": 0}
"""Whether MPI's own calls are an oracle, and of how many of mpress's they were."""
UNDER_WAY: list[list[Running]] = []
"""Memory that MPI may still use where a case has failed."""


def neighbourhood(case: Case, cart: MPI.Cartcomm, is_second: bool) -> MPI.Cartcomm:
    offsets = case.offsets[::-1] if is_second else case.offsets
    flat = np.array([*map(list, offsets)], np.int32).reshape(len(offsets), len(case.sizes))
    hints = {
        "iso_algorithm": case.algorithm,
        "iso_uniform_sizes": str(case.is_uniform).lower(),
        "iso_reproducible": str(case.is_reproducible).lower(),
        "iso_attribute": str(case.is_attribute and not is_second).lower(),
    }
    if case.ports:
        hints["iso_ports"] = str(case.ports)
    info = MPI.Info.Create(hints)
    made = MPI.Cartcomm()
    invoke(
        "mpress_iso_neighborhood_create_with_info", MPI._handleof(cart), len(offsets),
        flat.ctypes.data, MPI._handleof(info), MPI._addressof(made),
    )  # fmt: skip
    info.Free()
    if case.is_duplicate:
        first, made = made, made.Dup()
        if first != cart:
            first.Free()
        # The first call on a duplicate may have to block, for those that do not to be served.
        nothing = 0, 0, MPI._handleof(MPI.INT)
        invoke("mpress_iso_neighbor_allgather", *nothing, *nothing, MPI._handleof(made), 0)
    return made


class Beside:
    """Messages and other collective calls between the begin of a call and its end."""

    def __init__(self, cart: MPI.Cartcomm) -> None:
        self.comm = mpress.Communicator(cart)
        self.pending: list[tuple[MPI.Request, Callable[[], bool]]] = []

    def begin(self, kind: str, number: int) -> None:
        comm, size = self.comm, self.comm.size
        ranks = np.arange(size)
        mine = np.full(500, comm.rank + number, np.float64)
        found = np.full(500, -1.0)
        if kind == "message":
            source, target = (comm.rank + 1) % size, (comm.rank - 1) % size
            self.add(comm.Irecv(found, source, number), found, source + number)
            self.add(comm.Isend(mine, target, number), mine, comm.rank + number)
        elif kind == "allreduce":
            request = comm.Iallreduce(mine, found)
            self.add(request, found, (ranks + number).sum(), mine)
        elif kind == "bcast":
            if comm.rank == size - 1:
                found[:] = number
            comm.Bcast(found, size - 1)
            assert (found == number).all()
        elif kind == "barrier":
            comm.Barrier()

    def add(self, request: MPI.Request, array: np.ndarray, expected: float, *kept: object) -> None:
        self.pending.append((request, lambda: bool((array == expected).all()) and kept is not None))

    def end(self) -> str:
        for request, is_right in self.pending:
            request.Wait()
            if not is_right():
                return "other calls: wrong data"
        self.pending.clear()
        return ""


def free(comms: list[MPI.Cartcomm], cart: MPI.Cartcomm) -> None:
    """Those of neighbourhoods; the grid has other calls under way, which Open MPI loses with it."""
    for comm in comms:
        if comm != cart:
            comm.Free()
    comms.clear()


def make_calls(case: Case) -> str:
    """What is wrong, on this rank."""
    cart = WORLD.Create_cart(case.sizes, case.periodic) if case.sizes else WORLD.Create_cart([])
    if cart == MPI.COMM_NULL:
        return ""
    comms = [neighbourhood(case, cart, is_second) for is_second in (False, True)]
    beside = Beside(cart)
    wrong = []
    calls: list[Running] = []
    UNDER_WAY.append(calls)
    for number, call in enumerate(case.calls):
        calls.append(Running(case, number, comms[call.second]))
        calls[-1].begin()
        beside.begin(call.between, number)
    persistent = [one for one in calls if one.call.form == "persistent"]
    if case.frees_early and not persistent:
        free(comms, cart)
    by_turn = sorted(calls, key=lambda one: one.call.turn)
    wrong += [one.wait() for one in by_turn]
    wrong.append(beside.end())
    for start in range(1, STARTS):
        for one in persistent[:: -1 if WORLD.rank % 2 else 1]:  # in any order, each rank its own
            one.again(start)
        wrong += [one.wait() for one in by_turn if one in persistent]
    for one in calls:
        one.free()
        if GRAPHS["are_right"] and comms and one.is_for_graphs():
            wrong.append(one.compare_with_graph())
            GRAPHS["compared"] += 1
    free(comms, cart)
    cart.Free()
    UNDER_WAY.pop()
    return "; ".join(filter(None, wrong))


def graphs_are_right() -> bool:
    """Some MPIs mix up blocks of neighbours that are one process: on a ring, 1, -1, 1 and 0."""
    ranks = [(WORLD.rank + offset) % WORLD.size for offset in (1, -1, 1, 0)]
    sources = [(WORLD.rank - offset) % WORLD.size for offset in (1, -1, 1, 0)]
    graph = WORLD.Create_dist_graph_adjacent(sources, ranks)
    received = np.full(4, -1)
    graph.Neighbor_alltoall(WORLD.rank * 10 + np.arange(4), received)
    graph.Free()
    return WORLD.allreduce(
        received.tolist() == [10 * s + i for i, s in enumerate(sources)], MPI.LAND
    )


def at_once(case: Case) -> list[str]:
    """The verdicts of all ranks, on rank 0."""
    try:
        verdict = make_calls(case)
    except Exception:  # others may wait for this rank, and the test's time end them
        verdict = traceback.format_exc()
        print(f"rank {WORLD.rank}: {verdict}\n{case}", file=sys.stderr, flush=True)
    told = [f"rank {rank}: {one}" for rank, one in enumerate(WORLD.gather(verdict) or []) if one]
    return told


def draw(examples: int, number: int, file: Path, devices: int) -> None:
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from iso_draws import cases

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(cases(WORLD.size, devices))
    def check(case: Case) -> None:
        file.write_text(repr(case))
        WORLD.bcast(case)
        wrong = at_once(case)
        assert not wrong, "\n".join(wrong)

    try:
        check()
    finally:
        WORLD.bcast(None)


def main() -> None:
    first, *rest = sys.argv[1:]
    mpress.Communicator(WORLD)
    GRAPHS["are_right"] = graphs_are_right()
    if first == "replay":
        case = eval(Path(rest[0]).read_text(), vars(iso_cases))
        wrong = at_once(case)
        assert not wrong, "\n".join(wrong)
    elif WORLD.rank == 0:
        draw(int(first), int(rest[0]), Path(rest[1]), 2 if "devices" in rest else 0)
    else:
        while (case := WORLD.bcast(None)) is not None:
            at_once(case)
    if WORLD.rank == 0:
        print("ok")
        told = f"{GRAPHS['compared']} by graphs" if GRAPHS["are_right"] else "graphs are unfit"
        print(told)


main()
