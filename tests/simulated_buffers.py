"""Memory of simulated GPUs (tests/simulated_gpu) as mpress.p2p.memory has that of real ones;
MPRESS_GPU is set."""

import ctypes
import os

import numpy as np

GPU = ctypes.CDLL(os.environ["MPRESS_GPU"])
for _name in ("sim_malloc", "sim_malloc_pool"):
    getattr(GPU, _name).restype = ctypes.c_void_p
    getattr(GPU, _name).argtypes = [ctypes.c_int, ctypes.c_size_t]
GPU.sim_free.argtypes = [ctypes.c_void_p]
GPU.sim_copy_in.argtypes = GPU.sim_copy_out.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
]  # fmt: skip


class SimulatedBuffer:
    """As CudaBuffer, or PoolBuffer where it is `of_pool`."""

    def __init__(self, device: int, nbytes: int, of_pool: bool = False) -> None:
        self.address = (GPU.sim_malloc_pool if of_pool else GPU.sim_malloc)(device, nbytes)
        self.nbytes = nbytes

    def __del__(self) -> None:
        GPU.sim_free(self.address)

    def write(self, values: np.ndarray) -> None:
        GPU.sim_copy_in(self.address, values.ctypes.data, values.nbytes)

    def copy_in(self, host: int, nbytes: int) -> None:
        GPU.sim_copy_in(self.address, host, nbytes)

    def copy_out(self, host: int, nbytes: int) -> None:
        GPU.sim_copy_out(host, self.address, nbytes)

    def fill(self, value: int) -> None:
        self.write(np.full(self.nbytes, value, np.uint8))

    def read(self, dtype: np.dtype, count: int) -> np.ndarray:
        values = np.empty(count, dtype)
        GPU.sim_copy_out(values.ctypes.data, self.address, values.nbytes)
        return values

    def copy_from(self, address: int, nbytes: int, first: int = 0) -> None:
        aside = np.empty(nbytes, np.uint8)
        GPU.sim_copy_out(aside.ctypes.data, address, nbytes)
        GPU.sim_copy_in(self.address + first, aside.ctypes.data, nbytes)

    def add(self, first: int, address: int, count: int, dtype: np.dtype) -> None:
        sums, values = np.empty(count, dtype), np.empty(count, dtype)
        for place, at in ((sums, self.address + first), (values, address)):
            GPU.sim_copy_out(place.ctypes.data, at, place.nbytes)
        sums += values
        GPU.sim_copy_in(self.address + first, sums.ctypes.data, sums.nbytes)
