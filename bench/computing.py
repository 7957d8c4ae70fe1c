"""An Isend of host memory, computing without a call, and its Wait, beside the message and the
computing alone, by turns: mpress run -n 2 ... -- python -m mpi4py bench/computing.py OUT.

Times are the receiver's, in milliseconds: medians of REPEAT rounds.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

BYTES = 64 << 20
COMPUTES = 0.05
REPEAT = 11


def main() -> None:
    comm = MPI.COMM_WORLD
    wave = np.sin(np.arange(BYTES // 4, dtype=np.float32) * np.float32(1e-3))
    into = np.empty_like(wave)

    def message(computes: float) -> float:
        comm.Barrier()
        begin = time.perf_counter()
        if comm.rank == 0:
            request = comm.Isend(wave, 1)
            end = time.perf_counter() + computes
            while time.perf_counter() < end:
                pass
            request.Wait()
        else:
            comm.Recv(into, 0)
        return comm.bcast(time.perf_counter() - begin, 1)

    alone, with_computing = [], []
    for k in range(REPEAT + 2):
        times = message(0), message(COMPUTES)
        if k >= 2:
            alone.append(times[0])
            with_computing.append(times[1])
    if comm.rank == 0:
        row = {"alone_ms": 1e3 * statistics.median(alone), "computes_ms": 1e3 * COMPUTES,
               "together_ms": 1e3 * statistics.median(with_computing)}  # fmt: skip
        row["ratio"] = row["together_ms"] / max(row["alone_ms"], row["computes_ms"])
        Path(sys.argv[1]).write_text(json.dumps(row, indent=1) + "\n")
        print(json.dumps(row))


if __name__ == "__main__":
    main()
