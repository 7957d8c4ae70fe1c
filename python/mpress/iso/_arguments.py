"""Arguments of exchanges, as the functions of include/mpress/iso.h take them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from mpress.iso._blocks import Block, block_of, element_of, handle_of, kinds_of


class Arguments(NamedTuple):
    """Machine words, up to the communicator, and what has to be kept until the exchange is over."""

    blocks: tuple[Block, ...]
    words: tuple[int, ...]
    kept: Any = None


class Reader:
    """Of exchanges along a list of `number` offsets; raises ValueError and TypeError."""

    def __init__(self, number: int) -> None:
        self.number = number

    def _even(self, name: str, array: Any, blocks: int) -> tuple[Block, int]:
        whole = block_of(name, array, name == "received")
        if whole.count and whole.datatype is not element_of(whole):
            raise ValueError(f"{name}: expected an array without gaps")
        if blocks and whole.count % blocks:
            raise ValueError(
                f"{name} has {whole.count} elements; expected {blocks} blocks of equal length"
            )
        return whole, whole.count // max(blocks, 1)

    def alltoall(self, sent: Any, received: Any) -> Arguments:
        a, sent_count = self._even("sent", sent, self.number)
        b, received_count = self._even("received", received, self.number)
        return Arguments((a, b), (
            a.address, sent_count, handle_of(a), b.address, received_count, handle_of(b),
        ))  # fmt: skip

    def _listed(self, name: str, arrays: Sequence[Any]) -> tuple[list[Block], tuple[int, ...], Any]:
        if len(arrays) != self.number:
            raise ValueError(f"{name}: expected {self.number} arrays, one for each offset, or None")
        is_written = name == "received"
        blocks = [block_of(f"{name}[{i}]", one, is_written) for i, one in enumerate(arrays)]
        counts = np.array([one.count for one in blocks], np.int64)
        # The address that the call gets tells the device of its stream.
        base = next((one.address for one in blocks if one.device), 0)
        places = np.array([one.address - base for one in blocks], np.int64)
        kinds = kinds_of(blocks)
        words = (base, counts.ctypes.data, places.ctypes.data, ctypes.addressof(kinds))
        return blocks, words, (counts, places, kinds)

    def alltoallw(self, sent: Sequence[Any], received: Sequence[Any]) -> Arguments:
        a, sent_words, kept_a = self._listed("sent", sent)
        b, received_words, kept_b = self._listed("received", received)
        return Arguments((*a, *b), (*sent_words, *received_words), (kept_a, kept_b))

    def _counted(self, name: str, array: Any, counts: Sequence[int]) -> tuple[Block, Any, Any]:
        whole, _ = self._even(name, array, 1)
        counts = np.asarray(counts, np.int64)
        if counts.shape != (self.number,) or (counts < 0).any() or counts.sum() > whole.count:
            raise ValueError(
                f"{name}_counts: expected {self.number} numbers that are not below 0, and together "
                f"at most the array's {whole.count} elements"
            )
        places = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.int64)[: self.number]
        return whole, np.ascontiguousarray(counts), np.ascontiguousarray(places)

    def alltoallv(
        self, sent: Any, sent_counts: Sequence[int], received: Any, received_counts: Sequence[int]
    ) -> Arguments:
        a, counts_a, places_a = self._counted("sent", sent, sent_counts)
        b, counts_b, places_b = self._counted("received", received, received_counts)
        words = (
            a.address, counts_a.ctypes.data, places_a.ctypes.data, handle_of(a),
            b.address, counts_b.ctypes.data, places_b.ctypes.data, handle_of(b),
        )  # fmt: skip
        return Arguments((a, b), words, (counts_a, places_a, counts_b, places_b))

    def allgather(self, sent: Any, received: Any) -> Arguments:
        a, sent_count = self._even("sent", sent, 1)
        b, received_count = self._even("received", received, self.number)
        return Arguments((a, b), (
            a.address, sent_count, handle_of(a), b.address, received_count, handle_of(b),
        ))  # fmt: skip

    def allgatherv(self, sent: Any, received: Any, received_counts: Sequence[int]) -> Arguments:
        a, sent_count = self._even("sent", sent, 1)
        b, counts, places = self._counted("received", received, received_counts)
        words = (
            a.address, sent_count, handle_of(a),
            b.address, counts.ctypes.data, places.ctypes.data, handle_of(b),
        )  # fmt: skip
        return Arguments((a, b), words, (counts, places))

    def allgatherw(self, sent: Any, received: Sequence[Any]) -> Arguments:
        a = block_of("sent", sent, False)
        b, words, kept = self._listed("received", received)
        return Arguments((a, *b), (a.address, a.count, handle_of(a), *words), kept)

    def reduce(self, sent: Any, received: Any, op: MPI.Op) -> Arguments:
        a, count = self._even("sent", sent, 1)
        b, result_count = self._even("received", received, 1)
        if count != result_count or a.datatype != b.datatype:
            raise ValueError("sent and received: expected as many elements of one type")
        return Arguments((a, b), (a.address, b.address, count, handle_of(a), MPI._handleof(op)))

    def scatter_reduce(self, sent: Sequence[Any], received: Any, op: MPI.Op) -> Arguments:
        a, words, kept = self._listed("sent", sent)
        b, count = self._even("received", received, 1)
        return Arguments((*a, b), (*words, b.address, count, handle_of(b), MPI._handleof(op)), kept)
