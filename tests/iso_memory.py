"""Buffers whose every byte is known, on the host or on simulated GPUs, and the datatypes of blocks
in them: tests/iso_calls.py."""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _api

CANARY = 0xA5
ROOM = 64  # bytes of canaries before and behind

ELEMENTS = {
    "int32": MPI.INT32_T,
    "int64": MPI.INT64_T,
    "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE,
}


class Layout(NamedTuple):
    """Of one item of a datatype, in elements."""

    places: tuple[int, ...]
    extent: int


LAYOUTS = {
    "plain": Layout((0,), 1),
    "pair": Layout((0, 1), 2),
    "vector": Layout((0, 2), 3),
    "before": Layout((0,), 4),  # its lower bound is two elements before it
    "backwards": Layout((0, -1), 2),
    "triangle": Layout((0, 3), 4),
}


@cache
def datatype(layout: str, dtype: str) -> MPI.Datatype:
    element = ELEMENTS[dtype]
    size = np.dtype(dtype).itemsize
    if layout == "plain":
        return element
    if layout == "pair":
        made = element.Create_contiguous(2)
    elif layout == "vector":
        made = element.Create_vector(2, 1, 2)
    elif layout == "before":
        made = element.Create_resized(-2 * size, 4 * size)
    elif layout == "backwards":
        made = element.Create_hvector(2, 1, -size)
    else:
        made = MPI.Datatype()
        code = _api.library().mpress_type_create_triangular(
            *(ctypes.c_int64(word) for word in (2, 1, 0, 3, 0)),
            ctypes.c_void_p(MPI._handleof(element)), ctypes.c_void_p(MPI._addressof(made)),
        )  # fmt: skip
        assert code == MPI.SUCCESS
    return made.Commit()


def places(at: int, count: int, layout: str, size: int) -> np.ndarray:
    """The bytes of a block's elements, in a buffer: (elements, size)."""
    one = LAYOUTS[layout]
    first = (np.arange(count)[:, None] * one.extent + np.array(one.places)).reshape(-1, 1) * size
    return at + first + np.arange(size)


def mixed(key: int, count: int) -> np.ndarray:
    """64 bits for each of so many places, as the key has them."""
    with np.errstate(over="ignore"):
        bits = np.arange(count, dtype=np.uint64) + np.uint64(key % 2**61)
        bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return bits ^ bits >> np.uint64(31)


def key_of(*words: int) -> int:
    key = 0
    for word in words:
        key = int(mixed(key * 31 + word + 7, 1)[0])
    return key


def values(key: int, count: int, dtype: str, is_smooth: bool) -> np.ndarray:
    """Elements; of floats any bits, where they are not smooth."""
    if is_smooth:
        return (np.arange(count) // 3 + key % 99_991).astype(dtype)
    bits = mixed(key, count).view(np.uint8).reshape(count, 8)[:, : np.dtype(dtype).itemsize]
    return np.ascontiguousarray(bits).reshape(-1).view(dtype)


class Memory:
    """`bytes` of memory with canaries around: `image` is what it should hold."""

    def __init__(self, nbytes: int, device: int) -> None:
        self.image = np.full(nbytes + 2 * ROOM, CANARY, np.uint8)
        self.buffer = None
        if device >= 0:
            simulated = importlib.import_module("simulated_buffers")
            self.buffer = simulated.SimulatedBuffer(device, self.image.nbytes)
            self.address = self.buffer.address
        else:
            self.array = np.empty_like(self.image)
            self.address = self.array.ctypes.data

    def clear(self) -> None:
        self.image[:] = CANARY

    def put(self) -> None:
        """Now it holds its image."""
        if self.buffer:
            self.buffer.write(self.image)
        else:
            self.array[:] = self.image

    def wrong(self) -> str:
        """What it holds that its image has not."""
        if self.buffer:
            found = self.buffer.read(np.dtype(np.uint8), self.image.nbytes)
        else:
            found = self.array
        differs = np.flatnonzero(found != self.image)
        if not differs.size:
            return ""
        at = int(differs[0])
        return (
            f"{differs.size} of {found.size} bytes, the first at {at} is {found[at]:#x}, "
            f"expected {self.image[at]:#x}"
        )
