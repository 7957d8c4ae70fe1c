"""Functions of include/mpress/iso.h, whose arguments are passed as machine words."""

from __future__ import annotations

import ctypes

from mpi4py import MPI

from mpress import _api


def call(name: str, *words: int) -> None:
    function = getattr(_api.library(), name)
    code = function(*(ctypes.c_void_p(word & (2**64 - 1)) for word in words))
    if code != MPI.SUCCESS:
        text = _api.error_text().removeprefix("mpress: ")
        raise ValueError(text) if text else MPI.Exception(code)
