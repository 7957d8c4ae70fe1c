"""MPI programs exchange floating-point data compressed on the fly.

    import mpress
    encoded = mpress.codec("szp:rel=1e-4").encode(field)
    print(encoded.ratio)
    field = mpress.codec("auto").decode(encoded)

Specs: ``none``, ``auto``, ``mpc[:dim=N]`` (lossless), ``zfp:RATE`` (bits a value),
``szp:abs=E`` and ``szp:rel=E`` with ``,mode=fast|dense`` (error-bounded).

Messages and collective calls of mpi4py's, each with a codec:

    comm = mpress.Communicator(MPI.COMM_WORLD, codec="szp:abs=1e-6")
    comm.Allreduce(field, total)
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from mpress._core import build_info as _build_info

if _TYPE_CHECKING:
    from mpress._codec import Codec, CorruptPayload, Encoded, InexactSum, codec
    from mpress._device import DeviceArray
    from mpress.comm import Communicator, Outcome, PersistentRequest, Request

__version__: str = _build_info()["version"]
__all__ = [
    "Codec",
    "Communicator",
    "CorruptPayload",
    "DeviceArray",
    "Encoded",
    "InexactSum",
    "Outcome",
    "PersistentRequest",
    "Request",
    "__version__",
    "codec",
]


def __getattr__(name: str) -> _Any:
    """Each name comes when it is asked for: codecs start no MPI, `mpress run` needs no NumPy."""
    if name in ("Communicator", "Outcome", "PersistentRequest", "Request"):
        from mpress import comm as module
    elif name == "DeviceArray":
        from mpress import _device as module
    elif name in __all__:
        from mpress import _codec as module
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
