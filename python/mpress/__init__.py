"""MPI programs exchange floating-point data compressed on the fly.

    import mpress
    encoded = mpress.codec("szp:rel=1e-4").encode(field)
    print(encoded.ratio)
    field = mpress.codec("auto").decode(encoded)

Specs: ``none``, ``auto``, ``mpc[:dim=N]`` (lossless), ``zfp:RATE`` (bits a value),
``szp:abs=E`` and ``szp:rel=E`` with ``,mode=fast|dense`` (error-bounded).
"""

from mpress._codec import Codec, CorruptPayload, Encoded, InexactSum, codec
from mpress._core import build_info as _build_info
from mpress._device import DeviceArray

__version__: str = _build_info()["version"]
__all__ = [
    "Codec",
    "CorruptPayload",
    "DeviceArray",
    "Encoded",
    "InexactSum",
    "__version__",
    "codec",
]
