"""Measure messages by the host link, and what bounds them, into bench/results/host-link-h200.json:
python bench/host_link.py. It takes two GPUs, nvcc and the mpicc on PATH.

First all GPUs copy out and in at once, by the NUMA node of the memory: the ceiling. Then messages
between two GPUs, one way and both ways at once, raw and encoded, by the host link and beside it by
MPI, in jobs by turns. Last, `auto` without any profile beside raw messages and NCCL, in one job.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from messages import DATA, has_air, write_data

from mpress import __version__, tune
from mpress.p2p import data, jobs, memory

HERE = Path(__file__).resolve().parent
JOBS = [
    (link, codec) for codec in ("none", "szp:rel=0.001", "zfp:4", "mpc") for link in ("host", "mpi")
]
BYTES = 256 << 20
AUTO_SIZES = (64 << 10, 1 << 20, 32 << 20)


def build(folder: Path) -> Path:
    shown = subprocess.run(["mpicc", "-show"], check=True, capture_output=True, text=True).stdout
    flags: list[str] = []
    for word in shown.split()[1:]:
        flags += ["-Xlinker", word[4:]] if word.startswith("-Wl,") else [word]
    program = folder / "host_link"
    command = ["nvcc", "-O2", "-std=c++17", "-o", program, HERE / "host_link.cu", *flags]
    subprocess.run(command, check=True)
    return program


def lines(command: list[Any], env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    done = subprocess.run(
        [str(word) for word in command], env=os.environ | (env or {}), stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"host_link: {command[0]} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def messages(program: Path, values: Path, link: str, codec: str, report: Path) -> list[Any]:
    options = ["--codec", codec, *(["--force"] if codec != "none" else [])]
    command = [sys.executable, "-m", "mpress", "run", "-n", "2", *options, "--report", report, "--"]
    env = {"MPRESS_LINK": link, "MPRESS_PROFILE": "off"}
    rows = lines([*command, program, "messages", values], env)
    totals = json.loads(report.read_text())["totals"]
    share = totals["host_messages"] / totals["messages"]
    return [row | {"link": link, "codec": codec, "by_host_link": round(share, 3)} for row in rows]


def autos(folder: Path, air: Path | None, seconds: float) -> list[dict[str, Any]]:
    """A row for each data set and size: `auto` over raw messages, and over NCCL without P2P."""
    names = [name for name in DATA if name != "air" or air or has_air()]
    plan = {
        "benchmark": "latency", "from": "device", "to": "device", "window": 1, "warmup": 20,
        "repeat": 61, "seconds": seconds, "files": write_data(folder, names, air),
        "cases": [{"data": name, "bytes": nbytes, "paths": ["none", "nccl", "auto"]}
                  for name in names for nbytes in AUTO_SIZES],
    }  # fmt: skip
    result = jobs.run(plan, "auto", link="host", environment={"MPRESS_PROFILE": "off"},
                      nccl_transport="shm")  # fmt: skip
    return jobs.summary(result, "latency", "auto", ("none", "nccl"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "host-link-h200.json")
    parser.add_argument("--commit", default="", help="what was measured")
    parser.add_argument("--air", type=Path, help="air temperatures: .f32 or .npy")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each case of `auto`")
    options = parser.parse_args()
    if memory.devices() < 2:
        raise SystemExit("host_link: it takes two GPUs")
    import cupy

    document: dict[str, Any] = {
        "kind": "host-link", "version": __version__, "commit": options.commit,
        "date": tune.today(), "gpus": memory.devices(),
        "gpu": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "rows": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder)
        document["ceiling"] = lines([program, "ceiling"])
        values = folder / "wave.f32"
        data.make("wave", BYTES, "f32", cupy).astype(np.float32).tofile(values)
        for link, codec in JOBS:
            rows = messages(program, values, link, codec, folder / "report.json")
            document["rows"] += rows
            for row in rows:
                ways = "both ways" if row["both"] else "one way"
                print(f"{codec}, {link}, {row['bytes']} bytes, {ways}: {row['us']} us", flush=True)
            options.json.write_text(json.dumps(document, indent=1) + "\n")
        document["auto"] = autos(folder, options.air, options.seconds)
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
