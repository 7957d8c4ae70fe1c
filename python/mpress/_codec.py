"""Codecs for arrays: the part of the public interface that knows no MPI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np

from mpress import _core, _device
from mpress._device import DeviceArray

_TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_COMBINE = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}
_EXPECTED = "expected float32 or float64 elements"


class CorruptPayload(ValueError):
    """A payload is damaged, truncated, or not of the codec, type and shape given."""


class InexactSum(ArithmeticError):
    """Payloads whose sum cannot be kept in quanta: decode them and add the elements."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """What `Codec.encode` returns: a payload and all that decoding it takes."""

    payload: np.ndarray | DeviceArray = field(repr=False)
    """The encoded bytes, uint8 and contiguous: on the host read-only, for any consumer of buffers;
    of an array on a GPU, in that GPU's memory. For `zfp` they start with libzfp's stream."""

    spec: str
    """The codec that wrote it. `auto` has become `mpc` or `none`."""

    dtype: np.dtype
    """Element type, in the machine's byte order."""

    shape: tuple[int, ...]
    """Shape of the array; elements are in C order."""

    bound: float | None = None
    """`szp`: the absolute bound that every finite element keeps (a relative one multiplied by the
    range; for a constant field, which is then exact, at most the least normal number). Of a sum:
    the sum of the bounds."""

    library: str = field(default="", repr=False)
    """Whose GPU array was encoded, such as "torch": decoding returns one of the same library."""

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return self.payload.nbytes

    @property
    def ratio(self) -> float:
        """Bytes of the array divided by bytes of the payload; 1 for an empty payload."""
        raw = math.prod(self.shape) * self.dtype.itemsize
        return raw / self.nbytes if self.nbytes else 1.0


