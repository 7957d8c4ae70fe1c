"""An exchange of two ranks, started as everybody starts: no profile, nothing learned before,
nothing forced, into bench/results/exchange-*.json:

    python bench/exchange.py --rate 1gbit --json bench/results/exchange-1gbit.json     # two hosts
    python bench/exchange.py --json bench/results/exchange-same-host.json              # one

Plain, with `auto` and within a bound, each a job of its own, by turns. With --rate the two ranks
are on hosts of a cluster (bench/cluster.py, which needs root), else on this one. `python
bench/report_exchange.py` makes docs/dev/results-exchange.md of the results.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cluster as clusters

from mpress import _core
from mpress.codec_bench import cpu_name, git_commit
from mpress.p2p.jobs import median_interval

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
PROGRAM = HERE / "programs" / "exchange.py"
PLAIN = "plain"
SPECS = ("auto", "szp:rel=1e-4")
DATA = ("sines", "wave")
RANKS = 2


def seconds(data: str, path: str, options: argparse.Namespace, launcher: list[str]) -> list[float]:
    """Of each exchange of a job."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "seconds.json"
        program = [sys.executable, PROGRAM, data, options.nbytes, options.count, file]
        command = [*launcher, "-n", RANKS, *program]
        if path != PLAIN:
            command = [BIN / "mpress", "run", "-n", RANKS, "--codec", path, "--mpiexec",
                       shlex.join(launcher), "--", *program]  # fmt: skip
        words = [str(word) for word in command]
        environment = clusters.environment() if options.rate else dict(os.environ)
        environment |= {"XDG_CACHE_HOME": name, "MPRESS_PROFILE": ""}
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"exchange: {shlex.join(words)}\nended with {done.returncode}:\n"
                             f"{done.stdout}{done.stderr}")  # fmt: skip
        return json.loads(file.read_text())


def rows(data: str, taken: dict[str, list[list[float]]], first: int) -> list[dict[str, Any]]:
    """Of each path: the sum of the first exchanges of a job, and the median of its later ones;
    medians of jobs, and of their ratios to the plain job of the same turn."""
    found = []
    parts = {"first": lambda job: sum(job[:first]),
             "later": lambda job: statistics.median(job[first:])}  # fmt: skip
    for path, jobs in taken.items():
        row: dict[str, Any] = {"data": data, "path": path, "jobs": len(jobs)}
        for name, part in parts.items():
            own = [part(job) for job in jobs]
            plain = [part(job) for job in taken[PLAIN]]
            row[name] = statistics.median(own)
            row[f"{name}_over_plain"] = median_interval(
                [one / other for one, other in zip(own, plain, strict=True)]
            )
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", help="of each of two hosts, 1gbit; default: one host")
    parser.add_argument("--bytes", default="8M", help="each way; default 8M")
    parser.add_argument("--count", type=int, default=60, help="exchanges of a job; default 60")
    parser.add_argument("--first", type=int, default=10, help="that count apart; default 10")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each; default 5")
    parser.add_argument("--specs", nargs="+", default=SPECS, metavar="SPEC")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    options.nbytes = _core.parse_bytes(options.bytes)
    plan = clusters.checked_plan(RANKS, options.rate, None) if options.rate else None
    taken: dict[str, dict[str, list[list[float]]]] = {
        data: {path: [] for path in (PLAIN, *options.specs)} for data in DATA
    }
    with clusters.Cluster(plan) if plan else nullcontext() as cluster:
        launcher = cluster.mpiexec(RANKS) if cluster else [str(BIN / "mpiexec")]
        for _ in range(options.rounds):
            for data, jobs in taken.items():
                for path in jobs:
                    job = seconds(data, path, options, launcher)
                    jobs[path].append(job)
                    median = 1e3 * statistics.median(job[options.first :])
                    print(f"{data:6} {path:14} {median:8.2f} ms", flush=True)
    document = {
        "kind": "exchange", "date": time.strftime("%Y-%m-%d"), "commit": git_commit(),
        "cpu": cpu_name(), "cores": os.cpu_count(), "rate": plan.rate if plan else None,
        "bytes": options.nbytes, "count": options.count, "first": options.first,
        "rows": [row for data in taken for row in rows(data, taken[data], options.first)],
    }  # fmt: skip
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
