"""Reductions as rounds of messages, for mpress.p2p.reductions: what comes in a round is added to
what is there, by algorithms in which partial sums travel, or in two shots. So a codec serves each
hop, and its losses add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _core
from mpress.p2p.message import message

_TAG = 5


@dataclass(frozen=True)
class Part:
    """Elements of the vector, to a peer or from one."""

    peer: int
    first: int
    count: int
    combines: bool = False  # what comes is added


@dataclass(frozen=True)
class Round:
    sends: list[Part]
    receives: list[Part]


def rounds_of(algorithm: str, op: str, rank: int, size: int, count: int) -> list[Round]:
    """What a rank does; `count` elements are reduced, to rank 0 where `op` is reduce. As many
    pieces as ranks are what a rank has of a reduce_scatter."""
    if algorithm == "two-shot":
        return _two_shots(op, rank, size, count)
    pieces, rounds = _core.sum_schedule(algorithm, op, rank, size)
    return [
        Round(
            [part for peer, some in sends for part in _parts(peer, some, pieces, count)],
            [part for peer, some, combines in receives
             for part in _parts(peer, some, pieces, count, combines)],
        )
        for sends, receives in rounds
    ]  # fmt: skip


def _parts(
    peer: int, some: list[int], pieces: int, count: int, combines: bool = False
) -> list[Part]:
    """Pieces that lie one behind the other are one message."""
    runs: list[tuple[int, int]] = []
    for piece in some:
        first, end = count * piece // pieces, count * (piece + 1) // pieces
        if runs and runs[-1][1] == first:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((first, end))
    return [Part(peer, first, end - first, combines) for first, end in runs if end > first]


def _two_shots(op: str, rank: int, size: int, count: int) -> list[Round]:
    """Each adds up a piece, and then all that want it get it."""
    peers = [(rank + k) % size for k in range(1, size)]

    def parts(owners: list[tuple[int, int]], combines: bool = False) -> list[Part]:
        return [part for peer, owner in owners
                for part in _parts(peer, [owner], size, count, combines)]  # fmt: skip

    rounds = [
        Round(parts([(peer, peer) for peer in peers]), parts([(p, rank) for p in peers], True))
    ]
    readers = {"allreduce": peers, "reduce": [p for p in peers if p == 0], "reduce_scatter": []}[op]
    wants = op == "allreduce" or (op == "reduce" and rank == 0)
    if op != "reduce_scatter":
        rounds.append(Round(
            parts([(peer, rank) for peer in readers]),
            parts([(peer, peer) for peer in peers]) if wants else [],
        ))  # fmt: skip
    return rounds


def room(nbytes: int, size: int) -> int:
    """Bytes that all may take that comes in a round, and is added."""
    return nbytes + 8 * size


def runner(
    comm: MPI.Comm,
    rounds: list[Round],
    values: np.ndarray,
    sums: Any,
    incoming: Any,
    add: Callable[..., None],
) -> Callable[[], None]:
    """A function that takes a vector like `values`, which lies in `sums`, through the rounds.
    `incoming`: a buffer of the same memory, with room(); `add`: the former's."""
    item = values.itemsize

    def of(address: int, part: Part) -> list[Any]:
        return message(address, np.broadcast_to(values[:1], (part.count,)))

    made = []
    for one in rounds:
        receives, adds, at = [], [], 0
        for part in one.receives:
            place = sums.address + part.first * item
            if part.combines:
                place = incoming.address + at
                adds.append((part.first * item, place, part.count))
                at += part.count * item
            receives.append((of(place, part), part.peer, _TAG))
        sends = [(of(sums.address + p.first * item, p), p.peer, _TAG) for p in one.sends]
        made.append((sends, receives, adds))

    def run() -> None:
        for sends, receives, adds in made:
            requests = [comm.Irecv(*one) for one in receives]
            requests += [comm.Isend(*one) for one in sends]
            MPI.Request.Waitall(requests)
            for first, place, count in adds:
                add(first, place, count, values.dtype)

    return run
