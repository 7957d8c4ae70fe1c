"""The measurements behind `mpress bench codec --device cuda` and `mpress inspect --device cuda`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpress import _core, _device
from mpress._codec import Encoded, codec

_STREAM = _device.Stream(0)


def devices() -> int:
    """How many GPUs this process can use; none where mpress was built without CUDA."""
    return _core.cuda_devices() if _core.build_info()["cuda"] else 0


def available() -> bool:
    """Whether this mpress can use a GPU, and there is one."""
    return devices() > 0


def to_device(array: np.ndarray, device: int = 0) -> _device.DeviceArray:
    """A copy of a contiguous host array on a GPU."""
    buffer = _core.cuda_copy(array.ctypes.data, array.nbytes, device, _STREAM.handle)
    return _device.DeviceArray(buffer, array.dtype, array.shape, _STREAM)


def seconds(
    array: np.ndarray, spec: str, repeat: int, segments: int = 1, device: int = 0
) -> dict[str, float]:
    """Median times of one codec on an array of the host, of which the GPU gets a copy."""
    resident = to_device(array, device)
    name = "f32" if array.dtype.itemsize == 4 else "f64"
    pointer = _device.view_of(resident).pointer
    return _core.cuda_time(spec, name, pointer, array.size, segments, device, repeat)


def measure_field(
    name: str, array: np.ndarray, specs: list[str], repeat: int, device: int = 0
) -> list[dict[str, Any]]:
    """One row a spec, as `codec_bench.measure_field` has them: rates are medians on the device, and
    payload and elements were compared with the host twin's. A relative bound is timed as the
    absolute one that it comes to; `range_seconds` is what finding the range adds."""
    return [_measure_spec(name, array, spec, repeat, device) for spec in specs]


def _measure_spec(
    name: str, array: np.ndarray, spec: str, repeat: int, device: int
) -> dict[str, Any]:
    host = codec(spec).encode(array)
    decoded = codec(spec).decode(host)
    twin = codec(spec).encode(to_device(array, device))
    again = codec(spec).decode(twin)
    own = _core.describe(spec)
    timed = spec
    if own["bound"] == "rel":
        timed = f"szp:abs={host.bound!r}" + (",mode=dense" if "mode=dense" in spec else "")
    times = seconds(array, timed, repeat, device=device)
    whole = array.nbytes
    row = {
        "field": name,
        "shape": list(array.shape),
        "type": "f32" if array.dtype.itemsize == 4 else "f64",
        "bytes": whole,
        "spec": spec,
        "ratio": host.ratio,
        "bound": host.bound,
        "same_bytes_as_host": _same_bytes(twin, host) and _same_bits(again.to_host(), decoded),
        "encode_rate": whole / times["encode"],
        "decode_rate": whole / times["decode"],
        "sum_rate": whole / times["sum"],
        "memcpy_rate": whole / times["copy"],
        "encode_to_host": times["encode_to_host"],
        "decode_to_host": times["decode_to_host"],
    }
    if "add" in times:  # two payloads to one, and what it takes by way of the elements
        row["add_rate"] = whole / times["add"]
        row["sum_encode_rate"] = whole / (times["sum"] + times["encode"])
    if "add_four" in times:  # four payloads to one, and what it takes by way of the elements
        row["add_four_rate"] = whole / times["add_four"]
        row["decode_four_rate"] = whole / (times["decode"] + 3 * times["sum"] + times["encode"])
    if own["bound"] == "rel":
        with_range = seconds(array, spec, repeat, device=device)
        row["range_seconds"] = with_range["encode"] - times["encode"]
    return row


def _same_bytes(twin: Encoded, host: Encoded) -> bool:
    return _same_bits(twin.payload.to_host(), host.payload)


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8))