class Codec:
    """A codec with its parameters; immutable and thread-safe. Encoding and decoding release the
    interpreter lock."""

    __slots__ = ("_parsed",)

    def __init__(self, spec: str) -> None:
        if not isinstance(spec, str):
            raise TypeError(f"codec spec: expected a string, not {type(spec).__name__}")
        self._parsed = _core.describe(spec)

    @property
    def spec(self) -> str:
        """The canonical text of the spec."""
        return self._parsed["text"]

    @property
    def lossy(self) -> bool:
        """Whether decoding may return other values than were encoded."""
        return self._parsed["lossy"]

    def __repr__(self) -> str:
        return f"mpress.codec({self.spec!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codec) and other.spec == self.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def effective_rate(self, dtype: Any) -> float:
        """Bits a value that `zfp` spends on elements of `dtype`: it rounds to quarters.

        Raises ValueError for other codecs and for a rate out of the type's range.
        """
        if self._parsed["codec"] != "zfp":
            raise ValueError(f"only zfp has a rate, not {self.spec!r}")
        name = _type_name(np.dtype(dtype))
        _core.validate(self.spec, name)
        return _core.effective_rate(self._parsed["value"], name)

    def encode(self, array: Any, *, stream: Any = None) -> Encoded:
        """Encode an array, or any object with a buffer or array interface, of float32 or float64.

        Any shape; where the elements are not contiguous in C order, or not in the machine's byte
        order, a copy is encoded. Raises TypeError for other element types, ValueError where the
        spec does not fit the element type.

        Arrays on a GPU (CuPy, torch, JAX, Numba, anything with DLPack or the CUDA array interface;
        contiguous ones only) are encoded there, on `stream`: an object of these libraries or a
        handle, by default the stream that the array's library is using. The call returns when the
        payload is complete. It has the same bytes as on the host.
        """
        if _device.is_device_array(array):
            return self._encode_on_device(_device.view_of(array, stream))
        array = _as_array(array)
        name = _type_name(array.dtype)
        raw = _bytes_of(array)
        _core.validate(self.spec, name)
        chosen, bound = self.spec, None
        if self._parsed["codec"] == "auto":
            payload, _ = _core.encode("mpc", name, raw)
            chosen = "mpc" if payload.nbytes < raw.nbytes else "none"
        elif self._parsed["codec"] != "none":
            payload, bound = _core.encode(self.spec, name, raw)
        if chosen == "none":
            payload = raw.copy()
        payload.flags.writeable = False
        return Encoded(payload, chosen, array.dtype, array.shape, bound)

    def _encode_on_device(self, view: _device.View) -> Encoded:
        name = _type_name(view.dtype)
        _core.validate(self.spec, name)
        where = (view.device, view.stream.handle)
        chosen, bound, buffer = self.spec, None, None
        if self._parsed["codec"] != "none":
            chosen = "mpc" if self._parsed["codec"] == "auto" else self.spec
            count = math.prod(view.shape)
            buffer, bound = _core.cuda_encode(chosen, name, view.pointer, count, *where)
        if self._parsed["codec"] == "auto" and buffer.nbytes >= view.nbytes:
            chosen = "none"
        if chosen == "none":
            buffer = _core.cuda_copy(view.pointer, view.nbytes, *where)
        payload = DeviceArray(buffer, np.dtype(np.uint8), (buffer.nbytes,), view.stream)
        return Encoded(payload, chosen, view.dtype, view.shape, bound, view.library)

    def decode(
        self,
        encoded: Encoded | Any,
        out: Any = None,
        *,
        dtype: Any = None,
        shape: SupportsIndex | Sequence[int] | None = None,
        combine: str = "replace",
        stream: Any = None,
    ) -> Any:
        """Decode into `out`, or into a new array, and return it.

        With `combine` "sum", "min", "max" or "prod" the decoded elements are combined with those of
        `out`, in one pass; the least and the greatest of a NaN and anything are NaN.

        Payloads on a GPU are decoded there, on `stream` (as in `encode`; by default that of `out`,
        if there is one), into GPU arrays: of torch or CuPy where such an array was encoded, else a
        DeviceArray. The call returns when the elements are complete.

        `encoded` is an Encoded, which knows its codec, or the bytes of a payload of this codec;
        these need `dtype` and `shape`, or an `out` that has them. `out` must be a writable,
        C-contiguous array of the encoded dtype and shape.

        Raises CorruptPayload where the payload is damaged; `out` then holds anything. Raises
        TypeError or ValueError for arguments that do not fit together.
        """
        if isinstance(encoded, Encoded):
            if dtype is not None or shape is not None:
                raise TypeError(
                    "dtype and shape: an Encoded has its own; give them with bytes only"
                )
            spec, payload = encoded.spec, encoded.payload
            dtype, shape = encoded.dtype, encoded.shape
        else:
            on_device = _device.is_device_array(encoded)
            spec, payload = self.spec, encoded if on_device else _payload_of(encoded)
            if spec == "auto":
                raise ValueError(
                    "'auto' cannot tell which codec wrote these bytes: name it, or pass the Encoded"
                )
            if isinstance(out, np.ndarray):
                dtype = out.dtype if dtype is None else dtype
                shape = out.shape if shape is None else shape
            elif out is not None and _device.is_device_array(out):
                like = _device.view_of(out, stream)
                dtype = like.dtype if dtype is None else dtype
                shape = like.shape if shape is None else shape
            if dtype is None or shape is None:
                raise TypeError("dtype and shape are needed to decode bytes")
            dtype, shape = np.dtype(dtype), _shape_of(shape)
        name = _type_name(dtype)
        _core.validate(spec, name)
        if combine != "replace":
            if combine not in _COMBINE:
                raise ValueError(
                    f"combine: expected replace, sum, min, max or prod, not {combine!r}"
                )
            if out is None:
                raise TypeError(f"combine={combine!r} needs an `out` to combine with")
        if not isinstance(payload, np.ndarray):
            library = encoded.library if isinstance(encoded, Encoded) else ""
            return _decode_on_device(spec, payload, dtype, shape, out, combine, stream, library)
        if spec == "none" and payload.nbytes != math.prod(shape) * dtype.itemsize:
            raise CorruptPayload(
                f"none: {payload.nbytes} bytes are not {math.prod(shape)} elements of {name}"
            )
        if out is None:
            out = np.empty(shape, dtype)
        else:
            _check_out(out, dtype, shape)
        target = out.reshape(-1).view(np.uint8)
        if spec == "none" and combine == "replace":
            target[:] = payload
        elif spec == "none":
            flat = out.reshape(-1)
            with np.errstate(all="ignore"):  # infinities of two signs, as codecs add them
                _COMBINE[combine](flat, payload.view(dtype), out=flat)
        elif problem := _core.decode(spec, name, payload, target, combine):
            raise CorruptPayload(f"{spec}: {problem}")
        return out

    def add(
        self,
        a: Encoded | Any,
        b: Encoded | Any,
        *more: Encoded | Any,
        dtype: Any = None,
        shape: SupportsIndex | Sequence[int] | None = None,
        stream: Any = None,
    ) -> Encoded:
        """`szp`: the sum of two or more encoded arrays, encoded, without decoding any. It may be
        decoded or added again; the order of additions does not change a byte. One call for many is
        quicker than many for two: it packs once what it adds, up to eight arrays at a time.

        All were encoded with the same absolute bound, dtype and shape: Encoded objects, or bytes
        of payloads of this codec with `dtype` and `shape`. The sum's `bound` is the sum of theirs;
        decoded, it is that close to the exact sum of the arrays, up to rounding (docs/codecs.md).

        Payloads on a GPU are added there, on `stream` (as in `encode`), to one on the GPU. The call
        returns when it is complete.

        Raises InexactSum where an array holds what is not kept in quanta (NaN, infinities, values
        that the bound is too small for), or the sum would: decode one and add the other to it, by
        `decode(..., out, combine="sum")`. Raises CorruptPayload for damaged payloads, ValueError or
        TypeError where they do not fit together.
        """
        spec, dtype, shape, payloads = self._summands((a, b, *more), dtype, shape)
        name, count = _type_name(dtype), math.prod(shape)
        _core.validate(spec, name)
        library, on_device = "", [not isinstance(p, np.ndarray) for p in payloads]
        if any(on_device) and not all(on_device):
            raise TypeError("payloads: expected all on the host, or all on one GPU")
        add = _core.add
        if all(on_device):
            payloads = [_device.view_of(p, stream) for p in payloads]
            library = a.library if isinstance(a, Encoded) else ""
            add = _add_on_device
        while len(payloads) > 1:
            some, payloads = payloads[: _core.most_summands], payloads[_core.most_summands :]
            problem, payload, bound = add(spec, name, some, count)
            if problem:
                break
            so_far = _device.view_of(payload, stream) if all(on_device) else payload
            payloads = [so_far, *payloads]
        if isinstance(payload, np.ndarray):
            payload.flags.writeable = False
        if problem == "mismatched":
            raise ValueError(
                f"{spec}: the payloads have different steps; to be added, arrays must be encoded "
                "with the same absolute bound, szp:abs=E"
            )
        if problem == "inexact":
            raise InexactSum(
                f"{spec}: the sum is not one of quanta (an array holds NaN, infinities or values "
                "that are large for the bound, or the sum would); decode one payload, and the "
                'other with combine="sum" into the same array'
            )
        if problem:
            raise CorruptPayload(f"{spec}: {problem}")
        return Encoded(payload, spec, dtype, shape, bound, library)

    def _summands(
        self, summands: tuple[Any, ...], dtype: Any, shape: Any
    ) -> tuple[str, np.dtype, tuple[int, ...], list[Any]]:
        """What the payloads have in common, and they themselves."""
        known = [x for x in summands if isinstance(x, Encoded)]
        if known and (dtype is not None or shape is not None):
            raise TypeError("dtype and shape: an Encoded has its own; give them with bytes only")
        if not known and (dtype is None or shape is None):
            raise TypeError("dtype and shape are needed to add bytes")
        spec = known[0].spec if known else self.spec
        for text in (spec, *(x.spec for x in known)):
            if _core.describe(text)["codec"] != "szp":
                raise ValueError(
                    f"only payloads of szp can be added, not of {text!r}; decode one, and the "
                    'other with combine="sum" into the same array'
                )
        dtype = known[0].dtype if known else np.dtype(dtype)
        shape = known[0].shape if known else _shape_of(shape)
        for x in known[1:]:
            if (x.dtype, x.shape) != (dtype, shape):
                raise ValueError(
                    f"expected arrays of one type and shape, not {dtype} {shape} and {x.dtype} "
                    f"{x.shape}"
                )
        payloads = [x.payload if isinstance(x, Encoded) else x for x in summands]
        payloads = [x if _device.is_device_array(x) else _payload_of(x) for x in payloads]
        return spec, dtype, shape, payloads


