"""libmpress_bench_FAMILY.so, in whose loops a microsecond counts: src/bench/operations.hpp has the
same structs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _api

CREATIONS = ("cart", "iso", "attribute", "adjacent", "graph", "duplicate")
EXCHANGES = ("iso", "started", "neighbours", "global")


class Creation(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("dimensions", ctypes.c_int),
        ("sizes", ctypes.c_void_p),
        ("periodic", ctypes.c_void_p),
        ("count", ctypes.c_int),
        ("offsets", ctypes.c_void_p),
        ("info", ctypes.c_void_p),
        ("sources_count", ctypes.c_int),
        ("sources", ctypes.c_void_p),
        ("targets_count", ctypes.c_int),
        ("targets", ctypes.c_void_p),
        ("comm", ctypes.c_void_p),
    )


class Blocks(ctypes.Structure):
    _fields_ = (
        ("buffer", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("displacements", ctypes.c_void_p),
        ("types", ctypes.c_void_p),
    )


class Exchange(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("comm", ctypes.c_void_p),
        ("sent", Blocks),
        ("received", Blocks),
        ("request", ctypes.c_void_p),
        ("call", ctypes.c_void_p),
    )


class Update(ctypes.Structure):
    _fields_ = (
        ("dimensions", ctypes.c_int),
        ("points", ctypes.c_int),
        ("depth", ctypes.c_int),
        ("extent", ctypes.c_int64 * 3),
        ("field", ctypes.c_void_p),
        ("results", ctypes.c_void_p * 2),
    )


class Operation(ctypes.Structure):
    _fields_ = (
        ("creation", ctypes.POINTER(Creation)),
        ("exchange", ctypes.POINTER(Exchange)),
        ("update", ctypes.POINTER(Update)),
    )


def exchanging(exchange: Exchange) -> Operation:
    """An exchange by itself."""
    return Operation(None, ctypes.pointer(exchange))


@lru_cache(maxsize=1)
def _library() -> Any:
    """It has neither MPI nor mpress in it, and finds both among the process's global symbols."""
    mpi, family = _loaded_mpi()
    path = Path(__file__).parent / f"libmpress_bench_{family}.so"
    if not path.exists():
        raise RuntimeError(f"{path} was not built: install mpress where {mpi} is found")
    _api.library()
    for loaded in (mpi, Path(_api.__file__).parent / "lib" / "libmpress.so"):
        ctypes.CDLL(str(loaded), mode=os.RTLD_NOLOAD | os.RTLD_GLOBAL)
    return ctypes.CDLL(str(path))


def _loaded_mpi() -> tuple[Path, str]:
    """The MPI of this process, and its family."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    paths = dict.fromkeys(line.partition("/")[2] for line in maps if "/libmpi" in line)
    for path in (Path("/" + rest) for rest in paths):
        loaded = ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD)
        if not hasattr(loaded, "PMPI_Get_library_version"):
            continue
        if path.name.startswith("libmpi_abi."):
            return path, "abi"
        return path, "openmpi" if hasattr(loaded, "ompi_mpi_comm_world") else "mpich"
    raise RuntimeError("no MPI library is among those that this process has loaded")


def measure(operations: Sequence[Operation], order: np.ndarray, together: MPI.Comm) -> np.ndarray:
    """Runs operations[i] for each i of `order`, the same on all ranks, each behind a barrier.
    Returns the seconds that each took on this rank."""
    words = np.ascontiguousarray(order, np.int32)
    seconds = np.empty(len(words))
    array = (Operation * max(len(operations), 1))(*operations)
    code = _library().mpress_bench_measure(
        array, ctypes.c_void_p(words.ctypes.data), len(words),
        ctypes.c_void_p(MPI._addressof(together)), ctypes.c_void_p(seconds.ctypes.data),
    )  # fmt: skip
    if code != MPI.SUCCESS:
        raise RuntimeError(_api.error_text() or str(MPI.Exception(code)))
    return seconds


def call(name: str, *words: int) -> None:
    """A function of libmpress's, whose arguments are machine words."""
    function = getattr(_api.library(), name)
    code = function(*(ctypes.c_void_p(word & (2**64 - 1)) for word in words))
    if code != MPI.SUCCESS:
        raise RuntimeError(_api.error_text() or str(MPI.Exception(code)))


def handles(datatypes: Sequence[MPI.Datatype]) -> Any:
    """An array of MPI_Datatype, whatever that is."""
    size = MPI._sizeof(MPI.Datatype)
    word = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]
    mask = 2 ** (8 * size) - 1
    return (word * max(len(datatypes), 1))(*(MPI._handleof(one) & mask for one in datatypes))
