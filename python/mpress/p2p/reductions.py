"""Reductions in the place of messages, for mpress.p2p.worker: sums of what all ranks have.

A case's bytes are those of a rank. The root is rank 0.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import codec
from mpress.p2p import data, rounds
from mpress.p2p.collectives import Call, CollectiveCase, CollectiveRank
from mpress.p2p.jobs import BASELINES, STAGED, codec_of, form_of
from mpress.p2p.message import message


class ReductionCase(CollectiveCase):
    """Calls of one operation, size and content."""

    def __init__(self, rank: CollectiveRank, case: dict[str, Any], values: Any) -> None:
        self.rank = rank
        self.op = rank.op_of(case)
        self.size = rank.comm.size
        self.nbytes = case["bytes"]
        self.values = data.cut(values, self.nbytes)
        self.results = self.values.size
        if self.op == "reduce_scatter":
            self.results //= self.size
        self.gets = self.op != "reduce" or rank.rank == 0
        self.send = rank.buffer("send")
        self.receive = rank.buffer("receive")
        self.send.write(self.brought(rank.rank))

    def brought(self, rank: int) -> np.ndarray:
        """What a rank brings: no two are alike."""
        return np.roll(self.values, -rank * (self.values.size // (2 * self.size + 1)))

    def _count(self) -> int:
        """Elements that are summed up."""
        return self.results * self.size if self.op == "reduce_scatter" else self.results

    def _call(self, path: str) -> Call:
        form = form_of(path)
        return self._rounds(form, self.rank.comm_of(path)) if form else super()._call(path)

    def _rounds(self, form: str, comm: MPI.Comm) -> Call:
        """The sums are made where results go."""
        is_staged = form.startswith(STAGED)
        own, nbytes = self.rank.rank, self._count() * self.values.itemsize
        sums, incoming = self.receive, self.rank.buffer("incoming")
        if is_staged:
            sums, incoming = self.rank.aside("receive"), self.rank.aside("incoming")
        made = rounds.rounds_of(form.removeprefix(STAGED), self.op, own, self.size, self._count())
        add = self.rank.timed("sum_seconds", sums.add)
        run = rounds.runner(comm, made, self.values, sums, incoming, add)
        results = self.results * self.values.itemsize
        # A piece lies where it was in the vector.
        moved = own * results if self.op == "reduce_scatter" else 0

        def call() -> None:
            sums.copy_from(self.send.address, nbytes)
            run()
            if moved:
                sums.copy_from(sums.address + moved, results)

        if not is_staged:
            return call
        copy_out = self.rank.timed("copy_seconds", self.send.copy_out)
        copy_in = self.rank.timed("copy_seconds", self.receive.copy_in)

        def staged() -> None:
            copy_out(sums.address, nbytes)
            run()
            if self.gets:
                copy_in(sums.address + moved, results)

        return staged

    def _collective(self, comm: MPI.Comm, send: int, receive: int) -> Call:
        out = message(send, self._shape(self._count()))
        into = message(receive, self._shape(self.results)) if self.gets else None
        if self.op == "allreduce":
            return lambda: comm.Allreduce(out, into)
        if self.op == "reduce":
            return lambda: comm.Reduce(out, into)
        # mpi4py has the count of a block for both buffers.
        block = [out[0], self.results, out[2]]
        return lambda: comm.Reduce_scatter_block(block, into)

    def _bytes(self) -> tuple[int, int]:
        item = self.values.itemsize
        return self._count() * item, self.results * item if self.gets else 0

    def _nccl(self, _: MPI.Comm) -> Call:
        link = self.rank.nccl()
        assert link is not None
        reduce = {"allreduce": link.all_reduce, "reduce": link.reduce,
                  "reduce_scatter": link.reduce_scatter}[self.op]  # fmt: skip
        send, receive = self.send.address, self.receive.address

        def call() -> None:
            reduce(send, receive, self.results, self.values.dtype)
            link.wait()

        return call

    @cached_property
    def _reference(self) -> tuple[np.ndarray, np.ndarray]:
        """The results in double precision, and what sums of the elements' own type may differ by:
        anything where a partial sum may be too large for it, nothing where the result is not
        finite. The same for all paths."""
        first = self.rank.rank * self.results if self.op == "reduce_scatter" else 0
        part = slice(first, first + self.results)
        total = np.zeros(self.results)
        sizes = np.zeros(self.results)
        limits = np.finfo(self.values.dtype)
        with np.errstate(invalid="ignore"):
            for rank in range(self.size):
                values = self.brought(rank)[part].astype(np.float64)
                total += values
                sizes += np.abs(values)
        rounding = np.where(sizes > limits.max, np.inf, self.size * limits.eps * sizes)
        return total, np.where(np.isfinite(sizes), rounding, 0)

    def _errors(self) -> np.ndarray:
        """Of what came; infinite where it, or what was wanted, alone is not finite."""
        total, _ = self._reference
        with np.errstate(invalid="ignore"):
            got = self.receive.read(self.values.dtype, self.results).astype(np.float64)
            errors = np.abs(got - total)
            alike = (got == total) | (np.isnan(got) & np.isnan(total))
        return np.where(alike, 0, np.where(np.isnan(errors), np.inf, errors))

    def _judge(self, path: str) -> dict[str, Any]:
        """The results beside sums in double precision. Where nothing bounds the error, that it is
        finite."""
        if not self.gets:
            return {"promise": "exact", "kept": True, "max_error": 0.0}
        spec = "none" if path in BASELINES else codec_of(path)
        _, allowed = self._reference
        errors = self._errors()
        worst = float(errors[np.isfinite(allowed)].max(initial=0.0))
        if not codec(spec).lossy:
            return {"promise": "exact", "kept": bool(np.all(errors <= allowed)), "max_error": worst}
        # Of the same range as what all ranks bring: the same values, in another order.
        bound = codec(spec).encode(self.values).bound
        if bound is None or form_of(path):  # a codec in each hop bounds that alone
            return {"promise": "unbounded", "kept": bool(np.isfinite(worst)), "max_error": worst}
        kept = bool(np.all(errors <= np.maximum(bound, allowed)))
        return {"promise": "bound", "kept": kept, "max_error": worst, "bound": bound}