def _add_on_device(
    spec: str, name: str, views: list[_device.View], count: int
) -> tuple[str, DeviceArray | None, float | None]:
    first = views[0]
    for view in views:
        if view.dtype != np.uint8:
            raise TypeError(f"the payload: expected uint8 elements, not {view.dtype}")
        if view.device != first.device:
            raise ValueError(f"payloads: one is on device {first.device}, one on {view.device}")
        if view.stream.handle != first.stream.handle:
            _core.cuda_order(view.stream.handle, first.stream.handle, first.device)
    payloads = [(view.pointer, view.nbytes) for view in views]
    where = (first.device, first.stream.handle)
    problem, buffer, bound = _core.cuda_add(spec, name, payloads, count, *where)
    if problem:
        return problem, None, None
    return "", DeviceArray(buffer, np.dtype(np.uint8), (buffer.nbytes,), first.stream), bound


def _decode_on_device(
    spec: str,
    payload: Any,
    dtype: np.dtype,
    shape: tuple[int, ...],
    out: Any,
    combine: str,
    stream: Any,
    library: str,
) -> Any:
    source = _device.view_of(payload, stream)
    if source.dtype != np.uint8:
        raise TypeError(f"the payload: expected uint8 elements, not {source.dtype}")
    name, count = _type_name(dtype), math.prod(shape)
    if spec == "none" and source.nbytes != count * dtype.itemsize:
        raise CorruptPayload(f"none: {source.nbytes} bytes are not {count} elements of {name}")
    if out is None:
        own = _device.empty(dtype, shape, source.device, source.stream)
        target = _device.view_of(own, source.stream)
    else:
        if not _device.is_device_array(out):
            raise TypeError("out: expected an array on the payload's GPU")
        target = _device.view_of(out, stream, writable=True)
        _check_place(target, dtype, shape, source.device)
        if target.stream.handle != source.stream.handle:
            _core.cuda_order(source.stream.handle, target.stream.handle, source.device)
    where = (source.device, target.stream.handle)
    if spec == "none" and combine != "replace":
        raise ValueError(f"combine={combine!r}: payloads of 'none' on a GPU are copied only")
    if spec == "none":
        _core.cuda_copy_to(target.pointer, source.pointer, source.nbytes, *where)
    elif problem := _core.cuda_decode(
        spec, name, source.pointer, source.nbytes, target.pointer, count, combine, *where
    ):
        raise CorruptPayload(f"{spec}: {problem}")
    return _device.as_library(own, library) if out is None else out


