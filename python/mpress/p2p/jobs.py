"""Starts the ranks of a benchmark, and sums up what they measured."""

from __future__ import annotations

import json
import math
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpress import codec_bench
from mpress.p2p import nccl

Row = dict[str, Any]

COLLECTIVES = ("bcast", "scatter", "gather", "allgather", "alltoall")

BASELINES = ("plain", "host", "copy", "peer-copy", "nccl", "mpi", "messages")
"""Paths that are no codec's:
plain  the program copies to pageable memory of the host, and MPI sends that
host   MPI alone, between buffers of the host
copy   one copy out of the GPU and one into it, the slower counts; pinned memory, no MPI
peer-copy   one copy from GPU to GPU, no MPI; left out where they do not reach each other
nccl   NCCL's send and receive, or its collective call; left out where it fails
Of collective calls:
mpi       MPI's own; of device memory staged in the host's
messages  the same blocks by MPI_Irecv and MPI_Isend, raw"""

CHUNKED = "@"
"""Of a path: a spec, this, and the bytes of a chunk (`mpress_chunk`)."""

TRANSPORTS = ("mpi", "shm", "tcp")
"""What the host's MPI would take, its shared memory, or TCP."""

LINKS = ("auto", "mpi", "peer", "host")
"""Of messages between GPUs of a host: MPRESS_LINK."""

JOBS = ("forced", "sequential", "auto")
"""Every codec is used whatever the policy thinks; also in one piece, so that nothing overlaps; the
policy decides."""

_FORCED = ("--force", "--threshold", "0")
_MOST = 0.9
_SHARES = {"tcp": 0.9, "shm": 0.1}  # of the bytes, through the loopback: at least; at most


class JobError(RuntimeError):
    """The ranks failed; the message holds what they said."""


def transport_environment(transport: str) -> dict[str, str]:
    """What makes MPICH and Open MPI take a transport between ranks of one host; NCCL too, as far as
    that is TCP."""
    if transport == "mpi":
        return {}
    open_mpi = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_opal_warn_on_missing_libcuda": "0"}
    if transport == "shm":
        # Of Open MPI 5 the name is sm, and vader still means that.
        return open_mpi | {"OMPI_MCA_btl": "vader,self", "MPIR_CVAR_NOLOCAL": "0"}
    names = [name for _, name in socket.if_nameindex()]
    only_loopback = {"OMPI_MCA_btl_tcp_if_include": "lo"} if names == ["lo"] else {}
    return open_mpi | only_loopback | nccl.SOCKETS | {
        "OMPI_MCA_btl": "tcp,self",
        "MPIR_CVAR_NOLOCAL": "1",
        "UCX_TLS": "tcp,self",  # MPICH's and Open MPI's UCX
        "FI_PROVIDER": "tcp",  # MPICH's libfabric, where it has no UCX
    }  # fmt: skip


