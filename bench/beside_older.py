"""Messages between GPUs with this build beside an older one, by turns: python
bench/beside_older.py --older FOLDER --newer FOLDER [--seconds S] [--json FILE], where each FOLDER
holds the package mpress of a build.

Both get the same plan, one job after the other, ROUNDS times; a row's time is the median of the
medians of its jobs, and its ratio that of the newer over the older, with the least and the greatest
of the rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from messages import write_data

ROUNDS = 5
SIZES = (64 << 10, 1 << 20, 32 << 20, 256 << 20)
PATHS = ("none", "zfp:4", "szp:abs=0.01", "szp:rel=0.001", "mpc")

_WORKER = """
import json, sys
from mpress.p2p import jobs
plan, out = sys.argv[1:]
plan = json.loads(open(plan).read())
result = jobs.run(plan, "forced", link="peer")
rows = jobs.summary(result, plan["benchmark"], "forced", ("none",))
open(out, "w").write(json.dumps(rows))
"""


def plan(benchmark: str, ranks: int, seconds: float, files: dict[str, str]) -> dict[str, Any]:
    sizes = SIZES if benchmark == "latency" else SIZES[2:]
    cases = [{"data": "wave", "bytes": n, "paths": list(PATHS), "check": False} for n in sizes]
    return {
        "benchmark": benchmark, "ranks": ranks, "window": 1 if benchmark == "latency" else 4,
        "from": "device", "to": "device", "warmup": 6, "repeat": 41, "files": files,
        "seconds": seconds / len(cases), "cases": cases,
    }  # fmt: skip


def run(package: Path, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """One job under the mpress of `package`."""
    with tempfile.TemporaryDirectory() as folder:
        plan_file, out = Path(folder) / "plan.json", Path(folder) / "rows.json"
        plan_file.write_text(json.dumps(wanted))
        path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", _WORKER, plan_file, out]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{package}: {done.stderr}{done.stdout}")
        return json.loads(out.read_text())


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["data"], row["bytes"], row["path"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--older", type=Path, required=True)
    parser.add_argument("--newer", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150, help="in all")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--benchmarks", nargs="+", default=["latency", "bibandwidth"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    benchmarks = given.benchmarks
    each = given.seconds / (2 * ROUNDS * len(benchmarks)) - 4  # a job's start
    document = []
    folder = tempfile.mkdtemp()
    files = write_data(Path(folder), ("wave",), None)
    for benchmark in benchmarks:
        ranks = given.ranks if benchmark != "latency" else 2
        wanted = plan(benchmark, ranks, max(each, 1), files)
        times: dict[str, dict[tuple[Any, ...], list[float]]] = {
            "older": defaultdict(list),
            "newer": defaultdict(list),
        }
        for _ in range(ROUNDS):
            for which in times:
                for row in run(getattr(given, which), wanted):
                    times[which][key(row)].append(row["seconds"] * 1e6)
        for row, newer in times["newer"].items():
            older = times["older"][row]
            ratios = [new / old for new, old in zip(newer, older, strict=True)]
            document.append(
                {
                    "benchmark": benchmark, "data": row[0], "bytes": row[1], "path": row[2],
                    "older_us": statistics.median(older), "newer_us": statistics.median(newer),
                    "ratio": statistics.median(newer) / statistics.median(older),
                    "ratios": [min(ratios), max(ratios)],
                }
            )  # fmt: skip
            last = document[-1]
            print(
                f"{benchmark:12} {row[1] >> 10:7} KiB {row[2]:14} "
                f"older {last['older_us']:8.1f} us, newer {last['newer_us']:8.1f} us, "
                f"ratio {last['ratio']:.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
