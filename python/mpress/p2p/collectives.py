"""Collective calls in the place of messages, for mpress.p2p.worker: ranks, cases and paths.

A case's bytes are those of a block: of a pair of ranks in an all-to-all (the mean, where blocks
differ), of a rank in gather, scatter and all-gather, of all data in a broadcast. The root is rank
0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress.p2p import arrival, blocks, data, memory, rounds
from mpress.p2p.jobs import BASELINES, OF_MPI, REDUCTIONS, codec_of, form_of
from mpress.p2p.message import hinted_comm, message
from mpress.p2p.worker import Rank, Sample

_TAG = 3

Call = Callable[[], Any]


class CollectiveRank(Rank):
    """One of the ranks of a collective call; its buffers have room for its blocks of any case."""

    def __init__(self, plan: dict[str, Any], allocate: Callable[[int], Any]) -> None:
        super().__init__(plan, allocate)
        self._aside: dict[str, memory.HostBuffer] = {}

    def op_of(self, case: dict[str, Any]) -> str:
        return case.get("op", self.plan["benchmark"])

    def room(self, role: str, case: dict[str, Any]) -> int:
        if self.op_of(case) in REDUCTIONS:
            nbytes = int(case["bytes"])
            return rounds.room(nbytes, self.comm.size) if role == "incoming" else nbytes
        return blocks.room(self.op_of(case), role, self.comm.size, case["bytes"])

    def aside(self, role: str) -> memory.HostBuffer:
        """Pageable memory of the host, as much as the buffer has."""
        if role not in self._aside:
            self._aside[role] = memory.HostBuffer(self.buffer(role).nbytes)
        return self._aside[role]

    def has(self, path: str) -> bool:
        return path != "nccl" or self.nccl() is not None

    def comm_of(self, path: str) -> MPI.Comm:
        if path == "nccl":  # which has one of its own
            return self.comm
        if path not in OF_MPI:
            return super().comm_of(codec_of(path))
        if "mpi" not in self.comms:
            # Where members differ in what they want of it, mpress leaves a communicator to MPI.
            hints = {"mpress_threshold": str((1 << 20) + 4096 * self.rank)}
            self.comms["mpi"] = hinted_comm(self.comm, hints)
        return self.comms["mpi"]


class CollectiveCase:
    """Calls of one operation, size and content."""

    window = 1

    def __init__(self, rank: CollectiveRank, case: dict[str, Any], values: Any) -> None:
        self.rank = rank
        self.op = rank.op_of(case)
        self.nbytes = case["bytes"]
        self.size = rank.comm.size
        self.counts = blocks.counts(self.op, self.size, self.nbytes // values.itemsize)
        self.values = data.cut(values, int(self.counts.max()) * values.itemsize)
        self.outgoing, self.incoming = blocks.of_rank(self.op, rank.rank, self.counts)
        self.send = rank.buffer("send")
        self.receive = rank.buffer("receive")
        own = {place.first: target for target, place in self.outgoing.items()}
        if own:  # a block that all get lies there once
            whole = [self.block(rank.rank, target) for _, target in sorted(own.items())]
            self.send.write(np.concatenate(whole))

    def block(self, source: int, target: int) -> np.ndarray:
        """What goes from a rank to another one: no two are alike."""
        number = source * self.size + (target if self.op in blocks.DIFFERENT else 0)
        values = np.roll(self.values, -number * (self.values.size // (self.size**2 + 1)))
        return values[: self.counts[source, target]]

    def sample(self, path: str) -> Sample:
        """A function that makes the call `iterations` times, and returns the mean of the rank for
        which that is the longest."""
        call, comm = self._call(path), self.rank.comm

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

    def _call(self, path: str) -> Call:
        makers = {
            "plain": self._plain, "nccl": self._nccl, "scattered": self._scattered,
            "pairwise": self._pairwise,
        }  # fmt: skip
        comm, make = self.rank.comm_of(path), makers.get(form_of(path) or path)
        if make is None:
            return self._collective(comm, self.send.address, self.receive.address)
        return make(comm)

    def _collective(self, comm: MPI.Comm, send: int, receive: int) -> Call:
        """The collective call, on buffers at these addresses."""
        op, is_root = self.op, self.rank.rank == 0
        out, into = self._part(send, self.outgoing), self._part(receive, self.incoming)
        if op == "bcast":
            return lambda: comm.Bcast(out if is_root else into, 0)
        if op == "alltoall":
            return lambda: comm.Alltoall(out, into)
        if op == "alltoallv":
            return lambda: comm.Alltoallv(out, into)
        if op == "allgather":
            return lambda: comm.Allgather(out, into)
        if op == "gather":
            return lambda: comm.Gather(out, into, 0)
        return lambda: comm.Scatter(out, into, 0)

    def _part(self, address: int, places: blocks.Places) -> list[Any] | None:
        """A side of the call as mpi4py takes it: its memory, and a block's count, or all counts."""
        if not places:
            return None
        buffer, _, element = message(address, self._shape(blocks.span(places)))
        if self.op != "alltoallv":
            return [buffer, int(self.counts[0, 0]), element]
        every = [places[rank] for rank in range(self.size)]
        return [buffer, ([one.count for one in every], [one.first for one in every]), element]

    def _shape(self, count: int) -> np.ndarray:
        """So many elements, for their size and type alone."""
        return np.broadcast_to(self.values[:1], (count,))

    def _plain(self, comm: MPI.Comm) -> Call:
        """What programs do whose MPI knows no GPUs."""
        send, receive = self.rank.aside("send"), self.rank.aside("receive")
        call = self._collective(comm, send.address, receive.address)
        out, into = self._bytes()
        copy_out = self.rank.timed("copy_seconds", self.send.copy_out)
        copy_in = self.rank.timed("copy_seconds", self.receive.copy_in)

        def staged() -> None:
            if out:
                copy_out(send.address, out)
            call()
            if into:
                copy_in(receive.address, into)

        return staged

    def _bytes(self) -> tuple[int, int]:
        """What the call reads, and what it writes."""
        item = self.values.itemsize
        return blocks.span(self.outgoing) * item, blocks.span(self.incoming) * item

    def _messages(self) -> tuple[dict[int, list[Any]], dict[int, list[Any]]]:
        """The same blocks as messages to other ranks, and from them."""
        found = []
        for buffer, places in ((self.send, self.outgoing), (self.receive, self.incoming)):
            at = {peer: buffer.address + place.first * self.values.itemsize
                  for peer, place in places.items() if peer != self.rank.rank}  # fmt: skip
            found.append({peer: message(address, self._shape(places[peer].count))
                          for peer, address in at.items()})  # fmt: skip
        return found[0], found[1]

    def _scattered(self, comm: MPI.Comm) -> Call:
        """All of them at once, by MPI_Irecv and MPI_Isend."""
        outgoing, incoming = self._messages()
        peers = self.rank.peers

        def call() -> None:
            requests = [comm.Irecv(incoming[p], p, _TAG) for p in peers[::-1] if p in incoming]
            requests += [comm.Isend(outgoing[p], p, _TAG) for p in peers if p in outgoing]
            MPI.Request.Waitall(requests)

        return call

    def _pairwise(self, comm: MPI.Comm) -> Call:
        """Rounds of MPI_Sendrecv: in the k-th to the rank k places on, from that k places back."""
        outgoing, incoming = self._messages()
        rounds = []
        for to, source in zip(self.rank.peers, self.rank.peers[::-1], strict=True):
            out, into = outgoing.get(to), incoming.get(source)
            rounds.append((
                out, to if out else MPI.PROC_NULL, _TAG,
                into, source if into else MPI.PROC_NULL, _TAG,
            ))  # fmt: skip

        def call() -> None:
            for one in rounds:
                comm.Sendrecv(*one)

        return call

    def _nccl(self, _: MPI.Comm) -> Call:
        link = self.rank.nccl()
        assert link is not None
        send, receive, own = self.send.address, self.receive.address, self.rank.rank
        item = self.values.itemsize

        def call() -> None:
            if self.op == "bcast":
                link.broadcast(send if own == 0 else receive, self.nbytes)
            elif self.op == "allgather":
                link.all_gather(send, receive, self.nbytes)
            else:
                link.group_start()
                for peer, place in self.incoming.items():
                    if peer != own:
                        link.receive(receive + place.first * item, place.count * item, peer)
                for peer, place in self.outgoing.items():
                    if peer != own:
                        link.send(send + place.first * item, place.count * item, peer)
                link.group_end()
            link.wait()

        return call

    def check(self, path: str) -> dict[str, Any]:
        """One call, and what came of it: the worst of all ranks."""
        self.receive.fill(0xA5)
        self.rank.comm.Barrier()
        self._call(path)()
        every = self.rank.comm.allgather(self._judge(path))
        return min(every, key=_badness)

    def _judge(self, path: str) -> dict[str, Any]:
        """The worst block of this rank."""
        own = self.rank.rank
        found = {"promise": "exact", "kept": True, "max_error": 0.0}
        if self.incoming:
            spec = "none" if path in BASELINES else codec_of(path)
            leaves_own = form_of(path) or (path == "nccl" and self.op != "allgather")
            got = self.receive.read(self.values.dtype, blocks.span(self.incoming))
            for source, place in self.incoming.items():
                if source == own and leaves_own:
                    continue  # what a rank has for itself is no message
                block = got[place.first :][: place.count]
                one = arrival.judge(spec, self.block(source, own), block)
                found = min(found, one, key=_badness)
        return found


def _badness(check: dict[str, Any]) -> tuple[bool, float]:
    """Least of the worst."""
    return check["kept"], -(check["max_error"] or 0)
