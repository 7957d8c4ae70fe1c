"""What the arguments of mpi4py's methods are, of those that mpress.Communicator has to know: which
buffers lie on GPUs, which are of JAX, and which of them the call receives to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _core, _device, _jax

_PLAIN = (np.ndarray, int, str, bytes, bytearray, memoryview, MPI.Op, MPI.Datatype, MPI.Status)


_USUAL = frozenset((*_PLAIN, type(None), type(MPI.IN_PLACE)))


class Method(NamedTuple):
    """Of mpi4py's: which argument it receives to, by name and place; none where it sends alone."""

    name: str
    receives: str | None
    place: int | None
    is_persistent: bool

    @classmethod
    def of(cls, name: str, is_persistent: bool = False) -> Method:
        """Of the blocking method's name."""
        return cls(name, *_RECEIVED.get(name, ("recvbuf", 1)), is_persistent)

    def reads(self, comm: MPI.Comm, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Does this rank read that argument, too?"""
        if self.name == "Bcast":
            root = arguments[1] if len(arguments) > 1 else named.get("root", 0)
            return root == comm.rank
        in_place = any(one is MPI.IN_PLACE for one in (*arguments, *named.values()))
        return in_place or self.name == "Sendrecv_replace"


_RECEIVED = {
    "Recv": ("buf", 0), "Bcast": ("buf", 0), "Sendrecv_replace": ("buf", 0),
    "Sendrecv": ("recvbuf", 3),
    **dict.fromkeys(("Send", "Ssend", "Rsend", "Bsend"), (None, None)),
}  # fmt: skip


class OnDevice(NamedTuple):
    """Buffers on a GPU."""

    address: int
    """Of the first one."""
    stream: int
    """That its library is using. What others' streams hold comes before what this one gets."""
    in_order: bool
    """Do the libraries of all of them use that stream, and reuse memory in its order? Then a call
    may return before the stream gets to it, whatever becomes of the arrays."""

    @classmethod
    def of(cls, data: Any, others: OnDevice | None) -> OnDevice:
        address, stream, library = _device.current_stream(data)
        in_order = library in ("cupy", "torch")
        if others is None:
            return cls(address, stream.handle, in_order)
        if stream.handle == others.stream:
            return others._replace(in_order=others.in_order and in_order)
        if address:
            _core.cuda_order(stream.handle, others.stream, _core.cuda_device_of(address))
        return others._replace(in_order=False)


class Given(NamedTuple):
    """A call's arguments, as mpi4py takes them."""

    arguments: tuple[Any, ...]
    named: dict[str, Any]
    on_device: OnDevice | None
    new: _jax.New | _jax.Kept | None
    """What becomes the result, where the receive buffer cannot be written."""


def look_at(
    comm: MPI.Comm,
    method: Method,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    same_bits: bool,
) -> Given:
    # Most calls have nothing but these, and every microsecond counts.
    if _USUAL.issuperset(map(type, arguments)) and _USUAL.issuperset(map(type, named.values())):
        return Given(arguments, named, None, None)
    given = Given(arguments, named, None, None)
    has_jax = False
    for place, argument in (*enumerate(arguments), *named.items()):
        in_list = isinstance(argument, (list, tuple)) and len(argument) > 0
        data = argument[0] if in_list else argument
        if data is None or isinstance(data, _PLAIN):
            continue
        if _jax.is_jax(data):
            has_jax = True
            if place in (method.receives, method.place):
                new = _result_of(comm, method, data, given, same_bits)
                given, buffer = given._replace(new=new), new.buffer
                if isinstance(buffer, _device.DeviceArray):
                    given = given._replace(on_device=OnDevice.of(buffer, given.on_device))
            else:
                buffer = _jax.sent(place if isinstance(place, str) else "sendbuf", data)
            argument = [buffer, *argument[1:]] if in_list else buffer
            if isinstance(place, int):
                before, after = given.arguments[:place], given.arguments[place + 1 :]
                given = given._replace(arguments=(*before, argument, *after))
            else:
                given = given._replace(named={**given.named, place: argument})
        elif _device.is_device_array(data):
            given = given._replace(on_device=OnDevice.of(data, given.on_device))
    if has_jax and given.on_device:  # whose streams are its own
        given = given._replace(on_device=given.on_device._replace(in_order=False))
    return given


def _result_of(
    comm: MPI.Comm, method: Method, data: Any, given: Given, same_bits: bool
) -> _jax.New | _jax.Kept:
    name = method.receives or ""
    if method.is_persistent:
        raise TypeError(
            f"{name}: a persistent call receives to the same memory each time; expected an array "
            "that can be written, which JAX's cannot"
        )
    reads = method.reads(comm, given.arguments, given.named)
    if method.name == "Bcast" and reads and not same_bits:
        return _jax.Kept(name, data)
    return _jax.New(name, data, reads)
