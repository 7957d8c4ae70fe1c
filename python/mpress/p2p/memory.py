"""Buffers of the host and of GPUs, by address: without CuPy, torch or the CUDA runtime."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

_ENABLED_ALREADY = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED


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

    def copy_from(self, address: int, nbytes: int, first: int = 0) -> None:
        """From other memory of the host, to byte `first` on."""
        ctypes.memmove(self.address + first, address, nbytes)

    def add(self, first: int, address: int, count: int, dtype: np.dtype) -> None:
        """Adds elements that lie at an address of the host to those from byte `first` on."""
        nbytes = count * np.dtype(dtype).itemsize
        values = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address)).view(dtype)
        sums = self._bytes[first : first + nbytes].view(dtype)
        np.add(sums, values, out=sums)


_ADD = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 to, .param .u64 from, .param .u64 count) {
  .reg .pred %over;
  .reg .b32 %thread, %block, %threads, %blocks;
  .reg .b64 %to, %from, %count, %i, %step, %offset, %a, %b;
  .reg .TYPE %x, %y;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %count, [count];
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %blocks, %nctaid.x;
  cvt.u64.u32 %i, %thread;
  mad.wide.u32 %i, %block, %threads, %i;
  mul.wide.u32 %step, %blocks, %threads;
next:
  setp.ge.u64 %over, %i, %count;
  @%over bra done;
  mul.lo.u64 %offset, %i, BYTES;
  add.u64 %a, %to, %offset;
  add.u64 %b, %from, %offset;
  ld.global.TYPE %x, [%a];
  ld.global.TYPE %y, [%b];
  add.TYPE %x, %x, %y;
  st.global.TYPE [%a], %x;
  add.u64 %i, %i, %step;
  bra next;
done:
  ret;
}
"""
"""PTX, which drivers compile: without CuPy or a compiler of CUDA's."""

_ADD_THREADS = 256
_GRAIN = 2 << 20  # as PyTorch allocates; GPUs read memory of other sizes more slowly


