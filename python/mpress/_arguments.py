"""What the arguments of mpi4py's methods are, of those that mpress.Communicator has to know: which
buffers lie on GPUs, which are of JAX, and which of them the call receives to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress import _device, _jax

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
    """A buffer on a GPU."""

    address: int
    device: int
    stream: int
    """That its library is using there."""
    in_order: bool
    """Does that library reuse memory in the order of its streams?"""
    owner: Any
    """Whoever keeps the stream alive."""


class Given(NamedTuple):
    """A call's arguments, as mpi4py takes them."""

    arguments: tuple[Any, ...]
    named: dict[str, Any]
    on_device: tuple[OnDevice, ...]
    """The first buffer of each stream."""
    new: _jax.New | _jax.Kept | None
    """What becomes the result, where the receive buffer cannot be written."""

    def may_follow(self) -> bool:
        """May the call return before its stream gets to it, whatever becomes of the arrays?"""
        return len(self.on_device) == 1 and self.on_device[0].in_order

    def with_array(self, data: Any) -> Given:
        """The same, and one more array on a GPU."""
        address, device, stream, library = _device.current_stream(data)
        if not address:  # of no elements
            return self
        in_order = library in ("cupy", "torch")
        one = OnDevice(address, device, stream.handle, in_order, stream.owner)
        before = self.on_device
        # Default streams of all devices have one handle.
        tells_device = one.in_order or hasattr(data, "__dlpack_device__")
        for i, known in enumerate(before):
            if tells_device and (known.device, known.stream) == (one.device, one.stream):
                known = known._replace(in_order=known.in_order and one.in_order)
                return self._replace(on_device=(*before[:i], known, *before[i + 1 :]))
        return self._replace(on_device=(*before, one))


def look_at(
    comm: MPI.Comm,
    method: Method,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    same_bits: bool,
) -> Given:
    # Most calls have nothing but these, and every microsecond counts.
    if _USUAL.issuperset(map(type, arguments)) and _USUAL.issuperset(map(type, named.values())):
        return Given(arguments, named, (), None)
    given = Given(arguments, named, (), None)
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
                    given = given.with_array(buffer)
            else:
                buffer = _jax.sent(place if isinstance(place, str) else "sendbuf", data)
            argument = [buffer, *argument[1:]] if in_list else buffer
            if isinstance(place, int):
                before, after = given.arguments[:place], given.arguments[place + 1 :]
                given = given._replace(arguments=(*before, argument, *after))
            else:
                given = given._replace(named={**given.named, place: argument})
        elif _device.is_device_array(data):
            given = given.with_array(data)
    if has_jax:  # whose streams are its own
        given = given._replace(on_device=tuple(
            one._replace(in_order=False) for one in given.on_device
        ))  # fmt: skip
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