def run(
    plan: Mapping[str, Any],
    job: str,
    *,
    transport: str = "mpi",
    link: str | None = None,
    mpiexec: str | None = None,
    environment: Mapping[str, str | None] | None = None,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> dict[str, Any]:
    """Runs a plan on its ranks under `mpress run`, as one of JOBS. Returns what the worker wrote.

    plan         benchmark (latency, bandwidth, bibandwidth, COLLECTIVES); ranks, where they are
                 not two: not of latency and bandwidth; from, to (host, device); window;
                 warmup; repeat, and seconds: how many rounds of a case there are at most, and how
                 long they take, but for the least number of them; files (name: .npy); cases (data,
                 bytes, paths, and what replaces the plan's warmup, repeat, seconds; check false
                 leaves out the look at what arrived)
    link         one of LINKS; None leaves it to the environment
    program      arguments of Python that are the worker, for tests
    environment  of the launcher, beside what the transport needs; None removes a variable

    Raises JobError.
    """
    with tempfile.TemporaryDirectory(prefix="mpress-bench-") as folder:
        plan_file, out = Path(folder) / "plan.json", Path(folder) / "out.json"
        plan_file.write_text(json.dumps(plan))
        command = [sys.executable, "-m", "mpress", "run", "-n", str(plan.get("ranks", 2))]
        command += [] if mpiexec is None else ["--mpiexec", mpiexec]
        command += [] if job == "auto" else _FORCED
        # mpi4py.run ends the job where a rank fails: the others would wait for ever.
        command += ["--", sys.executable, "-m", "mpi4py", *program, str(plan_file), str(out)]
        settings = {"MPI4PY_RC_THREAD_LEVEL": "single"}
        if job == "sequential":
            settings["MPRESS_CHUNK"] = "0"
        if link is not None:
            settings["MPRESS_LINK"] = link
        env = {**os.environ, **settings, **transport_environment(transport), **(environment or {})}
        env = {name: value for name, value in env.items() if value is not None}
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0 or not out.exists():
            said = (done.stderr + done.stdout).strip()
            raise JobError(said or f"the ranks ended with status {done.returncode}")
        sys.stderr.write(done.stderr)
        return json.loads(out.read_text())


def summary(
    result: Mapping[str, Any], benchmark: str, job: str, references: Sequence[str] = ("none",)
) -> list[Row]:
    """A row a case and path: medians, and times over those of `none`, or other paths, in the same
    round."""
    ranks = result["ranks"]
    directions = ranks * (ranks - 1) if benchmark == "bibandwidth" else 1
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in result["rows"]:
        groups[row["data"], row["bytes"]].append(row)
    found = []
    for rows in groups.values():
        beside = {row["path"]: row["seconds"] for row in rows if row["path"] in references}
        found += [_summary(row, beside, directions) | {"job": job} for row in rows]
    return found


def _summary(row: Row, beside: Mapping[str, list[float]], directions: int) -> Row:
    seconds, nbytes = row["seconds"], row["bytes"]
    median = statistics.median(seconds)
    found: Row = {
        "data": row["data"], "bytes": nbytes, "path": row["path"], "seconds": median,
        "quartiles": [float(q) for q in np.quantile(seconds, (0.25, 0.75))],
        "bandwidth": directions * nbytes / median,
        "samples": len(seconds), "iterations": row["iterations"], "window": row["window"],
    }  # fmt: skip
    for name, others in beside.items():
        if name != row["path"]:
            pairs = [one / other for one, other in zip(seconds, others, strict=True)]
            found[f"over_{name}"], *found[f"over_{name}_interval"] = median_interval(pairs)
    if row["path"] not in BASELINES:
        found["check"] = row["check"]
    if row["path"] not in BASELINES and row["raw_bytes"]:
        messages = row["raw_bytes"] / nbytes
        found |= {
            "ratio": row["raw_bytes"] / row["wire_bytes"],
            "chunked": row["chunked"] / messages,
            "peer": row["peer"] / messages,
            "by_host": row.get("by_host", 0) / messages,
            "encode_seconds": row["encode_seconds"] / messages,
            "decode_seconds": row["decode_seconds"] / messages,
            "loopback_share": row["loopback_bytes"] / row["wire_bytes"],
        }
    return found


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median and its 95 % confidence interval, by order statistics: nothing is assumed of how
    the values are distributed."""
    ordered = sorted(values)
    half = math.ceil(0.98 * math.sqrt(len(ordered)))
    middle = len(ordered) // 2
    return (
        statistics.median(ordered),
        ordered[max(0, middle - half)],
        ordered[min(len(ordered) - 1, middle + half)],
    )


def transport_seen(result: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """Which way MPI's messages took, by the loopback's own counter: `seen` is tcp, shm, or None
    where there were none or the host does not tell, `right` whether that was asked for."""
    rows = [row for row in result["rows"] if row["wire_bytes"] and row["path"] not in BASELINES]
    rows = [row for row in rows if row["peer"] + row.get("by_host", 0) == 0]
    wire_bytes = sum(row["wire_bytes"] for row in rows)
    share = sum(row["loopback_bytes"] for row in rows) / wire_bytes if rows else 0.0
    seen = None
    if rows and result["sees_loopback"]:
        seen = "tcp" if share >= _SHARES["tcp"] else "shm" if share <= _SHARES["shm"] else None
    right = seen is None or asked in ("mpi", seen)
    return {"asked": asked, "seen": seen, "loopback_share": share, "right": right}


def link_seen(rows: Iterable[Row], asked: str | None) -> dict[str, Any]:
    """Which link the messages took, by mpress's own counter, from rows of summary(): `seen` is
    peer, host or mpi, or several where none had most; None where mpress counted none."""
    ways = set()
    for row in rows:
        if "peer" in row:
            shares = {"peer": row["peer"], "host": row.get("by_host", 0.0)}
            shares["mpi"] = 1 - sum(shares.values())
            ways.add(next((way for way, share in shares.items() if share > _MOST), "several"))
    seen = next(iter(ways)) if len(ways) == 1 else "several" if ways else None
    return {"asked": asked, "seen": seen}


def document(plan: Mapping[str, Any], result: Mapping[str, Any], transport: str) -> dict[str, Any]:
    """What is needed to judge the rows, which come later; ready for JSON."""
    return codec_bench.document([]) | {
        "kind": "p2p",
        **{name: plan[name] for name in ("benchmark", "from", "to")},
        "ranks": result["ranks"],
        "mpi": result["mpi"],
        "gpu": result["gpu"],
        "transport": transport_seen(result, transport),
    }
