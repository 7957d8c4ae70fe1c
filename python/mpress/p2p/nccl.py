"""Send, receive and collective calls of NCCL, from whichever package brought its library (torch's
and CuPy's wheels take nvidia-nccl-cu12 or -cu13) or the system's."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import Any

from mpress.p2p import memory

_UINT8 = 1  # ncclDataType_t
_TYPES = {"float32": 7, "float64": 8}
_SUM = 0  # ncclRedOp_t

SOCKETS = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_IB_DISABLE": "1",
    "NCCL_NET": "Socket",
    "NCCL_SOCKET_IFNAME": "lo",
}
"""What makes NCCL take TCP between GPUs of a host, as MPI does, instead of NVLink or PCIe."""


TRANSPORTS: dict[str, dict[str, str]] = {
    "nvlink": {},
    "shm": {"NCCL_P2P_DISABLE": "1"},
    "socket": SOCKETS,
}
"""What lets NCCL take, between GPUs of a host, what it likes best, the host's memory, or TCP."""


def environment(transport: str) -> dict[str, str | None]:
    """What makes NCCL take one of TRANSPORTS, whatever stands in the environment; None removes."""
    return dict.fromkeys(SOCKETS) | TRANSPORTS[transport]


class _UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_char * 128),)


def library() -> Path | str | None:
    """The library's path, or the name that the loader knows; None where there is none."""
    try:
        spec = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("lib/libnccl.so*")):
            return path
    try:
        ctypes.CDLL("libnccl.so.2")
    except OSError:
        return None
    return "libnccl.so.2"


class Communicator:
    """NCCL's communicator of the ranks of an mpi4py communicator, each with its current GPU."""

    def __init__(self, comm: Any) -> None:
        found = library()
        if found is None:
            raise RuntimeError("NCCL is not installed")
        self._nccl = ctypes.CDLL(str(found))
        unique = _UniqueId()
        if comm.rank == 0:
            self._check(self._nccl.ncclGetUniqueId(ctypes.byref(unique)))
        unique = _UniqueId.from_buffer_copy(comm.bcast(bytes(unique), root=0))
        self._comm, self._stream = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._nccl.ncclCommInitRank(
            ctypes.byref(self._comm), comm.size, unique, comm.rank
        ))  # fmt: skip
        memory.call("cuStreamCreate", ctypes.byref(self._stream), 1)  # CU_STREAM_NON_BLOCKING

    def send(self, address: int, nbytes: int, peer: int) -> None:
        self._check(self._nccl.ncclSend(*self._message(address, nbytes, peer)))

    def receive(self, address: int, nbytes: int, peer: int) -> None:
        self._check(self._nccl.ncclRecv(*self._message(address, nbytes, peer)))

    def broadcast(self, address: int, nbytes: int) -> None:
        """From rank 0, in place."""
        buffer = ctypes.c_void_p(address)
        self._check(self._nccl.ncclBroadcast(
            buffer, buffer, ctypes.c_size_t(nbytes), _UINT8, 0, self._comm, self._stream
        ))  # fmt: skip

    def all_gather(self, send: int, receive: int, nbytes: int) -> None:
        """`nbytes` of each rank."""
        self._check(self._nccl.ncclAllGather(
            ctypes.c_void_p(send), ctypes.c_void_p(receive), ctypes.c_size_t(nbytes), _UINT8,
            self._comm, self._stream,
        ))  # fmt: skip

    def all_reduce(self, send: int, receive: int, count: int, dtype: Any) -> None:
        """Sums of `count` elements of each rank."""
        self._check(self._nccl.ncclAllReduce(*self._sum(send, receive, count, dtype)))

    def reduce(self, send: int, receive: int, count: int, dtype: Any) -> None:
        """The same at rank 0 alone."""
        out, into, number, element, op, comm, stream = self._sum(send, receive, count, dtype)
        self._check(self._nccl.ncclReduce(out, into, number, element, op, 0, comm, stream))

    def reduce_scatter(self, send: int, receive: int, count: int, dtype: Any) -> None:
        """Sums of `count` elements at each rank."""
        self._check(self._nccl.ncclReduceScatter(*self._sum(send, receive, count, dtype)))

    def _sum(self, send: int, receive: int, count: int, dtype: Any) -> tuple[Any, ...]:
        return (ctypes.c_void_p(send), ctypes.c_void_p(receive), ctypes.c_size_t(count),
                _TYPES[str(dtype)], _SUM, self._comm, self._stream)  # fmt: skip

    def group_start(self) -> None:
        self._check(self._nccl.ncclGroupStart())

    def group_end(self) -> None:
        self._check(self._nccl.ncclGroupEnd())

    def wait(self) -> None:
        """Until all that was given so far is done."""
        memory.call("cuStreamSynchronize", self._stream)

    def _message(self, address: int, nbytes: int, peer: int) -> tuple[Any, ...]:
        return (ctypes.c_void_p(address), ctypes.c_size_t(nbytes), _UINT8, peer, self._comm,
                self._stream)  # fmt: skip

    def _check(self, code: int) -> None:
        if code != 0:
            raise RuntimeError(f"NCCL: error {code}")
