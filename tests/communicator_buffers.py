"""Memory that communicator_random.py sends and receives: NumPy's, or CuPy's or what stands in for
that, with gaps or without, and said in any way that mpi4py takes."""

from __future__ import annotations

import importlib
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

TYPES = {
    np.float32: MPI.FLOAT, np.float64: MPI.DOUBLE, np.int32: MPI.INT,
    np.complex64: MPI.C_FLOAT_COMPLEX, np.complex128: MPI.C_DOUBLE_COMPLEX,
}  # fmt: skip
MARK = 77  # what memory holds that no call has written


@dataclass
class Parts:
    """Of a buffer: so many elements from each start."""

    counts: list[int]
    starts: list[int]
    are_varied: bool
    """Each has a count of its own."""
    are_packed: bool

    @property
    def end(self) -> int:
        return self.starts[-1] + self.counts[-1]


class Buffer:
    """`count` elements, with as much room behind each as it has itself where it has gaps."""

    def __init__(
        self, count: int, dtype: Any, on_device: bool, gaps: bool, chance: random.Random
    ) -> None:
        """`chance` draws its shape, and how it is said to mpi4py."""
        self.count, self.dtype, self.step, self.chance = count, dtype, 2 if gaps else 1, chance
        memory = np.full(count * self.step, MARK, dtype)
        if not gaps and count % 2 == 0 and chance.random() < 0.3:
            memory = memory.reshape(2, -1)
        self.on_device = on_device
        self.array = self.where_it_lies(memory)
        self.type = TYPES[dtype]
        if gaps:
            one = self.type.Create_vector(1, 1, 2)
            self.type = one.Create_resized(0, 2 * np.dtype(dtype).itemsize).Commit()
            one.Free()

    def where_it_lies(self, memory: np.ndarray) -> Any:
        return importlib.import_module("cupy").asarray(memory) if self.on_device else memory

    def all(self) -> np.ndarray:
        return (self.array.get() if self.on_device else self.array).ravel()

    def place(self, start: int, count: int) -> slice:
        """Of so many elements, in all()."""
        return slice(start * self.step, (start + count) * self.step, self.step)

    def put(self, parts: dict[int, np.ndarray]) -> None:
        """The values of each start; all else is marked."""
        memory = np.full(self.count * self.step, MARK, self.dtype)
        for start, one in parts.items():
            memory[self.place(start, len(one))] = one
        self.array[...] = self.where_it_lies(memory.reshape(self.array.shape))

    def check(self, parts: dict[int, tuple[np.ndarray, float]]) -> None:
        """The values of each start, and how far off they may be."""
        memory, found = np.full(self.count * self.step, MARK, self.dtype), self.all().copy()
        for start, (one, error) in parts.items():
            place = self.place(start, len(one))
            off = np.abs(found[place] - one).max(initial=0)
            assert off <= error, f"from {start} on, of {len(one)}: {off}, allowed {error}"
            found[place] = memory[place] = one
        assert np.array_equal(memory, found), "something else was written"

    def spec(self, blocks: int = 1) -> Any:
        """As mpi4py takes it, for a call that sends or receives all of it, in so many blocks."""
        a, n, t = self.array, self.count // blocks, self.type
        if self.step == 2:
            return [a, n, t]
        forms = [a, [a, t], [a, n], [a, n, t], [a, (n, 0), t], (a, t), [a, t.tocode()]]
        return self.chance.choice(forms)

    def spec_of_parts(self, parts: Parts) -> Any:
        """As mpi4py takes it, for a call that sends or receives these."""
        a, t, counts, starts = self.array, self.type, parts.counts, parts.starts
        if not parts.are_varied:
            return self.spec(len(counts))
        if self.step == 2:
            return [a, (counts, starts), t]
        forms = [[a, counts, starts, t], [a, (counts, starts), t], [a, (counts, starts)]]
        if parts.are_packed:
            forms += [[a, counts], [a, counts, t], [a, (counts, None), t]]
        return self.chance.choice(forms)
