"""As much of CuPy as mpi4py's tests use, on simulated GPUs; MPRESS_GPU names their library."""

import ctypes
import os
import types

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

__version__ = "14.0.0"

_gpu = ctypes.CDLL(os.environ["MPRESS_GPU"])
_gpu.sim_malloc.restype = ctypes.c_void_p
_gpu.sim_malloc.argtypes = ctypes.c_int, ctypes.c_size_t
_gpu.sim_free.argtypes = (ctypes.c_void_p,)
_gpu.sim_copy_in.argtypes = _gpu.sim_copy_out.argtypes = (
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
)  # fmt: skip
_gpu.sim_stream_create.restype = ctypes.c_void_p
_gpu.sim_stream_create.argtypes = (ctypes.c_int,)
for _function in (_gpu.sim_stream_destroy, _gpu.sim_stream_synchronize):
    _function.argtypes = (ctypes.c_void_p,)
_gpu.sim_stream_copy.argtypes = (ctypes.c_void_p,) * 3 + (ctypes.c_size_t,)
_gpu.sim_stream_wait.argtypes = (ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
_free = _gpu.sim_free
_destroy = _gpu.sim_stream_destroy


class Device:
    current = 0

    def __init__(self, number):
        self.number = number

    def use(self):
        Device.current = self.number

    def synchronize(self):
        _gpu.sim_synchronize()


class Stream:
    """Of the current device, where it is no other's."""

    current = types.SimpleNamespace(ptr=0, synchronize=lambda: None)

    def __init__(self):
        self.ptr = _gpu.sim_stream_create(Device.current)

    def __del__(self):
        _destroy(self.ptr)

    def use(self):
        _gpu.sim_synchronize()
        Stream.current = self

    def synchronize(self):
        _gpu.sim_stream_synchronize(self.ptr)

    def copy(self, to, array):
        """Between arrays, or from those of NumPy."""
        host = isinstance(array, np.ndarray)
        address = array.ctypes.data if host else _address(array)
        _gpu.sim_stream_copy(self.ptr, _address(to), address, array.nbytes)

    def hold(self, flag):
        """What the stream is given later waits until the flag, a c_int, is set."""
        _gpu.sim_stream_wait(self.ptr, ctypes.byref(flag))


class _Block:
    """Memory of the current device."""

    def __init__(self, nbytes):
        self.nbytes = nbytes
        self.address = _gpu.sim_malloc(Device.current, max(nbytes, 1))

    def __del__(self):
        _free(self.address)

    def read(self, dtype):
        values = np.empty(self.nbytes // dtype.itemsize, dtype)
        _gpu.sim_copy_out(values.ctypes.data, self.address, self.nbytes)
        return values

    def write(self, values):
        _gpu.sim_copy_in(self.address, values.ctypes.data, self.nbytes)
        if Stream.current.ptr:  # where CuPy would write
            _gpu.sim_synchronize()


class ndarray(NDArrayOperatorsMixin):
    """Elements of a block; `places` is an array of their numbers in it."""

    def __init__(self, block, dtype, places):
        self._block = block
        self._places = places
        self.dtype = np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.shape = places.shape
        self.size = places.size
        self.nbytes = self.size * self.itemsize

    @property
    def __cuda_array_interface__(self):
        first = int(self._places.flat[0]) if self.size else 0
        assert (np.diff(self._places.ravel()) == 1).all(), "not contiguous"
        return {
            "version": 3,
            "data": (self._block.address + first * self.itemsize if self.size else 0, False),
            "typestr": self.dtype.str,
            "shape": self.shape,
            "strides": None,
            "stream": None,
        }

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return getattr(ufunc, method)(*map(_on_host, inputs), **options)

    def __complex__(self):
        return complex(self.get())

    def __len__(self):
        return len(self._places)

    def __getitem__(self, key):
        return ndarray(self._block, self.dtype, np.asarray(self._places[key]))

    def __setitem__(self, key, value):
        values = self._block.read(self.dtype)
        values[self._places[key]] = _on_host(value)
        self._block.write(values)

    def fill(self, value):
        self[...] = value

    def get(self):
        return self._block.read(self.dtype)[self._places]

    def ravel(self):
        return ndarray(self._block, self.dtype, self._places.ravel())


def _address(array):
    return array.__cuda_array_interface__["data"][0]


def _on_host(value):
    return value.get() if isinstance(value, ndarray) else value


def asarray(values, dtype=None):
    values = np.asarray(values, dtype)
    array = zeros(values.shape, values.dtype)
    array[...] = values
    return array


def array(values, dtype=None):
    if np.dtype(dtype).char in "gG":
        raise ValueError("not on a GPU")
    return asarray(values, dtype)


def zeros(shape, dtype=float):
    dtype = np.dtype(dtype)
    places = np.arange(int(np.prod(shape))).reshape(shape)
    block = _Block(places.size * dtype.itemsize)
    block.write(np.zeros(places.size, dtype))
    return ndarray(block, dtype, places)


cuda = types.SimpleNamespace(
    Device=Device,
    Stream=Stream,
    get_current_stream=lambda device=None: Stream.current,
    runtime=types.SimpleNamespace(is_hip=False, getDeviceCount=lambda: 2),
)
