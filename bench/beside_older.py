"""Messages and collective calls with this build beside an older one, by turns: python
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
MESSAGES = ("latency", "bandwidth", "bibandwidth")
OPERATIONS = {
    "collectives": ("alltoall", "allgather", "bcast", "scatter", "gather"),
    "reductions": ("allreduce", "reduce_scatter", "reduce"),
}
"""By kind of job: a worker makes calls of one kind."""
SIZES = (64 << 10, 1 << 20, 32 << 20, 256 << 20)
PATHS = ("none", "zfp:4", "szp:abs=0.01", "szp:rel=0.001", "mpc")
_START_SECONDS = 4  # of a job

_WORKER = """
import json, sys
from mpress.p2p import jobs
plan, options, out = sys.argv[1:]
plan = json.loads(open(plan).read())
result = jobs.run(plan, "forced", **json.loads(options))
rows = jobs.summary(result, plan["benchmark"], "forced", ("none",))
open(out, "w").write(json.dumps(rows))
"""

Row = dict[str, Any]


def plan(benchmark: str, given: argparse.Namespace, seconds: float, files: dict[str, str]) -> Row:
    common = {
        "files": files, "from": given.memory, "to": given.memory, "warmup": 6, "repeat": 41,
        "benchmark": benchmark, "ranks": given.ranks, "window": 1,
    }  # fmt: skip
    about = {"data": "wave", "paths": given.paths, "check": False}
    if benchmark in OPERATIONS:
        ops = [op for op in OPERATIONS[benchmark] if op in given.ops]
        cases = [
            about | {"op": op, "bytes": block(op, nbytes, given.ranks)}
            for op in ops
            for nbytes in given.sizes
        ]
        common["benchmark"] = ops[0]
    else:
        sizes = given.sizes if benchmark == "latency" else given.sizes[-2:]
        cases = [about | {"bytes": nbytes} for nbytes in sizes]
        common |= {"window": 1} if benchmark == "latency" else {"window": given.window}
        common |= {} if benchmark == "bibandwidth" else {"ranks": 2}
    return common | {"cases": cases, "seconds": seconds / len(cases)}


def block(op: str, nbytes: int, ranks: int) -> int:
    """Bytes of a block, where `nbytes` are those of the largest buffer of a rank: whole elements,
    as many for each rank."""
    if op in ("bcast", "allreduce", "reduce", "reduce_scatter"):
        return nbytes // (4 * ranks) * 4 * ranks
    return nbytes // (4 * ranks) * 4


def run(package: Path, wanted: Row, options: Row) -> list[Row]:
    """One job under the mpress of `package`."""
    with tempfile.TemporaryDirectory() as folder:
        plan_file, out = Path(folder) / "plan.json", Path(folder) / "rows.json"
        plan_file.write_text(json.dumps(wanted))
        path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", _WORKER, plan_file, json.dumps(options), out]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"{package}: {done.stderr}{done.stdout}")
        return json.loads(out.read_text())


def key(row: Row) -> tuple[Any, ...]:
    return row.get("op", ""), row["data"], row["bytes"], row["path"]


def compared(benchmark: str, given: argparse.Namespace, seconds: float, files: Row) -> list[Row]:
    wanted = plan(benchmark, given, seconds, files)
    options = {"link": given.link, "mpiexec": given.mpiexec}
    times: dict[str, dict[tuple[Any, ...], list[float]]] = {
        "older": defaultdict(list),
        "newer": defaultdict(list),
    }
    for turn in range(ROUNDS):
        for which in sorted(times, reverse=turn % 2 == 1):  # neither is always the first
            for row in run(getattr(given, which), wanted, options):
                times[which][key(row)].append(row["seconds"] * 1e6)
    found = []
    for row, newer in times["newer"].items():
        older = times["older"][row]
        ratios = [new / old for new, old in zip(newer, older, strict=True)]
        found.append(
            {
                "benchmark": row[0] or benchmark, "link": given.link, "memory": given.memory,
                "ranks": wanted["ranks"], "data": row[1], "bytes": row[2], "path": row[3],
                "older_us": statistics.median(older), "newer_us": statistics.median(newer),
                "ratio": statistics.median(newer) / statistics.median(older),
                "ratios": [min(ratios), max(ratios)],
            }
        )  # fmt: skip
        last = found[-1]
        print(
            f"{last['benchmark']:14} {row[2]:10} B {row[3]:14} "
            f"older {last['older_us']:9.1f} us, newer {last['newer_us']:9.1f} us, "
            f"ratio {last['ratio']:.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
            flush=True,
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--older", type=Path, required=True)
    parser.add_argument("--newer", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=150, help="in all")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--benchmarks", nargs="+", choices=(*MESSAGES, *OPERATIONS),
                        default=["latency", "bibandwidth"])  # fmt: skip
    every = [op for ops in OPERATIONS.values() for op in ops]
    parser.add_argument("--ops", nargs="+", choices=every, default=every)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="bytes, ascending")
    parser.add_argument("--paths", nargs="+", default=PATHS)
    parser.add_argument("--window", type=int, default=4, help="messages under way at once")
    parser.add_argument("--memory", choices=("device", "host"), default="device")
    parser.add_argument("--link", help="default: peer of device memory, none of host memory")
    parser.add_argument("--mpiexec", help="launcher, with its own options")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.link is None and given.memory == "device":
        given.link = "peer"
    given.benchmarks = [
        kind for kind in given.benchmarks
        if kind not in OPERATIONS or set(OPERATIONS[kind]) & set(given.ops)
    ]  # fmt: skip
    each = given.seconds / (2 * ROUNDS * len(given.benchmarks)) - _START_SECONDS
    document = []
    with tempfile.TemporaryDirectory() as folder:
        files = write_data(Path(folder), ("wave",), None)
        for benchmark in given.benchmarks:
            document += compared(benchmark, given, max(each, 1), files)
    ratios = [row["ratio"] for row in document]
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, greatest {max(ratios):.3f}")
    if given.json:
        given.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
