"""Measure the CUDA twins on the first GPU, beside nvCOMP: python bench/codec_cuda.py --json FILE.

Needs CuPy; nvCOMP's wheel (nvidia-libnvcomp-cu13) where it shall be compared with. bench/report.py
makes docs/performance.md and docs/dev/results-codecs.md of the results.
"""

import argparse
import json
from pathlib import Path

import cupy
import numpy as np
import nvcomp_peer

from mpress import _core, codec_bench, cuda_bench, fields

FAST = ("szp:rel=1e-3", "szp:rel=1e-4")
SPECS = (*FAST, "szp:rel=1e-3,mode=dense", "zfp:4", "zfp:8", "zfp:16", "zfp:24", "mpc")
SHAPES = {"f32": (400, 400, 400), "f64": (320, 320, 312)}
SWEPT = ("szp:rel=1e-3", "zfp:8", "mpc")
SWEEP = [64 << 10 << 2 * k for k in range(8)]  # 64 KiB to 1 GiB


def peers(lib, array: np.ndarray, bound: float, repeat: int) -> dict[str, dict]:
    """nvCOMP on the same field, with rates as ours have them."""
    if lib is None:
        return {}
    device = cupy.asarray(array).reshape(-1)
    found = {
        "bitcomp": nvcomp_peer.bitcomp(lib, device, None, repeat),
        "bitcomp lossy 1e-3": nvcomp_peer.bitcomp(lib, device, bound, repeat),
    }
    if array.dtype == np.float32:
        found["ANS"] = nvcomp_peer.ans(lib, device, repeat)
    return {
        name: {
            "ratio": array.nbytes / row["payload_bytes"],
            "encode_rate": array.nbytes / row["encode"],
            "decode_rate": array.nbytes / row["decode"],
        }
        for name, row in found.items()
    }


def absolute(spec: str, array: np.ndarray) -> str:
    """The spec with the bound that its relative one comes to."""
    if "rel=" not in spec:
        return spec
    width = float(array.max()) - float(array.min())
    return f"szp:abs={float(spec.split('=')[1]) * width!r}"


def sweep(lib, array: np.ndarray, repeat: int) -> list[dict]:
    """Times by size, on the field's beginning; beyond its end it repeats."""
    bound = 1e-3 * (float(array.max()) - float(array.min()))
    rows = []
    for nbytes in SWEEP:
        part = np.resize(array.reshape(-1), nbytes // array.itemsize)
        for spec in SWEPT:
            times = cuda_bench.seconds(part, absolute(spec, array), repeat)
            rows.append({"codec": spec, **times})
        if lib is not None:
            device = cupy.asarray(part)
            for name, limit in (("bitcomp", None), ("bitcomp lossy 1e-3", bound)):
                times = nvcomp_peer.bitcomp(lib, device, limit, repeat)
                rows.append({"codec": f"nvCOMP {name}", "bytes": nbytes, **times})
    return rows


def batches(array: np.ndarray, repeat: int) -> list[dict]:
    """64 segments of 256 KiB in one call, and one of 16 MiB."""
    part = array.reshape(-1)[: (16 << 20) // array.itemsize]
    return [
        {"codec": spec, "segments": segments}
        | cuda_bench.seconds(part, absolute(spec, array), repeat, segments)
        for spec in SWEPT
        for segments in (1, 64)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True, help="where the results go")
    parser.add_argument("--types", default="f32,f64")
    parser.add_argument("--repeat", type=int, default=25)
    options = parser.parse_args()
    lib = nvcomp_peer.library()
    document = codec_bench.document([]) | {
        "kind": "codec-cuda",
        "gpu": _core.cuda_device_name(0),
        "driver": cupy.cuda.runtime.driverGetVersion(),
        "runtime": cupy.cuda.runtime.runtimeGetVersion(),
        "nvcomp": lib is not None,
        "peers": [],
    }
    for kind in options.types.split(","):
        for name in ("wave", "turb", "rand"):
            array = cupy.asnumpy(fields.make(name, SHAPES[kind], kind, xp=cupy, cache=False))
            rows = cuda_bench.measure_field(name, array, list(SPECS), options.repeat)
            document["rows"] += rows
            bound = 1e-3 * (float(array.max()) - float(array.min()))
            for peer, row in peers(lib, array, bound, options.repeat).items():
                document["peers"].append({"codec": peer, "field": name, "type": kind} | row)
            for row in [*rows, *document["peers"][-3:]]:
                encode, decode = row["encode_rate"] / 1e9, row["decode_rate"] / 1e9
                same = "" if row.get("same_bytes_as_host", True) else "NOT AS ON THE HOST"
                what = f"{name} {kind} {row.get('spec') or row['codec']}"
                added = ""
                if "add_rate" in row:
                    rates = row["add_rate"] / 1e9, row["sum_encode_rate"] / 1e9
                    added = "add {:.0f}, by elements {:.0f} ".format(*rates)
                print(
                    f"{what:36} {row['ratio']:7.2f} {encode:6.0f} {decode:6.0f} {added}{same}",
                    flush=True,
                )
            if (name, kind) == ("turb", "f32"):
                document["sweep"] = sweep(lib, array, options.repeat)
                document["batches"] = batches(array, options.repeat)
            options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
