"""Arrays on GPUs: taken from any library, given back to the library they came from."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpress import _core

_CUDA_DEVICES = (2, 13)  # DLPack's kDLCUDA, kDLCUDAManaged
_LEGACY_STREAM = (0, 1)  # the default stream that all threads share
_THREAD_STREAM = 2  # another stream in every thread


class DeviceArray:
    """A C-contiguous array in the memory of a GPU.

    Any library takes it, by DLPack (`torch.from_dlpack(x)`) or `__cuda_array_interface__`
    (`cupy.asarray(x)`, Numba), without a copy. The memory returns to mpress's pool when the last
    user has let go of it, in the order of the stream it was made on; once the device is idle where
    that was given as a bare handle, which may be gone by then, or is a thread's default stream.
    """

    __slots__ = ("_buffer", "_stream", "dtype", "shape")

    def __init__(
        self, buffer: _core.DeviceBuffer, dtype: np.dtype, shape: tuple[int, ...], stream: Stream
    ) -> None:
        self._buffer = buffer
        self._stream = stream  # keeps the stream of other libraries alive
        bare = stream.owner is None and stream.handle not in _LEGACY_STREAM
        if bare or stream.handle == _THREAD_STREAM:
            buffer.forget_stream()
            self._stream = Stream(0)  # what is in the buffer is complete when anyone gets it
        self.dtype = np.dtype(dtype)
        self.shape = shape

    @property
    def device(self) -> int:
        """Ordinal of the device, as CUDA counts them."""
        return self._buffer.device

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._buffer.pointer, False),
            "strides": None,
            "stream": self._stream.handle or 1,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CUDA_DEVICES[0], self.device)

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        if stream not in (None, -1):
            later = 0 if stream == 1 else stream
            if later != self._stream.handle:
                _core.cuda_order(self._stream.handle, later, self.device)
        kind = self.dtype.str[1:]
        exporter = _core.cuda_exporter(self._buffer, self, kind, self.shape)
        return exporter.__dlpack__(**options)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<mpress.DeviceArray {self.dtype} {self.shape} on device {self.device}>"

    def to_host(self) -> np.ndarray:
        """A copy in the host's memory."""
        array = np.empty(self.shape, self.dtype)
        _core.cuda_copy_to(
            array.ctypes.data, self._buffer.pointer, self.nbytes, self.device, self._stream.handle
        )
        return array


@dataclass(frozen=True)
class Stream:
    """A CUDA stream: its handle, 0 being the legacy default stream, and whoever keeps it alive."""

    handle: int
    owner: Any = None


@dataclass(frozen=True)
class View:
    """A CUDA array of another library, as codecs need it."""

    pointer: int
    shape: tuple[int, ...]
    dtype: np.dtype
    device: int
    stream: Stream
    library: str
    owner: Any

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def is_device_array(data: Any) -> bool:
    """Whether `data` lives on a GPU, as far as it tells."""
    if isinstance(data, np.ndarray):
        return False
    if type(data).__module__.split(".")[0] == "torch":
        return data.device.type == "cuda"
    device = getattr(data, "__dlpack_device__", None)
    if device is not None:
        return device()[0] in _CUDA_DEVICES
    # Looked up in the type: some arrays on the host have it and raise when it is read.
    return hasattr(type(data), "__cuda_array_interface__")


def view_of(data: Any, stream: Any = None, *, writable: bool = False) -> View:
    """The array behind `data`, and the stream to work on: `stream`, or the one that the array's
    library is using.

    Raises TypeError for what is no array of a GPU, ValueError where the elements are not contiguous
    or not aligned: a kernel that met those would end the process's use of the GPU.
    """
    if not _core.build_info()["cuda"]:
        raise TypeError("a CUDA array: this mpress was built without CUDA")
    library = type(data).__module__.split(".")[0]
    if library == "torch":
        data = data.detach()
    interface = getattr(data, "__cuda_array_interface__", None)
    if interface is not None:
        pointer, read_only = interface["data"]
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        if not _contiguous(interface.get("strides"), shape, dtype):
            raise ValueError("a CUDA array: expected elements that are contiguous in C order")
        if writable and read_only:
            raise ValueError("out: expected a writable array")
        pointer = pointer or 0
        own = interface.get("stream")
        device = _core.cuda_device_of(pointer) if pointer else _current_device(data)
    else:
        pointer, shape, kind, device = _core.cuda_dlpack(data)
        dtype, own = np.dtype(kind or "V1"), None
    if device < 0:
        raise ValueError("a CUDA array: its memory belongs to no device")
    if pointer % dtype.alignment != 0:
        raise ValueError(f"a CUDA array: expected an address that is aligned for {dtype}")
    if stream is None and isinstance(data, DeviceArray):
        stream = data._stream
    chosen = _stream(stream, library, own, device)
    if own not in (None, 0) and stream is not None and _legacy(own) != chosen.handle:
        _core.cuda_order(_legacy(own), chosen.handle, device)
    return View(pointer, shape, dtype, device, chosen, library, data)


def current_stream(data: Any) -> tuple[int, int, Stream, str]:
    """The address of an array on a GPU, of any layout, and 0 where it has no elements; the device,
    as far as the array tells; the stream that its library is using there, and which library that
    is. Needs no CUDA in mpress where the array tells its address."""
    library = type(data).__module__.split(".")[0]
    own = None
    if library == "torch":
        pointer = data.data_ptr()
    else:
        interface = getattr(data, "__cuda_array_interface__", None)
        if interface is None:
            pointer = _core.cuda_dlpack(data)[0]
        else:
            pointer, own = interface["data"][0], interface.get("stream")
    stream = data._stream if isinstance(data, DeviceArray) else None
    device = _current_device(data)
    return pointer or 0, device, _stream(stream, library, own, device), library


def empty(dtype: np.dtype, shape: tuple[int, ...], device: int, stream: Stream) -> DeviceArray:
    """A new array; its elements are arbitrary."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return DeviceArray(_core.cuda_alloc(size, device, stream.handle), dtype, shape, stream)


def as_library(array: DeviceArray, library: str) -> Any:
    """The array as one of torch or CuPy, if it came from there."""
    if library in ("torch", "cupy") and array.nbytes:
        return sys.modules[library].from_dlpack(array)
    return array


def _contiguous(strides: Any, shape: tuple[int, ...], dtype: np.dtype) -> bool:
    if strides is None or 0 in shape:
        return True
    expected = dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _current_device(data: Any) -> int:
    device = getattr(data, "__dlpack_device__", None)
    return device()[1] if device is not None else 0


def _legacy(handle: int) -> int:
    """CUDA array interface and DLPack call the legacy default stream 1."""
    return 0 if handle == 1 else handle


def _stream(stream: Any, library: str, own: int | None, device: int) -> Stream:
    if stream is None:
        if library == "torch":
            current = sys.modules["torch"].cuda.current_stream(device)
            return Stream(current.cuda_stream, current)
        if library == "cupy":
            current = sys.modules["cupy"].cuda.get_current_stream(device)
            return Stream(current.ptr, current)
        return Stream(_legacy(own or 0))
    if isinstance(stream, Stream):
        return stream
    if isinstance(stream, int):
        return Stream(_legacy(stream))
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return Stream(protocol()[1], stream)
    for name in ("cuda_stream", "ptr", "handle"):  # torch; CuPy; Numba
        handle = getattr(stream, name, None)
        if handle is not None:
            return Stream(int(getattr(handle, "value", handle) or 0), stream)
    raise TypeError(f"stream: expected a CUDA stream or its handle, not {type(stream).__name__}")
