"""Codecs whose calls are repeated on a GPU, and compared: `--device cuda`."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import mpress


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays agree in type, shape and every bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Twins(mpress.Codec):
    """A codec that compares its CUDA twin with itself whenever it is used."""

    def encode(self, array: Any, *, stream: Any = None) -> mpress.Encoded:
        encoded = super().encode(array, stream=stream)
        field = np.ascontiguousarray(np.asarray(array), encoded.dtype).reshape(encoded.shape)
        twin = super().encode(on_device(field))
        assert same_bits(twin.payload.to_host(), encoded.payload)
        assert (twin.spec, twin.bound) == (encoded.spec, encoded.bound)
        return encoded

    def decode(self, encoded: Any, out: Any = None, **options: Any) -> Any:
        combine = options.get("combine", "replace")
        there = out.copy() if combine != "replace" and out is not None else None
        own = isinstance(encoded, mpress.Encoded)
        payload = encoded.payload if own else np.frombuffer(encoded, np.uint8)
        codec = mpress.Codec(encoded.spec if own else self.spec)
        like = encoded if own else out
        where = {
            "dtype": options.get("dtype") or getattr(like, "dtype", None),
            "shape": options.get("shape", getattr(like, "shape", None)),
        }
        try:
            decoded = super().decode(encoded, out, **options)
        except mpress.CorruptPayload:
            with pytest.raises(mpress.CorruptPayload):
                mpress.Codec.decode(codec, on_device(payload), **where)
            raise
        if there is None:
            twin = mpress.Codec.decode(codec, on_device(payload), **where)
            assert same_bits(twin.to_host(), decoded)
        elif codec.spec != "none":
            twin = mpress.Codec.decode(codec, on_device(payload), on_device(there), combine=combine)
            np.testing.assert_array_equal(twin.to_host(), decoded)
        return decoded

    def add(self, *summands: Any, **options: Any) -> mpress.Encoded:
        def twin() -> mpress.Encoded:
            return mpress.Codec.add(self, *map(there, summands), **options)

        def there(summand: Any) -> Any:
            if not isinstance(summand, mpress.Encoded):
                return on_device(np.frombuffer(summand, np.uint8))
            if isinstance(summand.payload, mpress.DeviceArray):
                return summand
            return dataclasses.replace(summand, payload=on_device(summand.payload))

        try:
            encoded = super().add(*summands, **options)
        except (ArithmeticError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                twin()
            raise
        assert same_bits(twin().payload.to_host(), encoded.payload)
        assert twin().bound == encoded.bound
        return encoded


def on_device(array: np.ndarray) -> Any:
    """The array on the GPU, without another library."""
    from mpress import _core, _device

    stream = _device.Stream(0)
    buffer = _core.cuda_copy(array.ctypes.data, array.nbytes, 0, stream.handle)
    return mpress.DeviceArray(buffer, array.dtype, array.shape, stream)
