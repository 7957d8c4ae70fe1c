"""The zfp codec against libzfp itself: same stream, same values."""

import itertools

import numpy as np
import pytest

import mpress

zfpy = pytest.importorskip("zfpy")

# Magnitudes below which libzfp's scale factor overflows; smaller blocks are not its domain.
LEAST = {np.float32: 2.0**-98, np.float64: 2.0**-962}


def smooth(rng, count):
    return np.cumsum(rng.standard_normal(count)) * 0.01


def noise(rng, count):
    return rng.standard_normal(count)


def sparse(rng, count):
    return np.where(rng.random(count) < 0.9, 0, rng.standard_normal(count))


def wide(rng, count):
    return np.ldexp(rng.standard_normal(count), rng.integers(-90, 120, count))


def constant(rng, count):
    return np.full(count, rng.standard_normal())


CASES = [
    pytest.param(make, dtype, rate, id=f"{make.__name__}-{np.dtype(dtype)}-{rate}")
    for make, dtype in itertools.product([smooth, noise, sparse, wide, constant], LEAST)
    for rate in [2.25, 3, 4, 5.75, 8, 12, 13.25, 16, 16.25, 24, 32, 48.5, 64]
    if (rate >= 3 or dtype is np.float32) and (rate <= 32 or dtype is np.float64)
]


@pytest.mark.parametrize(("make", "dtype", "rate"), CASES)
@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000, 1003])
def test_stream_and_values_are_those_of_libzfp(make, dtype, rate, count):
    values = make(np.random.default_rng(count), count).astype(dtype)
    magnitude = np.abs(values)
    values[(magnitude != 0) & (magnitude < LEAST[dtype])] = 0
    theirs = zfpy.compress_numpy(values, rate=rate, write_header=False)
    codec = mpress.codec(f"zfp:{rate}")
    ours = codec.encode(values)
    assert bytes(ours.payload[: len(theirs)]) == theirs
    assert ours.nbytes == len(theirs) + 16

    stream = bytes(ours.payload[: len(theirs)])
    kind = zfpy.dtype_to_ztype(values.dtype)
    expected = zfpy._decompress(stream, kind, values.shape, rate=rate)
    np.testing.assert_array_equal(
        codec.decode(ours).view(np.uint8), np.asarray(expected).view(np.uint8)
    )


@pytest.mark.parametrize("dtype", LEAST)
def test_what_libzfp_cannot_hold(dtype):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(4000).astype(dtype)
    values[100] = np.nan
    values[2001] = -np.inf
    values[3000:] *= LEAST[dtype] / 64  # tiny blocks
    decoded = mpress.codec("zfp:16").decode(mpress.codec("zfp:16").encode(values))
    for first in (100, 2000):
        block = slice(first, first + 4)
        np.testing.assert_array_equal(decoded[block], values[block])
    tiny = np.abs(decoded[3000:] - values[3000:]).max() / np.abs(values[3000:]).max()
    assert tiny < 1e-2
