"""Exchanges with the same relative neighbours on all processes of a Cartesian grid.

    cart = MPI.COMM_WORLD.Create_cart((4, 4), periods=(True, True))
    near = mpress.iso.Neighborhood(cart, mpress.iso.moore(2, 1))
    near.alltoall(sent, received)          # a row of each for every neighbour

    halo = mpress.iso.HaloExchange(cart, shape=(200, 200), depth=2, codec="szp:rel=1e-4")
    halo(u, v)                             # arrays of 204 x 204
    halo.start(u, v); ...; halo.finish()   # around the interior's computation

After Träff et al., Isomorphic, Sparse MPI-like Collective Communication Operations for Parallel
Stencil Computations, EuroMPI 2015. Offset i of a list stands for two processes: what is sent as
block i goes to the one at +offset, and what is received as block i comes from the one at -offset.
Arrays may be NumPy's, or of a library whose arrays lie on GPUs (CuPy, torch ...).
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _api, _device
from mpress._codec import Codec
from mpress.comm import Outcome, _spec, _start, _told

__all__ = ["HaloExchange", "Neighborhood", "PersistentRequest", "Request", "moore", "von_neumann"]


def moore(dimensions: int, radius: int, inner: int = 0) -> np.ndarray:
    """The offsets whose greatest absolute value is above `inner` and at most `radius`, in
    lexicographic order: an array of int32, (number, dimensions). inner=-1 has the process itself,
    too. Raises ValueError unless dimensions >= 0 and -1 <= inner <= radius."""
    return _shape("mpress_iso_moore", dimensions, radius, inner)


def von_neumann(dimensions: int, radius: int, inner: int = 0) -> np.ndarray:
    """The same of those whose sum of absolute values is within these bounds."""
    return _shape("mpress_iso_von_neumann", dimensions, radius, inner)


def _shape(name: str, dimensions: int, radius: int, inner: int) -> np.ndarray:
    count = ctypes.c_int()
    sizes = (int(dimensions), int(radius), int(inner))
    _call(name, *sizes, 0, 0, ctypes.addressof(count))
    offsets = np.empty((count.value, dimensions), np.int32)
    _call(name, *sizes, count.value, offsets.ctypes.data, ctypes.addressof(count))
    return offsets


def _call(name: str, *words: int) -> None:
    function = getattr(_api.library(), name)
    code = function(*(ctypes.c_void_p(word & (2**64 - 1)) for word in words))
    if code != MPI.SUCCESS:
        text = _api.error_text().removeprefix("mpress: ")
        raise ValueError(text) if text else MPI.Exception(code)


class _Block(NamedTuple):
    """Where an array's elements lie, as MPI describes them: none for None."""

    array: Any
    address: int
    count: int
    datatype: MPI.Datatype
    device: tuple[int, int] | None
    """Of memory of a GPU: an address there, and the stream that its library uses."""


_NOTHING = _Block(None, 0, 0, MPI.BYTE, None)


def _block(name: str, array: Any) -> _Block:
    """Of an array with any strides. Its datatype may be shared, and is never freed."""
    if array is None:
        return _NOTHING
    if isinstance(array, np.ndarray):
        interface, device = array.__array_interface__, None
    elif hasattr(array, "__cuda_array_interface__"):
        interface = array.__cuda_array_interface__
        device = (interface["data"][0], _device.current_stream(array)[2].handle)
    else:
        raise TypeError(f"{name}: expected an array of NumPy, or one on a GPU, not {array!r:.60}")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or _packed_strides(shape, dtype.itemsize)
    datatype = _datatype(dtype, shape, tuple(strides))
    address = interface["data"][0] or 0
    if 0 in shape:
        return _NOTHING._replace(array=array, datatype=datatype)
    if datatype is _element(dtype):
        return _Block(array, address, int(np.prod(shape, dtype=np.int64)), datatype, device)
    return _Block(array, address, 1, datatype, device)


def _packed_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    sizes = [itemsize, *reversed(shape)][: len(shape)]
    return tuple(itertools.accumulate(sizes, lambda a, b: a * b))[::-1]


def _element(dtype: np.dtype) -> MPI.Datatype:
    try:
        return MPI._typedict[dtype.char]
    except KeyError:
        raise TypeError(f"MPI has no datatype for elements of {dtype}") from None


