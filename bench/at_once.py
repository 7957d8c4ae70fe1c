"""Several messages between two GPUs at once beside one of their size together, by turns:
mpress run -n 2 ... -- python -m mpi4py bench/at_once.py OUT.

A row for each direction: medians of REPEAT rounds, in microseconds, and their ratio.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import cupy as cp
from mpi4py import MPI

BYTES = 32 << 20
COUNT = 8
REPEAT = 41
WARMUP = 8


def main() -> None:
    comm = MPI.COMM_WORLD
    cp.cuda.Device(comm.rank % cp.cuda.runtime.getDeviceCount()).use()
    wave = cp.sin(cp.arange(COUNT * BYTES // 4, dtype=cp.float32) * cp.float32(1e-3))
    into = cp.empty_like(wave)
    cp.cuda.Device().synchronize()
    other = 1 - comm.rank
    rows = []
    for both in (False, True):

        def exchange(pieces: int, both: bool = both) -> float:
            sent, got = cp.split(wave, pieces), cp.split(into, pieces)
            comm.Barrier()
            begin = time.perf_counter()
            requests = []
            if both or comm.rank == 1:
                requests += [comm.Irecv(piece, other, k) for k, piece in enumerate(got)]
            if both or comm.rank == 0:
                requests += [comm.Isend(piece, other, k) for k, piece in enumerate(sent)]
            MPI.Request.Waitall(requests)
            return comm.allreduce(time.perf_counter() - begin, MPI.MAX)

        times: dict[int, list[float]] = {1: [], COUNT: []}
        for k in range(REPEAT + WARMUP):
            for pieces, all_of in times.items():
                took = exchange(pieces)
                if k >= WARMUP:
                    all_of.append(took)
        one, several = (1e6 * statistics.median(times[pieces]) for pieces in (1, COUNT))
        rows.append({"both_ways": both, "one_us": one, "at_once_us": several,
                     "ratio": several / one})  # fmt: skip
    if comm.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(rows, indent=1) + "\n")
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
