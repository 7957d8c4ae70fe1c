"""mpress.codec: what encoding and decoding promise, and what they refuse."""

import array
import functools
import math
from fractions import Fraction

import numpy as np
import pytest
import zfpy
from cuda_twins import same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mpress
from mpress import _core

DTYPES = [np.float32, np.float64]
LOSSLESS = ["none", "auto", "mpc", "mpc:dim=1", "mpc:dim=3", "mpc:dim=32"]
LOSSY = ["zfp:4", "zfp:15.75", "szp:abs=1e-3", "szp:rel=1e-4", "szp:rel=1e-2,mode=dense"]
SHAPES = [(), (0,), (1,), (3,), (4,), (31,), (2, 0, 3), (1023,), (7, 11, 13), (3000,)]


def smooth(shape, dtype, seed=0):
    size = math.prod(shape)
    phase = np.arange(size) * 0.01 + seed
    return (np.sin(phase) + 0.3 * np.sin(3.7 * phase)).astype(dtype).reshape(shape)


def any_bits(dtype):
    """Arrays of arbitrary bit patterns: NaN payloads, infinities, subnormals, negative zeros."""
    word = np.uint32 if dtype == np.float32 else np.uint64
    patterns = hnp.arrays(word, st.integers(0, 3000), elements=st.integers(0, np.iinfo(word).max))
    return patterns.map(lambda bits: bits.view(dtype))


def floats(dtype, largest):
    width = 32 if dtype == np.float32 else 64
    elements = st.floats(-largest, largest, width=width, allow_subnormal=True)
    special = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return hnp.arrays(dtype, st.integers(0, 2500), elements=elements | special, fill=elements)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("spec", LOSSLESS + LOSSY)
def test_shapes(spec, shape, dtype):
    field = smooth(shape, dtype)
    encoded = mpress.codec(spec).encode(field)
    decoded = mpress.codec(spec).decode(encoded)
    assert decoded.shape == shape and decoded.dtype == dtype
    assert encoded.shape == shape and encoded.dtype == dtype
    assert encoded.nbytes == len(bytes(encoded.payload))
    if encoded.nbytes:
        assert encoded.ratio == pytest.approx(field.nbytes / encoded.nbytes)
    if spec in LOSSLESS:
        assert same_bits(decoded, field)
        assert encoded.nbytes <= field.nbytes + 64


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", LOSSLESS)
@given(data=st.data())
def test_lossless_keeps_every_bit(spec, dtype, data):
    field = data.draw(any_bits(dtype))
    decoded = mpress.codec(spec).decode(mpress.codec(spec).encode(field))
    assert same_bits(decoded, field)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["fast", "dense"])
@pytest.mark.parametrize("kind", ["abs", "rel"])
@given(data=st.data())
def test_szp_keeps_its_bound(kind, mode, dtype, data):
    largest = data.draw(st.sampled_from([1.0, 2.0**20, 2.0**100]))
    field = data.draw(floats(dtype, largest))
    asked = data.draw(st.sampled_from([1e-9, 1e-5, 1e-3, 0.5]))
    encoded = mpress.codec(f"szp:{kind}={asked},mode={mode}").encode(field)
    decoded = mpress.codec("auto").decode(encoded)
    finite = np.isfinite(field)
    values = field[finite].astype(np.float64)
    if kind == "abs":
        bound = asked
    else:
        bound = asked * float(values.max() - values.min()) if values.size else 0.0
    assert encoded.bound == pytest.approx(bound, rel=1e-12)
    errors = np.abs(decoded[finite].astype(np.float64) - values)
    assert np.all(errors <= bound)
    word = np.uint32 if dtype == np.float32 else np.uint64
    assert np.array_equal(decoded[~finite].view(word), field[~finite].view(word))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["fast", "dense"])
