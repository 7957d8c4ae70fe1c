"""Lists of offsets: Moore and von Neumann neighbourhoods."""

from __future__ import annotations

import ctypes

import numpy as np

from mpress.iso._call import call


def moore(dimensions: int, radius: int, inner: int = 0) -> np.ndarray:
    """The offsets whose greatest absolute value is above `inner` and at most `radius`, in
    lexicographic order: an array of int32, (number, dimensions). inner=-1 has the process itself,
    too. Raises ValueError unless dimensions >= 0 and -1 <= inner <= radius."""
    return _shape("mpress_iso_moore", dimensions, radius, inner)


def von_neumann(dimensions: int, radius: int, inner: int = 0) -> np.ndarray:
    """The same of those whose sum of absolute values is within these bounds."""
    return _shape("mpress_iso_von_neumann", dimensions, radius, inner)


def _shape(name: str, dimensions: int, radius: int, inner: int) -> np.ndarray:
    count = ctypes.c_int()
    sizes = (int(dimensions), int(radius), int(inner))
    call(name, *sizes, 0, 0, ctypes.addressof(count))
    offsets = np.empty((count.value, dimensions), np.int32)
    call(name, *sizes, count.value, offsets.ctypes.data, ctypes.addressof(count))
    return offsets
