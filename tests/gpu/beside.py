"""Work of the program's own on GPUs while messages in device memory travel. Two ranks:

    mpiexec -n 2 python beside.py nccl|cold|warm

nccl  PyTorch reduces over NCCL, on streams of its own: rank 0 begins each reduction before a
      message each way, and rank 1 after it
cold  a kernel runs until a message each way has come, from before the first message on
warm  the same, after a first message

Ends with an error, and says where each thread was, if that takes half a minute.
"""

import faulthandler
import sys
import tempfile

import numpy as np
from mpi4py import MPI

BYTES = 32 << 20
ROUNDS = 20

comm = MPI.COMM_WORLD
rank, peer = comm.rank, 1 - comm.rank


def field(owner, round_number):
    return np.sin(np.arange(BYTES // 4, dtype=np.float32) / 1000) + owner + 2 * round_number


def exchange(out, received):
    comm.Sendrecv([out, MPI.FLOAT], peer, recvbuf=[received, MPI.FLOAT], source=peer)


def beside_nccl():
    import torch
    from torch import distributed

    torch.cuda.set_device(rank % torch.cuda.device_count())
    folder = tempfile.TemporaryDirectory() if rank == 0 else None
    path = comm.bcast(f"{folder.name}/store" if folder else None)
    store = distributed.FileStore(path, comm.size)
    distributed.init_process_group("nccl", store=store, rank=rank, world_size=comm.size)
    side = torch.cuda.Stream()
    values = torch.empty(1 << 22, device="cuda")
    received = torch.empty(BYTES // 4, device="cuda")

    def begin():
        with torch.cuda.stream(side):
            return distributed.all_reduce(values, async_op=True)

    begin().wait()  # the first one sets up NCCL in all ranks
    for round_number in range(ROUNDS):
        values.fill_(rank + 1)
        out = torch.from_numpy(field(rank, round_number)).cuda()
        expected = torch.from_numpy(field(peer, round_number)).cuda()
        torch.cuda.synchronize()
        work = begin() if rank == 0 else None
        exchange(out, received)
        work = work or begin()
        work.wait()
        torch.cuda.synchronize()
        assert torch.equal(received, expected)
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


def beside_a_kernel(is_warm):
    import cupy

    cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
    spin = cupy.RawKernel(SPIN, "spin")
    pinned = cupy.cuda.alloc_pinned_memory(4)
    ready = np.frombuffer(pinned, np.int32, 1)
    side = cupy.cuda.Stream(non_blocking=True)
    received = cupy.zeros(BYTES // 4, cupy.float32)

    def launch():
        with side:
            spin((1,), (1,), (cupy.uint64(pinned.ptr),))

    ready[0] = 1
    launch()
    for round_number in range(ROUNDS):
        out = cupy.asarray(field(rank, round_number))
        cupy.cuda.Device().synchronize()
        if round_number > 0 or not is_warm:
            ready[0] = 0
            launch()
        exchange(out, received)
        ready[0] = 1
        cupy.cuda.Device().synchronize()
        assert (received.get() == field(peer, round_number)).all()


faulthandler.dump_traceback_later(30, exit=True)
if sys.argv[1] == "nccl":
    beside_nccl()
else:
    beside_a_kernel(sys.argv[1] == "warm")
if rank == 0:
    print("ok")
