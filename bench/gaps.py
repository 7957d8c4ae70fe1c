"""Measure messages of types with gaps between two GPUs (bench/gaps.c), with mpress and, where the
MPI takes memory of devices, by it alone: python bench/gaps.py --name NAME [--alone] [--json F]. It
takes the mpicc and mpiexec on PATH and CUDA's toolkit.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from gpu_programs import compiled

from mpress import __version__, tune

HERE = Path(__file__).resolve().parent


def times(command: list[Any], seconds: float) -> dict[tuple[int, int], float]:
    """Microseconds a message, by bytes and bytes of a run, of as many as it managed in time."""
    env = os.environ | {"MPRESS_PROFILE": "off", "MPRESS_CODEC": "none"}
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, text=True, env=env
    ) as job:
        try:
            text, _ = job.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            job.terminate()
            text, _ = job.communicate()
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {(row["bytes"], row["run"]): row["us"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True, help="of the MPI and its way, for the heading")
    parser.add_argument("--alone", action="store_true", help="by the MPI alone, too")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="for each row of a job")
    parser.add_argument("--most", type=float, default=30, help="seconds for a job")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--commit", default="", help="what was measured")
    options = parser.parse_args()
    mpiexec = shutil.which("mpiexec")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "gaps"
        compiled(HERE / "gaps.c", program)
        ranks = ["-n", 2]
        by = {"mpress": [sys.executable, "-m", "mpress", "run", *ranks, "--mpiexec", mpiexec, "--"]}
        if options.alone:
            by["alone"] = [mpiexec, *ranks]
        found: dict[tuple[int, int], dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for _ in range(options.rounds):
            for name, command in by.items():
                for key, us in times([*command, program, options.seconds], options.most).items():
                    found[key][name].append(us)
    rows = [
        {"bytes": size, "run": run, **{name: round(statistics.median(us), 2)
                                       for name, us in ways.items()}}
        for (size, run), ways in found.items()
    ]  # fmt: skip
    import cupy

    document = {
        "kind": "gaps", "name": options.name, "version": __version__, "commit": options.commit,
        "date": tune.today(), "gpu": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "most_ranks": 2, "rounds": options.rounds, "rows": rows,
    }  # fmt: skip
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