@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -0.1, 3e-30, 7e37])
@pytest.mark.parametrize("count", [1, 33, 5000, 70001])
def test_a_relative_bound_keeps_what_is_all_alike(count, value, mode, dtype):
    """Few bytes, and no error: the range is 0, and so is the bound."""
    field = np.full(count, value, dtype)
    strange = np.arange(count) % 1000 == 20
    field[strange] = np.nan
    encoded = mpress.codec(f"szp:rel=1e-3,mode={mode}").encode(field)
    decoded = mpress.codec("auto").decode(encoded)
    assert np.array_equal(decoded, field, equal_nan=True)
    assert 0 < encoded.bound <= np.finfo(dtype).tiny
    if count >= 5000:
        assert encoded.nbytes < field.nbytes / 25


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0.0, 0.1, -7e-30, 1e30])
def test_sums_of_what_is_all_alike(value, dtype):
    """However often their payloads are added: the bound that is told covers what is rounded."""
    codec = mpress.codec("szp:rel=1e-3")
    field = np.full(9000, value, dtype)
    total = encoded = codec.encode(field)
    for summands in range(2, 40):
        total = codec.add(total, encoded)
        exact = summands * float(field[0])
        decoded = codec.decode(total)
        errors = np.abs(decoded.astype(np.float64) - exact)
        assert total.bound > 0 and np.all(errors <= total.bound)
        assert total.bound <= max(1e-3 * abs(exact), 40 * np.finfo(dtype).tiny)
    assert codec.add(encoded, encoded, encoded).bound > 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_relative_bound_keeps_what_is_no_step(dtype):
    """Of denormals and of the largest numbers, the step or its inverse would not be normal."""
    for value in (np.finfo(dtype).smallest_subnormal * 3, np.finfo(dtype).max / dtype(1.5)):
        field = np.full(5000, value, dtype)
        encoded = mpress.codec("szp:rel=1e-3").encode(field)
        assert mpress.codec("auto").decode(encoded).tobytes() == field.tobytes()
        assert encoded.bound == 0 and encoded.nbytes >= field.nbytes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", ["zfp:8", "zfp:16"])
