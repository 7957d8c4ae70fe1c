"""Measure collective calls into bench/results/collectives-h200.json: python bench/collectives.py
[--seconds S].

A job of ranks for each link, forced codecs and `auto` apart, measures all operations and sizes; in
it all paths take turns: mpress with each codec, the same blocks as messages (all at once, and in
rounds of MPI_Sendrecv), copies out and in around the MPI's own call, the MPI's own call, and NCCL,
by what is like the link. bench/report.py makes docs/performance.md and
docs/dev/results-collectives.md of the results.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import calls
from calls import MOST_CHECKED, Job, Row

from mpress.cli.errors import UserError, checked_bytes, checked_spec
from mpress.p2p import data, jobs

RESULTS = Path(__file__).resolve().parent / "results"
OPS = ("alltoall", "alltoallv", "allgather", "bcast", "scatter", "gather")
BY_DATA = ("alltoall", "allgather", "bcast")
SIZES = ("256K", "4M", "64M", "256M")
SPECS = ("zfp:4", "zfp:24", "szp:rel=1e-3", "mpc")
_BY_DATA_BYTES = 64 << 20


@dataclass(frozen=True)
class Wanted(calls.Wanted):
    """Sizes are bytes of the largest buffer of a rank: the whole of a broadcast, all blocks of
    others. Fields after the first are measured at one size, of BY_DATA."""

    kind = "collectives"

    def paths(self, op: str, job: Job) -> list[str]:
        beside = self.beside()
        if job.kind == "auto":
            return ["none", "auto", "scattered/none", *beside]
        beside += ["plain"] if self.memory == "device" else []
        own = ["none", *self.specs]
        # Messages are compressed, too, where papers compare with that.
        of_forms = own if op.startswith("alltoall") else own[:1]
        return [*own, *(f"{form}/{spec}" for form in jobs.FORMS for spec in of_forms), *beside]

    def cases(self, job: Job) -> list[Row]:
        whole = self.fields[:1] if job.kind == "forced" else self.auto_fields
        wanted = [(op, field, nbytes) for field in whole
                  for nbytes in sorted(self.sizes, reverse=True) for op in self.ops]  # fmt: skip
        if job.kind == "forced":
            nbytes = max((n for n in self.sizes if n <= _BY_DATA_BYTES), default=min(self.sizes))
            wanted += [(op, field, nbytes) for field in self.fields[1:]
                       for op in self.ops if op in BY_DATA]  # fmt: skip
        return [
            {
                "op": op, "data": field, "bytes": self.block(op, nbytes),
                "paths": self.paths(op, job), "check": nbytes <= MOST_CHECKED,
            }
            for op, field, nbytes in wanted
        ]  # fmt: skip

    def block(self, op: str, nbytes: int) -> int:
        return nbytes if op == "bcast" else max(nbytes // self.ranks // 8 * 8, 8)

    def in_all(self, row: Row) -> int:
        return row["bytes"] * (1 if row["op"] == "bcast" else self.ranks)


def checked(options: argparse.Namespace) -> Wanted:
    """Raises UserError."""
    ranks, has_nccl = calls.checked_place(options)
    return Wanted(
        ranks, options.memory, options.ops,
        [checked_bytes("--sizes", text) for text in options.sizes],
        [checked_spec("--specs", text) for text in options.specs],
        options.fields, options.auto_fields, has_nccl,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    calls.add_options(parser, RESULTS / "collectives-h200.json", OPS, calls.KINDS)
    parser.add_argument("--transports", nargs="+", choices=jobs.TRANSPORTS,
                        default=calls.TRANSPORTS,
                        help="of MPI, where it carries the data")  # fmt: skip
    parser.add_argument("--sizes", nargs="+", default=SIZES,
                        help="of the largest buffer of a rank: of all its blocks")  # fmt: skip
    parser.add_argument("--specs", nargs="+", default=SPECS, help="codecs that are forced")
    parser.add_argument("--fields", nargs="+", choices=data.NAMES, default=("wave", "turb", "rand"),
                        help="data; those after the first at one size, of up to 64M, and not of "
                             "all operations")  # fmt: skip
    options = parser.parse_args()
    try:
        wanted = checked(options)
    except UserError as error:
        raise SystemExit(f"collectives: {error}") from None
    job_list = calls.all_jobs(options.jobs, options.links, options.transports, wanted.memory)
    calls.measure(options.json, wanted, job_list, seconds=options.seconds, mpiexec=options.mpiexec)


if __name__ == "__main__":
    main()
