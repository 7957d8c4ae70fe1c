"""Measure what a call of mpress.Communicator takes over mpi4py's own, where nothing is compressed,
into bench/results/communicator-host.json. Then: python bench/report_communicator.py.

Over mpi4py under `mpress run`, blocks of calls go by turns within a job, and the difference of each
pair of blocks counts. mpi4py without mpress needs a job of its own, so jobs go by turns, and of
each pair of jobs the difference of the medians counts.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
SIZES = (8, 1024)
CALLS = 100
"""In a block."""

Times = dict[tuple[str, int], list[float]]
"""By the name of the call, and its bytes."""


def in_rank(kinds: list[str], blocks: int) -> None:
    """Prints for each pair, or block: call, bytes, microseconds a call of each kind."""
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms: dict[str, Any] = {"mpi4py": world}
    if "communicator" in kinds:
        import mpress

        comms["communicator"] = mpress.Communicator(world)
    rank, other = world.rank, world.size - 1 - world.rank

    def times(call: Callable[[], Any]) -> float:
        world.Barrier()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        return (time.perf_counter() - begin) / CALLS * 1e6

    def calls_of(comm: Any, nbytes: int) -> dict[str, Callable[[], Any]]:
        x, y = np.ones(nbytes // 8), np.zeros(nbytes // 8)
        return {
            "Allreduce": lambda: comm.Allreduce(x, y),
            "Bcast": lambda: comm.Bcast(x, root=0),
            "Sendrecv": lambda: comm.Sendrecv(x, other, 1, y, other, 1),
        }

    for nbytes in SIZES:
        calls = [calls_of(comms[kind], nbytes) for kind in kinds]
        for name in calls[0]:
            for block in range(-3, blocks):  # the first ones warm up
                turn = range(len(kinds)) if block % 2 else reversed(range(len(kinds)))
                found = {k: times(calls[k][name]) for k in turn}
                if rank == 0 and block >= 0:
                    print(name, nbytes, *(found[k] for k in range(len(kinds))), sep="\t")


def job(ranks: int, preloaded: bool, kinds: list[str], blocks: int) -> list[Times]:
    """The times of each kind, in the order of the blocks."""
    program = [sys.executable, HERE / "communicator.py", "--in-rank", ",".join(kinds)]
    program += ["--blocks", str(blocks)]
    mpiexec = [BIN / "mpiexec", "-n", str(ranks)]
    if preloaded:
        mpiexec = [BIN / "mpress", "run", "-n", str(ranks), "--mpiexec", BIN / "mpiexec", "--"]
    done = subprocess.run([*mpiexec, *program], check=True, stdout=subprocess.PIPE, text=True)
    found: list[Times] = [defaultdict(list) for _ in kinds]
    for line in done.stdout.splitlines():
        name, nbytes, *times = line.split("\t")
        for k, us in enumerate(times):
            found[k][name, int(nbytes)].append(float(us))
    return found


def rows_of(beside: str, ranks: int, own: Times, others: Times) -> list[dict[str, Any]]:
    """`others` are mpi4py's; pairs are at the same place."""
    from mpress.p2p.jobs import median_interval

    rows = []
    for (name, nbytes), times in own.items():
        base = others[name, nbytes]
        added = [ours - theirs for ours, theirs in zip(times, base, strict=True)]
        median, low, high = median_interval(added)
        rows.append({
            "beside": beside, "ranks": ranks, "call": name, "bytes": nbytes, "pairs": len(added),
            "mpi4py_us": round(statistics.median(base), 3), "added_us": round(median, 3),
            "interval_us": [round(low, 3), round(high, 3)],
        })  # fmt: skip
    return rows


def measure(ranks: int, blocks: int, jobs: int) -> list[dict[str, Any]]:
    own, others = job(ranks, True, ["communicator", "mpi4py"], blocks)
    rows = rows_of("preload", ranks, own, others)
    ours: Times = defaultdict(list)
    plain: Times = defaultdict(list)
    for number in range(jobs):
        turns = [("communicator", ours), ("mpi4py", plain)]
        for kind, kept in turns if number % 2 else reversed(turns):
            [times] = job(ranks, False, [kind], max(blocks // jobs, 5))
            for key, values in times.items():
                kept[key].append(statistics.median(values))
    return rows + rows_of("plain", ranks, ours, plain)


def mpi_version() -> str:
    code = "from mpi4py import MPI; print(MPI.Get_library_version())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return " ".join(done.stdout.split("\n")[0].split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=400, help="pairs of blocks for each line")
    parser.add_argument("--jobs", type=int, default=20, help="pairs of jobs, beside plain mpi4py")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "communicator-host.json")
    parser.add_argument("--in-rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_rank:
        in_rank(options.in_rank.split(","), options.blocks)
        return
    from mpress import _core
    from mpress.codec_bench import cpu_name, git_commit

    load_before = os.getloadavg()[0]
    rows = [row for ranks in (1, 2) for row in measure(ranks, options.blocks, options.jobs)]
    document = {
        "format": 1,
        "kind": "communicator",
        "date": datetime.now(timezone.utc).date().isoformat(),
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "load_average": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "mpi": mpi_version(),
        "versions": {
            "mpress": _core.build_info()["version"],
            "python": platform.python_version(),
            "mpi4py": metadata.version("mpi4py"),
            "numpy": metadata.version("numpy"),
        },
        "commit": git_commit(),
        "rows": rows,
    }
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    print(f"wrote {options.json}")


if __name__ == "__main__":
    main()
