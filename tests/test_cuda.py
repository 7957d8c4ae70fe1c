"""Arrays on GPUs: twins write the host's bytes, whichever library the arrays and streams are of.

Needs a GPU, torch and CuPy; run by tests/gpu/run.sh.
"""

import threading

import numpy as np
import pytest
from conftest import same_bits

import mpress

pytestmark = pytest.mark.cuda

SPECS = ["none", "auto", "mpc", "mpc:dim=3", "zfp:8", "zfp:15.75", "szp:abs=1e-3", "szp:rel=1e-4",
         "szp:rel=1e-2,mode=dense"]  # fmt: skip
DTYPES = [np.float32, np.float64]
SHAPES = [(), (0,), (1,), (5,), (7, 11, 13), (100_003,), (1 << 20,)]


@pytest.fixture(scope="module")
def cupy():
    return pytest.importorskip("cupy")


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def wavy(shape, dtype):
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (np.sin(i * 0.01) + 0.3 * np.sin(i * 0.037)).astype(dtype).reshape(shape)


def as_numpy(array):
    if isinstance(array, mpress.DeviceArray):
        return array.to_host()
    return array.get() if hasattr(array, "get") else array.cpu().numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("spec", SPECS)
def test_the_host_s_bytes_and_values(spec, shape, dtype, cupy):
    field = wavy(shape, dtype)
    codec = mpress.codec(spec)
    host, device = codec.encode(field), codec.encode(cupy.asarray(field))
    assert (device.spec, device.dtype, device.shape) == (host.spec, host.dtype, host.shape)
    assert device.bound == host.bound
    assert same_bits(device.payload.to_host(), host.payload)
    again = codec.decode(device)
    assert same_bits(as_numpy(again), codec.decode(host))
    out = cupy.empty(shape, dtype)
    assert codec.decode(device, out=out) is out
    assert same_bits(out.get(), codec.decode(host))


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_decoding_gives_arrays_of_the_library_that_encoding_took(library, cupy, torch):
    field = wavy((300, 200), np.float32)
    array = cupy.asarray(field) if library == "cupy" else torch.from_numpy(field).cuda()
    again = mpress.codec("mpc").decode(mpress.codec("mpc").encode(array))
    assert type(again) is type(array)
    assert same_bits(as_numpy(again), field)


def test_a_tensor_that_autograd_watches(torch):
    tensor = torch.linspace(0, 1, 5000, device="cuda", requires_grad=True)
    encoded = mpress.codec("szp:abs=1e-3").encode(tensor)
    error = (mpress.codec("auto").decode(encoded) - tensor.detach()).abs().max()
    assert error.item() <= 1e-3


def test_payloads_go_to_any_library_and_come_back(cupy, torch):
    field = wavy((50_000,), np.float32)
    codec = mpress.codec("szp:abs=1e-4")
    encoded = codec.encode(cupy.asarray(field))
    expected = codec.decode(codec.encode(field))
    tensor = torch.from_dlpack(encoded.payload)
    array = cupy.asarray(encoded.payload)
    for payload in (tensor, array, encoded.payload):
        again = codec.decode(payload, dtype=np.float32, shape=field.shape)
        assert same_bits(as_numpy(again), expected)
    # An address that no kernel's wide loads like.
    shifted = torch.empty(tensor.numel() + 1, dtype=torch.uint8, device="cuda")[1:]
    shifted.copy_(tensor)
    again = codec.decode(shifted, dtype=np.float32, shape=field.shape)
    assert same_bits(as_numpy(again), expected)


@pytest.mark.parametrize("offset", [1, 2, 3, 5])
@pytest.mark.parametrize("spec", SPECS)
def test_slices_that_are_only_element_aligned(spec, offset, cupy):
    field = wavy((70_001,), np.float32)
    array = cupy.asarray(field)[offset:]
    host = mpress.codec(spec).encode(field[offset:])
    encoded = mpress.codec(spec).encode(array)
    assert same_bits(encoded.payload.to_host(), host.payload)
    out = cupy.zeros(70_010, np.float32)
    mpress.codec(spec).decode(encoded, out=out[offset : offset + array.size])
    assert same_bits(out.get()[offset : offset + array.size], mpress.codec(spec).decode(host))
    assert not out[:offset].any() and not out[offset + array.size :].any()


