"""What messages of a benchmark hold: fields, noise, and the extremes of what may be sent."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from mpress import fields
from mpress.files import read_fields

OTHERS = ("constant", "bits", "compressed")
"""One value; random bits, NaN and infinities among them; bytes that zlib has written."""
NAMES = (*fields.NAMES, *OTHERS)

LEAST_BYTES = 8**3 * 8

_PIECE_BYTES = 4 << 10
_GOLDEN = 0.6180339887498949
_DTYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


def make(name: str, nbytes: int, kind: str, xp: Any = np) -> np.ndarray:
    """`nbytes` bytes of the data `name` (NAMES) as one dimension of `kind`, f32 or f64. Fields are
    cubes that begin anew where they end before that; module `xp` (numpy, cupy) computes them."""
    dtype = _DTYPES[kind]
    count = nbytes // dtype.itemsize
    if name == "constant":
        return np.full(count, 1.5, dtype)
    if name == "bits":
        noise = np.random.Generator(np.random.PCG64(3)).bytes(count * dtype.itemsize)
        return np.frombuffer(noise, dtype)
    if name == "compressed":
        return _compressed(count, dtype)
    edge = int(np.floor(np.cbrt(count) + 1e-9))
    field = fields.make(name, (edge, edge, edge), kind, xp=xp)
    return np.resize(field if xp is np else field.get(), count)


def read(path: Path) -> np.ndarray:
    """The first field of a file (files.read_fields), flat. Raises files.FileError."""
    return read_fields(path)[0][0][1].reshape(-1)


def cut(values: np.ndarray, nbytes: int) -> np.ndarray:
    """A message of `nbytes` bytes: pieces from all over `values`, so that a short message is like
    the whole, or, where that is shorter, `values` again and again."""
    count = nbytes // values.itemsize
    if count >= values.size:
        return np.resize(values, count)
    piece = min(_PIECE_BYTES // values.itemsize, count)
    pieces = -(-count // piece)
    step = values.size / pieces
    # Not in step with the field's rows and planes, of which some are empty.
    firsts = [int(step * i + (step - piece) * (_GOLDEN * (i + 1) % 1)) for i in range(pieces)]
    return np.concatenate([values[first : first + piece] for first in firsts])[:count]


def _compressed(count: int, dtype: np.dtype) -> np.ndarray:
    edge = int(np.ceil(np.cbrt(count)))
    turbulence = fields.make("turb", (edge, edge, edge), "f32" if dtype.itemsize == 4 else "f64")
    packed = zlib.compress(turbulence.tobytes(), 1)
    whole = len(packed) // dtype.itemsize * dtype.itemsize
    return np.resize(np.frombuffer(packed[:whole], dtype), count)
