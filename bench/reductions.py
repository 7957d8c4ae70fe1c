"""Measure MPI_Allreduce, MPI_Reduce and MPI_Reduce_scatter_block into
bench/results/reductions-h200.json: python bench/reductions.py [--seconds S].

A job of ranks for each link, forced codecs first, then `auto`. In it all paths take turns: mpress
raw and with each codec; NCCL, by what is like the link; copies out and in around the MPI's own
call, and that call on device memory; and the rounds of algorithms with the codec in every hop, on
the GPU, and staged by the host. Sizes are bytes of a rank. Raw calls are measured at all sizes,
codecs from 1 MB on, rounds at three sizes. bench/report.py makes docs/performance.md and
docs/dev/results-reductions.md of the results.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import call_timeline
import calls
import numpy as np
from calls import MOST_CHECKED, Job, Row

from mpress.cli.errors import UserError, checked_bytes, checked_spec
from mpress.p2p import data, jobs

RESULTS = Path(__file__).resolve().parent / "results"
OPS = ("allreduce", "reduce_scatter", "reduce")
KINDS = ("forced", calls.TIMELINE, "auto")
SIZES = ("8", "2K", "64K", "1M", "16M", "64M", "256M")
TCP_SIZES = ("64K", "1M", "16M", "256M")
KNOWN = "szp:abs"
"""Of specs: with the bound of TOLERANCE, which szp:rel finds in a pass of its own."""
TOLERANCE = 1e-3  # of the range of the data
SPECS = ("szp:rel=1e-3", KNOWN, "szp:rel=1e-4", "zfp:8", "mpc")
FIELDS = ("wave", "turb")
_CODED_BYTES = 1 << 20  # shorter ones only raw
_FORM_SIZES = (1 << 20, 16 << 20, 64 << 20)
_STAGED_FORMS = ("ring", "doubling")  # gZCCL's, by the host
_MOST_STAGED = 16 << 20  # bytes of calls that MPI makes in memory of the host, or by TCP in rounds


@dataclass(frozen=True)
class Wanted(calls.Wanted):
    """Sizes are bytes of a rank; by TCP there are others. There, and with `auto`, reductions beside
    MPI_Allreduce are measured at one size, the largest that MPI makes, too; there long ones are of
    the first field alone."""

    tcp_sizes: tuple[int, ...] = ()
    bounds: Mapping[str, float] | None = None  # of KNOWN, by field

    kind = "reductions"

    def with_data(self, files: Mapping[str, str]) -> "Wanted":
        if KNOWN not in self.specs:
            return self
        return replace(self, bounds={
            name: TOLERANCE * float(np.ptp(np.load(files[name]))) for name in self.fields
        })  # fmt: skip

    def paths(self, op: str, field: str, nbytes: int, job: Job) -> list[str]:
        if job.kind == calls.TIMELINE:  # which tells codecs apart, no more
            by_codec = {spec.partition(":")[0]: spec for spec in self.specs[::-1] if spec != KNOWN}
            return ["none", *list(by_codec.values())[::-1]]
        staged = ["mpi"] if nbytes <= _MOST_STAGED else []
        nccl = ["nccl"] if self.has_nccl else []
        if job.kind == "auto":
            return ["none", *nccl, "auto", *staged]
        staged += ["plain"] if staged and self.memory == "device" else []
        coded = [self.spec(name, field) for name in self.specs if nbytes >= _CODED_BYTES]
        return ["none", *nccl, *coded, *staged, *self.rounds(op, field, nbytes, job)]

    def spec(self, name: str, field: str) -> str:
        """KNOWN with its bound."""
        if name != KNOWN or self.bounds is None:
            return name
        return f"{KNOWN}={self.bounds[field]:.3g}"

    def rounds(self, op: str, field: str, nbytes: int, job: Job) -> list[str]:
        """Raw and with the first codec; all algorithms of MPI_Allreduce, which papers compare, of
        others at one size. What is staged by the host takes the same by all links but TCP."""
        at = [n for n in _FORM_SIZES if not job.is_tcp or n <= _MOST_STAGED]
        if nbytes not in (at if op == "allreduce" else self.one_size(job)):
            return []
        if field != self.fields[0]:
            return []
        forms = list(jobs.SUM_FORMS[op])
        if self.memory == "device" and op == "allreduce" and job.link != "host":
            forms += [jobs.STAGED + form for form in _STAGED_FORMS]
        specs = ["none", *(self.spec(name, field) for name in self.specs[:1])]
        return [form + jobs.FORM + spec for form in forms for spec in specs]

    def cases(self, job: Job) -> list[Row]:
        """The first operations and fields first; of these the largest sizes."""
        if job.kind == calls.TIMELINE:
            nbytes = self.one_size(job)[0] if job.is_tcp else max(self.sizes)
            return [{
                "op": self.ops[0], "data": self.fields[0], "bytes": nbytes, "repeat": 3,
                "paths": self.paths(self.ops[0], self.fields[0], nbytes, job), "check": False,
            }]  # fmt: skip
        fields = self.fields if job.kind == "forced" else self.auto_fields
        groups = sorted(
            ((op, field) for op in self.ops for field in fields),
            key=lambda group: self.ops.index(group[0]) + fields.index(group[1]),
        )
        return [
            {
                "op": op, "data": field, "bytes": nbytes,
                "paths": self.paths(op, field, nbytes, job),
                "check": nbytes <= (MOST_CHECKED if field == fields[0] else _CODED_BYTES),
            }
            for op, field in groups
            for nbytes in self.sizes_of(job)
            if self.has(op, field, nbytes, job)
        ]  # fmt: skip

    def sizes_of(self, job: Job) -> list[int]:
        return sorted(self.tcp_sizes if job.is_tcp else self.sizes, reverse=True)

    def one_size(self, job: Job) -> list[int]:
        sizes = self.sizes_of(job)
        return [n for n in sizes if n <= _MOST_STAGED][:1] or sizes[-1:]

    def has(self, op: str, field: str, nbytes: int, job: Job) -> bool:
        is_brief = job.is_tcp or job.kind == "auto"
        if is_brief and op != "allreduce" and nbytes not in self.one_size(job):
            return False
        if job.kind == "auto":
            return not job.is_tcp or nbytes <= _MOST_STAGED
        if field == self.fields[0]:
            return True
        # Raw ones do not depend on the data.
        return nbytes >= _CODED_BYTES and not (job.is_tcp and nbytes > _MOST_STAGED)

    def timelines(self, job: Job, events: Sequence[Row]) -> list[Row]:
        (case,) = self.cases(job)
        about = {name: case[name] for name in ("op", "data", "bytes")}
        return [
            job.facts | about | {"path": path, "events": found}
            for path in case["paths"]
            if (found := call_timeline.typical(events, case, path, self.ranks))
        ]

    def weight(self, job: Job) -> float:
        """Calls by TCP take longer."""
        return super().weight(job) * (2 if job.is_tcp else 1)

    def in_all(self, row: Row) -> int:
        return row["bytes"]


def checked(options: argparse.Namespace) -> Wanted:
    """Raises UserError."""
    ranks, has_nccl = calls.checked_place(options)

    def sizes(name: str, texts: list[str]) -> list[int]:
        # Whole elements, and as many for each rank of a reduce-scatter.
        return [max(checked_bytes(name, text) // 4 // ranks, 1) * 4 * ranks for text in texts]

    known: dict[str, Any] = {KNOWN: KNOWN}
    return Wanted(
        ranks, options.memory, options.ops, sizes("--sizes", options.sizes),
        [known.get(text) or checked_spec("--specs", text) for text in options.specs],
        options.fields, options.auto_fields, has_nccl,
        tuple(sizes("--tcp-sizes", options.tcp_sizes)),
    )  # fmt: skip


def job_list(options: argparse.Namespace) -> list[Job]:
    """MPI carries data by TCP: by memory of the host, what it does is the host link's."""
    transports = options.transports if options.memory == "host" else ("tcp",)
    return calls.all_jobs(options.jobs, options.links, transports, options.memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    calls.add_options(parser, RESULTS / "reductions-h200.json", OPS, KINDS)
    parser.add_argument("--transports", nargs="+", choices=jobs.TRANSPORTS, default=("tcp",),
                        help="of MPI, between ranks whose memory is the host's")  # fmt: skip
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="bytes of a rank")
    parser.add_argument("--tcp-sizes", nargs="+", default=TCP_SIZES, help="the same, by TCP")
    parser.add_argument("--specs", nargs="+", default=SPECS,
                        help=f"codecs that are forced; {KNOWN}: with the bound of "
                             f"szp:rel={TOLERANCE:g}, known; the first in rounds, too")  # fmt: skip
    parser.add_argument("--fields", nargs="+", choices=data.NAMES, default=FIELDS)
    options = parser.parse_args()
    try:
        wanted = checked(options)
    except UserError as error:
        raise SystemExit(f"reductions: {error}") from None
    calls.measure(
        options.json, wanted, job_list(options), seconds=options.seconds, mpiexec=options.mpiexec
    )


if __name__ == "__main__":
    main()
