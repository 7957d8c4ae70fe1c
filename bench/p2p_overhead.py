"""Measure what mpress costs a call where nothing is compressed (bench/p2p_overhead.c), into
bench/results/p2p-overhead-host.json."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mpress import _core
from mpress.codec_bench import cpu_name, git_commit
from mpress.p2p import memory
from mpress.p2p.jobs import median_interval

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
RUNS = [(1, "single", False), (1, "multiple", False), (2, "single", False)]
GPU_RUNS = [(1, "single", True), (2, "single", True)]
"""In a process that uses a GPU."""


Pairs = dict[tuple[str, int, int], list[tuple[float, float]]]


def pairs_of(text: str) -> Pairs:
    """What the program printed: (MPI alone, mpress) in nanoseconds a repetition, by pattern, bytes,
    and calls a repetition."""
    pairs: Pairs = defaultdict(list)
    for line in text.splitlines():
        name, size, per_repetition, plain, mpress = line.split("\t")
        pairs[name, int(size), int(per_repetition)].append((float(plain), float(mpress)))
    return pairs


def measure(
    program: Path, ranks: int, threads: str, cuda: bool, blocks: int
) -> list[dict[str, Any]]:
    # Between ranks the noise is larger than what is sought: shorter blocks, and many of them.
    size = [blocks, 100] if ranks == 1 else [20 * blocks, 10]
    command = [BIN / "mpress", "run", "-n", str(ranks), "--", program, *map(str, size), threads]
    command += ["cuda"] if cuda else []
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows = []
    for (name, size, per_repetition), times in pairs_of(done.stdout).items():
        added = [(mpress - plain) / per_repetition for plain, mpress in times]
        median, low, high = median_interval(added)
        plain = statistics.median(plain for plain, _ in times) / per_repetition
        rows.append({
            "ranks": ranks, "threads": threads, "cuda": cuda, "pattern": name, "bytes": size,
            "calls": per_repetition, "pairs": len(times), "plain_ns": round(plain, 1),
            "added_ns": round(median, 1), "interval_ns": [round(low, 1), round(high, 1)],
        })  # fmt: skip
    return rows


def mpi_version(directory: str) -> str:
    code = "import ctypes, sys; b = ctypes.create_string_buffer(8192); n = ctypes.c_int(); "
    code += "ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(b, ctypes.byref(n)); "
    code += "print(b.value.decode().split('\\n')[0])"
    program = Path(directory) / "p2p_overhead"
    linked = subprocess.run(["ldd", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    [path] = [
        line.split()[2] for line in linked.splitlines() if line.split()[0].startswith("libmpi")
    ]
    asked = [sys.executable, "-c", code, path]
    text = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout
    return " ".join(text.split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=400, help="pairs of blocks for each line")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "p2p-overhead-host.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "p2p_overhead"
        command = [BIN / "mpicc", "-O2", "-o", program, HERE / "p2p_overhead.c", "-ldl"]
        subprocess.run(command, check=True)
        load_before = os.getloadavg()[0]
        runs = RUNS + (GPU_RUNS if memory.devices() > 0 else [])
        rows = [row for run in runs for row in measure(program, *run, options.blocks)]
        document = {
            "format": 1,
            "kind": "p2p-overhead",
            "date": datetime.now(timezone.utc).date().isoformat(),
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "load_average": [round(load_before, 1), round(os.getloadavg()[0], 1)],
            "mpi": mpi_version(directory),
            "versions": {"mpress": _core.build_info()["version"]},
            "commit": git_commit(),
            "rows": rows,
        }
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
