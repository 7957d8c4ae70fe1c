"""How long MPI_Isend of device memory takes to return, and what its receiver sees while the sender
computes without a call of MPI's: mpress run -n 2 ... -- python -m mpi4py bench/isend_return.py OUT.

A row for each delay: the median of REPEAT messages of BYTES bytes.
"""

import json
import statistics
import sys
import time

import cupy as cp
from mpi4py import MPI

BYTES = 256 << 20
REPEAT = 15
DELAYS = (0.0, 0.05)


def main() -> None:
    comm = MPI.COMM_WORLD
    cp.cuda.Device(comm.rank % cp.cuda.runtime.getDeviceCount()).use()
    wave = cp.sin(cp.arange(BYTES // 4, dtype=cp.float32) * cp.float32(1e-3))
    into = cp.empty_like(wave)
    cp.cuda.Device().synchronize()
    rows = []
    for delay in DELAYS:
        returned, received = [], []
        for k in range(REPEAT + 4):
            comm.Barrier()
            begin = time.perf_counter()
            if comm.rank == 0:
                request = comm.Isend(wave, 1)
                end = time.perf_counter()
                while time.perf_counter() - begin < delay:
                    pass
                request.Wait()
                if k >= 4:
                    returned.append(end - begin)
            else:
                comm.Recv(into, 0)
                if k >= 4:
                    received.append(time.perf_counter() - begin)
        seconds = comm.gather(statistics.median(returned or received))
        if comm.rank == 0:
            rows.append(
                {"delay_s": delay, "isend_us": seconds[0] * 1e6, "receive_us": seconds[1] * 1e6}
            )
            print(rows[-1], flush=True)
    if comm.rank == 0:
        with open(sys.argv[1], "w") as out:
            json.dump(rows, out)


if __name__ == "__main__":
    main()
