"""What mpress.Communicator promises, on any number of ranks: run by tests/test_communicator.py.

    mpiexec -n N python communicator_checks.py [forced] [collectives] [preloaded]

`forced`: messages are compressed; `collectives`: such calls, too.
"""

import copy
import functools
import gc
import pickle
import sys
import threading
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import mpress
from mpress import _api

COUNT = 100_000
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
forced = "forced" in sys.argv


def field(seed, dtype=np.float64):
    return (np.linspace(0, 1, COUNT) + seed).astype(dtype)


def total(dtype=np.float64):
    return np.sum([field(r, dtype) for r in range(size)], axis=0)


def raises(error, words, call):
    try:
        call()
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"{words}: nothing was raised")


def before_it_runs():
    part = world.Split(rank)
    if size > 1 and "preloaded" not in sys.argv:
        raises(RuntimeError, "MPI.COMM_WORLD", lambda: mpress.Communicator(part))
    part.Free()
    raises(TypeError, "comm", lambda: mpress.Communicator("world"))
    raises(ValueError, "MPI.COMM_NULL", lambda: mpress.Communicator(MPI.COMM_NULL))
    raises(ValueError, "codec", lambda: mpress.Communicator(world, codec="gzip"))
    raises(TypeError, "codec", lambda: mpress.Communicator(world, codec=3))


