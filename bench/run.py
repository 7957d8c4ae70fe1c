"""Measure the codecs, and the calls that stay raw, on this machine into bench/results/; write
docs/performance.md and docs/dev/results-*.md anew."""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPECS = (
    "mpc",
    "zfp:4",
    "zfp:8",
    "zfp:16",
    "szp:rel=1e-3",
    "szp:rel=1e-3,mode=dense",
    "szp:rel=1e-4",
    "szp:rel=1e-4,mode=dense",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="64M", help="bytes of a field")
    parser.add_argument("--repeat", default="7", help="repetitions; the fastest counts")
    options = parser.parse_args()
    command = [Path(sys.executable).parent / "mpress", "bench", "codec", "--size", options.size]
    command += ["--repeat", options.repeat, "--json", HERE / "results" / "codec-host.json"]
    for spec in SPECS:
        command += ["--spec", spec]
    subprocess.run(command, check=True)
    subprocess.run([sys.executable, HERE / "p2p_overhead.py"], check=True)
    subprocess.run([sys.executable, HERE / "report.py"], check=True)


if __name__ == "__main__":
    main()
