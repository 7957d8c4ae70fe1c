"""mpress.Communicator with arrays of JAX, which are sent, and received as new ones; on any number
of ranks, with the real library or with tests/stand_ins/jax in its place.

    mpiexec -n N python communicator_jax.py
"""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from mpi4py import MPI

import mpress

COUNT = 100_000
world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def field(seed):
    return (np.linspace(0, 1, COUNT) + seed).astype(np.float32)


def total():
    return np.sum([field(r) for r in range(size)], axis=0)


def raises(error, words, call):
    try:
        call()
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"{words}: nothing was raised")


def near(found, expected, room):
    assert isinstance(found, jax.Array) and found.dtype == np.float32, type(found)
    assert np.abs(np.asarray(found) - expected).max() <= room


comm = mpress.Communicator(world, codec="szp:abs=1e-3")
x = jnp.asarray(field(rank))
shape = jax.ShapeDtypeStruct((COUNT,), np.float32)


def reductions():
    room = size * 1.1e-3
    near(comm.Allreduce(x, shape), total(), room)
    near(comm.Allreduce(x, x), total(), room)
    near(comm.Allreduce(MPI.IN_PLACE, x), total(), room)
    near(comm.Allreduce(field(rank), recvbuf=shape), total(), room)
    near(comm.Allreduce([x, MPI.FLOAT], [shape, COUNT, MPI.FLOAT], codec="mpc"), total(), 1e-5)
    assert np.array_equal(np.asarray(x), field(rank))  # nobody has written it
    summed = comm.Reduce(x, shape if rank == 0 else None)
    if rank == 0:
        near(summed, total(), room)
    else:
        assert summed is None
    y = np.empty(COUNT, np.float32)
    assert comm.Allreduce(x, y) is None
    assert np.abs(y - total()).max() <= room


def movements():
    got = comm.Bcast(x if rank == size - 1 else shape, root=size - 1)
    assert (got is x) == (rank == size - 1)
    near(got, field(size - 1), 1.1e-3)
    got = comm.Bcast(x, size - 1, same_bits=True)
    near(got, field(size - 1), 1.1e-3)
    hashes = world.allgather(np.asarray(got).tobytes())
    assert all(one == hashes[0] for one in hashes)
    got = comm.Allgather(x, jax.ShapeDtypeStruct((size, COUNT), np.float32), codec="mpc")
    assert all(np.array_equal(np.asarray(got)[r], field(r)) for r in range(size))
    # Where the call writes nothing the new array is as the old one.
    counts = [COUNT // 2] * size
    starts = [COUNT * r for r in range(size)]
    like = jnp.asarray(np.full((size, COUNT), 7, np.float32))
    half = jnp.asarray(field(rank)[: COUNT // 2])
    got = np.asarray(comm.Allgatherv(half, [like, counts, starts, MPI.FLOAT], codec="mpc"))
    for r in range(size):
        assert np.array_equal(got[r, : COUNT // 2], field(r)[: COUNT // 2])
        assert (got[r, COUNT // 2 :] == 7).all()


def messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    near(comm.Sendrecv(x, right, 1, shape, left, 1), field(left), 1.1e-3)
    near(comm.Sendrecv_replace(x, right, 1, left, 1, codec="mpc"), field(left), 0)
    receive, send = comm.Irecv(shape, left), comm.Isend(x, right)
    early = comm.Irecv(shape, left, 2)
    raises(RuntimeError, "result", lambda: early.result)
    MPI.Request.Waitall([receive, send])
    near(receive.result, field(left), 1.1e-3)
    assert receive.result is receive.result and send.result is None
    begun = comm.Iallreduce(x, shape, codec="mpc")
    begun.Wait()
    near(begun.result, total(), 1e-5)
    comm.Isend(x, right, 2).Wait()
    early.Wait()
    near(early.result, field(left), 1.1e-3)


def requests_that_are_dropped():
    """What they receive to stays, as it may be written to yet."""
    right, left = (rank + 1) % size, (rank - 1) % size
    requests = [comm.Irecv(shape, left, tag) for tag in (3, 4)]
    kept = [weakref.ref(one._new) for one in requests]
    requests[0].Free()
    raises(RuntimeError, "freed", lambda: requests[0].result)
    requests.clear()
    gc.collect()
    assert all(one() is not None for one in kept)
    world.Barrier()  # what has arrived is no longer kept: no rank sends before all have looked
    for tag in (3, 4):
        comm.Send(x, right, tag)


def on_two_devices():
    """Where there are two."""
    if len(jax.devices()) < 2:
        return None
    if hasattr(jax, "Sharding"):
        return jax.Sharding(*jax.devices()[:2])
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("x",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))


def errors():
    raises(TypeError, "recvbuf", lambda: comm.Allreduce(MPI.IN_PLACE, shape))
    raises(TypeError, "sendbuf", lambda: comm.Allreduce(shape, x))
    raises(TypeError, "buf", lambda: comm.Bcast(shape, root=rank))
    raises(TypeError, "buf", lambda: comm.Sendrecv_replace(shape, rank))
    raises(TypeError, "recvbuf: a persistent", lambda: comm.Allreduce_init(x, shape))
    two = jax.ShapeDtypeStruct((COUNT,), np.float32, sharding=on_two_devices())
    if two.sharding is not None:
        raises(ValueError, "recvbuf: lies on 2 devices", lambda: comm.Allreduce(x, two))
    raises(TypeError, "x64", lambda: comm.Allreduce(x, jax.ShapeDtypeStruct((3,), np.float64)))
    raises(TypeError, "recvbuf: traced", lambda: jax.jit(lambda t: comm.Allreduce(field(0), t))(x))
    raises(TypeError, "sendbuf: traced", lambda: jax.jit(lambda t: comm.Allreduce(t, x))(x))


reductions()
movements()
messages()
requests_that_are_dropped()
errors()
world.Barrier()
if rank == 0:
    print("ok")