def collectives(comm):
    x, y = field(rank), np.empty(COUNT)
    comm.Allreduce(x, y)
    assert np.abs(y - total()).max() <= size * 1e-3
    if "collectives" in sys.argv and size > 1:
        assert comm.outcome.served and 0 < comm.outcome.bound <= 1.001e-3
        assert np.abs(y - total()).max() <= comm.outcome.bound + 1e-12
    comm.Allreduce(MPI.IN_PLACE, x, op=MPI.MAX, codec="mpc")
    assert np.array_equal(x, field(size - 1))
    x = field(rank)
    comm.Allreduce([x, MPI.DOUBLE], [y, COUNT, MPI.DOUBLE], codec=mpress.codec("none"))
    np.testing.assert_allclose(y, total(), rtol=1e-15)
    singles = field(rank, np.float32)
    comm.Bcast(singles, root=size - 1, codec="szp:abs=1e-2", same_bits=True)
    assert np.abs(singles - field(size - 1, np.float32)).max() <= 1e-2
    hashes = world.allgather(singles.tobytes())
    assert all(one == hashes[0] for one in hashes)
    everything = np.empty((size, COUNT))
    comm.Allgather(x, everything, codec="mpc")
    assert all(np.array_equal(everything[r], field(r)) for r in range(size))
    request = comm.Iallreduce(x, y, codec="szp:abs=1e-4")
    assert isinstance(request, mpress.Request)
    MPI.Request.Waitall([request])
    assert np.abs(y - total()).max() <= size * 1e-4
    persistent = comm.Bcast_init(x, root=0, codec="mpc")
    for step in range(3):
        x[:] = field(10 + step if rank == 0 else 5)
        persistent.Start()
        persistent.Wait()
        assert np.array_equal(x, field(10 + step))
    persistent.Free()
    counts = [COUNT // size + (r < COUNT % size) for r in range(size)]
    parts = np.empty(COUNT)
    comm.Allgatherv(field(0)[: counts[rank]], [parts, counts], codec="mpc")
    assert np.array_equal(parts[: counts[0]], field(0)[: counts[0]])


def messages(comm):
    if size < 2:
        return
    other = rank ^ 1
    if other >= size:
        return
    x, y = field(rank), np.empty(COUNT)
    requests = [comm.Irecv(y, other), comm.Isend(x, other)]
    mpress.Request.Waitall(requests)
    error = np.abs(y - field(other)).max()
    assert error <= 1e-3 and (error > 0) == forced
    for request in requests:  # both sides know it
        assert request.outcome.served == forced and error <= request.outcome.bound <= 1e-3
    comm.Sendrecv(x, other, 1, y, other, 1, codec="mpc")
    assert np.array_equal(y, field(other))
    # mpi4py's own receives know what mpress has sent; its sends are its own.
    if rank % 2 == 0:
        comm.Send(x, other, codec="mpc")
        world.Send(x, other)
        comm.send({"any": "object"}, other)
    else:
        status = MPI.Status()
        world.Recv(y, other, status=status)
        assert np.array_equal(y, field(other)) and status.Get_count(MPI.DOUBLE) == COUNT
        comm.Recv(y, other)
        assert np.array_equal(y, field(other))
        assert comm.recv(source=other) == {"any": "object"}


def kinds(comm):
    assert comm == world and isinstance(comm, MPI.Intracomm)
    assert (comm.rank, comm.size, comm.codec) == (rank, size, "szp:abs=0.001")
    same = comm.Dup()
    assert isinstance(same, mpress.Communicator) and same.codec == comm.codec
    same.codec = "mpc"
    y = np.empty(COUNT)
    same.Allreduce(field(rank), y)
    np.testing.assert_allclose(y, total(), rtol=1e-15)
    same.Free()
    immediate, request = comm.Idup()
    request.Wait()
    with_info, other_request = comm.Idup_with_info(MPI.INFO_NULL)
    other_request.Wait()
    for made in (comm.Clone(), comm.Dup_with_info(MPI.INFO_NULL), immediate, with_info):
        assert isinstance(made, mpress.Communicator) and made.codec == comm.codec
        made.Allreduce(field(rank), y)
        assert np.max(np.abs(y - total())) <= 1.001e-3 * size
        if size > 1 and "collectives" in sys.argv:
            assert made.outcome.bound > 0  # by that codec
        made.Free()
    for made in (copy.copy(comm), pickle.loads(pickle.dumps(comm))):
        assert made == world and made.codec == comm.codec
    ring = world.Create_cart([size], periods=[True])
    cart = mpress.Communicator(ring, codec="mpc")
    assert isinstance(cart, MPI.Cartcomm) and cart.Get_topo()[0] == [size]
    around = np.empty((2, COUNT))
    cart.Neighbor_allgather(field(rank), around)
    assert np.array_equal(around[0], field((rank - 1) % size))
    ring.Free()


def errors(comm):
    y = np.empty(COUNT)
    raises(ValueError, "codec", lambda: comm.Allreduce(field(0), y, codec="szp:abs=-1"))
    raises(TypeError, "codec", lambda: comm.Allreduce(field(0), y, codec=1.0))
    for wrong in ([], "no", np.array([1, 2])):
        for call in (comm.Bcast, comm.Ibcast, comm.Bcast_init):
            make = functools.partial(call, y, same_bits=wrong)
            raises(TypeError, "same_bits", make)
    raises(TypeError, "expecting buffer", lambda: comm.Allreduce("text", y))
    sizes = f"send count {COUNT - 1} and receive count"
    raises(ValueError, sizes, lambda: comm.Allreduce(field(0)[:-1], y))
    if size > 1 and "collectives" in sys.argv:  # an error on all, and what follows is right
        one = world.Dup()
        one.Set_errhandler(MPI.ERRORS_RETURN)
        other = mpress.Communicator(one, codec=f"szp:abs={1 + (rank == 1)}e-3")
        raises(MPI.Exception, "mpress", lambda: other.Allreduce(field(rank), y))
        other.codec = "mpc"
        other.Allreduce(field(rank), y)
        np.testing.assert_allclose(y, total(), rtol=1e-15)
        other.Free()


def at_once(*works):
    """Each in a thread of its own."""
    failures = []

    def kept(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=kept, args=(work,)) for work in works]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


def threads(comm):
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE or size < 2:
        return
    copies = [comm.Dup() for _ in range(3)]

    def collective(number):
        for step in range(5):
            y = np.empty(COUNT)
            copies[number].Allreduce(field(rank + step), y, codec=f"szp:abs=1e-{number + 3}")
            expected = np.sum([field(r + step) for r in range(size)], axis=0)
            assert np.abs(y - expected).max() <= size * 10.0 ** -(number + 3) + 1e-9

    at_once(*(functools.partial(collective, number) for number in range(3)))
    for one in copies:
        one.Free()