def _check_place(
    target: _device.View, dtype: np.dtype, shape: tuple[int, ...], device: int
) -> None:
    if target.dtype != dtype:
        raise ValueError(f"out: expected dtype {dtype}, not {target.dtype}")
    if target.shape != shape:
        raise ValueError(f"out: expected shape {shape}, not {target.shape}")
    if target.nbytes and target.device != device:
        raise ValueError(f"out: expected an array on device {device}, not {target.device}")


def codec(spec: str) -> Codec:
    """The codec that `spec` names; ValueError says what is wrong with a spec."""
    return Codec(spec)


def _type_name(dtype: np.dtype) -> str:
    name = _TYPES.get(dtype)
    if name is None:
        raise TypeError(f"{_EXPECTED}, not {dtype}")
    return name


def _as_array(data: Any) -> np.ndarray:
    """`data` as a C-contiguous array in native byte order, without a copy where possible."""
    if not isinstance(data, np.ndarray | np.generic) and not hasattr(data, "__array__"):
        try:
            data = memoryview(data)
        except TypeError:
            raise TypeError(
                f"{_EXPECTED} in an array or buffer, not {type(data).__name__}"
            ) from None
    array = np.asarray(data)
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise TypeError(f"{_EXPECTED}, not {array.dtype}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _payload_of(data: Any) -> np.ndarray:
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"expected an Encoded or bytes, not {type(data).__name__}") from None
    if not view.c_contiguous:
        raise ValueError("the payload's bytes must be contiguous")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)


def _shape_of(shape: Any) -> tuple[int, ...]:
    extents = shape if isinstance(shape, Sequence) else (shape,)
    try:
        result = tuple(n.__index__() for n in extents)
    except AttributeError:
        raise TypeError(f"shape: expected whole numbers, not {shape!r}") from None
    if any(n < 0 for n in result):
        raise ValueError(f"shape: extents must not be negative, got {shape!r}")
    return result


def _check_out(out: Any, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out: expected a numpy array, not {type(out).__name__}")
    if out.dtype != dtype:
        raise ValueError(f"out: expected dtype {dtype}, not {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"out: expected shape {shape}, not {out.shape}")
    if not out.flags.c_contiguous:
        raise ValueError("out: expected a C-contiguous array")
    if not out.flags.writeable:
        raise ValueError("out: expected a writable array")
