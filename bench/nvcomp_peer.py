"""nvCOMP's codecs for floats, timed as ours are: bitcomp, lossless and lossy, and ANS.

From the wheel nvidia-libnvcomp-cu13 (or -cu12), by its C interface; needs CuPy for memory and
events.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHUNK = 64 << 10  # nvCOMP's own choice for ANS
_FLOAT32, _FLOAT64 = 9, 10  # bitcompDataType_t
_LOSSLESS, _LOSSY = 0, 1  # bitcompMode_t
_UNSIGNED = {4: 4, 8: 6}
_ANS_FLOAT32, _ANS_ANY = 11, 255  # nvcompType_t


def library() -> ctypes.CDLL | None:
    """nvCOMP, where it is installed."""
    spec = importlib.util.find_spec("nvidia.libnvcomp")
    if spec is None or not spec.submodule_search_locations:
        return None
    found = sorted(Path(spec.submodule_search_locations[0]).glob("lib64/libnvcomp.so*"))
    if not found:
        return None
    lib = ctypes.CDLL(str(found[0]))
    lib.bitcompMaxBuflen.restype = ctypes.c_size_t
    lib.bitcompMaxBuflen.argtypes = [ctypes.c_size_t]
    return lib


def _median_seconds(cupy: Any, call: Callable[[int], None], repeat: int) -> float:
    times = []
    for i in range(-2, repeat):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call(i + 2)
        end.record()
        end.synchronize()
        if i >= 0:
            times.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return sorted(times)[len(times) // 2]


def bitcomp(lib: ctypes.CDLL, array: Any, bound: float | None, repeat: int) -> dict[str, float]:
    """Bitcomp on a CuPy array of floats: lossless, or lossy with the step that keeps `bound` (it
    takes a power of two)."""
    import cupy

    size = array.dtype.itemsize
    lossy = bound is not None
    kind = ({4: _FLOAT32, 8: _FLOAT64} if lossy else _UNSIGNED)[size]
    plan = ctypes.c_void_p()
    mode = _LOSSY if lossy else _LOSSLESS
    _check(lib.bitcompCreatePlan(ctypes.byref(plan), ctypes.c_size_t(array.nbytes), kind, mode, 0))
    _check(lib.bitcompSetStream(plan, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)))
    copies = max(1, min(64, (256 << 20) // array.nbytes))
    inputs = [array] + [array.copy() for _ in range(copies - 1)]
    room = lib.bitcompMaxBuflen(array.nbytes)
    outputs = [cupy.empty(room, cupy.uint8) for _ in range(copies)]
    decoded = [cupy.empty_like(array) for _ in range(copies)]

    def compress(i: int) -> None:
        source, target = (ctypes.c_void_p(x[i % copies].data.ptr) for x in (inputs, outputs))
        if not lossy:
            _check(lib.bitcompCompressLossless(plan, source, target))
        elif size == 4:
            step = ctypes.c_float(_step(bound))
            _check(lib.bitcompCompressLossy_fp32(plan, source, target, step))
        else:
            step = ctypes.c_double(_step(bound))
            _check(lib.bitcompCompressLossy_fp64(plan, source, target, step))

    def decompress(i: int) -> None:
        source, target = (ctypes.c_void_p(x[i % copies].data.ptr) for x in (outputs, decoded))
        _check(lib.bitcompUncompress(plan, source, target))

    encode = _median_seconds(cupy, compress, repeat)
    for i in range(copies):
        compress(i)
    decode = _median_seconds(cupy, decompress, repeat)
    cupy.cuda.get_current_stream().synchronize()
    payload = ctypes.c_size_t()
    _check(lib.bitcompGetCompressedSize(
        ctypes.c_void_p(outputs[0].data.ptr), ctypes.byref(payload)
    ))  # fmt: skip
    lib.bitcompDestroyPlan(plan)
    error = float(abs(decoded[0].astype(cupy.float64) - array).max())
    if error > (bound or 0):
        raise RuntimeError(f"bitcomp: error {error} above {bound}")
    return {"encode": encode, "decode": decode, "payload_bytes": payload.value}


class _AnsCompress(ctypes.Structure):
    """nvcompBatchedANSCompressOpts_t"""

    _fields_ = (
        ("type", ctypes.c_int),
        ("data_type", ctypes.c_int),
        ("tuning", ctypes.c_uint8 * 3),
        ("reserved", ctypes.c_char * 53),
    )


class _AnsDecompress(ctypes.Structure):
    """nvcompBatchedANSDecompressOpts_t"""

    _fields_ = (
        ("backend", ctypes.c_int),
        ("data_type", ctypes.c_int),
        ("tuning", ctypes.c_uint8 * 3),
        ("reserved", ctypes.c_char * 53),
    )


def ans(lib: ctypes.CDLL, array: Any, repeat: int) -> dict[str, float]:
    """ANS on a CuPy array of float32, in chunks of 64 KiB."""
    import cupy

    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    chunks = -(-array.nbytes // _CHUNK)
    options, back = _AnsCompress(data_type=_ANS_FLOAT32), _AnsDecompress(data_type=_ANS_ANY)
    number, chunk, total = (ctypes.c_size_t(n) for n in (chunks, _CHUNK, array.nbytes))
    room, temp, temp_back = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    _check(lib.nvcompBatchedANSCompressGetMaxOutputChunkSize(chunk, options, ctypes.byref(room)))
    _check(lib.nvcompBatchedANSCompressGetTempSize(
        number, chunk, options, ctypes.byref(temp), total, stream
    ))  # fmt: skip
    _check(lib.nvcompBatchedANSDecompressGetTempSize(
        number, chunk, back, ctypes.byref(temp_back), total, stream
    ))  # fmt: skip
    stride = -(-room.value // 256) * 256
    decoded, output = cupy.empty_like(array), cupy.empty(chunks * stride, cupy.uint8)
    scratch = cupy.empty(max(temp.value, temp_back.value, 1), cupy.uint8)

    def places(base: Any, step: int) -> Any:
        return base.data.ptr + cupy.arange(chunks, dtype=cupy.uint64) * step

    sizes = cupy.full(chunks, _CHUNK, cupy.uint64)
    sizes[-1] = array.nbytes - (chunks - 1) * _CHUNK
    packed, unpacked = cupy.zeros(chunks, cupy.uint64), cupy.zeros(chunks, cupy.uint64)
    statuses = cupy.zeros(chunks, cupy.int32)
    held = [places(array, _CHUNK), places(output, stride), places(decoded, _CHUNK)]
    source, target, result = (ctypes.c_void_p(x.data.ptr) for x in held)
    at = [ctypes.c_void_p(x.data.ptr) for x in (sizes, packed, unpacked, statuses, scratch)]

    def compress(_: int) -> None:
        _check(lib.nvcompBatchedANSCompressAsync(
            source, at[0], chunk, number, at[4], temp, target, at[1], options, at[3], stream
        ))  # fmt: skip

    def decompress(_: int) -> None:
        _check(lib.nvcompBatchedANSDecompressAsync(
            target, at[1], at[0], at[2], number, at[4], temp_back, result, back, at[3], stream
        ))  # fmt: skip

    encode = _median_seconds(cupy, compress, repeat)
    decode = _median_seconds(cupy, decompress, repeat)
    if statuses.any() or not (decoded.view(cupy.uint32) == array.view(cupy.uint32)).all():
        raise RuntimeError("ANS: the elements did not come back")
    return {"encode": encode, "decode": decode, "payload_bytes": int(packed.sum())}


def _step(bound: float) -> float:
    """The largest power of two that is at most twice the bound: steps are halved errors."""
    return 2.0 ** math.floor(math.log2(2 * bound))


def _check(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"nvCOMP: error {code}")
