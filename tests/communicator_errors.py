"""What mpress.Communicator does with wrong arguments: the error is mpress's, which names the
argument, or the one that mpi4py raises by itself; nothing is sent, and what follows is right. To be
run by 2 ranks.

    mpiexec -n 2 python communicator_errors.py [forced] [devices]

`forced`: messages are compressed; `devices`: there are two simulated GPUs.
"""

import re
import sys

import numpy as np
from mpi4py import MPI

import mpress

COUNT = 20_000
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank
CODEC = "szp:abs=0.001"


def field(seed):
    return np.linspace(0, 1, COUNT) + seed


def raised_by(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def told(error):
    """What MPI says of the error, which names pointers and calls otherwise; else its text."""
    if isinstance(error, MPI.Exception):
        return error.Get_error_class()
    return re.sub("0x[0-9a-f]+", "", str(error))


def goes_on(comm, plain):
    """The first message of the other rank's is the one sent here, and nothing is left of a call's
    codec: that of the communicator holds, and mpi4py's own messages are as they are."""
    x, y = field(rank), np.zeros(COUNT)
    request = comm.Isend(x, other, 7)
    status = MPI.Status()
    comm.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
    assert (status.source, status.tag) == (other, 7), (status.source, status.tag)
    comm.Recv(y, other, 7)
    request.Wait()
    error = np.abs(y - field(other)).max()
    assert error <= 1e-3 and (error > 0) == ("forced" in sys.argv), error
    plain.Sendrecv(x, other, 8, y, other, 8)
    assert np.array_equal(y, field(other))
    assert not comm.Iprobe() and not plain.Iprobe()
    comm.Allreduce(x, y, codec="mpc")
    np.testing.assert_allclose(y, field(0) + field(1), rtol=1e-15)


x, y = field(rank), np.empty(COUNT)
read_only = np.empty(COUNT)
read_only.flags.writeable = False
apart = np.empty((COUNT, 2))[:, 0]
swapped = x.astype(x.dtype.newbyteorder())
objects = np.array([None] * COUNT)
singles = np.empty(COUNT, np.float32)
typed = [x, "no type"]

# What mpress looks at: the kind of error, and how its text begins.
OWN = [
    (ValueError, "codec: codec spec 'gzip': unknown codec", {"codec": "gzip"}),
    (ValueError, "codec: codec spec 'szp:abs=-1'", {"codec": "szp:abs=-1"}),
    (TypeError, "codec: expected a spec", {"codec": b"mpc"}),
    (TypeError, "same_bits: expected True or False", {"same_bits": 1}),
]
# Each way that calls have: with and without a request, by one rank and by all.
CALLS = {
    "Send": (x, other), "Isend": (x, other), "Send_init": (x, other), "Recv": (y, other),
    "Sendrecv": (x, other, 0, y, other), "Allreduce": (x, y), "Iallreduce": (x, y),
    "Allreduce_init": (x, y), "Bcast": (x,),
}  # fmt: skip
# What mpi4py and MPI look at. `word` is in the text, in any MPI.
OTHERS = [
    # Ranks, tags and roots that there are none of.
    (MPI.Exception, "rank", "Send", (x, size)),
    (MPI.Exception, "rank", "Isend", (x, size)),
    (MPI.Exception, "rank", "Send_init", (x, -77)),
    (MPI.Exception, "rank", "Recv", (y, size)),
    (MPI.Exception, "rank", "Sendrecv", (x, size, 0, y, other)),
    (MPI.Exception, "tag", "Send", (x, other, -5)),
    (MPI.Exception, "tag", "Issend", (x, other, -5)),
    (MPI.Exception, "tag", "Recv", (y, other, -5)),
    (MPI.Exception, "root", "Bcast", (x, size)),
    (MPI.Exception, "root", "Ibcast", (x, -9)),
    (MPI.Exception, "root", "Reduce", (x, y, MPI.SUM, size)),
    (MPI.Exception, "root", "Gather", (x, None, size)),
    (TypeError, "integer", "Send", (x, "0")),
    (TypeError, "integer", "Send", (x, other, "tag")),
    (TypeError, "integer", "Bcast", (x, "root")),
    # Counts.
    (ValueError, "count", "Send", ([x, -1, MPI.DOUBLE], other)),
    (ValueError, "count", "Isend", ([x, -1, MPI.DOUBLE], other)),
    (ValueError, "send count", "Allreduce", (x[:-1], y)),
    (ValueError, "receive count", "Iallreduce", (x, y[:-1])),
    (ValueError, "blocks", "Allgather", (x, np.empty(size * COUNT + 1))),
    (ValueError, "items", "Allgatherv", (x, [y, [1] * (size + 1)])),
    (ValueError, "items", "Ireduce_scatter", (x, y, [1] * (size + 2))),
    # Arrays that cannot be received to.
    (BufferError, "writable", "Recv", (read_only, other)),
    (BufferError, "writable", "Irecv", (read_only, other)),
    (BufferError, "writable", "Recv_init", (read_only, other)),
    (BufferError, "writable", "Allreduce", (x, read_only)),
    (BufferError, "writable", "Iallreduce", (x, read_only)),
    (BufferError, "writable", "Allreduce_init", (x, read_only)),
    # Arrays with gaps.
    (BufferError, "contiguous", "Send", (apart, other)),
    (BufferError, "contiguous", "Irecv", (apart, other)),
    (BufferError, "contiguous", "Allreduce", (apart, y)),
    (BufferError, "contiguous", "Allreduce", (x, apart)),
    # Elements that MPI has no type for, or two.
    (BufferError, "byte order", "Send", (swapped, other)),
    (KeyError, "datatype", "Isend", (objects, other)),
    (KeyError, "datatype", "Allreduce", (typed, y)),
    (ValueError, "datatypes", "Allreduce", (x, singles)),
    (ValueError, "datatypes", "Allreduce_init", (x, singles)),
    # What is no array, no operation, and no argument.
    (TypeError, "buffer", "Allreduce", ("text", y)),
    (TypeError, "buffer", "Send", (None, other)),
    (TypeError, "'op'", "Allreduce", (x, y, "sum")),
    (TypeError, "argument", "Send", (x,)),
]  # fmt: skip


def check(found, kind, word):
    assert isinstance(found, kind) and word in str(found).lower(), repr(found)


plain = world.Dup()
plain.Set_errhandler(MPI.ERRORS_RETURN)
comm = mpress.Communicator(world.Dup(), codec=CODEC)
comm.Set_errhandler(MPI.ERRORS_RETURN)
for name, arguments in CALLS.items():
    for kind, text, wrong in OWN:
        found = raised_by(getattr(comm, name), *arguments, **wrong)
        assert isinstance(found, kind) and str(found).startswith(text), repr(found)
    goes_on(comm, plain)
found = raised_by(setattr, comm, "codec", "gzip")
assert isinstance(found, ValueError) and comm.codec == CODEC
for kind, word, name, arguments in OTHERS:
    # With a codec of its own, which is not to be the next call's.
    found = raised_by(getattr(comm, name), *arguments, codec="zfp:8")
    check(found, kind, word)
    expected = raised_by(getattr(plain, name), *arguments)
    assert type(found) is type(expected) and told(found) == told(expected), (found, expected)
    goes_on(comm, plain)
check(raised_by(comm.Send, x, dest=other, to=other), TypeError, "'to'")
goes_on(comm, plain)


def on_devices():
    import cupy

    class Interface:
        """An array with another one's memory, which tells something else of it."""

        def __init__(self, array, **told):
            self.array = array
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **told}

    cupy.cuda.Device(0).use()
    first = cupy.asarray(x)
    cupy.cuda.Device(1).use()
    second = cupy.asarray(y)
    cupy.cuda.Device(1).synchronize()
    address = second.__cuda_array_interface__["data"][0]
    fixed = Interface(second, data=(address, True))
    gaps = Interface(second, shape=(COUNT // 2,), strides=(16,))
    for kind, word, name, arguments in (
        (MPI.Exception, "rank", "Send", (first, size)),
        (MPI.Exception, "root", "Ibcast", (first, size)),
        (ValueError, "count", "Allreduce", (first[:-1], second)),
        (BufferError, "writable", "Recv", (fixed, other)),
        (BufferError, "writable", "Allreduce", (first, fixed)),
        (BufferError, "contiguous", "Send", (gaps, other)),
        (BufferError, "contiguous", "Iallreduce", (first, gaps)),
    ):
        check(raised_by(getattr(comm, name), *arguments, codec="zfp:8"), kind, word)
        goes_on(comm, plain)
    # Those of one call may lie on two devices.
    for codec, room in (("none", 0), ("mpc", 0), (CODEC, 2.001e-3)):
        comm.Sendrecv(first, other, 0, second, other, codec=codec)
        assert np.abs(second.get() - field(other)).max() <= room
        second.fill(0)
        cupy.cuda.Device(1).synchronize()  # a call follows the stream of one device
        comm.Allreduce(first, second, codec=codec)
        assert np.abs(second.get() - field(0) - field(1)).max() <= room


if "devices" in sys.argv:
    on_devices()
comm.Free()
plain.Free()
world.Barrier()
if rank == 0:
    print("ok")
