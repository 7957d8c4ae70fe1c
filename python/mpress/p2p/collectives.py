"""Collective calls in the place of messages, for mpress.p2p.worker: ranks, cases and paths.

A case's bytes are those of a block: of a pair of ranks in an all-to-all, of a rank in gather,
scatter and all-gather, of all data in a broadcast. The root is rank 0.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress.p2p import arrival, data
from mpress.p2p.message import hinted_comm, message
from mpress.p2p.worker import Rank, Sample

_TAG = 3


class CollectiveRank(Rank):
    """One of the ranks of a collective call; its buffers have room for a block of each rank."""

    def room(self, role: str, nbytes: int) -> int:
        return nbytes * self.comm.size

    def has(self, path: str) -> bool:
        return path != "nccl" or self.nccl() is not None

    def comm_of(self, path: str) -> MPI.Comm:
        if path != "mpi":
            return super().comm_of("none" if path == "messages" else path)
        if path not in self.comms:
            # Where members differ in what they want of it, mpress leaves a communicator to MPI.
            hints = {"mpress_threshold": str((1 << 20) + 4096 * self.rank)}
            self.comms[path] = hinted_comm(self.comm, hints)
        return self.comms[path]


class CollectiveCase:
    """Calls of one size and content."""

    window = 1

    def __init__(self, rank: CollectiveRank, case: dict[str, Any], values: Any) -> None:
        self.rank = rank
        self.op = rank.plan["benchmark"]
        self.nbytes = case["bytes"]
        self.values = data.cut(values, self.nbytes)
        self.size = rank.comm.size
        self.send = rank.buffer("send")
        self.receive = rank.buffer("receive")
        own = rank.rank
        targets = range(self.size) if self.op in ("alltoall", "scatter") else (own,)
        self.send.write(np.concatenate([self.block(own, target) for target in targets]))

    def block(self, source: int, target: int) -> np.ndarray:
        """What goes from a rank to another one: no two are alike."""
        number = source * self.size + (target if self.op in ("alltoall", "scatter") else 0)
        return np.roll(self.values, -number * (self.values.size // (self.size**2 + 1)))

    def sample(self, path: str) -> Sample:
        """A function that makes the call `iterations` times, and returns the mean of the rank for
        which that is the longest."""
        call = self._nccl() if path == "nccl" else (
            self._messages() if path == "messages" else self._call(path)
        )  # fmt: skip
        comm = self.rank.comm

        def sample(iterations: int) -> float:
            seconds = 0.0
            for _ in range(iterations):
                comm.Barrier()
                begin = time.perf_counter()
                call()
                seconds += time.perf_counter() - begin
            mean = np.array([seconds / iterations])
            comm.Allreduce(MPI.IN_PLACE, mean, MPI.MAX)  # of objects, messages would be counted
            return float(mean[0])

        return sample

    def _shape(self, count: int) -> np.ndarray:
        """Elements like those of `count` blocks, for their size and type alone."""
        return np.broadcast_to(self.values[:1], (self.values.size * count,))

    def _call(self, path: str) -> Any:
        comm, op = self.rank.comm_of(path), self.op
        one, every = self._shape(1), self._shape(self.size)
        send, receive = self.send.address, self.receive.address
        is_root = self.rank.rank == 0
        if op == "bcast":
            whole = message(send if is_root else receive, one)
            return lambda: comm.Bcast(whole, 0)
        if op == "alltoall":
            out, into = self._each(send, every), self._each(receive, every)
            return lambda: comm.Alltoall(out, into)
        if op == "allgather":
            out, into = message(send, one), self._each(receive, every)
            return lambda: comm.Allgather(out, into)
        if op == "gather":
            out, into = message(send, one), self._each(receive, every) if is_root else None
            return lambda: comm.Gather(out, into, 0)
        out, into = self._each(send, every) if is_root else None, message(receive, one)
        return lambda: comm.Scatter(out, into, 0)

    def _each(self, address: int, every: np.ndarray) -> list[Any]:
        """A buffer of blocks with the count of one, as MPI has it."""
        buffer, _, element = message(address, every)
        return [buffer, self.values.size, element]

    def _pairs(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Blocks to other ranks, and from them: (rank, which block of the buffer)."""
        rank, peers = self.rank.rank, self.rank.peers
        if self.op == "alltoall":
            return [(p, p) for p in peers], [(p, p) for p in peers]
        if self.op == "allgather":
            return [(p, 0) for p in peers], [(p, p) for p in peers]
        if self.op == "gather":
            return ([], [(p, p) for p in peers]) if rank == 0 else ([(0, 0)], [])
        index = (lambda p: p) if self.op == "scatter" else (lambda _: 0)
        return ([(p, index(p)) for p in peers], []) if rank == 0 else ([], [(0, 0)])

    def _messages(self) -> Any:
        """The same blocks by MPI_Irecv and MPI_Isend, raw; without what a rank has for itself."""
        comm = self.rank.comm_of("messages")
        one = self._shape(1)
        sends, receives = self._pairs()
        outgoing = [(message(self.send.address + i * self.nbytes, one), p) for p, i in sends]
        incoming = [(message(self.receive.address + i * self.nbytes, one), p) for p, i in receives]

        def call() -> None:
            requests = [comm.Irecv(into, p, _TAG) for into, p in incoming]
            requests += [comm.Isend(out, p, _TAG) for out, p in outgoing]
            MPI.Request.Waitall(requests)

        return call

    def _nccl(self) -> Any:
        link = self.rank.nccl()
        assert link is not None
        sends, receives = self._pairs()

        def call() -> None:
            if self.op == "bcast":
                is_root = self.rank.rank == 0
                link.broadcast((self.send if is_root else self.receive).address, self.nbytes)
            elif self.op == "allgather":
                link.all_gather(self.send.address, self.receive.address, self.nbytes)
            else:
                link.group_start()
                for peer, i in receives:
                    link.receive(self.receive.address + i * self.nbytes, self.nbytes, peer)
                for peer, i in sends:
                    link.send(self.send.address + i * self.nbytes, self.nbytes, peer)
                link.group_end()
            link.wait()

        return call

    def check(self, path: str) -> dict[str, Any]:
        """One call, and what arrived: the worst block of all ranks."""
        rank = self.rank.rank
        self.receive.fill(0xA5)
        self.rank.comm.Barrier()
        self._call(path)()
        found = {"promise": "exact", "kept": True, "max_error": 0.0}
        if self.op in ("alltoall", "allgather") or (self.op == "gather" and rank == 0):
            got = self.receive.read(self.values.dtype, self.values.size * self.size)
            blocks = [(s, got[s * self.values.size :][: self.values.size])
                      for s in range(self.size)]  # fmt: skip
        elif self.op == "gather" or (self.op == "bcast" and rank == 0):
            blocks = []
        else:
            blocks = [(0, self.receive.read(self.values.dtype, self.values.size))]
        spec = path.partition("@")[0]
        spec = "none" if spec in ("mpi", "messages") else spec
        for source, block in blocks:
            one = arrival.judge(spec, self.block(source, rank), block)
            found = min(found, one, key=lambda each: (each["kept"], -(each["max_error"] or 0)))
        every = self.rank.comm.allgather(found)
        return min(every, key=lambda each: (each["kept"], -(each["max_error"] or 0)))
