"""The measurements behind `mpress bench codec`."""

from __future__ import annotations

import math
import platform
import subprocess
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from mpress import _core, measure

DOCUMENT_FORMAT = 1
Calls = tuple[Callable[[], object], Callable[[], object]]


def has_libzfp() -> bool:
    """Whether the peer can be measured."""
    try:
        import zfpy  # noqa: F401
    except ImportError:
        return False
    return True


def measure_field(name: str, array: np.ndarray, specs: list[str], repeat: int) -> list[dict]:
    """One row a spec. Ours, libzfp and memcpy take turns, so that a disturbance meets all."""
    rows = []
    for spec in specs:
        peer = _libzfp_calls(array, spec) if spec.startswith("zfp:") and has_libzfp() else None
        rows.append(_measure_spec(name, array, spec, peer, repeat))
    return rows


def _measure_spec(
    name: str, array: np.ndarray, spec: str, peer: Calls | None, repeat: int
) -> dict[str, Any]:
    found = measure.measure(array, spec, 1)
    ours = measure.timed_calls(array, found.spec, np.empty_like(array))
    copy = np.empty_like(array)
    calls: dict[str, Callable[[], object]] = {
        "encode_rate": ours[0],
        "decode_rate": ours[1],
        "memcpy_rate": lambda: np.copyto(copy, array),
    }
    if peer is not None:
        calls |= {"libzfp_encode_rate": peer[0], "libzfp_decode_rate": peer[1]}
    best = dict.fromkeys(calls, math.inf)
    for _ in range(repeat):
        for what, call in calls.items():
            best[what] = min(best[what], measure.best_seconds(call, 1))
    psnr = found.quality.psnr
    return {
        "field": name,
        "shape": list(array.shape),
        "type": "f32" if array.dtype.itemsize == 4 else "f64",
        "bytes": array.nbytes,
        "spec": spec,
        "ratio": found.ratio,
        "identical": found.quality.identical,
        "max_error": found.quality.max_error,
        "bound": found.bound,
        "psnr": psnr if math.isfinite(psnr) else None,
        "keeps_promise": found.keeps_promise,
        **{what: array.nbytes / seconds for what, seconds in best.items()},
    }


def _libzfp_calls(array: np.ndarray, spec: str) -> Calls:
    """libzfp at the same rate on the same elements, as one dimension, serial."""
    import zfpy

    flat = array.reshape(-1)
    rate = _core.describe(spec)["value"]
    stream = zfpy.compress_numpy(flat, rate=rate, write_header=False)
    decoded = np.empty_like(flat)
    kind = zfpy.dtype_to_ztype(flat.dtype)
    return (
        lambda: zfpy.compress_numpy(flat, rate=rate, write_header=False),
        lambda: zfpy._decompress(stream, kind, flat.shape, out=decoded, rate=rate),
    )


def document(rows: list[dict]) -> dict[str, Any]:
    """Rows and all that is needed to judge them, ready for JSON."""
    versions = {"mpress": _core.build_info()["version"], "numpy": np.__version__}
    if has_libzfp():
        import zfpy

        versions["zfpy"] = zfpy.__version__
    return {
        "format": DOCUMENT_FORMAT,
        "kind": "codec",
        "date": datetime.now(timezone.utc).date().isoformat(),
        "cpu": cpu_name(),
        "isa": _core.isa(),
        "compiler": _core.build_info()["compiler"],
        "python": platform.python_version(),
        "versions": versions,
        "commit": git_commit(),
        "rows": rows,
    }


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def git_commit() -> str | None:
    """The commit of the source tree we stand in, if it is one of mpress's."""
    if not Path("python/mpress/codec_bench.py").exists():
        return None
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return result.stdout.strip() or None