def test_zfp_keeps_what_is_not_finite(spec, dtype):
    field = smooth((1000,), dtype)
    field[10], field[503], field[999] = np.nan, np.inf, -np.inf
    decoded = mpress.codec(spec).decode(mpress.codec(spec).encode(field))
    for at in (10, 503, 999):  # the whole block of 4 is kept exactly
        block = slice(at // 4 * 4, at // 4 * 4 + 4)
        assert decoded[block].tobytes() == field[block].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_zfp_is_libzfps_stream(dtype, data):
    width = 32 if dtype == np.float32 else 64
    # Below this libzfp overflows its own scale; ours does not (docs/codecs.md).
    least = 2.0**-90 if dtype == np.float32 else 2.0**-900
    magnitudes = st.floats(least, 2.0**100, width=width) | st.floats(0.5, 2, width=width)
    elements = st.builds(lambda x, sign: x * sign, magnitudes, st.sampled_from([1.0, -1.0, 0.0]))
    field = data.draw(hnp.arrays(dtype, st.integers(1, 600), elements=elements))
    rate = data.draw(st.integers(9 if width == 32 else 12, 4 * width)) / 4
    codec = mpress.codec(f"zfp:{rate}")
    encoded = codec.encode(field)
    stream = zfpy.compress_numpy(field, rate=rate, write_header=False)
    assert bytes(encoded.payload[: len(stream)]) == stream
    theirs = zfpy._decompress(stream, zfpy.dtype_to_ztype(field.dtype), field.shape, rate=rate)
    assert same_bits(codec.decode(encoded), theirs)
    assert codec.effective_rate(dtype) == rate


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", ["mpc", "zfp:8", "szp:abs=1e-3", "szp:abs=1e-3,mode=dense"])
@pytest.mark.parametrize("kind", ["smooth", "noise", "special"])
def test_every_damage_is_reported(spec, kind, dtype):
    field = smooth((700,), dtype)
    if kind == "noise":
        field = np.random.default_rng(1).standard_normal(700).astype(dtype)
    if kind == "special":
        field[5], field[300:320] = np.nan, np.inf
    codec = mpress.codec(spec)
    payload = bytes(codec.encode(field).payload)
    assert codec.decode(payload, dtype=dtype, shape=700).shape == (700,)
    random = np.random.default_rng(2)
    for at in range(len(payload)):
        damaged = bytearray(payload)
        damaged[at] ^= 1 << random.integers(8)
        with pytest.raises(mpress.CorruptPayload):
            codec.decode(damaged, dtype=dtype, shape=700)
    for length in range(0, len(payload), 7):
        with pytest.raises(mpress.CorruptPayload):
            codec.decode(payload[:length], dtype=dtype, shape=700)


@settings(deadline=None, max_examples=200)
@given(
    spec=st.sampled_from(["mpc", "zfp:8", "szp:abs=1e-3"]),
    dtype=st.sampled_from(DTYPES),
    payload=st.binary(max_size=400),
    count=st.integers(0, 5000),
)
def test_garbage_is_refused(spec, dtype, payload, count):
    with pytest.raises(mpress.CorruptPayload):
        mpress.codec(spec).decode(payload, dtype=dtype, shape=count)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spec", ["mpc", *LOSSY])
def test_instruction_sets_agree(spec, dtype):
    field = smooth((20_000,), dtype) + np.float32(1e-3) * np.random.default_rng(3).standard_normal(
        20_000
    ).astype(dtype)
    field[777] = np.nan
    best = _core.isa()
    payloads, decoded = [], []
    try:
        for isa in ("portable", "avx2", "avx512"):
            if _core.set_isa(isa):
                encoded = mpress.codec(spec).encode(field)
                payloads.append(bytes(encoded.payload))
                decoded.append(mpress.codec(spec).decode(encoded).tobytes())
    finally:
        _core.set_isa(best)
    assert len(set(payloads)) == 1 and len(set(decoded)) == 1


def test_auto_chooses_what_is_smaller():
    noise = np.random.default_rng(4).integers(0, 2**32, 5000, dtype=np.uint32).view(np.float32)
    assert mpress.codec("auto").encode(np.zeros(5000, np.float32)).spec == "mpc"
    assert mpress.codec("auto").encode(noise).spec == "none"


def test_kinds_of_arrays():
    field = smooth((20, 30), np.float64)
    codec = mpress.codec("mpc")
    for other in (field[::2, ::-1], np.asfortranarray(field), field.astype(">f8"), field.T):
        decoded = codec.decode(codec.encode(other))
        assert decoded.dtype == np.dtype("=f8")
        assert np.array_equal(decoded, other)
    assert np.array_equal(codec.decode(codec.encode(array.array("f", [1, 2, 3]))), [1, 2, 3])
    assert codec.decode(codec.encode(memoryview(field))).shape == (20, 30)
    assert codec.decode(codec.encode(np.float32(2.5))) == np.float32(2.5)
    read_only = field.copy()
    read_only.flags.writeable = False
    assert same_bits(codec.decode(codec.encode(read_only)), field)


class ArrayOnTheHost:
    """As arrays of JAX are there: what only those on a GPU have raises when it is read."""

    def __init__(self, array):
        self._array = array

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("only defined for GPU buffers")

    def __dlpack_device__(self):
        return (1, 0)

    def __array__(self, dtype=None, copy=None):
        return self._array


def test_arrays_on_the_host_that_could_be_on_a_gpu():
    field = np.linspace(0, 1, 5000, dtype=np.float32)
    encoded = mpress.codec("mpc").encode(ArrayOnTheHost(field))
    assert same_bits(encoded.payload, mpress.codec("mpc").encode(field).payload)


@pytest.mark.parametrize("bad", [[1.0, 2.0], "abc", None, np.arange(3), np.zeros(3, np.float16),
                                 np.zeros(3, complex), b"abcd", np.array(["a"]),
                                 np.zeros(2, np.longdouble)])  # fmt: skip
def test_other_types_are_refused(bad):
    with pytest.raises(TypeError, match="expected float32 or float64"):
        mpress.codec("mpc").encode(bad)


def test_out():
    field = smooth((10, 20), np.float32)
    codec = mpress.codec("szp:abs=1e-4")
    encoded = codec.encode(field)
    out = np.empty((10, 20), np.float32)
    assert codec.decode(encoded, out) is out
    assert np.max(np.abs(out - field)) <= 1e-4
    assert codec.decode(bytes(encoded.payload), out=out) is out
    for bad, message in [
        (np.empty((10, 20), np.float64), "dtype"),
        (np.empty((20, 10), np.float32), "shape"),
        (np.empty((20, 10), np.float32).T, "contiguous"),
        (np.frombuffer(bytes(800), np.float32).reshape(10, 20), "writable"),
    ]:
        with pytest.raises(ValueError, match=message):
            codec.decode(encoded, bad)
    with pytest.raises(TypeError, match="out"):
        codec.decode(encoded, bytearray(800))


def test_bytes_need_dtype_and_shape():
    payload = bytes(mpress.codec("mpc").encode(smooth((12,), np.float32)).payload)
    assert mpress.codec("mpc").decode(payload, dtype="f4", shape=(3, 4)).shape == (3, 4)
    with pytest.raises(TypeError, match="dtype and shape"):
        mpress.codec("mpc").decode(payload)
    with pytest.raises(ValueError, match="auto"):
        mpress.codec("auto").decode(payload, dtype="f4", shape=12)
    with pytest.raises(ValueError, match="negative"):
        mpress.codec("mpc").decode(payload, dtype="f4", shape=-1)
    with pytest.raises(mpress.CorruptPayload):
        mpress.codec("mpc").decode(payload, dtype="f4", shape=13)
    with pytest.raises(mpress.CorruptPayload):
        mpress.codec("none").decode(payload, dtype="f4", shape=1000)


@pytest.mark.parametrize("spec, culprit", [
    ("", "unknown codec ''"), ("gzip", "gzip"), ("mpc:dim=0", "0"), ("mpc:dim=33", "33"),
    ("mpc:", "nothing follows"), ("zfp", "rate"), ("zfp:x", "x"), ("zfp:1", "2.25"),
    ("zfp:65", "65"), ("zfp:nan", "nan"), ("szp", "bound"), ("szp:abs=0", "0"),
    ("szp:abs=-1", "-1"), ("szp:abs=inf", "inf"), ("szp:rel=nan", "nan"),
    ("szp:abs=1,mode=slow", "slow"), ("szp:abs=1,rel=1", "rel"), ("none:1", "none"),
])  # fmt: skip
def test_bad_specs(spec, culprit):
    with pytest.raises(ValueError, match="codec spec") as error:
        mpress.codec(spec)
    assert culprit in str(error.value)


def test_rates_depend_on_the_type():
    with pytest.raises(ValueError, match="f32"):
        mpress.codec("zfp:33").encode(np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="f64"):
        mpress.codec("zfp:2.5").encode(np.zeros(4, np.float64))
    assert mpress.codec("zfp:8.1").effective_rate("f4") == 8


def test_codecs_are_values():
    assert mpress.codec("szp:abs=0.001") == mpress.codec("szp:abs=1e-3")
    assert len({mpress.codec("mpc"), mpress.codec("mpc")}) == 1
    assert mpress.codec("zfp:8").lossy and not mpress.codec("auto").lossy
    with pytest.raises(TypeError, match="string"):
        mpress.codec(8)


def total(codec, encoded):
    """The sum of payloads, one after the other."""
    return functools.reduce(codec.add, encoded)


def exact_sum(fields):
    """Elements as fractions: nothing is rounded."""
    columns = zip(*(f.ravel().tolist() for f in fields), strict=True)
    return [sum(map(Fraction, column)) for column in columns]


def assert_within(decoded, exact, bound):
    limit = Fraction(bound)
    for value, wanted in zip(decoded.ravel().tolist(), exact, strict=True):
        assert abs(Fraction(value) - wanted) <= limit


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["fast", "dense"])
@pytest.mark.parametrize("summands", [2, 3, 20])
def test_sums_keep_the_bound_in_any_order(summands, mode, dtype):
    """Over several units, the last one partial."""
    random = np.random.default_rng(summands)
    fields = [
        smooth((9, 1111), dtype, seed=k) + random.normal(0, 0.1, (9, 1111)).astype(dtype)
        for k in range(summands)
    ]
    codec = mpress.codec(f"szp:abs=1e-3,mode={mode}")
    encoded = [codec.encode(field) for field in fields]
    result = total(codec, encoded)
    assert (result.spec, result.dtype, result.shape) == (codec.spec, dtype, (9, 1111))
    assert result.bound == pytest.approx(summands * 1e-3, rel=1e-9)
    assert_within(codec.decode(result), exact_sum(fields), result.bound)
    for _ in range(3):
        order = random.permutation(summands)
        assert same_bits(total(codec, [encoded[k] for k in order]).payload, result.payload)
    at_once = codec.add(*encoded)
    assert same_bits(at_once.payload, result.payload) and at_once.bound == result.bound
    while len(encoded) > 1:
        encoded = [codec.add(*encoded[:2]), *encoded[2:]][::-1]
    assert same_bits(encoded[0].payload, result.payload)


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_sums_of_anything_finite(dtype, data):
    """Whole blocks of elements up to the bound's resolution always have a sum in quanta."""
    width = 32 if dtype == np.float32 else 64
    elements = st.floats(-2.0, 2.0, width=width, allow_subnormal=True)
    arrays = hnp.arrays(dtype, 32 * data.draw(st.integers(2, 80)), elements=elements, fill=elements)
    codec = mpress.codec("szp:abs=1e-3" + data.draw(st.sampled_from(["", ",mode=dense"])))
    fields = [data.draw(arrays)]
    for _ in range(data.draw(st.integers(1, 3))):
        fields.append(data.draw(st.one_of(st.just(-fields[0]), arrays)))
    encoded = [codec.encode(field) for field in fields]
    result = total(codec, encoded)
    assert same_bits(total(codec, encoded[::-1]).payload, result.payload)
    assert_within(codec.decode(result), exact_sum(fields), result.bound)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_bytes(dtype):
    codec = mpress.codec("szp:abs=1e-3")
    a, b = codec.encode(smooth((700,), dtype)), codec.encode(smooth((700,), dtype, seed=1))
    like = {"dtype": dtype, "shape": (70, 10)}
    sum_of_bytes = codec.add(bytes(a.payload), bytes(b.payload), **like)
    assert same_bits(sum_of_bytes.payload, codec.add(a, b).payload)
    assert sum_of_bytes.shape == (70, 10) and not sum_of_bytes.payload.flags.writeable
    with pytest.raises(TypeError, match="dtype and shape are needed"):
        codec.add(bytes(a.payload), bytes(b.payload))
    with pytest.raises(TypeError, match="has its own"):
        codec.add(a, b, **like)
    random = np.random.default_rng(3)
    for at in range(len(a.payload)):
        damaged = bytearray(a.payload)
        damaged[at] ^= 1 << random.integers(8)
        for pair in ((damaged, b.payload), (b.payload, damaged[:at])):
            with pytest.raises(mpress.CorruptPayload):
                codec.add(*pair, **like)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_cannot_be_added(dtype):
    field = smooth((5000,), dtype)
    codec = mpress.codec("szp:abs=1e-3")
    encoded = codec.encode(field)
    for value in (np.nan, np.inf, 1e30):
        special = field.copy()
        special[4321] = value
        for pair in ((codec.encode(special), encoded), (encoded, codec.encode(special))):
            with pytest.raises(mpress.InexactSum, match='combine="sum"'):
                codec.add(*pair)
    with pytest.raises(ValueError, match="same absolute bound"):
        codec.add(encoded, mpress.codec("szp:abs=2e-3").encode(field))
    with pytest.raises(ValueError, match="type and shape"):
        codec.add(encoded, codec.encode(field.reshape(50, 100)))
    with pytest.raises(ValueError, match="only payloads of szp"):
        codec.add(encoded, mpress.codec("mpc").encode(field))
    with pytest.raises(ValueError, match="only payloads of szp"):
        mpress.codec("zfp:8").add(bytes(100), bytes(100), dtype=dtype, shape=10)
    with pytest.raises(TypeError, match="bytes"):
        codec.add(encoded, field.tolist())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("combine", ["sum", "min", "max", "prod"])
