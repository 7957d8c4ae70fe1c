"""Work of the program's own on GPUs while messages in device memory travel. Two ranks:

    mpiexec -n 2 python beside.py nccl|kernel|streams

nccl    PyTorch reduces over NCCL, on streams of its own: rank 0 begins each reduction before a
        message each way, and rank 1 after it
kernel  a kernel runs until a message each way has come
streams seven streams wait for that, with copies and kernels behind, which are too many for a GPU
        that looks at as many as it does by default

The first message comes before all that: it has mpress's kernels loaded, for which CUDA waits until
the device is idle. Those that follow are of all codecs and layouts. Ends with an error, and says
where each thread was, if a message takes half a minute.
"""

import faulthandler
import sys
import tempfile
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

ROWS, COLUMNS = 2048, 4096
SPECS = ("none", "mpc", "zfp:16", "szp:abs=1e-3", "szp:rel=1e-4,mode=dense")

comm = MPI.COMM_WORLD
rank, peer = comm.rank, 1 - comm.rank


def with_codec(spec):
    info = MPI.Info.Create()
    info.Set("mpress_codec", spec)
    return comm.Dup_with_info(info)


@dataclass
class Kind:
    """Messages of some columns of a matrix, on a communicator with its codec."""

    on: MPI.Comm
    dtype: str
    columns: slice
    count: int
    datatype: MPI.Datatype

    def exchange(self, out, received):
        faulthandler.dump_traceback_later(30, exit=True)
        message = [out, self.count, self.datatype]
        answer = [received, self.count, self.datatype]
        self.on.Sendrecv(message, peer, recvbuf=answer, source=peer)

    def check(self, received, round_number):
        expected = field(peer, round_number, self.dtype)[:, self.columns]
        assert np.allclose(received[:, self.columns], expected, atol=0.05), f"round {round_number}"


def kinds_of_messages():
    """A raw one first."""
    for spec in SPECS:
        on = with_codec(spec)
        yield Kind(on, "f4", slice(None), ROWS * COLUMNS, MPI.FLOAT)
        yield Kind(on, "f8", slice(None), ROWS * COLUMNS, MPI.DOUBLE)
        column = MPI.FLOAT.Create_vector(ROWS, 3, COLUMNS).Commit()
        yield Kind(on, "f4", slice(3), 1, column)


def field(owner, round_number, dtype):
    values = np.sin(np.arange(ROWS * COLUMNS) / 1000) + owner + 2 * round_number
    return values.astype(dtype).reshape(ROWS, COLUMNS)


def beside_nccl(kinds):
    import torch
    from torch import distributed

    torch.cuda.set_device(rank % torch.cuda.device_count())
    folder = tempfile.TemporaryDirectory() if rank == 0 else None
    path = comm.bcast(f"{folder.name}/store" if folder else None)
    store = distributed.FileStore(path, comm.size)
    distributed.init_process_group("nccl", store=store, rank=rank, world_size=comm.size)
    side = torch.cuda.Stream()
    values = torch.empty(1 << 22, device="cuda")

    def begin():
        with torch.cuda.stream(side):
            return distributed.all_reduce(values, async_op=True)

    begin().wait()  # the first one sets up NCCL, in all ranks together
    for round_number, kind in enumerate(kinds):
        values.fill_(rank + 1)
        out = torch.from_numpy(field(rank, round_number, kind.dtype)).cuda()
        received = torch.zeros_like(out)
        torch.cuda.synchronize()
        work = begin() if rank == 0 and round_number > 0 else None
        kind.exchange(out, received)
        work = work or begin()
        work.wait()
        torch.cuda.synchronize()
        kind.check(received.cpu().numpy(), round_number)
        assert (values == 3).all()
    comm.Barrier()
    distributed.destroy_process_group()
    if folder:
        folder.cleanup()


SPIN = """
extern "C" __global__ void spin(volatile const int* ready) {
  while (*ready == 0) {}
}
"""


def beside_a_kernel(kinds, streams=1):
    """With one stream that kernel alone, with several work behind it in each."""
    import cupy

    cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
    spin = cupy.RawKernel(SPIN, "spin")
    pinned = cupy.cuda.alloc_pinned_memory(4)
    ready = np.frombuffer(pinned, np.int32, 1)
    sides = [cupy.cuda.Stream(non_blocking=True) for _ in range(streams)]
    behind = [cupy.zeros(1 << 16, np.float32) for _ in sides]
    aside = cupy.cuda.alloc_pinned_memory(behind[0].nbytes)

    def launch():
        for side, values in zip(sides, behind, strict=True):
            with side:
                spin((1,), (1,), (cupy.uint64(pinned.ptr),))
                if streams == 1:
                    return
                values.data.copy_to_host_async(aside.ptr, values.nbytes, side)
                values.data.copy_from_host_async(aside.ptr, values.nbytes, side)
                values *= 2

    ready[0] = 1
    launch()
    for round_number, kind in enumerate(kinds):
        out = cupy.asarray(field(rank, round_number, kind.dtype))
        received = cupy.zeros_like(out)
        cupy.cuda.Device().synchronize()
        if round_number > 0:
            ready[0] = 0
            launch()
        kind.exchange(out, received)
        ready[0] = 1
        cupy.cuda.Device().synchronize()
        kind.check(received.get(), round_number)


kinds = list(kinds_of_messages())
if sys.argv[1] == "nccl":
    beside_nccl(kinds)
else:
    beside_a_kernel(kinds, streams=7 if sys.argv[1] == "streams" else 1)
faulthandler.cancel_dump_traceback_later()
if rank == 0:
    print("ok")
