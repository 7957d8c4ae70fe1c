"""Arrays on GPUs: twins write the host's bytes, whichever library the arrays and streams are of.

Needs a GPU, torch and CuPy; run by tests/gpu/run.sh.
"""

import sys
import threading

import numpy as np
import pytest
from cuda_twins import same_bits
from execution import execute

import mpress
from mpress import cuda_bench

pytestmark = pytest.mark.cuda

SPECS = ["none", "auto", "mpc", "mpc:dim=3", "zfp:8", "zfp:15.75", "szp:abs=1e-3", "szp:rel=1e-4",
         "szp:rel=1e-2,mode=dense"]  # fmt: skip
DTYPES = [np.float32, np.float64]
DEVICES = cuda_bench.devices()
two_devices = pytest.mark.skipif(DEVICES < 2, reason="needs two GPUs")
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


@pytest.fixture(params=range(max(DEVICES, 1)), ids=lambda n: f"on{n}")
def device(request):
    """Every GPU in turn: where something is encoded."""
    return request.param


@pytest.fixture(params=sorted({0, DEVICES // 2, max(DEVICES - 1, 0)}), ids=lambda n: f"current{n}")
def current(request, cupy):
    """The first GPU, the last one and one between, made current; it is so still in the end."""
    with cupy.cuda.Device(request.param):
        yield request.param
        assert cupy.cuda.runtime.getDevice() == request.param


@pytest.mark.parametrize("spec", SPECS)
def test_a_device_serves_its_arrays_whatever_is_current(spec, device, current, cupy):
    field = wavy((300_001,), np.float32)
    codec = mpress.codec(spec)
    host = codec.encode(field)
    with cupy.cuda.Device(device):
        array, out = cupy.asarray(field), cupy.zeros(field.shape, np.float32)
    encoded = codec.encode(array)
    assert encoded.payload.device == device
    assert same_bits(encoded.payload.to_host(), host.payload)
    again = codec.decode(encoded)
    assert again.device.id == device
    assert codec.decode(encoded, out=out) is out
    for decoded in (again, out):
        assert same_bits(decoded.get(), codec.decode(host))


@pytest.mark.parametrize("spec", ["mpc", "zfp:8", "szp:rel=1e-3"])
def test_payloads_are_decoded_on_the_device_that_they_are_copied_to(spec, device, current, cupy):
    field = wavy((300_001,), np.float64)
    codec = mpress.codec(spec)
    host = codec.encode(field)
    encoded = codec.encode(cupy.asarray(field))
    assert encoded.payload.device == current
    with cupy.cuda.Device(device):
        there = cupy.empty(encoded.nbytes, np.uint8)
    cupy.cuda.runtime.memcpy(
        there.data.ptr,
        cupy.asarray(encoded.payload).data.ptr,
        encoded.nbytes,
        cupy.cuda.runtime.memcpyDefault,
    )
    cupy.cuda.runtime.deviceSynchronize()
    again = codec.decode(there, dtype=field.dtype, shape=field.shape)
    assert again.device == device
    assert same_bits(again.to_host(), codec.decode(host))


def test_threads_and_streams_of_all_devices_at_once(torch):
    """Neighbouring threads work on different devices, and every thread's current one is another."""
    codec = mpress.codec("szp:rel=1e-3")
    fields = [wavy((200_000 + 1000 * k,), np.float32) for k in range(8)]
    hosts = [codec.encode(field) for field in fields]
    decoded = [codec.decode(host) for host in hosts]
    start = threading.Barrier(len(fields), timeout=60)
    finished = []

    def work(k):
        device = torch.device("cuda", k % DEVICES)
        torch.cuda.set_device((k + 1) % DEVICES)
        tensor = torch.from_numpy(fields[k]).to(device)
        torch.cuda.synchronize(device)
        streams = [torch.cuda.Stream(device) for _ in range(2)]
        start.wait()
        for i in range(30):
            encoded = codec.encode(tensor, stream=streams[i % 2])
            again = codec.decode(encoded, stream=streams[(i + 1) % 2])
            assert encoded.payload.device == again.device.index == device.index
            assert same_bits(encoded.payload.to_host(), hosts[k].payload)
            assert same_bits(as_numpy(again), decoded[k])
        assert torch.cuda.current_device() == (k + 1) % DEVICES
        finished.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(fields))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(finished) == list(range(len(fields)))


@two_devices
def test_elements_of_another_device_are_refused(cupy):
    codec = mpress.codec("mpc")
    encoded = codec.encode(cupy.zeros(1000, np.float32))
    with cupy.cuda.Device(1):
        out = cupy.zeros(1000, np.float32)
    with pytest.raises(ValueError, match="out: expected an array on device 0, not 1"):
        codec.decode(encoded, out=out)


_ONE_DEVICE_ONLY = """
import ctypes, threading, torch, mpress

cuda = ctypes.CDLL("libcuda.so.1")

def contexts():
    flags, active = ctypes.c_uint(), (ctypes.c_int * 2)()
    for k in range(2):
        state = ctypes.byref(flags), ctypes.byref(active, 4 * k)
        assert cuda.cuDevicePrimaryCtxGetState(k, *state) == 0
    return list(active)

tensor = torch.arange(100_000, device="cuda:1", dtype=torch.float32)
codec = mpress.codec("szp:abs=1e-3")
before = contexts()

def work():
    payload = codec.encode(tensor).payload
    out = torch.empty_like(tensor)
    codec.decode(payload, out=out)
    assert (out - tensor).abs().max().item() <= 1e-3

work()
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(before, contexts())
"""


@two_devices
def test_a_device_that_the_program_does_not_use_gets_no_context():
    """A context takes hundreds of megabytes: of the first GPU, from every rank of a host."""
    done = execute([sys.executable, "-c", _ONE_DEVICE_ONLY])
    assert (done.status, done.stdout.strip()) == (0, "[0, 1] [0, 1]"), done.output
