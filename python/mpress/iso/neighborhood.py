"""Neighborhood: exchanges along a list of relative neighbours."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _api
from mpress._codec import Codec
from mpress.comm import Outcome, _spec, _start, _told
from mpress.iso._arguments import Arguments, Reader
from mpress.iso._call import call
from mpress.iso.requests import PersistentRequest, Request


class Neighborhood:
    """A communicator whose processes all have the same list of relative neighbours.

    Collective. `cart` has a Cartesian topology; `offsets` is an array of (number, dimensions)
    integers, the same on all processes. `codec` encodes what exchanges send: a spec, what
    mpress.codec() gives, or None for the communicator's, or MPRESS_CODEC. `algorithm` and `ports`
    say how blocks travel, `uniform_sizes` that block i has the same length on all processes, and
    `reproducible` that reductions combine in the list's order (include/mpress/iso.h). Raises
    ValueError, and TypeError where `cart` is none.

    An exchange's arrays lie where they like, each on the host or on a GPU; where there is a GPU the
    exchange comes behind what its library's current stream holds. I-forms begin an exchange and
    return a Request, forms with _init make one that is started again and again.
    """

    def __init__(
        self,
        cart: MPI.Cartcomm,
        offsets: Any,
        codec: str | Codec | None = None,
        *,
        algorithm: str = "auto",
        ports: int | None = None,
        uniform_sizes: bool = False,
        reproducible: bool = False,
    ) -> None:
        if not isinstance(cart, MPI.Cartcomm):
            raise TypeError(f"cart: expected a Cartcomm of mpi4py's, not {type(cart).__name__}")
        self.codec = _spec(codec)
        self._last = _api.COutcome(0, 0.0)
        offsets = np.asarray(offsets)
        if offsets.size and not np.issubdtype(offsets.dtype, np.integer):
            raise TypeError(f"offsets: expected integers, not {offsets.dtype}")
        if offsets.ndim != 2 or (offsets.size and offsets.shape[1] != cart.ndim):
            raise ValueError(
                f"offsets: expected an array of (number, {cart.ndim}), not of {offsets.shape}"
            )
        self.offsets: np.ndarray = np.ascontiguousarray(offsets, np.int32)
        self.offsets.flags.writeable = False
        self._read = Reader(len(self))
        _start(cart)
        info = MPI.Info.Create()
        info.Set("iso_algorithm", algorithm)
        if ports is not None:
            info.Set("iso_ports", str(int(ports)))
        info.Set("iso_uniform_sizes", "true" if uniform_sizes else "false")
        info.Set("iso_reproducible", "true" if reproducible else "false")
        made = MPI.Cartcomm()
        try:
            call(
                "mpress_iso_neighborhood_create_with_info", MPI._handleof(cart), len(self),
                self.offsets.ctypes.data, MPI._handleof(info), MPI._addressof(made),
            )  # fmt: skip
        finally:
            info.Free()
        self.comm: MPI.Cartcomm = made
        ranks = np.empty((2, len(self)), np.int32)
        call(
            "mpress_iso_neighborhood_get", MPI._handleof(made), len(self),
            ranks[0].ctypes.data, ranks[1].ctypes.data,
        )  # fmt: skip
        self.sources: tuple[int, ...] = tuple(map(int, ranks[0]))
        self.targets: tuple[int, ...] = tuple(map(int, ranks[1]))

    def __len__(self) -> int:
        return len(self.offsets)

    def free(self) -> None:
        """Collective, as MPI_Comm_free."""
        self.comm.Free()

    @property
    def outcome(self) -> Outcome:
        """What became of the last exchange that blocked."""
        return _told(self._last)

    def alltoall(self, sent: Any, received: Any, *, codec: str | Codec | None = None) -> None:
        """`sent` has a block for each offset, one behind the other, and `received` gets one for
        each."""
        self._block("alltoall", self._read.alltoall(sent, received), codec)

    def ialltoall(self, sent: Any, received: Any, *, codec: str | Codec | None = None) -> Request:
        """Begins alltoall()."""
        return self._begin("alltoall", self._read.alltoall(sent, received), codec)

    def alltoall_init(
        self, sent: Any, received: Any, *, codec: str | Codec | None = None
    ) -> PersistentRequest:
        """Makes alltoall(), to be started again and again. Collective."""
        return self._make("alltoall", self._read.alltoall(sent, received), codec)

    def alltoallv(
        self,
        sent: Any,
        sent_counts: Sequence[int],
        received: Any,
        received_counts: Sequence[int],
        *,
        codec: str | Codec | None = None,
    ) -> None:
        """alltoall() with blocks of `sent_counts[i]` and `received_counts[i]` elements, one behind
        the other."""
        self._block(
            "alltoallv", self._read.alltoallv(sent, sent_counts, received, received_counts), codec
        )

    def ialltoallv(
        self,
        sent: Any,
        sent_counts: Sequence[int],
        received: Any,
        received_counts: Sequence[int],
        *,
        codec: str | Codec | None = None,
    ) -> Request:
        """Begins alltoallv()."""
        return self._begin(
            "alltoallv", self._read.alltoallv(sent, sent_counts, received, received_counts), codec
        )

    def alltoallv_init(
        self,
        sent: Any,
        sent_counts: Sequence[int],
        received: Any,
        received_counts: Sequence[int],
        *,
        codec: str | Codec | None = None,
    ) -> PersistentRequest:
        """Makes alltoallv(), to be started again and again. Collective."""
        return self._make(
            "alltoallv", self._read.alltoallv(sent, sent_counts, received, received_counts), codec
        )

    def alltoallw(
        self, sent: Sequence[Any], received: Sequence[Any], *, codec: str | Codec | None = None
    ) -> None:
        """alltoall() with lists of an array for each offset, of any strides, or None for no
        elements."""
        self._block("alltoallw", self._read.alltoallw(sent, received), codec)

    def ialltoallw(
        self, sent: Sequence[Any], received: Sequence[Any], *, codec: str | Codec | None = None
    ) -> Request:
        """Begins alltoallw()."""
        return self._begin("alltoallw", self._read.alltoallw(sent, received), codec)

    def alltoallw_init(
        self, sent: Sequence[Any], received: Sequence[Any], *, codec: str | Codec | None = None
    ) -> PersistentRequest:
        """Makes alltoallw(), to be started again and again. Collective."""
        return self._make("alltoallw", self._read.alltoallw(sent, received), codec)

    def allgather(self, sent: Any, received: Any, *, codec: str | Codec | None = None) -> None:
        """All targets get `sent`; `received` gets a block from each source."""
        self._block("allgather", self._read.allgather(sent, received), codec)

    def iallgather(self, sent: Any, received: Any, *, codec: str | Codec | None = None) -> Request:
        """Begins allgather()."""
        return self._begin("allgather", self._read.allgather(sent, received), codec)

    def allgather_init(
        self, sent: Any, received: Any, *, codec: str | Codec | None = None
    ) -> PersistentRequest:
        """Makes allgather(), to be started again and again. Collective."""
        return self._make("allgather", self._read.allgather(sent, received), codec)

    def allgatherv(
        self,
        sent: Any,
        received: Any,
        received_counts: Sequence[int],
        *,
        codec: str | Codec | None = None,
    ) -> None:
        """allgather() with blocks of `received_counts[i]` elements."""
        self._block("allgatherv", self._read.allgatherv(sent, received, received_counts), codec)

    def iallgatherv(
        self,
        sent: Any,
        received: Any,
        received_counts: Sequence[int],
        *,
        codec: str | Codec | None = None,
    ) -> Request:
        """Begins allgatherv()."""
        return self._begin(
            "allgatherv", self._read.allgatherv(sent, received, received_counts), codec
        )

    def allgatherv_init(
        self,
        sent: Any,
        received: Any,
        received_counts: Sequence[int],
        *,
        codec: str | Codec | None = None,
    ) -> PersistentRequest:
        """Makes allgatherv(), to be started again and again. Collective."""
        return self._make(
            "allgatherv", self._read.allgatherv(sent, received, received_counts), codec
        )

    def allgatherw(
        self, sent: Any, received: Sequence[Any], *, codec: str | Codec | None = None
    ) -> None:
        """allgather() with a list of arrays that are received, as alltoallw() has it."""
        self._block("allgatherw", self._read.allgatherw(sent, received), codec)

    def iallgatherw(
        self, sent: Any, received: Sequence[Any], *, codec: str | Codec | None = None
    ) -> Request:
        """Begins allgatherw()."""
        return self._begin("allgatherw", self._read.allgatherw(sent, received), codec)

    def allgatherw_init(
        self, sent: Any, received: Sequence[Any], *, codec: str | Codec | None = None
    ) -> PersistentRequest:
        """Makes allgatherw(), to be started again and again. Collective."""
        return self._make("allgatherw", self._read.allgatherw(sent, received), codec)

    def reduce(
        self, sent: Any, received: Any, op: MPI.Op = MPI.SUM, *, codec: str | Codec | None = None
    ) -> None:
        """`received` becomes the combination of all sources' `sent`, by an `op` that commutes;
        without sources it stays as it was."""
        self._block("reduce", self._read.reduce(sent, received, op), codec)

    def ireduce(
        self, sent: Any, received: Any, op: MPI.Op = MPI.SUM, *, codec: str | Codec | None = None
    ) -> Request:
        """Begins reduce()."""
        return self._begin("reduce", self._read.reduce(sent, received, op), codec)

    def reduce_init(
        self, sent: Any, received: Any, op: MPI.Op = MPI.SUM, *, codec: str | Codec | None = None
    ) -> PersistentRequest:
        """Makes reduce(), to be started again and again. Collective."""
        return self._make("reduce", self._read.reduce(sent, received, op), codec)

    def scatter_reduce(
        self,
        sent: Sequence[Any],
        received: Any,
        op: MPI.Op = MPI.SUM,
        *,
        codec: str | Codec | None = None,
    ) -> None:
        """reduce() with an array for each target: a list."""
        self._block("scatter_reduce", self._read.scatter_reduce(sent, received, op), codec)

    def iscatter_reduce(
        self,
        sent: Sequence[Any],
        received: Any,
        op: MPI.Op = MPI.SUM,
        *,
        codec: str | Codec | None = None,
    ) -> Request:
        """Begins scatter_reduce()."""
        return self._begin("scatter_reduce", self._read.scatter_reduce(sent, received, op), codec)

    def scatter_reduce_init(
        self,
        sent: Sequence[Any],
        received: Any,
        op: MPI.Op = MPI.SUM,
        *,
        codec: str | Codec | None = None,
    ) -> PersistentRequest:
        """Makes scatter_reduce(), to be started again and again. Collective."""
        return self._make("scatter_reduce", self._read.scatter_reduce(sent, received, op), codec)

    def _asks(
        self, arguments: Arguments, outcome: _api.COutcome, codec: str | Codec | None
    ) -> _api.CCall:
        spec = self.codec if codec is None else _spec(codec)
        streams = {one.device[1] for one in arguments.blocks if one.device}
        if len(streams) > 1:
            raise ValueError("the arrays are used on several streams; expected one current stream")
        stream = streams.pop() if streams else None
        return _api.call_of(spec, outcome, stream, False)

    def _block(self, name: str, arguments: Arguments, codec: str | Codec | None) -> None:
        asks = self._asks(arguments, self._last, codec)
        words = (*arguments.words, MPI._handleof(self.comm), ctypes.addressof(asks))
        call(f"mpress_iso_neighbor_{name}", *words)

    def _begin(self, name: str, arguments: Arguments, codec: str | Codec | None) -> Request:
        request = Request((self, arguments))
        asks = self._asks(arguments, request._outcome, codec)
        words = (*arguments.words, MPI._handleof(self.comm))
        handle = ctypes.addressof(request._handle)
        call(f"mpress_iso_ineighbor_{name}", *words, handle, ctypes.addressof(asks))
        return request

    def _make(
        self, name: str, arguments: Arguments, codec: str | Codec | None
    ) -> PersistentRequest:
        request = PersistentRequest((self, arguments))
        asks = self._asks(arguments, request._outcome, codec)
        words = (*arguments.words, MPI._handleof(self.comm), MPI._handleof(MPI.INFO_NULL))
        handle = ctypes.addressof(request._handle)
        call(f"mpress_iso_neighbor_{name}_init", *words, handle, ctypes.addressof(asks))
        return request
