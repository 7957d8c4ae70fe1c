"""Neighborhood: exchanges along a list of relative neighbours."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _api
from mpress._codec import Codec
from mpress.comm import Outcome, _spec, _start, _told
from mpress.iso._blocks import Block, block_of, element_of, handle_of, kinds_of
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

    # Each exchange: its arguments of the C function, and the blocks that have to be kept.

    def _even(self, name: str, array: Any, blocks: int) -> tuple[Block, int]:
        whole = block_of(name, array)
        if whole.count and whole.datatype is not element_of(whole):
            raise ValueError(f"{name}: expected an array without gaps")
        if blocks and whole.count % blocks:
            raise ValueError(
                f"{name} has {whole.count} elements; expected {blocks} blocks of equal length"
            )
        return whole, whole.count // max(blocks, 1)

    def _alltoall(self, sent: Any, received: Any) -> _Arguments:
        a, sent_count = self._even("sent", sent, len(self))
        b, received_count = self._even("received", received, len(self))
        return _Arguments((a, b), (
            a.address, sent_count, handle_of(a), b.address, received_count, handle_of(b),
        ))  # fmt: skip

    def _listed(self, name: str, arrays: Sequence[Any]) -> tuple[list[Block], tuple[int, ...], Any]:
        if len(arrays) != len(self):
            raise ValueError(f"{name}: expected {len(self)} arrays, one for each offset, or None")
        blocks = [block_of(f"{name}[{i}]", one) for i, one in enumerate(arrays)]
        counts = np.array([one.count for one in blocks], np.int64)
        # The address that the call gets tells the device of its stream.
        base = next((one.address for one in blocks if one.device), 0)
        places = np.array([one.address - base for one in blocks], np.int64)
        kinds = kinds_of(blocks)
        words = (base, counts.ctypes.data, places.ctypes.data, ctypes.addressof(kinds))
        return blocks, words, (counts, places, kinds)

    def _alltoallw(self, sent: Sequence[Any], received: Sequence[Any]) -> _Arguments:
        a, sent_words, kept_a = self._listed("sent", sent)
        b, received_words, kept_b = self._listed("received", received)
        return _Arguments((*a, *b), (*sent_words, *received_words), (kept_a, kept_b))

    def _counted(self, name: str, array: Any, counts: Sequence[int]) -> tuple[Block, Any, Any]:
        whole, _ = self._even(name, array, 1)
        counts = np.asarray(counts, np.int64)
        if counts.shape != (len(self),) or (counts < 0).any() or counts.sum() > whole.count:
            raise ValueError(
                f"{name}_counts: expected {len(self)} numbers that are not below 0, and together "
                f"at most the array's {whole.count} elements"
            )
        places = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)[: len(self)]
        return whole, np.ascontiguousarray(counts), np.ascontiguousarray(places)

    def _alltoallv(
        self, sent: Any, sent_counts: Sequence[int], received: Any, received_counts: Sequence[int]
    ) -> _Arguments:
        a, counts_a, places_a = self._counted("sent", sent, sent_counts)
        b, counts_b, places_b = self._counted("received", received, received_counts)
        words = (
            a.address, counts_a.ctypes.data, places_a.ctypes.data, handle_of(a),
            b.address, counts_b.ctypes.data, places_b.ctypes.data, handle_of(b),
        )  # fmt: skip
        return _Arguments((a, b), words, (counts_a, places_a, counts_b, places_b))

    def _allgather(self, sent: Any, received: Any) -> _Arguments:
        a, sent_count = self._even("sent", sent, 1)
        b, received_count = self._even("received", received, len(self))
        return _Arguments((a, b), (
            a.address, sent_count, handle_of(a), b.address, received_count, handle_of(b),
        ))  # fmt: skip

    def _allgatherv(self, sent: Any, received: Any, received_counts: Sequence[int]) -> _Arguments:
        a, sent_count = self._even("sent", sent, 1)
        b, counts, places = self._counted("received", received, received_counts)
        words = (
            a.address, sent_count, handle_of(a),
            b.address, counts.ctypes.data, places.ctypes.data, handle_of(b),
        )  # fmt: skip
        return _Arguments((a, b), words, (counts, places))

    def _allgatherw(self, sent: Any, received: Sequence[Any]) -> _Arguments:
        a = block_of("sent", sent)
        b, words, kept = self._listed("received", received)
        return _Arguments((a, *b), (a.address, a.count, handle_of(a), *words), kept)

    def _reduce(self, sent: Any, received: Any, op: MPI.Op = MPI.SUM) -> _Arguments:
        a, count = self._even("sent", sent, 1)
        b, result_count = self._even("received", received, 1)
        if count != result_count or a.datatype != b.datatype:
            raise ValueError("sent and received: expected as many elements of one type")
        return _Arguments((a, b), (a.address, b.address, count, handle_of(a), MPI._handleof(op)))

    def _scatter_reduce(
        self, sent: Sequence[Any], received: Any, op: MPI.Op = MPI.SUM
    ) -> _Arguments:
        a, words, kept = self._listed("sent", sent)
        b, count = self._even("received", received, 1)
        return _Arguments(
            (*a, b), (*words, b.address, count, handle_of(b), MPI._handleof(op)), kept
        )

    def _asks(
        self, arguments: _Arguments, outcome: _api.COutcome, codec: Any
    ) -> tuple[_api.CCall, int]:
        spec = self.codec if codec is None else _spec(codec)
        streams = {one.device[1] for one in arguments.blocks if one.device}
        if len(streams) > 1:
            raise ValueError("the arrays are used on several streams; expected one current stream")
        stream = streams.pop() if streams else None
        asks = _api.call_of(spec, outcome, stream, False)
        return asks, ctypes.addressof(asks)

    def _blocking(self, name: str, arguments: _Arguments, codec: Any) -> None:
        asks, address = self._asks(arguments, self._last, codec)
        call(f"mpress_iso_neighbor_{name}", *arguments.words, MPI._handleof(self.comm), address)
        del asks

    def _begin(self, name: str, arguments: _Arguments, codec: Any, is_persistent: bool) -> Request:
        request = (PersistentRequest if is_persistent else Request)((self, arguments))
        asks, address = self._asks(arguments, request._outcome, codec)
        words = (*arguments.words, MPI._handleof(self.comm))
        handle = ctypes.addressof(request._handle)
        if is_persistent:
            info = MPI._handleof(MPI.INFO_NULL)
            call(f"mpress_iso_neighbor_{name}_init", *words, info, handle, address)
        else:
            call(f"mpress_iso_ineighbor_{name}", *words, handle, address)
        del asks
        return request


class _Arguments(NamedTuple):
    blocks: tuple[Block, ...]
    words: tuple[int, ...]
    kept: Any = None


_DESCRIPTIONS = {
    "alltoall": "`sent` has a block for each offset, one behind the other, and `received` gets one "
    "for each.",
    "alltoallv": "The same with blocks of `sent_counts[i]` and `received_counts[i]` elements, one "
    "behind the other.",
    "alltoallw": "`sent` and `received` are lists with an array for each offset, of any strides, "
    "or None for no elements.",
    "allgather": "All targets get `sent`; `received` gets a block from each source.",
    "allgatherv": "The same with blocks of `received_counts[i]` elements.",
    "allgatherw": "The same with a list of arrays that are received.",
    "reduce": "`received` becomes the combination of all sources' `sent`, by an `op` that "
    "commutes; without sources it stays as it was.",
    "scatter_reduce": "The same with an array for each target: a list.",
}


def _method(name: str, form: str) -> Any:
    """Neighborhood's method of an exchange, in one of its forms: "", "i" or "init"."""
    read = getattr(Neighborhood, f"_{name}")

    def method(self: Neighborhood, *given: Any, codec: Any = None, **named: Any) -> Any:
        arguments = read(self, *given, **named)
        if form:
            return self._begin(name, arguments, codec, form == "init")
        return self._blocking(name, arguments, codec)

    method.__name__ = f"{name}_init" if form == "init" else f"{form}{name}"
    method.__qualname__ = f"Neighborhood.{method.__name__}"
    method.__doc__ = _DESCRIPTIONS[name] + _FORMS[form]
    return method


_FORMS = {
    "": "",
    "i": " Begins it, and returns a Request.",
    "init": " Collective; returns a PersistentRequest.",
}
for _name in _DESCRIPTIONS:
    for _form in _FORMS:
        _made = _method(_name, _form)
        setattr(Neighborhood, _made.__name__, _made)
