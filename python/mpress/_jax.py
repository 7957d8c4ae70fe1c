"""Arrays of JAX in MPI's calls. They are sent as they are. They cannot be written, so a call that
would receive to one receives to new memory, which becomes a new array.

What stands for the receive buffer is an array, whose elements the new one has where the call writes
none, or a jax.ShapeDtypeStruct, where these are arbitrary.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from mpress import _core, _device


def is_jax(data: Any) -> bool:
    """Without loading JAX: one of its arrays, or what describes one."""
    return type(data).__module__.partition(".")[0] in ("jax", "jaxlib")


class _Address:
    """An array that tells its address, and nothing else: mpi4py takes it by that. JAX's streams are
    its own, and its DLPack refuses the stream that mpi4py asks for."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def sent(name: str, data: Any) -> Any:
    """What mpi4py sends for an array; `name` is the argument's."""
    _check(name, data, has_elements=True)
    data = data.block_until_ready()
    if _device.is_device_array(data):
        return _Address(data)
    return np.asarray(data)  # no copy; mpi4py does not know JAX's own names of types


class Kept:
    """A result that is there already: at the root of a broadcast."""

    def __init__(self, name: str, array: Any) -> None:
        self.buffer = sent(name, array)
        self._array = array

    def array(self) -> Any:
        return self._array


class New:
    """An array to be: `buffer` is what mpi4py receives to."""

    def __init__(self, name: str, like: Any, needs_elements: bool) -> None:
        """`needs_elements`: the call reads the buffer, too."""
        _check(name, like, needs_elements)
        self._jax = sys.modules["jax"]
        self._where = like.sharding
        is_array = hasattr(like, "block_until_ready")
        self.buffer: Any
        if is_array and _device.is_device_array(like):
            view = _device.view_of(like.block_until_ready())
            made = _core.cuda_copy(view.pointer, view.nbytes, view.device, 0)
            self.buffer = _device.DeviceArray(made, view.dtype, view.shape, _device.Stream(0))
        elif is_array:
            self.buffer = np.array(like)
        else:
            device = self._device()
            if device.platform in ("gpu", "cuda"):
                ordinal = device.local_hardware_id
                self.buffer = _device.empty(
                    np.dtype(like.dtype), tuple(like.shape), ordinal, _device.Stream(0)
                )
            else:
                self.buffer = np.empty(like.shape, like.dtype)

    def array(self) -> Any:
        """When the call is over. Takes the memory over, where JAX can."""
        if isinstance(self.buffer, _device.DeviceArray):
            return self._jax.dlpack.from_dlpack(self.buffer)
        return self._jax.device_put(self.buffer, self._where)

    def _device(self) -> Any:
        """Of a shape: the one it names, or JAX's default."""
        if self._where is not None:
            return next(iter(self._where.device_set))
        chosen = self._jax.config.jax_default_device
        return chosen if hasattr(chosen, "platform") else self._jax.devices(chosen)[0]


def _check(name: str, data: Any, has_elements: bool) -> None:
    jax = sys.modules["jax"]
    if isinstance(data, jax.core.Tracer):
        raise TypeError(f"{name}: traced by JAX, and has no elements yet; call it outside jax.jit")
    if not isinstance(data, (jax.Array, jax.ShapeDtypeStruct)):
        raise TypeError(f"{name}: expected an array, not {type(data).__name__}")
    if has_elements and not isinstance(data, jax.Array):
        raise TypeError(f"{name}: expected an array, as its elements are read; not a shape alone")
    if data.sharding is not None and len(data.sharding.device_set) > 1:
        raise ValueError(
            f"{name}: lies on {len(data.sharding.device_set)} devices; expected an array on one"
        )
    if jax.dtypes.canonicalize_dtype(data.dtype) != data.dtype:
        raise TypeError(f"{name}: JAX makes no arrays of {data.dtype}; set jax_enable_x64")
