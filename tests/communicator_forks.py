"""Processes with an mpress.Communicator that start children by fork while messages, a collective
call and a persistent one are under way. The children compute, drop what they have inherited, and
leave; MPI is their parent's. To be run by 2 ranks.

    mpiexec -n 2 python communicator_forks.py
"""

import gc
import multiprocessing
import os
import subprocess
import sys

import numpy as np
from mpi4py import MPI

import mpress

COUNT = 100_000
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank


def field(seed):
    return np.linspace(0, 1, COUNT) + seed


held = {}


def compute(seed):
    """In a child: with the codecs, and without what the parent waits for."""
    held.clear()
    gc.collect()
    there = MPI.Is_initialized() and not MPI.Is_finalized()  # the most that MPI lets it ask
    encoded = mpress.codec("szp:abs=1e-3").encode(field(seed))
    decoded = mpress.codec("szp:abs=1e-3").decode(encoded)
    return there and bool(np.abs(decoded - field(seed)).max() <= 1e-3)


def by_fork():
    child = os.fork()
    if child == 0:
        is_right = False
        try:
            is_right = compute(rank)
        finally:
            os._exit(3 if is_right else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 3, status


def in_child(connection, seed):
    connection.send(compute(seed))


def by_multiprocessing():
    forking = multiprocessing.get_context("fork")
    ours, theirs = forking.Pipe()
    child = forking.Process(target=in_child, args=(theirs, rank))
    child.start()
    assert ours.recv() is True
    child.join()
    assert child.exitcode == 0


def by_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(compute, range(4)) == [True] * 4
        pool.close()
        pool.join()


def by_another_program():
    # A function before it makes Python fork rather than spawn.
    code = "import sys; sys.exit(3)"
    command = [sys.executable, "-S", "-c", code]
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    assert subprocess.run(command, preexec_fn=gc.collect, env=env).returncode == 3


comm = mpress.Communicator(world, codec="szp:abs=1e-3")
for step, start_child in enumerate((by_fork, by_multiprocessing, by_pool, by_another_program)):
    x, y, total = field(rank + step), np.empty(COUNT), np.empty(COUNT)
    kept = np.empty(COUNT)
    persistent = comm.Recv_init(kept, other, 2)
    persistent.Start()
    held["duplicate"] = comm.Dup()
    held["requests"] = [
        comm.Irecv(y, other, 1), comm.Iallreduce(x, total), comm.Isend(x, other, 1),
        comm.Isend(x, other, 2), persistent,
    ]  # fmt: skip
    start_child()
    MPI.Request.Waitall(held["requests"])
    assert all(one.outcome.bound <= 2.001e-3 for one in held["requests"])
    for found, expected in (
        (y, field(other + step)),
        (kept, field(other + step)),
        (total, field(step) + field(step + 1)),
    ):
        assert np.abs(found - expected).max() <= 2.001e-3
    persistent.Free()
    start_child()
    held["duplicate"].Allreduce(x, total, codec="mpc")
    np.testing.assert_allclose(total, field(step) + field(step + 1), rtol=1e-15)
    held["duplicate"].Free()
world.Barrier()
if rank == 0:
    print("ok")
