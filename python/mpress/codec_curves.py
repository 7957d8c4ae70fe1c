"""What codecs take on GPUs that were measured, for `mpress simulate`: seconds by bytes of elements.

H200: `encode_to_host` and `decode_to_host` of bench/results/codec-cuda-h200.json, field turb:
the time until the host sees the report of a call on an idle device.

A100-cuSZp: not measured. What gZCCL (ICS 2024) tells of its own compressor, as docs/dev/gzccl.md
derives it: a time that no call goes below, and a rate. It serves every spec.

ideal: a codec that takes no time, the most that compressing could gain.
"""

from __future__ import annotations

import numpy as np

from mpress import _core
from mpress.tune import Curve

_SIZES = tuple(65536 << 2 * i for i in range(8))

# Microseconds at _SIZES: encoding, decoding.
_H200 = {
    "szp": ((13.8, 17.0, 13.9, 17.1, 28.2, 63.4, 203.6, 758.4),
            (13.7, 13.4, 15.8, 15.1, 21.5, 49.7, 129.5, 487.5)),
    "zfp": ((11.6, 11.4, 11.1, 13.6, 19.6, 45.0, 132.2, 468.8),
            (13.4, 12.8, 12.4, 15.5, 23.7, 55.1, 162.8, 580.0)),
    "mpc": ((14.9, 14.9, 16.7, 20.9, 37.2, 93.5, 275.1, 990.9),
            (13.3, 13.5, 13.8, 17.0, 31.2, 77.9, 257.0, 969.3)),
}  # fmt: skip

A100_CALL_SECONDS = 620e-6
A100_RATE = 415e9

GPUS = ("h200", "a100-cuszp", "ideal")


def of_gpu(name: str, spec: str) -> tuple[Curve, Curve]:
    """Of encoding and of decoding, on one of GPUS."""
    if name == "ideal":
        return {0: 0.0, 1 << 30: 0.0}, {0: 0.0, 1 << 30: 0.0}
    if name == "a100-cuszp":
        line = {0: A100_CALL_SECONDS, 1 << 30: A100_CALL_SECONDS + (1 << 30) / A100_RATE}
        return line, line
    both = _H200[_core.describe(spec)["codec"]]
    encode, decode = (
        dict(zip(_SIZES, (1e-6 * value for value in times), strict=True)) for times in both
    )
    return encode, decode


def seconds(curve: Curve, nbytes: np.ndarray | float) -> np.ndarray:
    """Straight lines between the points; below the first one its time, beyond the last its slope;
    nothing takes no time. As the policy's curves (src/policy/curve.cpp)."""
    sizes, times = np.array(sorted(curve.items()), float).T
    wanted = np.asarray(nbytes, float)
    found = np.interp(wanted, sizes, times)
    if len(sizes) > 1:
        slope = max(0.0, (times[-1] - times[-2]) / (sizes[-1] - sizes[-2]))
        found = found + slope * np.maximum(0.0, wanted - sizes[-1])
    return np.where(wanted > 0, found, 0.0)
