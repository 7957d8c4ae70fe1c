"""Arrays as MPI describes them: an address, a count and a datatype."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _device


class Block(NamedTuple):
    """Where an array's elements lie, as MPI describes them: none for None."""

    array: Any
    address: int
    count: int
    datatype: MPI.Datatype
    device: tuple[int, int] | None
    """Of memory of a GPU: an address there, and the stream that its library uses."""


_NOTHING = Block(None, 0, 0, MPI.BYTE, None)


def block_of(name: str, array: Any, is_written: bool) -> Block:
    """Of an array with any strides. Its datatype may be shared, and is never freed."""
    if array is None:
        return _NOTHING
    if isinstance(array, np.ndarray):
        interface, device = array.__array_interface__, None
    elif hasattr(array, "__cuda_array_interface__"):
        interface = array.__cuda_array_interface__
        device = (interface["data"][0], _device.current_stream(array)[2].handle)
    else:
        raise TypeError(f"{name}: expected an array of NumPy, or one on a GPU, not {array!r:.60}")
    if is_written and interface["data"][1]:
        raise ValueError(f"{name} is read-only")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or _packed_strides(shape, dtype.itemsize)
    datatype = _datatype(dtype, shape, tuple(strides))
    address = interface["data"][0] or 0
    if 0 in shape:
        return _NOTHING._replace(array=array, datatype=datatype)
    if datatype is _element(dtype):
        return Block(array, address, int(np.prod(shape, dtype=np.int64)), datatype, device)
    return Block(array, address, 1, datatype, device)


def _packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    sizes = [itemsize, *reversed(shape)][: len(shape)]
    return tuple(itertools.accumulate(sizes, lambda a, b: a * b))[::-1]


def _element(dtype: np.dtype) -> MPI.Datatype:
    found = MPI._typedict.get(dtype.char)
    if found is None or not dtype.isnative:
        raise TypeError(f"MPI has no datatype for elements of {dtype}")
    return found


_datatypes: dict[tuple[str, tuple[int, ...], tuple[int, ...]], MPI.Datatype] = {}


def _datatype(dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> MPI.Datatype:
    """That of one element, where they lie without gaps; else one of the whole array."""
    element = _element(dtype)
    if strides == _packed_strides(shape, dtype.itemsize) or 0 in shape:
        return element
    key = (dtype.char, shape, strides)
    known = _datatypes.get(key)
    if known is None:
        known = element
        inner = None
        for length, stride in zip(reversed(shape), reversed(strides), strict=True):
            known = known.Create_hvector(length, 1, stride)
            if inner is not None:
                inner.Free()
            inner = known
        known = _datatypes[key] = known.Commit()
    return known


def handle_of(block: Block) -> int:
    return MPI._handleof(block.datatype)


def element_of(block: Block) -> MPI.Datatype | None:
    if block.array is None:
        return None
    interface = (
        block.array.__array_interface__
        if isinstance(block.array, np.ndarray)
        else block.array.__cuda_array_interface__
    )
    return _element(np.dtype(interface["typestr"]))


def kinds_of(blocks: Sequence[Block]) -> Any:
    """An array of MPI_Datatype, whatever that is."""
    size = MPI._sizeof(MPI.Datatype)
    word = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]
    mask = 2 ** (8 * size) - 1
    return (word * max(len(blocks), 1))(*(handle_of(one) & mask for one in blocks))
