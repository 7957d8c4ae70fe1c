"""The random program of tests/mpi/stress for as long as you like, under a new seed a run.

python tests/stress.py --seconds 3600 [--seed N] [--mpi NAME]

Runs of about a minute alternate between configurations; the first failure ends it and tells the
seed. `make stress SECONDS=3600 SEED=...` builds all that it needs.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from conftest import BIN, MPIS, ROOT, compile_mpi_program, execute

FORCED = ["--codec", "mpc", "--force", "--threshold", "0"]
# Ranks, threads, options of `mpress run`, size of a chunk.
CONFIGURATIONS = [
    (2, 1, FORCED, None),
    (2, 4, FORCED, None),
    (4, 1, FORCED, "8K"),
    (1, 1, FORCED, "8K"),
    (2, 2, FORCED, "16K"),
    (3, 2, ["--threshold", "4K", "--link-rate", "1Gbit"], None),
    (3, 1, FORCED, None),
]
SECONDS_A_RUN = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--mpi", choices=list(MPIS), default="default")
    chosen = parser.parse_args()
    mpi = MPIS[chosen.mpi]
    program = compile_mpi_program("stress", mpi, ROOT / "build")
    end = time.monotonic() + chosen.seconds
    number = 0
    while (left := end - time.monotonic()) > 0:
        ranks, threads, options, chunk = CONFIGURATIONS[number % len(CONFIGURATIONS)]
        seed = chosen.seed + number
        seconds = str(min(left, SECONDS_A_RUN))
        arguments = ["--seed", str(seed), "--threads", str(threads), "--seconds", seconds]
        careful = [] if options is FORCED else ["--careful"]
        command = [BIN / "mpress", "run", "-n", str(ranks), *options, "--", program, *arguments]
        env = {**mpi.env, **({"MPRESS_CHUNK": chunk} if chunk else {})}
        print(f"seed {seed}: {ranks} ranks, {threads} threads, chunks {chunk or '1M'}", flush=True)
        done = execute([*command, *careful], env, timeout=SECONDS_A_RUN * 10)
        if done.status != 0 or not done.stdout.endswith("ok\n"):
            sys.exit(f"{done.output}\nfailed: seed {seed}, {' '.join(options)}, chunks {chunk}")
        number += 1
    print(f"{number} runs from seed {chosen.seed} on: ok")


if __name__ == "__main__":
    main()
