"""Communicators whose messages and collective calls travel compressed.

mpi4py reads the arguments: its buffer specifications, MPI.IN_PLACE and arrays of any library that
it takes are taken here, too, and its errors are the errors. mpress adds what a call asks for: the
codec, the array library's current stream, and what became of the call.
"""

from __future__ import annotations

import ctypes
import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _api, _core, _jax
from mpress._arguments import Method, OnDevice, look_at
from mpress._codec import Codec


class Outcome(NamedTuple):
    """What became of a call."""

    served: bool
    """mpress moved the data, or some of it; else MPI did."""
    bound: float | None
    """Each finite element of the result is within this of what it would be without compression,
    absolute: 0 where nothing was lost, None where no bound is known."""


_keep_for_good = ctypes.PyDLL(None)["Py_IncRef"]
_keep_for_good.argtypes = (ctypes.py_object,)
_keep_for_good.restype = None


# mpress writes the outcome when the call is over, which may be behind the interpreter's end; and a
# new array's buffer is the request's alone.
def _free(request: Any, free: Callable[[], None]) -> None:
    is_over = not request
    if not is_over:
        with suppress(MPI.Exception):  # of a call that failed
            is_over = request.Get_status()
    if not is_over:
        _forget(request)
    free()


def _forget(request: Any, keep: Callable[[Any], None] = _keep_for_good) -> None:
    """Of a request that the program has dropped, perhaps while it is active."""
    if not request:
        return
    for name in ("_outcome", "_new", "_streams"):
        kept = getattr(request, name, None)
        if kept is not None:
            keep(kept)


class Request(MPI.Request):
    """A request of mpi4py's, which knows what became of its call, and keeps the buffers."""

    _outcome: _api.COutcome
    _new: _jax.New | _jax.Kept | None = None
    _result: Any = None
    _is_freed = False

    def Free(self) -> None:
        """mpi4py's. mpress completes what is under way; what became of it is not told."""
        _free(self, super().Free)
        self._is_freed = True

    __del__ = _forget

    @property
    def outcome(self) -> Outcome:
        """Once it is complete."""
        return _told(self._outcome)

    @property
    def result(self) -> Any:
        """Once it is complete: the new array, where the receive buffer is one of JAX; or None."""
        if self._new is not None:
            if self._is_freed:
                raise RuntimeError("result: the request was freed before it was looked at")
            if self != MPI.REQUEST_NULL:
                raise RuntimeError("result: the request is not complete; wait for it")
            self._result, self._new = self._new.array(), None
        return self._result


class PersistentRequest(MPI.Prequest):
    """The same of a persistent call."""

    _outcome: _api.COutcome
    _streams: tuple[Any, ...]  # what keeps alive those that each start waits for

    def Free(self) -> None:
        """The same as a Request's."""
        _free(self, super().Free)

    __del__ = _forget

    @property
    def outcome(self) -> Outcome:
        """Of the last start, once that is complete."""
        return _told(self._outcome)


