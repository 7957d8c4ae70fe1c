"""Measure mpress's own collective calls with a stream (bench/streams.c), on as many GPUs as ranks,
into bench/results/streams-two-h100.json: python bench/streams.py. It takes the mpicc on PATH and
CUDA's toolkit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_programs import compiled

import mpress
from mpress import __version__, tune
from mpress.p2p import memory

HERE = Path(__file__).resolve().parent
INSTALLED = Path(mpress.__file__).parent


def build(program: Path) -> None:
    library = INSTALLED / "lib"
    compiled(HERE / "streams.c", program, "-I", INSTALLED / "include", "-L", library, "-lmpress",
             f"-Wl,-rpath,{library}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "streams-two-h100.json")
    parser.add_argument("--commit", default="", help="what was measured")
    parser.add_argument("--ranks", type=int, default=0, help="all GPUs, unless said")
    parser.add_argument("--repeat", type=int, default=301)
    parser.add_argument("--program", type=Path, help="bench/streams.c, if it has been built")
    options = parser.parse_args()
    ranks = options.ranks or memory.devices()
    if ranks < 2:
        raise SystemExit("streams: it takes two GPUs")
    with tempfile.TemporaryDirectory() as folder:
        program = options.program or Path(folder) / "streams"
        if not options.program:
            build(program)
        command = [sys.executable, "-m", "mpress", "run", "-n", ranks, "--codec", "none", "--",
                   program, options.repeat]  # fmt: skip
        done = subprocess.run(
            [str(word) for word in command], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"MPRESS_PROFILE": "off"},
        )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"streams: the program ended with {done.returncode}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    import cupy

    document: dict[str, Any] = {
        "kind": "streams", "version": __version__, "commit": options.commit, "date": tune.today(),
        "gpu": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "most_ranks": ranks,
        "rows": rows,
    }  # fmt: skip
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
