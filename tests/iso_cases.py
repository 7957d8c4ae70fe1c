"""Neighbourhoods with calls on them: the same on all ranks, and written so that `eval` reads them
again."""

from __future__ import annotations

from dataclasses import dataclass

ALGORITHMS = ("direct", "auto", "combining", "digits", "lines", "ring")
FORMS = ("blocking", "immediate", "persistent")
MOVES = ("alltoall", "alltoallv", "alltoallw", "allgather", "allgatherv", "allgatherw")
SUMS = ("reduce", "scatter_reduce")
LAYOUTS = ("plain", "pair", "vector", "before", "backwards", "triangle")


@dataclass(frozen=True)
class Call:
    """One call of all ranks. Lists are read in circles: by neighbour, by rank, or by both."""

    name: str
    form: str
    dtype: str
    lengths: tuple[int, ...]
    """Of blocks, in elements."""
    layouts: tuple[str, ...]
    """Of datatypes."""
    gaps: tuple[int, ...]
    """Behind blocks that have displacements."""
    devices: tuple[int, ...]
    """Of buffers by rank, those that are sent from and those that are received in by turns; -1: the
    host."""
    is_smooth: bool
    """The data may be encoded in fewer bytes."""
    overlaps: bool
    """Blocks with displacements are sent from one place."""
    is_joined: bool
    """One piece of memory has what is sent and what is received."""
    codec: str | None
    op: str
    second: bool
    """On another neighbourhood of the grid, whose list is the other way around."""
    between: str
    """What else is under way behind its begin."""
    turn: int
    """When it is waited for: the least first."""
    tests: bool
    """By tests, not by a wait."""
    algorithm: str | None
    """Of a persistent one, in the place of the neighbourhood's."""


@dataclass(frozen=True)
class Case:
    sizes: tuple[int, ...]
    periodic: tuple[bool, ...]
    offsets: tuple[tuple[int, ...], ...]
    algorithm: str
    ports: int
    """0: no hint."""
    is_uniform: bool
    """Counts are the same everywhere, as a hint says."""
    is_reproducible: bool
    is_attribute: bool
    is_duplicate: bool
    """The calls are made on a duplicate of a communicator that is freed before."""
    frees_early: bool
    """Communicators are freed while calls are under way; where none is persistent."""
    calls: tuple[Call, ...]
