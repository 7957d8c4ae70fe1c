"""Buffers of the host and of GPUs, by address: without CuPy, torch or the CUDA runtime."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np


class HostBuffer:
    """Pageable memory of the host."""

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.zeros(nbytes, np.uint8)
        self.address = self._bytes.ctypes.data
        self.nbytes = nbytes

    def write(self, values: np.ndarray) -> None:
        self._bytes[: values.nbytes] = values.view(np.uint8)

    def fill(self, value: int) -> None:
        self._bytes[:] = value

    def read(self, dtype: np.dtype, count: int) -> np.ndarray:
        return self._bytes[: count * np.dtype(dtype).itemsize].view(dtype)


class CudaBuffer:
    """Memory of the GPU that use_device() made current; freed with the object."""

    def __init__(self, nbytes: int) -> None:
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        self.address = pointer.value
        self.nbytes = nbytes

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _driver().cuMemFree_v2(ctypes.c_uint64(self.address))

    def write(self, values: np.ndarray) -> None:
        copy_in(self.address, values.ctypes.data, values.nbytes)

    def fill(self, value: int) -> None:
        call("cuMemsetD8_v2", ctypes.c_uint64(self.address), ctypes.c_ubyte(value),
             ctypes.c_size_t(self.nbytes))  # fmt: skip
        call("cuCtxSynchronize")

    def read(self, dtype: np.dtype, count: int) -> np.ndarray:
        values = np.empty(count, dtype)
        copy_out(values.ctypes.data, self.address, values.nbytes)
        return values


class PinnedBuffer:
    """Memory of the host that GPUs reach; freed with the object."""

    def __init__(self, nbytes: int) -> None:
        pointer = ctypes.c_void_p()
        call("cuMemAllocHost_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        self.address = pointer.value or 0
        self.nbytes = nbytes

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _driver().cuMemFreeHost(ctypes.c_void_p(self.address))


def copy_in(device: int, host: int, nbytes: int) -> None:
    """From an address of the host to one of a GPU; returns when it is done."""
    call("cuMemcpyHtoD_v2", ctypes.c_uint64(device), ctypes.c_void_p(host),
         ctypes.c_size_t(nbytes))  # fmt: skip


def copy_out(host: int, device: int, nbytes: int) -> None:
    """The opposite."""
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(host), ctypes.c_uint64(device),
         ctypes.c_size_t(nbytes))  # fmt: skip


def devices() -> int:
    """How many GPUs the driver shows this process; 0 where there is no driver."""
    try:
        driver = _driver()
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def use_device(number: int) -> str:
    """Makes the primary context of a GPU this thread's, for buffers and copies. Returns the GPU's
    name."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGet", ctypes.byref(device), number)
    call("cuDeviceGetName", name, len(name), device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    return name.value.decode()


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver; RuntimeError where it fails."""
    code = getattr(_driver(), name)(*arguments)
    if code != 0:
        raise RuntimeError(f"{name}: error {code} of the CUDA driver")


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
