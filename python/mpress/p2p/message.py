"""Messages of ranks that measure: buffers by address, and communicators by codec."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

_to_mpi = getattr(MPI, "buffer", None) or MPI.memory


def message(address: int, values: np.ndarray) -> list[Any]:
    """As mpi4py takes it: elements like `values`, f32 or f64, that lie at an address."""
    element = MPI.FLOAT if values.itemsize == 4 else MPI.DOUBLE
    return [_to_mpi.fromaddress(address, values.nbytes), values.size, element]


def codec_comm(comm: MPI.Comm, spec: str, chunk: str = "") -> MPI.Comm:
    """A duplicate whose messages take a codec, and chunks of so many bytes if that is given."""
    return hinted_comm(comm, {"mpress_codec": spec} | ({"mpress_chunk": chunk} if chunk else {}))


def hinted_comm(comm: MPI.Comm, hints: dict[str, str]) -> MPI.Comm:
    """A duplicate with info keys."""
    info = MPI.Info.Create()
    for name, value in hints.items():
        info.Set(name, value)
    made = comm.Dup_with_info(info)
    info.Free()
    return made
