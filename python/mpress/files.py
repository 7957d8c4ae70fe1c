"""Reading fields from files: numpy, raw values, netCDF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

Fields = list[tuple[str, np.ndarray]]
"""Names and contiguous float32 or float64 arrays in native byte order."""

_RAW = {".f32": "<f4", ".f64": "<f8"}
_NETCDF = (".nc", ".nc4", ".cdf")
SMALLEST_VARIABLE = 1024
"""netCDF variables of fewer elements are axes and bounds, not fields."""


class FileError(ValueError):
    """A file cannot be used; the message names it and says what was expected."""


def read_fields(path: Path, names: Sequence[str] | None = None) -> tuple[Fields, list[str]]:
    """The float fields of a file, and notes on what was left out.

    `names` picks variables of a netCDF file, small ones too.
    """
    if not path.is_file():
        raise FileError(f"{path}: expected a file, but there is none")
    suffix = path.suffix.lower()
    try:
        if suffix in _NETCDF:
            return _read_netcdf(path, names)
        if names:
            raise FileError(f"{path}: only netCDF files have variables to choose from")
        if suffix == ".npy":
            return [(path.name, _read_npy(path))], []
        if suffix in _RAW:
            return [(path.name, _read_raw(path, np.dtype(_RAW[suffix])))], []
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from None
    raise FileError(f"{path}: expected a name that ends in .npy, .f32, .f64 or .nc")


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" and dtype.itemsize in (4, 8)


def _native(array: np.ndarray) -> np.ndarray:
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _read_npy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except (EOFError, ValueError) as error:
        raise FileError(f"{path}: not a numpy file of numbers: {error}") from None
    if not _is_float(array.dtype):
        raise FileError(f"{path}: expected float32 or float64 elements, not {array.dtype}")
    return _native(array)


def _read_raw(path: Path, dtype: np.dtype) -> np.ndarray:
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise FileError(
            f"{path}: {size} bytes are not a whole number of {dtype.itemsize}-byte elements"
        )
    return _native(np.fromfile(path, dtype))


def _read_netcdf(path: Path, names: Sequence[str] | None) -> tuple[Fields, list[str]]:
    try:
        import netCDF4
    except ImportError:
        raise FileError(
            f"{path}: reading netCDF takes the package netCDF4 (pip install 'mpress[demo]')"
        ) from None
    fields: Fields = []
    notes: list[str] = []
    with netCDF4.Dataset(path) as dataset:
        # Stored values as they are: fill values are data, packed integers are no floats.
        dataset.set_auto_maskandscale(False)
        found = dataset.variables
        for name in names or ():
            if name not in found:
                raise FileError(f"{path}: no variable {name!r}; it has {', '.join(found)}")
        for name in names or found:
            variable = found[name]
            dtype = variable.dtype
            if not isinstance(dtype, np.dtype) or not _is_float(dtype):
                kind = dtype if isinstance(dtype, np.dtype) else "text"
                notes.append(f"{name} left out: {kind}, not float32 or float64")
            elif names is None and variable.size < SMALLEST_VARIABLE:
                notes.append(f"{name} left out: {variable.size} elements")
            else:
                fields.append((f"{path.name}:{name}", _native(np.asarray(variable[...]))))
    return fields, notes
