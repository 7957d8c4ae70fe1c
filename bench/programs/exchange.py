"""Two ranks exchange doubles by MPI_Sendrecv, again and again: plain MPI, which knows nothing of
mpress. Rank 0 writes the seconds of each exchange, of the rank that took longest, to FILE:

    mpiexec -n 2 python exchange.py sines|wave BYTES COUNT FILE [FOLDER]

With FOLDER both ranks wait after a quarter of them: rank 0 makes the file FOLDER/waits, and goes on
once FOLDER/go is there.
"""

import json
import sys
import time
from pathlib import Path

import numpy
from mpi4py import MPI

from mpress import fields


def data(name: str, count: int) -> numpy.ndarray:
    """sines: a sum of waves along a line. wave: of mpress bench, most of which is noise to a codec
    without loss."""
    if name == "sines":
        t = numpy.linspace(0, numpy.pi, count)
        return numpy.sin(40 * t) + 0.5 * numpy.cos(17.3 * t) + 0.1 * numpy.sin(400 * t)
    side = max(16, round((2 * count) ** (1 / 3)))
    return numpy.resize(fields.make("wave", (side, side, side), "f64").reshape(-1), count)


def wait_in(folder: Path, comm: MPI.Comm) -> None:
    if comm.rank == 0:
        (folder / "waits").touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
    comm.Barrier()


def main() -> None:
    comm = MPI.COMM_WORLD
    out = data(sys.argv[1], int(sys.argv[2]) // 8)
    number, file = int(sys.argv[3]), Path(sys.argv[4])
    folder = Path(sys.argv[5]) if len(sys.argv) > 5 else None
    come = numpy.empty_like(out)
    taken = numpy.zeros(number)
    for i in range(number):
        if folder and i == number // 4:
            wait_in(folder, comm)
        comm.Barrier()
        begin = time.perf_counter()
        comm.Sendrecv(out, 1 - comm.rank, recvbuf=come, source=1 - comm.rank)
        taken[i] = time.perf_counter() - begin
    if numpy.abs(come - out).max() > 2e-4 * numpy.ptp(out):
        raise SystemExit(f"rank {comm.rank}: what came is not what was sent")
    longest = numpy.empty_like(taken)
    comm.Reduce(taken, longest, MPI.MAX)
    if comm.rank == 0:
        file.write_text(json.dumps(longest.tolist()))


if __name__ == "__main__":
    main()
