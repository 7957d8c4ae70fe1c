from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from mpi4py import MPI
from mpi4py.MPI import Info, Op, Status
from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, BufSpecW, InPlace

from mpress._codec import Codec

class _Shape(Protocol):
    """Of an array to be: a jax.ShapeDtypeStruct, or an array of JAX."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...

_New: TypeAlias = Any
"""A new array of JAX where the call receives to a _Shape, else None."""

class Outcome(NamedTuple):
    served: bool
    bound: float | None

class Request(MPI.Request):
    def Free(self) -> None: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def result(self) -> _New: ...

class PersistentRequest(MPI.Prequest):
    def Free(self) -> None: ...
    @property
    def outcome(self) -> Outcome: ...

class Communicator(MPI.Intracomm):
    def __new__(
        cls, comm: MPI.Comm | None = None, codec: str | Codec | None = None
    ) -> Communicator: ...
    def __init__(self, comm: MPI.Comm | None = None, codec: str | Codec | None = None) -> None: ...
    @property
    def codec(self) -> str | None: ...
    @codec.setter
    def codec(self, codec: str | Codec | None) -> None: ...
    @property
    def outcome(self) -> Outcome: ...
    def Dup(self, info: Info | None = None) -> Communicator: ...
    def Clone(self) -> Communicator: ...
    def Dup_with_info(self, info: Info) -> Communicator: ...
    def Idup(self, info: Info | None = None) -> tuple[Communicator, MPI.Request]: ...
    def Idup_with_info(self, info: Info) -> tuple[Communicator, MPI.Request]: ...
    def Send(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> None: ...
    def Ssend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> None: ...
    def Rsend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> None: ...
    def Bsend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> None: ...
    def Recv(
        self,
        buf: BufSpec | _Shape,
        source: int = ...,
        tag: int = ...,
        status: Status | None = None,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Sendrecv(
        self,
        sendbuf: BufSpec,
        dest: int,
        sendtag: int = 0,
        recvbuf: BufSpec | _Shape | None = None,
        source: int = ...,
        recvtag: int = ...,
        status: Status | None = None,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Sendrecv_replace(
        self,
        buf: BufSpec | _Shape,
        dest: int,
        sendtag: int = 0,
        source: int = ...,
        recvtag: int = ...,
        status: Status | None = None,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Bcast(
        self,
        buf: BufSpec | _Shape,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Gather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | _Shape | None,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Gatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | _Shape | None,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Scatter(
        self,
        sendbuf: BufSpecB | None,
        recvbuf: BufSpec | InPlace | _Shape,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Scatterv(
        self,
        sendbuf: BufSpecV | None,
        recvbuf: BufSpec | InPlace | _Shape,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Allgather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Allgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Alltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Alltoallv(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Alltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Reduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape | None,
        op: Op = ...,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Allreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Reduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        recvcounts: Sequence[int] | None = None,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Reduce_scatter_block(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Scan(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Exscan(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Isend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Issend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Irsend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ibsend(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Irecv(
        self,
        buf: BufSpec | _Shape,
        source: int = ...,
        tag: int = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Isendrecv(
        self,
        sendbuf: BufSpec,
        dest: int,
        sendtag: int = 0,
        recvbuf: BufSpec | _Shape | None = None,
        source: int = ...,
        recvtag: int = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Isendrecv_replace(
        self,
        buf: BufSpec | _Shape,
        dest: int,
        sendtag: int = 0,
        source: int = ...,
        recvtag: int = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Send_init(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Ssend_init(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Rsend_init(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Bsend_init(
        self,
        buf: BufSpec,
        dest: int,
        tag: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Recv_init(
        self,
        buf: BufSpec,
        source: int = ...,
        tag: int = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Ibcast(
        self,
        buf: BufSpec | _Shape,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Igather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | _Shape | None,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Igatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | _Shape | None,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iscatter(
        self,
        sendbuf: BufSpecB | None,
        recvbuf: BufSpec | InPlace | _Shape,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iscatterv(
        self,
        sendbuf: BufSpecV | None,
        recvbuf: BufSpec | InPlace | _Shape,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iallgather(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iallgatherv(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ialltoall(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ialltoallv(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ialltoallw(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ireduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape | None,
        op: Op = ...,
        root: int = 0,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iallreduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ireduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        recvcounts: Sequence[int] | None = None,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ireduce_scatter_block(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iscan(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Iexscan(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | _Shape,
        op: Op = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Bcast_init(
        self,
        buf: BufSpec,
        root: int = 0,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Gather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | None,
        root: int = 0,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Gatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | None,
        root: int = 0,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Scatter_init(
        self,
        sendbuf: BufSpecB | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Scatterv_init(
        self,
        sendbuf: BufSpecV | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Allgather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Allgatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Alltoall_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Alltoallv_init(
        self,
        sendbuf: BufSpecV | InPlace,
        recvbuf: BufSpecV,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Alltoallw_init(
        self,
        sendbuf: BufSpecW | InPlace,
        recvbuf: BufSpecW,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Reduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: Op = ...,
        root: int = 0,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Allreduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: Op = ...,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Reduce_scatter_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Sequence[int] | None = None,
        op: Op = ...,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Reduce_scatter_block_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: Op = ...,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Scan_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: Op = ...,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Exscan_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: Op = ...,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...

class _Neighbours:
    def Neighbor_allgather(
        self,
        sendbuf: BufSpec,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Neighbor_allgatherv(
        self,
        sendbuf: BufSpec,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Neighbor_alltoall(
        self,
        sendbuf: BufSpecB,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Neighbor_alltoallv(
        self,
        sendbuf: BufSpecV,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Neighbor_alltoallw(
        self,
        sendbuf: BufSpecW,
        recvbuf: BufSpecW | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> _New: ...
    def Ineighbor_allgather(
        self,
        sendbuf: BufSpec,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ineighbor_allgatherv(
        self,
        sendbuf: BufSpec,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ineighbor_alltoall(
        self,
        sendbuf: BufSpecB,
        recvbuf: BufSpecB | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ineighbor_alltoallv(
        self,
        sendbuf: BufSpecV,
        recvbuf: BufSpecV | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Ineighbor_alltoallw(
        self,
        sendbuf: BufSpecW,
        recvbuf: BufSpecW | _Shape,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> Request: ...
    def Neighbor_allgather_init(
        self,
        sendbuf: BufSpec,
        recvbuf: BufSpecB,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Neighbor_allgatherv_init(
        self,
        sendbuf: BufSpec,
        recvbuf: BufSpecV,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Neighbor_alltoall_init(
        self,
        sendbuf: BufSpecB,
        recvbuf: BufSpecB,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Neighbor_alltoallv_init(
        self,
        sendbuf: BufSpecV,
        recvbuf: BufSpecV,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...
    def Neighbor_alltoallw_init(
        self,
        sendbuf: BufSpecW,
        recvbuf: BufSpecW,
        info: Info = ...,
        *,
        codec: str | Codec | None = ...,
        same_bits: bool = False,
    ) -> PersistentRequest: ...

class CartCommunicator(_Neighbours, MPI.Cartcomm, Communicator): ...
class GraphCommunicator(_Neighbours, MPI.Graphcomm, Communicator): ...
class DistgraphCommunicator(_Neighbours, MPI.Distgraphcomm, Communicator): ...