class CudaBuffer:
    """Memory of the GPU that use_device() made current; freed with the object."""

    def __init__(self, nbytes: int) -> None:
        pointer = ctypes.c_uint64()
        whole = -(-nbytes // _GRAIN) * _GRAIN
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(whole))
        self.address = pointer.value
        self.nbytes = nbytes

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _driver().cuMemFree_v2(ctypes.c_uint64(self.address))

    def write(self, values: np.ndarray) -> None:
        copy_in(self.address, values.ctypes.data, values.nbytes)

    def copy_in(self, host: int, nbytes: int) -> None:
        """From an address of the host; returns when it is done."""
        copy_in(self.address, host, nbytes)

    def copy_out(self, host: int, nbytes: int) -> None:
        """To an address of the host; returns when it is done."""
        copy_out(host, self.address, nbytes)

    def fill(self, value: int) -> None:
        call("cuMemsetD8_v2", ctypes.c_uint64(self.address), ctypes.c_ubyte(value),
             ctypes.c_size_t(self.nbytes))  # fmt: skip
        call("cuCtxSynchronize")

    def read(self, dtype: np.dtype, count: int) -> np.ndarray:
        values = np.empty(count, dtype)
        copy_out(values.ctypes.data, self.address, values.nbytes)
        return values

    def copy_from(self, address: int, nbytes: int, first: int = 0) -> None:
        """From other memory of the GPU, to byte `first` on; returns when it is done."""
        call("cuMemcpyDtoD_v2", ctypes.c_uint64(self.address + first), ctypes.c_uint64(address),
             ctypes.c_size_t(nbytes))  # fmt: skip
        call("cuStreamSynchronize", None)

    def add(self, first: int, address: int, count: int, dtype: np.dtype) -> None:
        """Adds elements that lie at an address of the GPU to those from byte `first` on; returns
        when it is done."""
        values = [ctypes.c_uint64(n) for n in (self.address + first, address, count)]
        arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        blocks = max(1, min(8 * 132, -(-count // _ADD_THREADS)))
        call("cuLaunchKernel", _adder(np.dtype(dtype).itemsize), blocks, 1, 1, _ADD_THREADS, 1, 1,
             0, None, arguments, None)  # fmt: skip
        call("cuStreamSynchronize", None)


class PoolBuffer(CudaBuffer):
    """Memory of that GPU from a stream-ordered pool, which processes cannot share."""

    def __init__(self, nbytes: int) -> None:
        pointer = ctypes.c_uint64()
        call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(nbytes), None)
        call("cuStreamSynchronize", None)
        self.address = pointer.value
        self.nbytes = nbytes

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _driver().cuMemFreeAsync(ctypes.c_uint64(self.address), None)


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


class PeerBuffer:
    """Memory of another GPU, for copies straight from the current one; freed with the object."""

    def __init__(self, number: int, nbytes: int) -> None:
        self._own, self._other = ctypes.c_void_p(), _primary_context(number)
        self._stream, pointer = ctypes.c_void_p(), ctypes.c_uint64()
        self.address = 0
        self.nbytes = nbytes
        call("cuCtxGetCurrent", ctypes.byref(self._own))
        with self._other_current():
            call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        self.address = pointer.value
        code = _driver().cuCtxEnablePeerAccess(self._other, 0)
        if code not in (0, _ENABLED_ALREADY):
            raise RuntimeError(f"cuCtxEnablePeerAccess: error {code} of the CUDA driver")
        call("cuStreamCreate", ctypes.byref(self._stream), 1)  # CU_STREAM_NON_BLOCKING

    def __del__(self) -> None:
        if getattr(self, "_stream", None):
            _driver().cuStreamDestroy_v2(self._stream)
        if getattr(self, "address", 0):
            with self._other_current():
                _driver().cuMemFree_v2(ctypes.c_uint64(self.address))

    @contextmanager
    def _other_current(self) -> Iterator[None]:
        call("cuCtxPushCurrent_v2", self._other)
        try:
            yield
        finally:
            call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def fill_from(self, address: int) -> None:
        """Begins to copy what lies at an address of the current GPU."""
        call("cuMemcpyPeerAsync", ctypes.c_uint64(self.address), self._other,
             ctypes.c_uint64(address), self._own, ctypes.c_size_t(self.nbytes),
             self._stream)  # fmt: skip

    def wait(self) -> None:
        """Until all copies are done."""
        call("cuStreamSynchronize", self._stream)


def reaches(number: int) -> bool:
    """Whether the current GPU is another one and reaches that one's memory."""
    own = ctypes.c_int()
    call("cuCtxGetDevice", ctypes.byref(own))
    return can_reach(own.value, number)


def can_reach(number: int, other: int) -> bool:
    """Whether a GPU reaches the memory of another one."""
    if number == other:
        return False
    pair = [ctypes.c_int(), ctypes.c_int()]
    can = ctypes.c_int()
    for device, which in zip(pair, (number, other), strict=True):
        call("cuDeviceGet", ctypes.byref(device), which)
    call("cuDeviceCanAccessPeer", ctypes.byref(can), *pair)
    return bool(can.value)


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


def name_of(number: int) -> str:
    """The name of a GPU."""
    device = ctypes.c_int()
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGet", ctypes.byref(device), number)
    call("cuDeviceGetName", name, len(name), device)
    return name.value.decode()


def names() -> list[str]:
    """Of all GPUs that the driver shows this process; none where there is no driver."""
    return [name_of(number) for number in range(devices())]


def use_device(number: int) -> str:
    """Makes the primary context of a GPU this thread's, for buffers and copies. Returns the GPU's
    name."""
    call("cuCtxSetCurrent", _primary_context(number))
    return name_of(number)


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver; RuntimeError where it fails."""
    code = getattr(_driver(), name)(*arguments)
    if code != 0:
        raise RuntimeError(f"{name}: error {code} of the CUDA driver")


@cache
def _primary_context(number: int) -> ctypes.c_void_p:
    """Of a GPU; kept until the process ends."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), number)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


@cache
def _adder(itemsize: int) -> ctypes.c_void_p:
    """The kernel that adds f32 or f64, in the current context."""
    text = _ADD.replace("TYPE", f"f{8 * itemsize}").replace("BYTES", str(itemsize))
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), text.encode())
    call("cuModuleGetFunction", ctypes.byref(function), module, b"add")
    return function


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
