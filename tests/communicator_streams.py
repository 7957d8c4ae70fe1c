"""mpress.Communicator in the order of the array library's current stream: blocking collective calls
that devices serve alone return before that stream gets to them. 2 ranks, with a simulated GPU each.

    mpiexec -n 2 python communicator_streams.py
"""

import ctypes
import threading

import cupy
import numpy as np
from mpi4py import MPI

import mpress

COUNT = 20_000
world = MPI.COMM_WORLD
rank, size = world.rank, world.size


class Other(cupy.ndarray):
    """Of a library that may reuse memory at any time, on CuPy's stream or its own."""

    stream = None

    @property
    def __cuda_array_interface__(self):
        stream = self.stream or cupy.cuda.Stream.current
        return {**super().__cuda_array_interface__, "stream": stream.ptr}


Other.__module__ = "other"


def field(seed):
    return np.linspace(0, 1, COUNT) + seed


def held(stream, call, *, late_s):
    """Whether the call returned while the stream was held before its input was there."""
    goes = ctypes.c_int(0)
    let_go = threading.Timer(late_s, lambda: setattr(goes, "value", 1))
    stream.hold(goes)
    let_go.start()
    call()
    is_early = goes.value == 0
    goes.value = 1
    let_go.cancel()
    return is_early


def check(comm, call, x, y, expected, *, is_early, late_s=2.0):
    """`call` is Allreduce, or another one that gives `expected` of what all ranks send."""
    stream = cupy.cuda.Stream()
    stream.use()
    result = cupy.zeros(COUNT)
    # Devices serve such calls once they have opened each other's memory.
    source = field(rank + 7)
    for _ in range(70):
        stream.copy(x, source)
        call(x, y)
        assert comm.outcome.bound == 0

    def late():
        stream.copy(x, source)
        call(x, y)

    were_early = [held(stream, late, late_s=late_s) for _ in range(2)]
    assert were_early == [is_early] * 2, were_early
    stream.copy(result, y)  # comes behind the call
    stream.synchronize()
    assert np.array_equal(result.get(), expected(7))


cupy.cuda.Device(rank % 2).use()
comm = mpress.Communicator(world, codec="none")
x, y = cupy.asarray(field(rank)), cupy.zeros(COUNT)
total = lambda step: np.sum([field(r + step) for r in range(size)], axis=0)  # noqa: E731
check(comm, comm.Allreduce, x, y, total, is_early=True)
check(
    comm,
    lambda x, y: comm.Bcast(x if rank == 1 else y, root=1),
    x,
    x if rank == 1 else y,
    lambda step: field(1 + step),
    is_early=True,
)
other = Other(y._block, y.dtype, y._places)
check(comm, comm.Allreduce, x, other, total, is_early=False, late_s=0.2)
# Messages, and calls that do not block, begin when the stream has done what it holds.
stream = cupy.cuda.Stream()
stream.use()
source = field(rank + 3)


def messages():
    stream.copy(x, source)
    requests = [comm.Irecv(y, 1 - rank), comm.Isend(x, 1 - rank)]
    MPI.Request.Waitall(requests)


assert not held(stream, messages, late_s=0.2)
assert np.array_equal(y.get(), field(1 - rank + 3))

# All streams are waited for, also where the first array has no elements.
junk = np.full(COUNT, -1.0)
other.stream = cupy.cuda.Stream()


def on_two_streams():
    other.stream.copy(other, junk)
    comm.Allreduce(x, other)


assert not held(other.stream, on_two_streams, late_s=0.2)
other.stream.synchronize()
assert np.array_equal(y.get(), total(3))


def from_rank_1():
    stream.copy(y, junk)
    comm.Allgatherv(x if rank == 1 else x[:0], [y, [0, COUNT], MPI.DOUBLE])


held(stream, from_rank_1, late_s=0.2)
stream.synchronize()
assert np.array_equal(y.get(), field(1 + 3))

# A call that fails before it is made leaves the stream nothing.
try:
    held(stream, lambda: comm.Allreduce(x, [y, COUNT, "no type"]), late_s=0.2)
except (KeyError, TypeError, ValueError):
    pass
else:
    raise AssertionError("a wrong type was taken")
comm.Allreduce(x, y)
stream.synchronize()
assert np.array_equal(y.get(), total(3))
if rank == 0:
    print("ok")
