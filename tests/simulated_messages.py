"""The worker of mpress.p2p on simulated GPUs (tests/simulated_gpu): python simulated_messages.py
PLAN.json OUT.json, with MPRESS_GPU set."""

import ctypes
import os

import numpy as np

from mpress.p2p import worker

GPU = ctypes.CDLL(os.environ["MPRESS_GPU"])
GPU.sim_malloc.restype = ctypes.c_void_p
GPU.sim_malloc.argtypes = [ctypes.c_int, ctypes.c_size_t]
GPU.sim_free.argtypes = [ctypes.c_void_p]
GPU.sim_copy_in.argtypes = GPU.sim_copy_out.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
]  # fmt: skip


class SimulatedBuffer:
    """As mpress.p2p.memory.CudaBuffer, on the rank's own device."""

    def __init__(self, nbytes: int) -> None:
        self.address = GPU.sim_malloc(worker.MPI.COMM_WORLD.rank % 2, nbytes)
        self.nbytes = nbytes

    def __del__(self) -> None:
        GPU.sim_free(self.address)

    def write(self, values: np.ndarray) -> None:
        GPU.sim_copy_in(self.address, values.ctypes.data, values.nbytes)

    def fill(self, value: int) -> None:
        self.write(np.full(self.nbytes, value, np.uint8))

    def read(self, dtype: np.dtype, count: int) -> np.ndarray:
        values = np.empty(count, dtype)
        GPU.sim_copy_out(values.ctypes.data, self.address, values.nbytes)
        return values


worker.main(SimulatedBuffer)
