"""Measure messages between GPUs under the MPI of the environment, one that takes their memory
itself, with and without mpress: python bench/cuda_aware.py [--name WAY] [--seconds S] [--json F].

What stays raw, with mpress that leaves all to MPI (`none`) and one that decides (`auto`), is
measured beside MPI alone (`plain`) in one process each (bench/p2p_overhead.c): two jobs differ by
more than what is to be found. Codecs that are forced, by the peer link and by MPI, take turns with
MPI alone as jobs of two ranks on the same data; the program of the ranks is this file, too. A row
has the median of its rounds' medians, or of its pairs, in us a message, one way; those of `none`
and `auto` also the median of what their pairs took over, and more than, MPI alone.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import mpi4py
from p2p_overhead import pairs_of

mpi4py.rc.initialize = "--rank" in sys.argv  # whoever starts the jobs is no MPI program
from mpi4py import MPI  # noqa: E402

from mpress.codec_bench import git_commit  # noqa: E402
from mpress.p2p import memory  # noqa: E402

CODED_SIZES = (64 << 10, 1 << 20, 8 << 20, 32 << 20, 256 << 20)
SPECS = ("szp:rel=0.001", "zfp:4", "mpc")
PATTERNS = {  # of bench/p2p_overhead.c: shape, and messages that follow one another
    "ping-pong: Send, Recv": ("latency", 2),
    "window of 16, one way": ("window", 16),
    "window of 16, both ways": ("both", 16),
}
LEAST, MOST = 5, 200  # samples
FORCED = ("--force", "--threshold", "0")


class Pair:
    """One process of a job: messages of one size to the other, and from it."""

    def __init__(self, nbytes: int) -> None:
        import cupy

        from mpress.p2p import data

        self.comm = MPI.COMM_WORLD
        self.peer = 1 - self.comm.rank
        self.there = cupy.asarray(data.make("wave", nbytes, "f32", cupy))
        self.back = cupy.empty_like(self.there)
        cupy.cuda.Device().synchronize()
        # By address: what CuPy's arrays tell of themselves takes longer than a short message.
        self.sent, self.received = (
            [MPI.memory.fromaddress(array.data.ptr, nbytes), nbytes // 4, MPI.FLOAT]
            for array in (self.there, self.back)
        )

    def latency(self) -> None:
        if self.comm.rank == 0:
            self.comm.Send(self.sent, self.peer)
            self.comm.Recv(self.received, self.peer)
        else:
            self.comm.Recv(self.received, self.peer)
            self.comm.Send(self.sent, self.peer)

    def samples(self, seconds: float) -> list[float]:
        """Times there and back, for about `seconds`."""
        self.comm.Barrier()
        for _ in range(6):
            self.latency()
        begin, found = time.perf_counter(), []
        while True:
            for _ in range(LEAST):
                start = time.perf_counter()
                self.latency()
                found.append(time.perf_counter() - start)
            is_over = time.perf_counter() - begin > seconds or len(found) >= MOST
            if self.comm.bcast(is_over if self.comm.rank == 0 else None):
                return found


def rank(plan: dict[str, Any], out: str) -> None:
    """One process of a job."""
    import cupy

    cupy.cuda.Device(MPI.COMM_WORLD.rank % memory.devices()).use()
    rows = []
    for nbytes in plan["sizes"]:
        pair = Pair(nbytes)
        taken = statistics.median(pair.samples(plan["seconds"]))
        rows.append({"shape": "latency", "bytes": nbytes, "seconds": taken / 2})
    if MPI.COMM_WORLD.rank == 0:
        Path(out).write_text(json.dumps(rows))


def run(plan: dict[str, Any], options: tuple[str, ...] | None, environment: dict[str, str]) -> list:
    """The rows of one job; `options` are of mpress run, None: without mpress."""
    with tempfile.TemporaryDirectory() as folder:
        plan_file, out = Path(folder) / "plan.json", Path(folder) / "rows.json"
        plan_file.write_text(json.dumps(plan))
        program = [sys.executable, "-m", "mpi4py", __file__, "--rank", str(plan_file), str(out)]
        mpiexec = shutil.which("mpiexec") or "mpiexec"
        command = [mpiexec, "-n", "2", *program]
        if options is not None:
            start = [sys.executable, "-m", "mpress", "run", "--mpiexec", mpiexec, "-n", "2"]
            command = [*start, *options, "--", *program]
        env = os.environ | {"MPI4PY_RC_THREAD_LEVEL": "single"} | environment
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0 or not out.exists():
            raise SystemExit(f"{options} {environment}: {done.stderr}{done.stdout}")
        return json.loads(out.read_text())


def raw_rows() -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "p2p_overhead")
        source = Path(__file__).with_name("p2p_overhead.c")
        subprocess.run(["mpicc", "-O2", "-o", program, source, "-ldl"], check=True)
        for codec in ("none", "auto"):
            command = [sys.executable, "-m", "mpress", "run", "-n", "2", "--mpiexec",
                       shutil.which("mpiexec") or "mpiexec", "--codec", codec, "--",
                       program, "24", "120", "single", "device"]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"{codec}: {done.stderr}{done.stdout}")
            rows += rows_of(done.stdout, codec, has_plain=codec == "none")
    return rows


def rows_of(text: str, codec: str, has_plain: bool) -> list[dict[str, Any]]:
    """The rows of what p2p_overhead printed."""
    rows = []
    for (pattern, nbytes, _), pairs in pairs_of(text).items():
        if pattern not in PATTERNS:
            continue
        shape, messages = PATTERNS[pattern]
        case = {"shape": shape, "bytes": nbytes}
        plain_us, us, added_us = (
            statistics.median(values) / messages / 1e3
            for values in zip(*((a, b, b - a) for a, b in pairs), strict=True)
        )
        if has_plain:
            rows.append({"path": "plain", **case, "us": plain_us})
        over = statistics.median(b / a for a, b in pairs)
        rows.append({"path": codec, **case, "us": us, "over": over, "added_us": added_us})
    return rows


def measure(seconds: float, rounds: int, only_forced: bool) -> list[dict[str, Any]]:
    coded: dict[str, Any] = {"sizes": CODED_SIZES}
    mpi, peer = {"MPRESS_LINK": "mpi"}, {"MPRESS_LINK": "auto"}
    jobs: dict[str, tuple[dict[str, Any], tuple[str, ...] | None, dict[str, str]]] = {
        "plain, long": (coded, None, {}),
    }
    for spec in SPECS:
        jobs[f"{spec}, peer"] = (coded, ("--codec", spec, *FORCED), peer)
        jobs[f"{spec}, mpi"] = (coded, ("--codec", spec, *FORCED), mpi)
    if only_forced:
        jobs = {name: job for name, job in jobs.items() if name.endswith("peer")}
    cases = sum(len(plan["sizes"]) for plan, *_ in jobs.values())
    start = 2.5 * len(jobs)  # seconds that processes take to start
    each = max(seconds / rounds - start, 1) / cases
    found: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, (plan, options, environment) in jobs.items():
            for row in run(plan | {"seconds": each}, options, environment):
                found[name, row["shape"], row["bytes"]].append(row["seconds"])
    return ([] if only_forced else raw_rows()) + [
        {"path": name, "shape": shape, "bytes": nbytes, "us": 1e6 * statistics.median(times),
         "rounds_us": [round(1e6 * t, 2) for t in times]}
        for (name, shape, nbytes), times in found.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--name", default="mpi", help="what carries messages")
    parser.add_argument("--seconds", type=float, default=60, help="of all, about")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each job (default: 3)")
    parser.add_argument(
        "--only-forced", action="store_true", help="by the peer link: for an MPI that knows no GPUs"
    )
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args()
    if options.rank:
        rank(json.loads(Path(options.rank[0]).read_text()), options.rank[1])
        return
    gpu = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True, text=True,
    )  # fmt: skip
    document = {
        "kind": "cuda-aware", "name": options.name,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "gpu": gpu.stdout.splitlines()[:1], "mpi": MPI.Get_library_version().split(",")[0],
        "commit": os.environ.get("COMMIT") or git_commit(),
        "rows": measure(options.seconds, options.rounds, options.only_forced),
    }  # fmt: skip
    for row in document["rows"]:
        print(f"{row['path']:24} {row['shape']:8} {row['bytes']:10} {row['us']:10.2f} us")
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