@pytest.mark.parametrize("spec", LOSSLESS + LOSSY)
def test_decoding_combines_with_what_is_there(spec, combine, dtype):
    """Over several units, at an address that is only element-aligned, with NaN on both sides."""
    field, there = smooth((10_007,), dtype), smooth((10_007,), dtype, seed=5)
    field[[3, 4000, 9999]] = np.nan, np.inf, -np.inf
    there[[7, 4000, 5000]] = np.nan, -np.inf, np.inf
    encoded = mpress.codec(spec).encode(field)
    alone = mpress.codec(spec).decode(encoded)
    with np.errstate(invalid="ignore"):
        how = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}
        wanted = how[combine](there, alone)
    room = np.empty(10_008, dtype)
    room[1:] = there
    out = room[1:]
    assert mpress.codec(spec).decode(encoded, out, combine=combine) is out
    np.testing.assert_array_equal(out, wanted)


def test_what_combining_refuses():
    encoded = mpress.codec("mpc").encode(smooth((100,), np.float32))
    with pytest.raises(TypeError, match="needs an `out`"):
        mpress.codec("mpc").decode(encoded, combine="sum")
    with pytest.raises(ValueError, match="combine: expected replace, sum, min, max or prod"):
        mpress.codec("mpc").decode(encoded, np.zeros(100, np.float32), combine="add")


def test_damage_is_found_while_combining():
    encoded = mpress.codec("szp:abs=1e-3").encode(smooth((10_000,), np.float32))
    payload = encoded.payload.copy()
    payload[len(payload) // 2] ^= 1
    with pytest.raises(mpress.CorruptPayload):
        mpress.codec("szp:abs=1e-3").decode(payload, np.zeros(10_000, np.float32), combine="sum")
