"""The random program of tests/mpi/stress for as long as you like, under a new seed a run.

python tests/stress.py --seconds 3600 [--seed N] [--mpi NAME] [--cuda]

Runs of about a minute alternate between configurations; the first failure ends it and prints the
seed. `make stress SECONDS=3600 SEED=...` builds all that it needs. `--cuda` runs what has device
memory on real GPUs.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compiled_programs import compile_mpi_program, simulated_gpu_library
from execution import BIN, ROOT, execute
from mpis import MPIS, mpi_of

FORCED = ["--codec", "mpc", "--force", "--threshold", "0"]
RAW = ["--codec", "none"]
HOST, BY_HOST, LINKED = [], ["--devices"], ["--devices", "--linked"]
PINNED = ["--devices", "--pinned"]
TAKEN = ["--devices", "--taken"]  # by the MPI, too
LINKS = {"--linked": "peer", "--pinned": "host"}
# Ranks, threads, options of `mpress run`, size of a chunk; what lies on simulated GPUs.
CONFIGURATIONS = [
    (2, 1, FORCED, None, HOST),
    (2, 4, FORCED, None, HOST),
    (3, 1, FORCED, "8K", BY_HOST),
    (3, 1, FORCED, "8K", LINKED),
    (4, 1, FORCED, "8K", HOST),
    (2, 3, RAW, "8K", LINKED),
    (1, 1, FORCED, "8K", HOST),
    (2, 3, FORCED, None, BY_HOST),
    (4, 1, FORCED, "4K", [*LINKED, "--one-way"]),
    (2, 2, FORCED, "16K", HOST),
    (3, 2, FORCED, "8K", PINNED),
    (2, 2, FORCED, "8K", [*LINKED, "--scarce"]),
    (3, 2, ["--threshold", "4K", "--link-rate", "1Gbit"], None, HOST),
    (2, 2, RAW, "8K", BY_HOST),
    (3, 1, FORCED, None, HOST),
    (3, 1, RAW, None, TAKEN),
    (2, 3, FORCED, "8K", TAKEN),
]
SECONDS_A_RUN = 60
SIMULATED_ONLY = {"--one-way", "--scarce", "--taken"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--mpi", default="default", help=f"{', '.join(MPIS)}, or an mpicc")
    parser.add_argument("--cuda", action="store_true")
    chosen = parser.parse_args()
    mpi = mpi_of(chosen.mpi)
    build = Path(os.environ.get("TESTS_BUILD_DIR", ROOT / "build"))
    program = compile_mpi_program("stress", mpi, build, cuda=chosen.cuda)
    configurations = [
        configuration
        for configuration in CONFIGURATIONS
        if not chosen.cuda
        or (configuration[4] and not SIMULATED_ONLY.intersection(configuration[4]))
    ]
    end = time.monotonic() + chosen.seconds
    number = 0
    while (left := end - time.monotonic()) > 0:
        seed = chosen.seed + number
        ranks, threads, options, chunk, devices = configurations[seed % len(configurations)]
        seconds = str(min(left, SECONDS_A_RUN))
        arguments = ["--seed", str(seed), "--threads", str(threads), "--seconds", seconds]
        if options is not FORCED:
            arguments.append("--careful")
        env = {**mpi.env, **({"MPRESS_CHUNK": chunk} if chunk else {})}
        if devices:
            arguments += [
                option for option in devices if option not in LINKS and option != "--taken"
            ]
            if devices is TAKEN:
                env |= {"SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
            if not chosen.cuda:
                env["MPRESS_GPU"] = str(simulated_gpu_library(build))
                env["SIMULATED_GPU_LEAKS"] = "shared"
            env["MPRESS_LINK"] = next(
                (LINKS[option] for option in devices if option in LINKS), "mpi"
            )
        what = f"{ranks} ranks, {threads} threads, chunks {chunk or '1M'}"
        print(f"seed {seed}: {' '.join([what + ',', *options, *devices])}", flush=True)
        command = [BIN / "mpress", "run", "-n", str(ranks), *options, "--", program, *arguments]
        done = execute(command, env, timeout=SECONDS_A_RUN * 10)
        if done.status != 0 or not done.stdout.endswith("ok\n"):
            how = " ".join([*options, *devices])
            sys.exit(f"{done.output}\nfailed: seed {seed}, {how}, chunks {chunk}")
        number += 1
    print(f"{number} runs from seed {chosen.seed} on: ok")


if __name__ == "__main__":
    main()
