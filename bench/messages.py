"""What messages between GPUs are measured with, and their rows as text."""

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mpress.p2p import data

TARGET = 32 << 20
SWEEP = [64 << 10 << 2 * k for k in range(7)]  # 64 KiB to 256 MiB
DATA = ("wave", "turb", "air", "rand", "bits", "compressed")


def write_data(folder: Path, names: Iterable[str], air_file: Path | None) -> dict[str, str]:
    """Files of numpy's for the ranks, by name; of TARGET bytes, but what is measured or read."""
    files = {}
    for name in names:
        files[name] = str(folder / f"{name}.npy")
        np.save(files[name], make_data(name, air_file))
    return files


def make_data(name: str, air_file: Path | None) -> np.ndarray:
    if name == "air":
        return data.read(air_file) if air_file else air_temperatures()
    try:
        import cupy as xp
    except ImportError:
        xp = np
    return data.make(name, TARGET, "f32", xp)


def has_air() -> bool:
    return importlib.util.find_spec("esmvaltool_sample_data") is not None


def air_temperatures() -> np.ndarray:
    """Of all CMIP6 models in the package esmvaltool-sample-data, those without missing values."""
    package = importlib.util.find_spec("esmvaltool_sample_data")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("install esmvaltool-sample-data and netCDF4, or give --air")
    import netCDF4

    parts = []
    for path in sorted(Path(package.submodule_search_locations[0]).glob("**/CMIP6/**/ta_*.nc")):
        with netCDF4.Dataset(path) as dataset:
            dataset.set_auto_maskandscale(False)
            values = np.asarray(dataset["ta"][...], np.float32).reshape(-1)
        if values.max() < 1e4:
            parts.append(values)
    return np.concatenate(parts)


def print_rows(rows: Iterable[dict[str, Any]]) -> None:
    """A line a row."""
    for row in rows:
        check = row.get("check")
        arrived = "" if check is None or check["kept"] else " DID NOT ARRIVE"
        over = f"{row['over_none']:.3f}" if "over_none" in row else "-"
        print(
            f"{row['job']:10} {row['data']:10} {row['bytes']:10} {row['path']:14} "
            f"{row['seconds'] * 1e6:10.1f} us {over:>8} ratio {row.get('ratio', 1):7.2f} "
            f"({row['samples']}){arrived}"
        )
