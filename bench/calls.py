"""What bench/collectives.py and bench/reductions.py share: jobs of ranks that measure collective
calls, all paths of a case by turns, and a file of results that is whole after each job.

A job that fails is noted in the file, with what it had measured by then.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mpress import codec_bench
from mpress.cli.errors import UserError
from mpress.p2p import data, jobs, memory, nccl

LINKS = ("auto", "host", "mpi")
TRANSPORTS = ("mpi", "tcp")
KINDS = ("forced", "auto")
TIMELINE = "timeline"
"""The kind of a job whose calls are forced, and traced: it tells where their time goes."""
NCCL = {"auto": "nvlink", "peer": "nvlink", "host": "shm", "mpi": "shm"}
REFERENCES = ("none", "mpi", "nccl", "plain")
MOST_CHECKED = 16 << 20  # bytes in all: the host decodes them again, which takes long
_MOST_GENERATED = 32 << 20  # bytes; larger blocks repeat it
_START_SECONDS = 5
_END_SECONDS = 5
_SAMPLED = 0.5  # of a job's time; the rest is for calls before those that count, and for checks
_REPEAT = 41

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Ranks that are started once; a link is one of jobs.LINKS, or None for memory of the host."""

    kind: str
    link: str | None
    transport: str

    @property
    def nccl(self) -> str | None:
        """What it may take: the link's likes."""
        if self.link is None:
            return None
        return "socket" if self.is_tcp else NCCL[self.link]

    @property
    def is_tcp(self) -> bool:
        """Whether data goes by TCP."""
        return self.link in ("mpi", None) and self.transport == "tcp"

    @property
    def facts(self) -> Row:
        return {
            "job": self.kind, "link": self.link, "transport": self.transport, "nccl": self.nccl,
        }  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """What each job measures. Those that it is of know the cases, and what sizes are bytes of."""

    ranks: int
    memory: str
    ops: Sequence[str]
    sizes: Sequence[int]
    specs: Sequence[str]
    fields: Sequence[str] = ("wave",)
    auto_fields: Sequence[str] = ("wave", "bits")
    has_nccl: bool = False

    kind: ClassVar[str]  # of the document

    def beside(self) -> list[str]:
        """What all kinds of jobs measure beside mpress."""
        return ["mpi"] + (["nccl"] if self.has_nccl else [])

    def cases(self, job: Job) -> list[Row]:
        """The first are the most important: time may end before the others."""
        raise NotImplementedError

    def in_all(self, row: Row) -> int:
        """Bytes of the largest buffer of a rank."""
        raise NotImplementedError

    def weight(self, job: Job) -> float:
        """How much of the time a job gets, beside others."""
        return paths_of(self.cases(job))

    def timelines(self, job: Job, events: Sequence[Row]) -> list[Row]:
        """Of calls, from those of all ranks; of jobs that trace."""
        raise NotImplementedError

    def with_data(self, files: Mapping[str, str]) -> Wanted:
        """The same, where more is to be known of the data that was written."""
        return self


def all_jobs(
    kinds: Sequence[str], links: Sequence[str], transports: Sequence[str], memory: str
) -> list[Job]:
    """Forced codecs of all links first. A transport tells apart what MPI carries."""
    ways: list[tuple[str | None, str]] = []
    if memory == "host":
        ways = [(None, transport) for transport in transports]
    else:
        for link in links:
            ways += [(link, t) for t in (transports if link == "mpi" else ("mpi",))]
    return [Job(kind, *way) for kind in kinds for way in ways]


def write_data(folder: Path, names: Sequence[str], nbytes: int) -> dict[str, str]:
    xp: Any = np
    if memory.devices():
        with suppress(ImportError):
            import cupy as xp
    files = {}
    for name in names:
        files[name] = str(folder / f"{name}.npy")
        np.save(files[name], data.make(name, max(nbytes, data.LEAST_BYTES), "f32", xp))
    return files


