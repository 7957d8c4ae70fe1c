"""The worker of mpress.p2p on simulated GPUs, which looks at what baselines bring, too: python
checked_collectives.py PLAN.json OUT.json. In the place of NCCL stand messages."""

from __future__ import annotations

from mpi4py import MPI
from simulated_buffers import SimulatedBuffer

from mpress.p2p import nccl, worker


class Communicator:
    """As mpress.p2p.nccl has it."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm.Dup()
        self.requests: list[MPI.Request] = []

    def send(self, address: int, nbytes: int, peer: int) -> None:
        self.requests.append(self.comm.Isend(_bytes(address, nbytes), peer))

    def receive(self, address: int, nbytes: int, peer: int) -> None:
        self.requests.append(self.comm.Irecv(_bytes(address, nbytes), peer))

    def broadcast(self, address: int, nbytes: int) -> None:
        self.comm.Bcast(_bytes(address, nbytes), 0)

    def all_gather(self, send: int, receive: int, nbytes: int) -> None:
        into = _bytes(receive, nbytes * self.comm.size)
        self.comm.Allgather(_bytes(send, nbytes), [into[0], nbytes, MPI.BYTE])

    def group_start(self) -> None:
        pass

    def group_end(self) -> None:
        pass

    def wait(self) -> None:
        MPI.Request.Waitall(self.requests)
        self.requests.clear()


def _bytes(address: int, nbytes: int) -> list:
    buffer = getattr(MPI, "buffer", None) or MPI.memory
    return [buffer.fromaddress(address, nbytes), MPI.BYTE]


nccl.Communicator = Communicator
worker.BASELINES = ()
worker.main(lambda nbytes: SimulatedBuffer(MPI.COMM_WORLD.rank % 2, nbytes))
