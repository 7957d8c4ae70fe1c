"""Measure messages between two GPUs, through the MPI's shared memory and TCP, into
bench/results/p2p-device-h200.json: python bench/p2p_device.py [--mpiexec CMD].

Under each transport one job measures every codec beside raw messages, and one the default `auto`
beside `none`. bench/report.py makes docs/performance.md of the results.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from messages import DATA, SWEEP, TARGET, print_rows, write_data

from mpress.p2p import jobs, memory, nccl

HERE = Path(__file__).resolve().parent
SPECS = ("zfp:4", "zfp:8", "zfp:16", "szp:rel=0.001", "mpc")


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
        files = write_data(Path(folder), (*DATA, "constant"), options.air)
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
            print(run["mpi"], run["transport"])
            print_rows(run["rows"])


if __name__ == "__main__":
    main()