_datatypes: dict[tuple[str, tuple[int, ...], tuple[int, ...]], MPI.Datatype] = {}


def _datatype(dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...]) -> MPI.Datatype:
    """That of one element, where they lie without gaps; else one of the whole array."""
    element = _element(dtype)
    if strides == _packed_strides(shape, dtype.itemsize) or 0 in shape:
        return element
    key = (dtype.char, shape, strides)
    known = _datatypes.get(key)
    if known is None:
        known = element
        inner = None
        for length, stride in zip(reversed(shape), reversed(strides), strict=True):
            known = known.Create_hvector(length, 1, stride)
            if inner is not None:
                inner.Free()
            inner = known
        known = _datatypes[key] = known.Commit()
    return known


class Request:
    """An exchange under way; keeps its arrays."""

    _is_persistent = False

    def __init__(self, kept: Any) -> None:
        self._handle = ctypes.c_void_p()
        self._outcome = _api.COutcome(0, 0.0)
        self._kept = kept

    def wait(self) -> Outcome:
        """Returns when it is over, and what became of it."""
        _call("mpress_wait", ctypes.addressof(self._handle), _status_ignore())
        return self.outcome

    def test(self) -> bool:
        """Is it over? Never waits."""
        flag = ctypes.c_int()
        _call(
            "mpress_test", ctypes.addressof(self._handle), ctypes.addressof(flag), _status_ignore()
        )
        return bool(flag.value)

    @property
    def outcome(self) -> Outcome:
        """Once it is over."""
        return _told(self._outcome)

    def __del__(self) -> None:
        if self._handle and MPI is not None and not MPI.Is_finalized():
            if not self._is_persistent:
                self.wait()  # MPI may still write to the arrays
            else:
                _call("mpress_request_free", ctypes.addressof(self._handle))


class PersistentRequest(Request):
    """An exchange that is started again and again, with the same arrays. Collective to make."""

    _is_persistent = True

    def start(self) -> None:
        _call("mpress_start", ctypes.addressof(self._handle))


def _status_ignore() -> int:
    # MPI_STATUS_IGNORE is an MPI's own; a status that nobody reads suits all of them.
    return ctypes.addressof(_unread)