def messages_of_threads(comm):
    """All by one object, each thread with a tag and a codec of its own: none may get another's."""
    other = rank ^ 1
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE or other >= size:
        return

    def check(y, step, bound):
        error = np.abs(y - field(other + step)).max()
        # A finer codec, and none, lose less.
        assert error <= bound and (not forced or error > bound / 2), (error, bound)

    def blocking(tag, codec, bound):
        for step in range(6):
            y = np.empty(COUNT)
            calls = [
                lambda step=step: comm.Send(field(rank + step), other, tag, codec=codec),
                lambda y=y: comm.Recv(y, other, tag),
            ]
            for call in calls if rank < other else reversed(calls):
                call()
            check(y, step, bound)

    def with_requests(tag, codec, bound):
        for step in range(6):
            x, y = field(rank + step), np.empty(COUNT)
            receive, send = comm.Irecv(y, other, tag), comm.Isend(x, other, tag, codec=codec)
            for request in (receive, send) if step % 2 else (send, receive):
                if step < 3:
                    request.Wait()
                while not request.Test():
                    time.sleep(0)
            check(y, step, bound)
            for request in (receive, send):
                told = request.outcome
                assert told.served == forced
                assert not forced or bound / 1.01 <= told.bound <= bound * 1.01

    works = []
    for number in range(2):
        for work, exponent in ((blocking, 2 + 2 * number), (with_requests, 3 + 2 * number)):
            codec = f"szp:abs=1e-{exponent}"
            works.append(functools.partial(work, 10 + exponent, codec, 1.001 * 10.0**-exponent))
    at_once(*works)


def freed(comm):
    """What became of receives that are freed before anything comes is not written to memory that is
    others' by then."""
    right, left = (rank + 1) % size, (rank - 1) % size
    x, received = field(0)[:20_000], np.zeros((50, 20_000))
    requests = [comm.Irecv(y, left, 5) for y in received]
    for request in requests:
        request.Free()
    del request, requests
    gc.collect()
    others = [_api.COutcome(7, 7.0) for _ in range(3000)]  # where those lay
    mpress.Request.Waitall([comm.Isend(x, right, 5) for _ in received])
    comm.Sendrecv(x, right, 6, np.empty(20_000), left, 6)
    while np.abs(received - x).max() > 1.001e-3:  # they are there
        comm.Iprobe()
    assert all((one.served, one.bound) == (7, 7.0) for one in others)


def memory():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


LEAK_ROUNDS, WARM_ROUNDS = 1000, 250
LEAK_BYTES = 2 << 20


def leaks(comm):
    """Ten thousand requests of all kinds, one in ten of them of a compressed call, may leave the
    process 2 MB larger: 280 bytes for each one after the first quarter."""
    arrays = field(rank)[:20_000], *(np.empty(20_000) for _ in range(4))
    short = np.empty(1)
    right, left = (rank + 1) % size, (rank - 1) % size
    made = before = 0
    for number in range(LEAK_ROUNDS):
        is_long = number % 10 == 0
        codec = "mpc" if is_long else "none"
        x, y, total, copy, of_persistent = (one if is_long else one[:200] for one in arrays)
        receive = comm.Recv_init(of_persistent, left, 2)
        persistent = [receive, comm.Send_init(x, right, 2, codec=codec)]
        requests = [
            comm.Irecv(y, left, 1), comm.Isend(x, right, 1, codec=codec),
            comm.Iallreduce(x, total, codec=codec), comm.Ibcast(copy, 0, codec=codec),
        ]  # fmt: skip
        mpress.Request.Waitall(requests)
        assert size == 1 or requests[1].outcome.served == (forced and is_long)
        for one in persistent:
            one.Start()
        mpress.PersistentRequest.Waitall(persistent)
        never_started = comm.Bcast_init(x, 0, codec=codec)
        cancelled = comm.Irecv(short, left, 3)
        cancelled.Cancel()
        status = MPI.Status()
        cancelled.Wait(status)
        assert status.Is_cancelled()
        freed = comm.Isend(x, right, 4, codec=codec)
        freed.Free()
        kept = comm.Irecv(y, left, 4)
        kept.Wait()
        for one in (*persistent, never_started):
            one.Free()
        made += len(requests) + len(persistent) + len([never_started, cancelled, freed, kept])
        if number == WARM_ROUNDS:
            gc.collect()
            before = memory()
    gc.collect()
    assert made == 10_000 and memory() - before <= LEAK_BYTES, (made, memory() - before)


before_it_runs()
comm = mpress.Communicator(world, codec="szp:abs=1e-3")
kinds(comm)
collectives(comm)
messages(comm)
errors(comm)
threads(comm)
messages_of_threads(comm)
freed(comm)
leaks(comm)
world.Barrier()
if rank == 0:
    print("ok")
