"""Measure messages between two GPUs, through the MPI's shared memory and TCP, into
bench/results/p2p-device-h200.json: python bench/p2p_device.py [--mpiexec CMD].

Under each transport one job measures every codec beside raw messages, and one the default `auto`
beside `none`. bench/report.py makes docs/performance.md of the results.
"""

import argparse
import importlib.util
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mpress.p2p import data, jobs, memory, nccl

HERE = Path(__file__).resolve().parent
TARGET = 32 << 20
SWEEP = [64 << 10 << 2 * k for k in range(7)]  # 64 KiB to 256 MiB
SPECS = ("zfp:4", "zfp:8", "zfp:16", "szp:rel=0.001", "mpc")
DATA = ("wave", "turb", "air", "rand", "bits", "compressed")


def make_data(name: str, air_file: Path | None) -> np.ndarray:
    if name == "air":
        return data.read(air_file) if air_file else air_temperatures()
    try:
        import cupy as xp
    except ImportError:
        xp = np
    return data.make(name, TARGET, "f32", xp)


def air_temperatures() -> np.ndarray:
    """Of all CMIP6 models in the package esmvaltool-sample-data, those without missing values."""
    package = importlib.util.find_spec("esmvaltool_sample_data")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("p2p_device: install esmvaltool-sample-data and netCDF4, or give --air")
    import netCDF4

    parts = []
    for path in sorted(Path(package.submodule_search_locations[0]).glob("**/CMIP6/**/ta_*.nc")):
        with netCDF4.Dataset(path) as dataset:
            dataset.set_auto_maskandscale(False)
            values = np.asarray(dataset["ta"][...], np.float32).reshape(-1)
        if values.max() < 1e4:
            parts.append(values)
    return np.concatenate(parts)


def forced_cases(seconds: float) -> list[dict[str, Any]]:
    """Codecs that are used whatever the policy thinks. The aim's size comes with more rounds."""
    beside = ["plain", "host", "copy"]
    if memory.devices() > 1 and nccl.library():
        beside.append("nccl")
    aim = {"bytes": TARGET, "seconds": 3 * seconds, "repeat": 15}
    cases = [{"data": "wave", "paths": ["none", *SPECS, *beside], **aim}]
    for nbytes in SWEEP:
        case = {"data": "wave", "bytes": nbytes, "paths": ["none", *SPECS, *beside]}
        if nbytes > TARGET:
            case |= {"warmup": 1, "repeat": 3, "check": nbytes <= 2 * TARGET}
        cases.append(case)
    cases.append({"data": "constant", "paths": ["none", "mpc"], **aim})
    return cases


def sequential_cases() -> list[dict[str, Any]]:
    """In one piece, for the breakdown of what else overlaps."""
    sizes = [nbytes for nbytes in SWEEP if 1 << 20 <= nbytes <= 2 * TARGET]
    return [
        {"data": "wave", "bytes": n, "paths": ["none", *SPECS]} for n in sorted((*sizes, TARGET))
    ]


def auto_cases() -> list[dict[str, Any]]:
    return [
        {"data": name, "bytes": nbytes, "paths": ["none", "auto"]}
        | ({"warmup": 2, "repeat": 5} if nbytes > 2 * TARGET else {})
        for name in DATA
        for nbytes in SWEEP
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "p2p-device-h200.json")
    parser.add_argument("--mpiexec", help="launcher, with its own options")
    parser.add_argument("--transports", default="shm,tcp")
    parser.add_argument("--jobs", default="forced,sequential,auto")
    parser.add_argument("--memory", choices=("device", "host"), default="device")
    parser.add_argument("--air", type=Path, help="air temperatures: .f32 or .npy")
    parser.add_argument("--most", type=int, default=SWEEP[-1], help="bytes of a message")
    parser.add_argument("--seconds", type=float, default=0.6, help="of a case")
    options = parser.parse_args()

    begin = time.monotonic()
    document: dict[str, Any] = {"format": 1, "kind": "p2p-device", "runs": []}
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name in (*DATA, "constant"):
            files[name] = str(Path(folder) / f"{name}.npy")
            np.save(files[name], make_data(name, options.air))
        print(f"data: {time.monotonic() - begin:.0f} s", flush=True)
        plan = {
            "benchmark": "latency", "from": options.memory, "to": options.memory, "files": files,
            "warmup": 4, "repeat": 25, "seconds": options.seconds, "window": 1,
        }  # fmt: skip
        for transport in options.transports.split(","):
            run: dict[str, Any] | None = None
            for job in options.jobs.split(","):
                if job == "forced":
                    cases = forced_cases(options.seconds)
                else:
                    cases = sequential_cases() if job == "sequential" else auto_cases()
                if options.memory == "host":
                    for case in cases:
                        case["paths"] = [p for p in case["paths"] if p not in jobs.BASELINES]
                cases = [case for case in cases if case["bytes"] <= options.most]
                result = jobs.run(
                    plan | {"cases": cases}, job, transport=transport, mpiexec=options.mpiexec
                )
                if run is None:
                    run = jobs.document(plan, result, transport)
                    document["runs"].append(run)
                run["rows"] += jobs.summary(result, "latency", job)
                options.json.write_text(json.dumps(document, indent=1) + "\n")
                print(f"{transport}, {job}: {time.monotonic() - begin:.0f} s", flush=True)
            assert run is not None
            print_run(run)


def print_run(run: dict[str, Any]) -> None:
    print(run["mpi"], run["transport"])
    for row in run["rows"]:
        check = row.get("check")
        arrived = "" if check is None or check["kept"] else " DID NOT ARRIVE"
        over = f"{row['over_none']:.3f}" if "over_none" in row else "-"
        print(
            f"{row['job']:10} {row['data']:10} {row['bytes']:10} {row['path']:14} "
            f"{row['seconds'] * 1e6:10.1f} us {over:>8} ratio {row.get('ratio', 1):7.2f} "
            f"({row['samples']}){arrived}"
        )


if __name__ == "__main__":
    main()