def test_the_stream_in_use_is_kept(cupy, torch):
    """Elements that a slow kernel writes are waited for, as any kernel on that stream would."""
    codec = mpress.codec("mpc")
    for _ in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            tensor = torch.full((1 << 20,), 3.0, device="cuda")
            tensor += torch.arange(1 << 20, device="cuda")
            encoded = codec.encode(tensor)
        assert same_bits(as_numpy(codec.decode(encoded)), np.arange(1 << 20, dtype=np.float32) + 3)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        array = cupy.arange(1 << 20, dtype=cupy.float64)
    for given in (stream, stream.ptr):
        encoded = codec.encode(array, stream=given)
        assert same_bits(encoded.payload.to_host(), codec.encode(array.get()).payload)


def test_decoding_waits_for_what_is_being_written_to_out(torch):
    field = wavy((1 << 20,), np.float32)
    with torch.cuda.stream(torch.cuda.Stream()):
        encoded = mpress.codec("mpc").encode(torch.from_numpy(field).cuda())
    for _ in range(3):
        out = torch.full((1 << 20,), 7.0, device="cuda")
        torch.cuda._sleep(20_000_000)
        out.zero_()
        mpress.codec("mpc").decode(encoded, out=out, combine="sum")
        assert same_bits(as_numpy(out), field + np.float32(0))


def test_many_threads_and_streams(torch):
    field = [wavy((200_000 + 1000 * k,), np.float32) for k in range(8)]
    expected = [mpress.codec("szp:rel=1e-3").encode(f).payload for f in field]
    failures = []

    def work(k):
        with torch.cuda.stream(torch.cuda.Stream()):
            tensor = torch.from_numpy(field[k]).cuda(non_blocking=False)
            for _ in range(30):
                encoded = mpress.codec("szp:rel=1e-3").encode(tensor)
                if not same_bits(encoded.payload.to_host(), expected[k]):
                    failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("spec", ["mpc", "zfp:8", "szp:abs=1e-3"])
def test_damage_is_reported(spec, cupy):
    codec = mpress.codec(spec)
    encoded = codec.encode(cupy.asarray(wavy((30_000,), np.float32)))
    bad = cupy.array(cupy.asarray(encoded.payload))
    bad[len(bad) // 2] ^= 4
    with pytest.raises(mpress.CorruptPayload):
        codec.decode(bad, dtype=np.float32, shape=30_000)
    with pytest.raises(mpress.CorruptPayload):
        codec.decode(bad[: len(bad) // 2], dtype=np.float32, shape=30_000)


def test_what_is_refused(cupy):
    codec = mpress.codec("mpc")
    square = cupy.zeros((100, 100), np.float32)
    with pytest.raises(ValueError, match="contiguous"):
        codec.encode(square[:, ::2])
    with pytest.raises(ValueError, match="aligned"):
        codec.encode(cupy.zeros(41, np.uint8)[1:].view(np.float32))
    with pytest.raises(TypeError, match="float32 or float64"):
        codec.encode(cupy.zeros(10, np.int32))
    with pytest.raises(TypeError, match="stream"):
        codec.encode(square, stream="0")
    encoded = codec.encode(square)
    with pytest.raises(ValueError, match="out: expected shape"):
        codec.decode(encoded, out=cupy.zeros(100, np.float32))
    with pytest.raises(ValueError, match="out: expected dtype"):
        codec.decode(encoded, out=cupy.zeros((100, 100), np.float64))
    with pytest.raises(TypeError, match="out: expected an array on the payload's GPU"):
        codec.decode(encoded, out=np.zeros((100, 100), np.float32))


def test_memory_is_given_back(cupy):
    field = cupy.asarray(wavy((1 << 22,), np.float32))
    codec = mpress.codec("szp:abs=1e-3")
    for _ in range(30):
        codec.decode(codec.encode(field))
    cupy.cuda.Device().synchronize()
    free = cupy.cuda.Device().mem_info[0]
    for _ in range(300):
        codec.decode(codec.encode(field))
    cupy.cuda.Device().synchronize()
    assert cupy.cuda.Device().mem_info[0] >= free - (512 << 20)  # a leak would be 5 GB