class Communicator(MPI.Intracomm):
    """An intra-communicator of mpi4py's whose calls are compressed.

    `comm` is one of mpi4py's, with its members, its handle and, where it has one, its topology. All
    its members make their Communicator of it at the same time. The first one in a process starts
    mpress: unless the program runs under `mpress run`, that one has all ranks of MPI.COMM_WORLD.
    `codec` is a spec, or what mpress.codec() gives; None leaves it to the communicator's hints and
    MPRESS_CODEC. In reductions all members have the same.

    Upper-case messages and collective calls, their I-forms and persistent ones take mpi4py's
    arguments, and two more, by keyword: `codec=` for this call alone, and `same_bits=True` for a
    lossy broadcast whose root gets what the others get. All else is mpi4py's own; duplicates keep
    the codec.

    Raises TypeError where `comm` is none, ValueError where it cannot be served, or for a wrong
    codec, and RuntimeError where mpress cannot be started.
    """

    _codec: str | None = None

    def __new__(
        cls, comm: MPI.Comm | None = None, codec: str | Codec | None = None
    ) -> Communicator:
        if comm is not None and not isinstance(comm, MPI.Comm):
            raise TypeError(f"comm: expected one of mpi4py's, not {type(comm).__name__}")
        if comm is not None and (comm == MPI.COMM_NULL or not isinstance(comm, MPI.Intracomm)):
            raise ValueError("comm: expected an intra-communicator, and not MPI.COMM_NULL")
        base: type[MPI.Intracomm] = MPI.Intracomm
        for topology, kind in _TOPOLOGIES:
            if isinstance(comm, topology) or issubclass(cls, topology):
                base, cls = topology, kind
        return base.__new__(cls, comm)

    def __init__(self, comm: MPI.Comm | None = None, codec: str | Codec | None = None) -> None:
        self._set_up()
        if comm is None:
            raise TypeError("comm: expected a communicator of mpi4py's")
        if codec is None and isinstance(comm, Communicator):
            codec = comm.codec
        self.codec = codec
        _start(comm)

    def _set_up(self) -> None:
        self._handle = MPI._handleof(self)
        self._last = _api.COutcome(0, 0.0)
        self._known: dict[tuple[str | None, bool], tuple[int, _api.CCall]] = {}

    def __getattr__(self, name: str) -> Any:
        # mpi4py makes duplicates without __init__.
        if name in ("_handle", "_last", "_known"):
            self._set_up()
            return getattr(self, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def codec(self) -> str | None:
        """The spec that encodes what calls send; None: the communicator's hint, or MPRESS_CODEC."""
        return self._codec

    @codec.setter
    def codec(self, codec: str | Codec | None) -> None:
        self._codec = _spec(codec)

    @property
    def outcome(self) -> Outcome:
        """Of the last blocking call by this object."""
        return _told(self._last)

    def Dup(self, info: MPI.Info | None = None) -> Communicator:
        """mpi4py's, with this one's codec, as have all duplicates and copies."""
        return self._give_codec(super().Dup(info))

    def Clone(self) -> Communicator:
        return self._give_codec(super().Clone())

    def Dup_with_info(self, info: MPI.Info) -> Communicator:
        return self._give_codec(super().Dup_with_info(info))

    def Idup(self, info: MPI.Info | None = None) -> tuple[Communicator, MPI.Request]:
        made, request = super().Idup(info)
        return self._give_codec(made), request

    def Idup_with_info(self, info: MPI.Info) -> tuple[Communicator, MPI.Request]:
        made, request = super().Idup_with_info(info)
        return self._give_codec(made), request

    def __reduce__(self) -> tuple[Any, ...]:
        make, arguments = super().__reduce__()
        return make, arguments, {"_codec": self._codec}

    def _give_codec(self, made: Communicator) -> Communicator:
        made._codec = self._codec
        return made

    def __repr__(self) -> str:
        return f"<mpress.Communicator of {super().__repr__()}, codec {self._codec!r}>"

    def _begin(self, codec: Any, same_bits: bool) -> None:
        """Of a blocking call on the host, which tells its outcome to this object."""
        if same_bits is not False:
            same_bits = _flag(same_bits)
        key = (self._codec if codec is _own else _spec(codec), same_bits)
        known = self._known.get(key)
        if known is None:
            if len(self._known) > 64:  # bounds may change at every call
                self._known.clear()
            call = _api.call_of(key[0], self._last, None, same_bits)
            known = self._known[key] = ctypes.addressof(call), call
        if _core.call_begin(self._handle, known[0]):
            _refuse()

    def _begin_apart(
        self,
        outcome: _api.COutcome,
        codec: Any,
        same_bits: bool,
        on_device: tuple[OnDevice, ...],
        follows: bool = False,
        starts: bool = False,
    ) -> int:
        """Of any other. Waits for the streams of what lies on devices, unless the call `follows`
        the only one; so will each start of a request that it makes, if it `starts`. Returns how
        many calls are to be ended."""
        spec = self._codec if codec is _own else _spec(codec)
        same_bits = _flag(same_bits)
        library = _api.library()
        first, *others = on_device or (None,)
        begun = 0
        for one in others:
            waits = _api.call_of(None, None, one.stream, False)
            if library.mpress_call_begin(self._handle, ctypes.byref(waits), one.address):
                _end(begun)
                _refuse()
            begun += 1
            if not starts:
                begun = _end(begun)
        stream, address = (first.stream, first.address) if first else (None, None)
        call = _api.call_of(spec, outcome, stream, same_bits)
        begin = library.mpress_collective_begin if follows else library.mpress_call_begin
        if begin(self._handle, ctypes.byref(call), address):
            _end(begun)
            _refuse()
        return begun + 1


_own = object()
_is_known_to_run = False


def _start(comm: MPI.Comm) -> None:
    global _is_known_to_run
    if _is_known_to_run:
        return
    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise RuntimeError("mpress: MPI does not run")
    if not _api.is_running() and comm.Get_size() != MPI.COMM_WORLD.Get_size():
        raise RuntimeError(
            "mpress: the first Communicator has all ranks: make one of MPI.COMM_WORLD before, or "
            "start the program with `mpress run`"
        )
    _api.start()
    # An address in the module: that of the function that makes it.
    module = ctypes.PyDLL(MPI.__file__)
    _api.stand_in(ctypes.cast(module.PyInit_MPI, ctypes.c_void_p).value or 0)
    _is_known_to_run = True


def _end(begun: int) -> int:
    """Of so many calls; none is left."""
    for _ in range(begun):
        _core.call_end()
    return 0


def _spec(codec: str | Codec | None) -> str | None:
    if codec is None:
        return None
    if isinstance(codec, Codec):
        return codec.spec
    if isinstance(codec, str):
        try:
            return Codec(codec).spec
        except ValueError as error:
            raise ValueError(f"codec: {error}") from None
    raise TypeError(f"codec: expected a spec, a Codec or None, not {type(codec).__name__}")


def _flag(same_bits: Any) -> bool:
    if isinstance(same_bits, (bool, np.bool_)):
        return bool(same_bits)
    raise TypeError(f"same_bits: expected True or False, not {type(same_bits).__name__}")


def _told(outcome: _api.COutcome) -> Outcome:
    bound = outcome.bound
    return Outcome(bool(outcome.served), None if math.isnan(bound) else bound)


def _refuse() -> None:
    """Raises what mpress found wrong with a call before it began."""
    raise ValueError(_api.error_text().removeprefix("mpress: "))


def _blocking(name: str, base: type[MPI.Intracomm] = MPI.Intracomm) -> Callable[..., Any]:
    method = getattr(base, name)
    about = Method.of(name)
    is_collective = name not in _MESSAGES

    def call(
        self: Communicator,
        *arguments: Any,
        codec: Any = _own,
        same_bits: bool = False,
        **named: Any,
    ) -> Any:
        given = look_at(self, about, arguments, named, same_bits)
        end = _core.call_end
        if given.on_device:
            follows = is_collective and given.may_follow()
            if follows:
                # Where a call was refused before it began, the end waits for the stream: other
                # threads of the interpreter's have to run then.
                end = _api.library().mpress_call_end
            self._begin_apart(self._last, codec, same_bits, given.on_device, follows)
        else:
            self._begin(codec, same_bits)
        try:
            told = method(self, *given.arguments, **given.named)
        finally:
            end()
        return given.new.array() if given.new else told

    return _described(call, name, method, "Any" if about.receives else None)


def _with_request(
    name: str,
    of: str,
    kind: type[Request] | type[PersistentRequest],
    base: type[MPI.Intracomm] = MPI.Intracomm,
) -> Callable[..., Request | PersistentRequest]:
    """`of`: the blocking method."""
    method = getattr(base, name)
    about = Method.of(of, kind is PersistentRequest)

    def call(
        self: Communicator,
        *arguments: Any,
        codec: Any = _own,
        same_bits: bool = False,
        **named: Any,
    ) -> Request | PersistentRequest:
        outcome = _api.COutcome(0, 0.0)
        given = look_at(self, about, arguments, named, same_bits)
        starts = kind is PersistentRequest
        begun = self._begin_apart(outcome, codec, same_bits, given.on_device, starts=starts)
        try:
            made = method(self, *given.arguments, **given.named)
        finally:
            _end(begun)
        request = kind(made)
        request._outcome = outcome
        if isinstance(request, Request):
            request._new = given.new
        else:
            request._streams = tuple(one.owner for one in given.on_device)
        return request

    return _described(call, name, method, kind.__name__)


def _described(call: Any, name: str, method: Callable[..., Any], returns: str | None) -> Any:
    """Lets the call say that it takes what mpi4py's method does, and more."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{method.__doc__ or name}\n\nWith codec= and same_bits= for this call alone."
    with suppress(ValueError):  # where mpi4py was built so that it tells none
        own = inspect.signature(method)
        parameters = (*own.parameters.values(), *_MORE)
        call.__signature__ = own.replace(parameters=parameters, return_annotation=returns)
    return call


_MORE = [
    inspect.Parameter("codec", inspect.Parameter.KEYWORD_ONLY, default=_own,
                      annotation="str | Codec | None"),
    inspect.Parameter("same_bits", inspect.Parameter.KEYWORD_ONLY, default=False,
                      annotation="bool"),
]  # fmt: skip
_MESSAGES = ("Send", "Ssend", "Rsend", "Bsend", "Recv", "Sendrecv", "Sendrecv_replace")
_COLLECTIVES = (
    "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall",
    "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block",
    "Scan", "Exscan",
)  # fmt: skip

for _name in (*_MESSAGES, *_COLLECTIVES):
    setattr(Communicator, _name, _blocking(_name))
for _name in (*_MESSAGES, *_COLLECTIVES):
    setattr(Communicator, f"I{_name.lower()}", _with_request(f"I{_name.lower()}", _name, Request))
for _name in ("Send", "Ssend", "Rsend", "Bsend", "Recv", *_COLLECTIVES):
    setattr(Communicator, f"{_name}_init",
            _with_request(f"{_name}_init", _name, PersistentRequest))  # fmt: skip


class _Neighbours:
    """The calls of a topology."""


_NEIGHBOURS = (
    "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv",
    "Neighbor_alltoallw",
)  # fmt: skip
for _name in _NEIGHBOURS:
    setattr(_Neighbours, _name, _blocking(_name, MPI.Topocomm))
    setattr(_Neighbours, f"I{_name.lower()}",
            _with_request(f"I{_name.lower()}", _name, Request, MPI.Topocomm))  # fmt: skip
    setattr(_Neighbours, f"{_name}_init",
            _with_request(f"{_name}_init", _name, PersistentRequest, MPI.Topocomm))  # fmt: skip


class CartCommunicator(_Neighbours, MPI.Cartcomm, Communicator):
    """A Communicator whose processes lie on a grid."""


class GraphCommunicator(_Neighbours, MPI.Graphcomm, Communicator):
    """A Communicator whose processes lie on a graph."""


class DistgraphCommunicator(_Neighbours, MPI.Distgraphcomm, Communicator):
    """The same of a graph that no process knows all of."""


_TOPOLOGIES = (
    (MPI.Cartcomm, CartCommunicator),
    (MPI.Graphcomm, GraphCommunicator),
    (MPI.Distgraphcomm, DistgraphCommunicator),
)
