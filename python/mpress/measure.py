"""What a codec does to a field: size, speed and error."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpress import _core
from mpress._codec import codec

_CHUNK = 1 << 20  # elements compared at a time, so that temporaries stay small


@dataclass(frozen=True)
class Quality:
    """How a decoded field differs from the original; errors over finite elements, in float64."""

    identical: bool
    """Every bit is the same."""
    specials_kept: bool
    """NaN and infinities came back as such."""
    max_error: float
    psnr: float
    """Peak signal-to-noise ratio, dB, the peak being the range; inf where nothing differs."""


@dataclass(frozen=True)
class Measurement:
    """One codec on one field. Speeds are bytes of the field a second, the best of the repetitions
    on one core."""

    spec: str
    ratio: float
    encode_rate: float
    decode_rate: float
    bound: float | None
    quality: Quality

    @property
    def keeps_promise(self) -> bool | None:
        """Whether the codec did what it promises; None where it promises no bound (zfp)."""
        if self.bound is not None:
            return self.quality.specials_kept and self.quality.max_error <= self.bound
        return None if codec(self.spec).lossy else self.quality.identical


def best_seconds(function: Callable[[], object], repeat: int) -> float:
    """The shortest of `repeat` runs: what the machine can do when nothing else disturbs it."""
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


def compare(original: np.ndarray, decoded: np.ndarray) -> Quality:
    """Compares two arrays of one type and size."""
    a, b = original.reshape(-1), decoded.reshape(-1)
    identical, specials_kept = True, True
    max_error, squares, finite_elements = 0.0, 0.0, 0
    low, high = np.inf, -np.inf
    word = np.uint32 if a.dtype.itemsize == 4 else np.uint64
    for first in range(0, a.size, _CHUNK):
        x, y = a[first : first + _CHUNK], b[first : first + _CHUNK]
        identical = identical and np.array_equal(x.view(word), y.view(word))
        finite = np.isfinite(x)
        special = ~finite
        specials_kept = specials_kept and np.array_equal(x[special], y[special], equal_nan=True)
        x, y = x[finite].astype(np.float64), y[finite].astype(np.float64)
        if x.size == 0:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.abs(x - y)
            max_error = max(max_error, float(np.max(error)))
            squares += float(np.sum(error * error))
        finite_elements += x.size
        low, high = min(low, float(x.min())), max(high, float(x.max()))
    return Quality(identical, specials_kept, max_error, _psnr(squares, finite_elements, high - low))


def _psnr(squares: float, elements: int, peak: float) -> float:
    if squares == 0 or elements == 0:
        return float("inf")
    if peak == 0:
        return float("-inf")
    return 20 * float(np.log10(peak)) - 10 * float(np.log10(squares / elements))


def measure(array: np.ndarray, spec: str, repeat: int = 3) -> Measurement:
    """Encodes and decodes a contiguous float32 or float64 array `repeat` times."""
    encoded = codec(spec).encode(array)
    decoded = np.empty_like(array)
    encode, decode = timed_calls(array, encoded.spec, decoded)
    if spec == "auto":  # what it tried before it chose counts
        encode = lambda: codec(spec).encode(array)  # noqa: E731
    encode_seconds = best_seconds(encode, repeat)
    decode_seconds = best_seconds(decode, repeat)
    return Measurement(
        spec=encoded.spec,
        ratio=encoded.ratio,
        encode_rate=array.nbytes / encode_seconds,
        decode_rate=array.nbytes / decode_seconds,
        bound=encoded.bound,
        quality=compare(array, decoded),
    )


def timed_calls(
    array: np.ndarray, spec: str, decoded: np.ndarray
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Functions that encode `array` and decode it into `decoded`, in memory that exists already:
    what a message costs, without the system's page faults. Both have run once."""
    raw = array.reshape(-1).view(np.uint8)
    target = decoded.reshape(-1).view(np.uint8)
    if spec == "none":
        buffer = np.empty_like(raw)
        np.copyto(buffer, raw)
        np.copyto(target, buffer)
        return lambda: np.copyto(buffer, raw), lambda: np.copyto(target, buffer)
    name = "f32" if array.dtype.itemsize == 4 else "f64"
    buffer = np.zeros(_core.max_payload_bytes(spec, name, array.size), np.uint8)
    used = _core.encode_into(spec, name, raw, buffer)
    payload = buffer[:used]
    _core.decode(spec, name, payload, target)
    return (
        lambda: _core.encode_into(spec, name, raw, buffer),
        lambda: _core.decode(spec, name, payload, target),
    )
