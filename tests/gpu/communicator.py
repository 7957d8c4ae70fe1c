"""mpress.Communicator with arrays on GPUs, of the libraries named: cupy, torch, jax. A rank has a
GPU of its own where there are enough. What streams of these libraries hold when a call begins is
part of its input, and what they are given behind it finds the result.

    mpiexec -n N python communicator.py LIBRARY ...
"""

import os
import sys

import numpy as np
from mpi4py import MPI

import mpress

# Or each rank's JAX takes most of every GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
COUNT = 4 << 20
world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def field(seed, dtype):
    return (np.linspace(0, 1, COUNT) + seed).astype(dtype)


def total(step, dtype):
    return np.sum([field(r + step, dtype) for r in range(size)], axis=0)


class CuPy:
    def __init__(self):
        import cupy

        self.library = cupy
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        self.streams = [cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)]

    def on(self, stream):
        return stream

    def array(self, values):
        return self.library.asarray(values)

    def like(self, array):
        return self.library.empty_like(array)

    def host(self, array):
        return self.library.asnumpy(array, stream=self.library.cuda.get_current_stream())

    def late(self, array, ms):
        """Adds one, behind work of some milliseconds that the call has to wait for."""
        spin = self.library.RawKernel(
            r"""extern "C" __global__ void spin(long long cycles, float* x) {
            long long begin = clock64(); while (clock64() - begin < cycles) {} }""",
            "spin",
        )
        spin((1,), (1,), (np.int64(ms * 1_500_000), array))
        array += 1


class Torch:
    def __init__(self):
        import torch

        self.library = torch
        torch.cuda.set_device(rank % torch.cuda.device_count())
        self.streams = [torch.cuda.default_stream(), torch.cuda.Stream()]

    def on(self, stream):
        return self.library.cuda.stream(stream)

    def array(self, values):
        return self.library.from_numpy(values).cuda()

    def like(self, array):
        return self.library.empty_like(array)

    def host(self, array):
        return array.cpu().numpy()

    def late(self, array, ms):
        self.library.cuda._sleep(int(ms * 1_500_000))
        array += 1


def check(kind, comm):
    for stream in kind.streams:
        for dtype in (np.float32, np.float64):
            for codec, bound in (("none", 0), ("mpc", 0), ("szp:abs=1e-3", 1e-3)):
                with kind.on(stream):
                    x = kind.array(field(rank, dtype))
                    y = kind.like(x)
                    kind.late(x, 20)
                    comm.Allreduce(x, y, codec=codec)
                    y += 1
                    found = kind.host(y)
                expected = total(1, dtype) + 1
                room = size * bound + 4 * np.finfo(dtype).eps * np.abs(expected).max()
                assert np.abs(found - expected).max() <= room, (kind, codec, dtype)
                with kind.on(stream):
                    z = kind.like(x)
                    kind.late(x, 5)
                    left, right = (rank - 1) % size, (rank + 1) % size
                    requests = [comm.Irecv(z, left), comm.Isend(x, right, codec=codec)]
                    MPI.Request.Waitall(requests)
                    found = kind.host(z)
                expected = field(left, dtype) + 2
                room = bound + 4 * np.finfo(dtype).eps * np.abs(expected).max()
                assert np.abs(found - expected).max() <= room, (kind, codec, dtype)


def check_jax(comm):
    """JAX's arrays are sent, and received as new ones, where the old ones lie."""
    import jax
    import jax.numpy as jnp

    x = jnp.asarray(field(rank, np.float32)) + 1
    y = np.empty(COUNT, np.float32)
    right, left = (rank + 1) % size, (rank - 1) % size
    request = comm.Isend(x, right, codec="szp:abs=1e-3")
    comm.Recv(y, left)
    request.Wait()
    assert np.abs(y - (field(left, np.float32) + 1)).max() <= 1.001e-3
    expected = total(0, np.float32) + size
    for like in (x, jax.ShapeDtypeStruct(x.shape, x.dtype)):
        summed = comm.Allreduce(x, like, codec="mpc")
        assert isinstance(summed, jax.Array) and summed.devices() == x.devices()
        np.testing.assert_allclose(np.asarray(summed), expected, rtol=1e-5)
    summed = comm.Allreduce(MPI.IN_PLACE, x, codec="mpc")
    np.testing.assert_allclose(np.asarray(summed), expected, rtol=1e-5)


comm = mpress.Communicator(world)
kinds = {"cupy": CuPy, "torch": Torch}
for name in sys.argv[1:]:
    if name == "jax":
        check_jax(comm)
    else:
        check(kinds[name](), comm)
    world.Barrier()
    if rank == 0:
        print(name, "ok", flush=True)
sys.exit(0)
