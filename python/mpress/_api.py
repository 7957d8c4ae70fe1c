"""libmpress.so, as mpress.Communicator needs it. MPI's handles are passed as machine words."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

from mpress import _core

_SPEC, _STREAM, _SAME_BITS, _OUTCOME = 1, 2, 4, 8


class COutcome(ctypes.Structure):
    """mpress_outcome of include/mpress/mpress.h."""

    _fields_ = (("served", ctypes.c_int), ("bound", ctypes.c_double))


class CCall(ctypes.Structure):
    """mpress_call of include/mpress/mpress.h."""

    _fields_ = (
        ("mask", ctypes.c_uint),
        ("spec", ctypes.c_char_p),
        ("stream", ctypes.c_void_p),
        ("same_bits", ctypes.c_int),
        ("outcome", ctypes.POINTER(COutcome)),
    )


@lru_cache(maxsize=1)
def library() -> Any:
    """The library, in a process whose MPI is loaded."""
    path = Path(__file__).parent / "lib" / "libmpress.so"
    if not path.exists():
        raise RuntimeError(f"{path} was not built: install mpress where an MPI is found")
    loaded = ctypes.CDLL(str(path))
    for begin in (loaded.mpress_call_begin, loaded.mpress_collective_begin):
        begin.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    loaded.mpress_interpose.argtypes = (ctypes.c_void_p,)
    loaded.mpress_error_text.restype = ctypes.c_char_p
    _core.set_call_functions(
        *(
            ctypes.cast(function, ctypes.c_void_p).value or 0
            for function in (loaded.mpress_call_begin, loaded.mpress_call_end)
        )
    )
    return loaded


def call_of(
    spec: str | None, outcome: COutcome | None, stream: int | None, same_bits: bool
) -> CCall:
    """What a call asks for; `outcome` has to outlive the call."""
    asked = CCall()
    if spec is not None:
        asked.mask |= _SPEC
        asked.spec = spec.encode()
    if stream is not None:
        asked.mask |= _STREAM
        asked.stream = stream
    if same_bits:
        asked.mask |= _SAME_BITS
        asked.same_bits = 1
    if outcome is not None:
        asked.mask |= _OUTCOME
        asked.outcome = ctypes.pointer(outcome)
    return asked


def error_text() -> str:
    """What mpress knows of this thread's last error."""
    return library().mpress_error_text().decode()


def start() -> None:
    """Starts mpress. Collective over MPI_COMM_WORLD where it does not run yet."""
    loaded = library()
    if loaded.mpress_init() != 0:
        raise RuntimeError(error_text())


def is_running() -> bool:
    flag = ctypes.c_int()
    library().mpress_initialized(ctypes.byref(flag))
    return bool(flag.value)


def stand_in(address: int) -> None:
    """Makes mpi4py's calls go by mpress, unless they do: under `mpress run` they always have."""
    if library().mpress_interpose(address) < 0:
        raise RuntimeError(
            "mpi4py's calls cannot be made mpress's: start the program with `mpress run`"
        )