_unread = (ctypes.c_byte * 256)()


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
            _call(
                "mpress_iso_neighborhood_create_with_info", MPI._handleof(cart), len(self),
                self.offsets.ctypes.data, MPI._handleof(info), MPI._addressof(made),
            )  # fmt: skip
        finally:
            info.Free()
        self.comm: MPI.Cartcomm = made
        ranks = np.empty((2, len(self)), np.int32)
        _call(
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

    def _even(self, name: str, array: Any, blocks: int) -> tuple[_Block, int]:
        whole = _block(name, array)
        if whole.count and whole.datatype is not _element_of(whole):
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
            a.address, sent_count, _handle(a), b.address, received_count, _handle(b),
        ))  # fmt: skip

    def _listed(
        self, name: str, arrays: Sequence[Any]
    ) -> tuple[list[_Block], tuple[int, ...], Any]:
        if len(arrays) != len(self):
            raise ValueError(f"{name}: expected {len(self)} arrays, one for each offset, or None")
        blocks = [_block(f"{name}[{i}]", one) for i, one in enumerate(arrays)]
        counts = np.array([one.count for one in blocks], np.int64)
        # The address that the call gets tells the device of its stream.
        base = next((one.address for one in blocks if one.device), 0)
        places = np.array([one.address - base for one in blocks], np.int64)
        kinds = _kinds(blocks)
        words = (base, counts.ctypes.data, places.ctypes.data, ctypes.addressof(kinds))
        return blocks, words, (counts, places, kinds)

    def _alltoallw(self, sent: Sequence[Any], received: Sequence[Any]) -> _Arguments:
        a, sent_words, kept_a = self._listed("sent", sent)
        b, received_words, kept_b = self._listed("received", received)
        return _Arguments((*a, *b), (*sent_words, *received_words), (kept_a, kept_b))

    def _counted(self, name: str, array: Any, counts: Sequence[int]) -> tuple[_Block, Any, Any]:
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
            a.address, counts_a.ctypes.data, places_a.ctypes.data, _handle(a),
            b.address, counts_b.ctypes.data, places_b.ctypes.data, _handle(b),
        )  # fmt: skip
        return _Arguments((a, b), words, (counts_a, places_a, counts_b, places_b))

    def _allgather(self, sent: Any, received: Any) -> _Arguments:
        a, sent_count = self._even("sent", sent, 1)
        b, received_count = self._even("received", received, len(self))
        return _Arguments((a, b), (
            a.address, sent_count, _handle(a), b.address, received_count, _handle(b),
        ))  # fmt: skip

    def _allgatherv(self, sent: Any, received: Any, received_counts: Sequence[int]) -> _Arguments:
        a, sent_count = self._even("sent", sent, 1)
        b, counts, places = self._counted("received", received, received_counts)
        words = (
            a.address, sent_count, _handle(a),
            b.address, counts.ctypes.data, places.ctypes.data, _handle(b),
        )  # fmt: skip
        return _Arguments((a, b), words, (counts, places))

    def _allgatherw(self, sent: Any, received: Sequence[Any]) -> _Arguments:
        a = _block("sent", sent)
        b, words, kept = self._listed("received", received)
        return _Arguments((a, *b), (a.address, a.count, _handle(a), *words), kept)

    def _reduce(self, sent: Any, received: Any, op: MPI.Op = MPI.SUM) -> _Arguments:
        a, count = self._even("sent", sent, 1)
        b, result_count = self._even("received", received, 1)
        if count != result_count or a.datatype != b.datatype:
            raise ValueError("sent and received: expected as many elements of one type")
        return _Arguments((a, b), (a.address, b.address, count, _handle(a), MPI._handleof(op)))

    def _scatter_reduce(
        self, sent: Sequence[Any], received: Any, op: MPI.Op = MPI.SUM
    ) -> _Arguments:
        a, words, kept = self._listed("sent", sent)
        b, count = self._even("received", received, 1)
        return _Arguments((*a, b), (*words, b.address, count, _handle(b), MPI._handleof(op)), kept)

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
        _call(f"mpress_iso_neighbor_{name}", *arguments.words, MPI._handleof(self.comm), address)
        del asks

    def _begin(self, name: str, arguments: _Arguments, codec: Any, is_persistent: bool) -> Request:
        request = (PersistentRequest if is_persistent else Request)((self, arguments))
        asks, address = self._asks(arguments, request._outcome, codec)
        words = (*arguments.words, MPI._handleof(self.comm))
        handle = ctypes.addressof(request._handle)
        if is_persistent:
            info = MPI._handleof(MPI.INFO_NULL)
            _call(f"mpress_iso_neighbor_{name}_init", *words, info, handle, address)
        else:
            _call(f"mpress_iso_ineighbor_{name}", *words, handle, address)
        del asks
        return request


class _Arguments(NamedTuple):
    blocks: tuple[_Block, ...]
    words: tuple[int, ...]
    kept: Any = None


def _handle(block: _Block) -> int:
    return MPI._handleof(block.datatype)


def _element_of(block: _Block) -> MPI.Datatype | None:
    if block.array is None:
        return None
    interface = (
        block.array.__array_interface__
        if isinstance(block.array, np.ndarray)
        else block.array.__cuda_array_interface__
    )
    return _element(np.dtype(interface["typestr"]))


def _kinds(blocks: Sequence[_Block]) -> Any:
    """An array of MPI_Datatype, whatever that is."""
    size = MPI._sizeof(MPI.Datatype)
    word = {4: ctypes.c_uint32, 8: ctypes.c_uint64}[size]
    mask = 2 ** (8 * size) - 1
    return (word * max(len(blocks), 1))(*(_handle(one) & mask for one in blocks))


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


