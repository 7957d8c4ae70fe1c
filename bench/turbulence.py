"""Time a step and in transposes of apps/turbulence, by codec, into bench/results/turbulence-*.json:

    python bench/turbulence.py --points 512 --device --json bench/results/turbulence-four-h100.json

Raw and with codecs, all forced, by MPI over TCP between the ranks of one host; each is a run of its
own, of some steps from the vortex's start. bench/report_turbulence.py makes
docs/dev/results-turbulence.md of the results.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mpress.codec_bench import cpu_name, git_commit
from mpress.p2p import jobs, memory

HERE = Path(__file__).resolve().parent
APP = HERE.parent / "apps" / "turbulence"
BIN = Path(sys.executable).parent
RAW = "none"
SPECS = ("zfp:16", "zfp:24", "szp:rel=1e-5", "mpc")

sys.path.insert(0, str(APP))
import turbulence  # noqa: E402


def run(spec: str, options: argparse.Namespace, prefix: Path) -> dict[str, Any]:
    """What the program tells, and mpress's totals."""
    report = prefix.with_suffix(".report")
    length = turbulence.default_step(options)
    command = [sys.executable, "-m", "mpress", "run", "-n", options.ranks, "--codec", spec,
               "--force", "--threshold", "4K", "--report", report, "--", sys.executable,
               APP / "turbulence.py", "--points", options.points, "--reynolds", options.reynolds,
               "--until", options.steps * length, "--output", prefix]  # fmt: skip
    command += ["--device"] if options.device else []
    environment = {"MPI4PY_RC_THREAD_LEVEL": "funneled", "MPRESS_LINK": "mpi", **os.environ}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment | jobs.transport_environment("tcp"),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"turbulence: {shlex.join(words)}\nended with {done.returncode}:\n"
                         f"{done.stdout}{done.stderr}")  # fmt: skip
    document = json.loads(report.read_text())
    told = json.loads(prefix.with_suffix(".json").read_text())
    return told | {"totals": document["totals"], "mpi": document["mpi"]}


def largest_difference(one: Path, other: Path, ranks: int) -> float:
    """Of a component of the velocity at the end."""
    found = 0.0
    for rank in range(ranks):
        slabs = (np.load(f"{prefix}-velocity-{rank}.npy", mmap_mode="r") for prefix in (one, other))
        found = max(found, float(np.abs(np.subtract(*slabs)).max()))
    return found


def row(spec: str, told: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
    """Of a run beside the raw one. The first step, in which all is set up, does not count."""
    totals = told["totals"]
    energy = np.array(told["energy"]) / np.array(raw["energy"]) - 1
    return {
        "spec": spec, "step_seconds": told["step_seconds"][1:],
        "transpose_seconds": told["transpose_seconds"][1:],
        "ratio": totals["raw_bytes"] / totals["wire_bytes"],
        "largest_energy_difference": float(np.abs(energy).max()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, help="default: as many as GPUs, or 2")
    parser.add_argument("--points", type=int, default=64, metavar="N", help="an axis; default 64")
    parser.add_argument("--reynolds", type=float, default=1600, help="default 1600")
    parser.add_argument("--steps", type=int, default=4, help="with the first; default 4")
    parser.add_argument("--specs", nargs="+", default=SPECS, metavar="SPEC")
    parser.add_argument("--device", action="store_true", help="on GPUs, with CuPy")
    parser.add_argument("--commit", help="what is measured; default: git's")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    options.ranks = options.ranks or (memory.devices() if options.device else 2)
    if options.steps < 2:
        parser.error("--steps: expected 2 or more")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw = run(RAW, options, folder / RAW)
        rows = [row(RAW, raw, raw) | {"largest_difference": 0.0}]
        for spec in options.specs:
            prefix = folder / "coded"
            found = row(spec, run(spec, options, prefix), raw)
            difference = largest_difference(folder / RAW, prefix, options.ranks)
            rows.append(found | {"largest_difference": difference})
            print(f"{spec}: {found['transpose_seconds']} s in transposes", flush=True)
    document = {
        "kind": "turbulence", "date": time.strftime("%Y-%m-%d"),
        "commit": options.commit or git_commit(), "cpu": cpu_name(), "cores": os.cpu_count(),
        "gpu": memory.name_of(0) if options.device else None, "mpi": raw["mpi"],
        "ranks": options.ranks, "points": options.points, "reynolds": options.reynolds,
        "rows": rows,
    }  # fmt: skip
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
