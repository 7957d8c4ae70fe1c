"""What exchanges between GPUs cost with this build beside an older one, by turns, where the default
streams are idle, have just been given a cudaMemset, or a blocking stream holds 5 ms of work
(bench/default_streams.c): python bench/default_streams.py --older FOLDER --newer FOLDER, where each
FOLDER holds the package mpress of a build. It takes the mpicc on PATH and CUDA's toolkit.
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

from gpu_programs import compiled

HERE = Path(__file__).resolve().parent


def run(package: Path, program: Path, link: str, repeat: int) -> list[dict[str, object]]:
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "mpress", "run", "-n", "2", "--codec", "none", "--",
               program, str(repeat)]  # fmt: skip
    env = {"PYTHONPATH": path, "MPRESS_PROFILE": "off", "MPRESS_LINK": link}
    done = subprocess.run(
        command, env=os.environ | env, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--older", type=Path, required=True)
    parser.add_argument("--newer", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=301)
    parser.add_argument("--links", nargs="+", default=["peer", "mpi"])
    parser.add_argument("--program", type=Path, help="bench/default_streams.c, if built")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = given.program or Path(folder) / "default_streams"
        if not given.program:
            compiled(HERE / "default_streams.c", program)
        for link in given.links:
            times = {"older": defaultdict(list), "newer": defaultdict(list)}
            for _ in range(given.rounds):
                for which, found in times.items():
                    for row in run(getattr(given, which), program, link, given.repeat):
                        for what in ("exchange", "one_way"):
                            found[row["mode"], row["bytes"], what].append(row[what])
            for key, newer in times["newer"].items():
                older = times["older"][key]
                more = [new - old for new, old in zip(newer, older, strict=True)]
                mode, nbytes, what = key
                print(
                    f"{link:5} {mode:5} {nbytes:8} B {what:9} "
                    f"older {statistics.median(older):8.2f} us, "
                    f"newer {statistics.median(newer):8.2f} us, "
                    f"{statistics.median(more):+6.2f} ({min(more):+.2f} to {max(more):+.2f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