def measure(
    out: Path,
    wanted: Wanted,
    job_list: Sequence[Job],
    *,
    seconds: float,
    repeat: int = _REPEAT,
    mpiexec: str | None = None,
    environment: Mapping[str, str | None] | None = None,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> Row:
    """All jobs, within `seconds` as a whole; writes `out` after each. `program` and `environment`
    are those of jobs.run."""
    end = time.monotonic() + seconds
    document = codec_bench.document([]) | {
        "kind": wanted.kind, "gpu": next(iter(memory.names()), None), "gpus": memory.devices(),
        "ranks": wanted.ranks, "memory": wanted.memory, "mpi": None, "seconds": seconds,
        "specs": list(wanted.specs), "jobs": [], "timelines": [],
    }  # fmt: skip
    document["commit"] = os.environ.get("COMMIT") or document["commit"]
    names = dict.fromkeys([*wanted.fields, *wanted.auto_fields])
    with tempfile.TemporaryDirectory() as folder:
        files = write_data(Path(folder), list(names), min(max(wanted.sizes), _MOST_GENERATED))
        wanted = wanted.with_data(files)
        plan = {
            "benchmark": wanted.ops[0], "ranks": wanted.ranks, "window": 1, "files": files,
            "from": wanted.memory, "to": wanted.memory, "warmup": 4, "repeat": repeat,
        }  # fmt: skip
        how = {"mpiexec": mpiexec, "environment": environment, "program": program}
        for number, job in enumerate(job_list):
            left = end - time.monotonic()
            weights = [wanted.weight(one) for one in job_list[number:]]
            sampled = left - _START_SECONDS * len(weights)
            share = _START_SECONDS + sampled * weights[0] / sum(weights)
            result, facts = run(job, plan, wanted, left, share, how)
            document["jobs"].append(facts)
            document["mpi"] = document["mpi"] or result.get("mpi")
            events, rows = result.pop("events", None), []
            if events is not None:
                document["timelines"] += wanted.timelines(job, events)
            elif result:
                rows = jobs.summary(result, wanted.ops[0], job.kind, REFERENCES)
                rows = [row | job.facts | {"in_all": wanted.in_all(row)} for row in rows]
            document["rows"] += rows
            out.write_text(json.dumps(document, indent=1) + "\n")
            print_rows(facts, rows)
    return document


def run(
    job: Job, plan: Row, wanted: Wanted, left: float, share: float, how: Mapping[str, Any]
) -> tuple[Row, Row]:
    """What a job's worker wrote, and what is to be known of the job. It has `share` of the seconds
    that are left."""
    facts = job.facts | {"failure": None, "left_out": []}
    cases = wanted.cases(job)
    limit = share - _START_SECONDS
    if limit <= 0:
        return {}, facts | {"failure": "no time was left", "left_out": named(cases)}
    each = _SAMPLED * limit / paths_of(cases)
    begin = time.monotonic()
    traced = Path(plan["files"][cases[0]["data"]]).with_name("timeline.json")
    is_traced = job.kind == TIMELINE
    try:
        result = jobs.run(
            plan | {"limit": limit, "cases": [
                case | {"seconds": each * len(case["paths"])} for case in cases
            ]},
            "forced" if is_traced else job.kind, transport=job.transport, link=job.link,
            nccl_transport=job.nccl, timeline=traced if is_traced else None,
            most_seconds=max(min(left - _END_SECONDS, 1.5 * share + _START_SECONDS), 1), **how,
        )  # fmt: skip
        if is_traced:
            result["events"] = json.loads(traced.read_text())["traceEvents"]
    except jobs.JobError as error:
        result = error.result or {}
        done = {(row["op"], row["data"], row["bytes"]) for row in result.get("rows", ())}
        missing = [c for c in cases if (c["op"], c["data"], c["bytes"]) not in done]
        facts |= {"failure": str(error)[-2000:], "left_out": named(missing)}
    else:
        facts["left_out"] = named(result["left_out"])
    if result:
        facts |= {name: result[name] for name in ("mpi", "gpu_aware", "ranks")}
        facts["transport_seen"] = jobs.transport_seen(result, job.transport)
    return result, facts | {"seconds": round(time.monotonic() - begin, 1)}


def paths_of(cases: Sequence[Row]) -> int:
    return sum(len(case["paths"]) for case in cases)


def named(cases: Sequence[Row]) -> list[Row]:
    return [{name: case[name] for name in ("op", "data", "bytes")} for case in cases]


def print_rows(facts: Row, rows: Sequence[Row]) -> None:
    print(", ".join(f"{name} {facts.get(name)}" for name in
                    ("job", "link", "transport", "nccl", "seconds", "failure")))  # fmt: skip
    for row in rows:
        check = row.get("check")
        arrived = "" if check is None or check["kept"] else " DID NOT ARRIVE"
        overs = " ".join(f"{row.get(f'over_{name}', 1):7.3f}" for name in REFERENCES)
        times = " ".join(f"{row.get(name, 0) * 1e6:9.1f}" for name in jobs.TIMES)
        print(f"{row['op']:9} {row['data']:5} {row['bytes']:10} {row['path']:24} "
              f"{row.get('way', '-'):7} {row['seconds'] * 1e6:10.1f} us, over "
              f"{' '.join(REFERENCES)}: {overs}; ratio {row.get('ratio', 1):6.2f}; {times} "
              f"({row['samples']} x {row['iterations']}){arrived}")  # fmt: skip
    for case in facts["left_out"]:
        print(f"left out: {case['op']} {case['data']} {case['bytes']}")


def add_options(
    parser: argparse.ArgumentParser, out: Path, ops: Sequence[str], kinds: Sequence[str]
) -> None:
    """Those that all drivers have."""
    parser.add_argument("--json", type=Path, default=out)
    parser.add_argument("--seconds", type=float, default=150, help="of all (default: 150)")
    parser.add_argument("--memory", choices=("device", "host"), default="device")
    parser.add_argument("--ranks", type=int, help="default: as many as GPUs; 4 of host memory")
    parser.add_argument("--ops", nargs="+", choices=ops, default=ops)
    parser.add_argument("--links", nargs="+", choices=jobs.LINKS, default=LINKS)
    parser.add_argument("--jobs", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--auto-fields", nargs="+", choices=data.NAMES, default=("wave", "bits"),
                        help="data of auto, all at all sizes")  # fmt: skip
    parser.add_argument("--mpiexec", help="launcher, with its own options")


def checked_place(options: argparse.Namespace) -> tuple[int, bool]:
    """How many ranks, and whether NCCL can serve them. Raises UserError."""
    on_device = options.memory == "device"
    ranks = options.ranks or (memory.devices() if on_device else 4)
    if on_device and memory.devices() < 2:
        raise UserError("--memory device: expected two GPUs or more")
    if ranks < 2:
        raise UserError(f"--ranks {ranks}: expected 2 ranks or more")
    has_nccl = on_device and memory.devices() >= ranks and nccl.library() is not None
    if on_device and not has_nccl:
        print("without NCCL, which takes its library and a GPU a rank")
    return ranks, has_nccl