class HaloExchange:
    """The halos of fields on a grid that is cut into blocks of equal dimensions.

    Collective. `cart`: the processes' grid. `shape`: of this process's block, without halos;
    `depth` cells of halo lie around it, a number or one for each dimension, so fields are arrays of
    shape + 2 * depth. Dimensions beyond those of the grid are not cut (a vector's components, say).
    `corners`: with those of the halo, as stencils need that look at diagonal cells, and several
    steps at once. `periodic`: None, or what `cart` has to be in each dimension. `codec`: as of
    Neighborhood. Raises ValueError where the shape is smaller than the depth, or does not fit.
    """

    def __init__(
        self,
        cart: MPI.Cartcomm,
        shape: Sequence[int],
        depth: int | Sequence[int],
        corners: bool = True,
        periodic: Sequence[bool] | bool | None = None,
        codec: str | Codec | None = None,
    ) -> None:
        if not isinstance(cart, MPI.Cartcomm):
            raise TypeError(f"cart: expected a Cartcomm of mpi4py's, not {type(cart).__name__}")
        dims = cart.ndim
        self.shape = tuple(map(int, shape))
        if len(self.shape) < dims:
            raise ValueError(f"shape: expected {dims} dimensions or more, not {self.shape}")
        depths = (depth,) * dims if isinstance(depth, (int, np.integer)) else tuple(depth)
        self.depth = tuple(map(int, depths))
        if len(self.depth) != dims or min(self.depth, default=0) < 0:
            raise ValueError(f"depth: expected a number of cells, or {dims}, not {depth!r}")
        for cells, most in zip(self.depth, self.shape, strict=False):
            if cells > most:
                raise ValueError(f"depth: {cells} cells are more than the block's {most}")
        if periodic is not None:
            wanted = (periodic,) * dims if isinstance(periodic, bool) else tuple(periodic)
            if tuple(map(bool, wanted)) != tuple(map(bool, cart.periods)):
                raise ValueError(f"periodic: the grid is {cart.periods}, not {wanted}")
        offsets = moore(dims, 1) if corners else von_neumann(dims, 1)
        deep = [
            all(d > 0 or c == 0 for d, c in zip(self.depth, one, strict=True)) for one in offsets
        ]
        offsets = offsets[deep] if len(offsets) else offsets
        like = np.array([*self.shape, *(-n for n in self.shape)], np.int64)
        most = np.empty_like(like)
        cart.Allreduce(like, most, MPI.MAX)
        is_uniform = bool(
            (most == like).all() and (most[: len(self.shape)] == -most[len(self.shape) :]).all()
        )
        is_uniform = cart.allreduce(is_uniform, MPI.LAND)
        self.neighborhood = Neighborhood(cart, offsets, codec, uniform_sizes=is_uniform)
        self._sent = [self._region(one, is_sent=True) for one in offsets]
        self._received = [self._region(one, is_sent=False) for one in offsets]
        self._requests: list[Request] = []

    def _region(self, offset: np.ndarray, is_sent: bool) -> tuple[slice, ...]:
        """The cells that go to the target at `offset`, or come from the source at -offset."""
        slices = []
        for c, n, d in zip(offset, self.shape, self.depth, strict=False):
            if c == 0:
                slices.append(slice(d, d + n))
            elif is_sent:
                slices.append(slice(n, n + d) if c > 0 else slice(d, 2 * d))
            else:
                slices.append(slice(0, d) if c > 0 else slice(n + d, n + 2 * d))
        return tuple(slices)

    def __call__(self, *fields: Any) -> None:
        """Fills the fields' halos from the neighbours' cells; beyond borders they stay."""
        self.start(*fields)
        self.finish()

    def start(self, *fields: Any) -> None:
        """Begins that: until finish() the cells that are sent must not change, nor the halos be
        used."""
        if self._requests:
            raise RuntimeError("the last exchange was not finished: finish() comes before start()")
        wide = tuple(
            n + 2 * d for n, d in itertools.zip_longest(self.shape, self.depth, fillvalue=0)
        )
        for number, field in enumerate(fields):
            if tuple(field.shape) != wide:
                raise ValueError(f"field {number}: expected an array of {wide}, not {field.shape}")
        for field in fields:
            self._requests.append(
                self.neighborhood.ialltoallw(
                    [field[cells] for cells in self._sent],
                    [field[cells] for cells in self._received],
                )
            )

    def finish(self) -> list[Outcome]:
        """Returns when all halos are there: what became of each field's exchange."""
        requests, self._requests = self._requests, []
        return [one.wait() for one in requests]

    def free(self) -> None:
        """Collective, as MPI_Comm_free."""
        self.neighborhood.free()
