"""What codecs take on GPUs that were measured, for `mpress simulate`: seconds by bytes of elements.

H200: as the policy has it (src/policy/costs.hpp), from bench/results/codec-cuda-h200.json, field
turb: the time until the host sees the report of a call on an idle device.

A100-cuSZp: not measured. What gZCCL (ICS 2024) tells of its own compressor, as docs/dev/gzccl.md
derives it: a time that no call goes below, and a rate. It serves every spec.

ideal: a codec that takes no time, the most that compressing could gain.
"""

from __future__ import annotations

import numpy as np

from mpress import _core
from mpress.tune import Curve

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
    return _core.codec_times_of_h200()[_core.describe(spec)["codec"]]


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
