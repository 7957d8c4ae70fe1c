"""Starts the ranks of a benchmark, and sums up what they measured."""

from __future__ import annotations

import json
import math
import os
import signal
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

from mpress import codec_bench, links
from mpress.p2p import nccl

Row = dict[str, Any]

COLLECTIVES = ("bcast", "scatter", "gather", "allgather", "alltoall")

REDUCTIONS = ("allreduce", "reduce", "reduce_scatter")

MOVING = (*COLLECTIVES, "alltoallv")
"""Those that move data; blocks of the last differ in size (blocks.counts)."""

OPERATIONS = (*MOVING, *REDUCTIONS)
"""Collective calls that are measured."""

BASELINES = ("plain", "host", "copy", "peer-copy", "nccl", "mpi")
"""Paths that are no codec's:
plain  the program copies to pageable memory of the host, and MPI sends that; of collective calls
       MPI's own call on that memory
host   MPI alone, between buffers of the host
copy   one copy out of the GPU and one into it, the slower counts; pinned memory, no MPI
peer-copy   one copy from GPU to GPU, no MPI; left out where they do not reach each other
nccl   NCCL's send and receive, or its collective call; left out where it fails
mpi    of collective calls, MPI's own; of device memory, unless MPI takes that, by way of memory of
       the host in which mpress stages it"""

OF_MPI = ("plain", "mpi")
"""Those whose collective call is MPI's."""

FORMS = ("scattered", "pairwise")
"""The blocks of a collective call as messages: all at once by MPI_Irecv and MPI_Isend; in rounds of
MPI_Sendrecv. Of a path: one of these, FORM, and a spec; without what a rank has for itself."""

SUM_FORMS = {
    "allreduce": ("two-shot", "ring", "doubling"),
    "reduce": ("two-shot", "binomial"),
    "reduce_scatter": ("two-shot", "ring", "halving"),
}
"""The rounds of an algorithm as messages, by MPI_Irecv and MPI_Isend, and an addition where they
come: the codec serves each hop, as in gZCCL, so nothing bounds the error of the result. Paths as of
FORMS."""

STAGED = "host-"
"""In front of one of SUM_FORMS: all of it in memory of the host, between a copy out of the GPU and
one into it."""

FORM = "/"

TIMES = ("encode_seconds", "decode_seconds", "wait_seconds")

PARTS = ("copy_seconds", "sum_seconds")
"""What the worker itself does beside the calls, of a call: copies between the GPU and the host, and
additions, of STAGED, SUM_FORMS and `plain`."""

CHUNKED = "@"
"""Of a path: a spec, this, and the bytes of a chunk (`mpress_chunk`)."""

TRANSPORTS = ("mpi", "shm", "tcp")
"""What the host's MPI would take, its shared memory, or TCP."""

LINKS = ("auto", "mpi", *links.BY_NAME)
"""Of messages between GPUs of a host: MPRESS_LINK."""

LINK_COUNTERS = {name: "peer" if name == "peer" else f"by_{name}" for name in links.BY_NAME}
"""What counts the messages of each link, in rows of results."""

JOBS = ("forced", "sequential", "auto")
"""Every codec is used whatever the policy thinks; also in one piece, so that nothing overlaps; the
policy decides."""

_FORCED = ("--force", "--threshold", "0")
_ENDING_SECONDS = 3
_MOST = 0.9
_SHARES = {"tcp": 0.9, "shm": 0.1}  # of the bytes, through the loopback: at least; at most


class JobError(RuntimeError):
    """The ranks failed, or took too long; the message holds what they said. `result` is what the
    worker had written by then, or None."""

    def __init__(self, said: str, result: dict[str, Any] | None = None) -> None:
        super().__init__(said)
        self.result = result


def forms_of(op: str) -> tuple[str, ...]:
    """What a collective call is measured beside that is made of messages."""
    of_sums = SUM_FORMS.get(op)
    return (*of_sums, *(STAGED + form for form in of_sums)) if of_sums else FORMS


def form_of(path: str) -> str | None:
    """Of forms_of(), that of a path."""
    form, is_one, _ = path.partition(FORM)
    return form if is_one else None


def codec_of(path: str) -> str:
    """The spec of a path that has one."""
    return path.rpartition(FORM)[2].partition(CHUNKED)[0]


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
    # UCX sends pieces of 8 KB, which take a processor longer than the link; an MPICH of both has
    # libfabric, too. One that has no choice ignores that.
    faster = {
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "UCX_TCP_TX_SEG_SIZE": "256k",
        "UCX_TCP_RX_SEG_SIZE": "256k",
    }
    faster = {name: os.environ.get(name, value) for name, value in faster.items()}
    return open_mpi | only_loopback | nccl.SOCKETS | faster | {
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
    nccl_transport: str | None = None,
    most_seconds: float | None = None,
    timeline: Path | None = None,
) -> dict[str, Any]:
    """Runs a plan on its ranks under `mpress run`, as one of JOBS. Returns what the worker wrote.

    plan         benchmark (latency, bandwidth, bibandwidth, OPERATIONS); ranks, where they are
                 not two: not of latency and bandwidth; from, to (host, device); window;
                 warmup; repeat, and seconds: how many rounds of a case there are at most, and how
                 long they take, but for the least number of them; limit: seconds after which no
                 case begins; files (name: .npy); cases (data, bytes, paths, and what replaces the
                 plan's warmup, repeat, seconds, and its operation: op; check false leaves out the
                 look at what arrived)
    link         one of LINKS; None leaves it to the environment
    program      arguments of Python that are the worker, for tests
    environment  of the launcher, beside what the transport needs; None removes a variable
    nccl_transport  of nccl.TRANSPORTS; None: TCP where that is the transport, else NCCL's choice
    most_seconds    after which the ranks are ended
    timeline        a file, for what `mpress run --trace` writes

    Raises JobError.
    """
    with tempfile.TemporaryDirectory(prefix="mpress-bench-") as folder:
        plan_file, out = Path(folder) / "plan.json", Path(folder) / "out.json"
        plan_file.write_text(json.dumps(plan))
        command = [sys.executable, "-m", "mpress", "run", "-n", str(plan.get("ranks", 2))]
        command += [] if mpiexec is None else ["--mpiexec", mpiexec]
        command += [] if job == "auto" else _FORCED
        command += [] if timeline is None else ["--trace", str(timeline)]
        # mpi4py.run ends the job where a rank fails: the others would wait for ever.
        command += ["--", sys.executable, "-m", "mpi4py", *program, str(plan_file), str(out)]
        settings = {"MPI4PY_RC_THREAD_LEVEL": "single"}
        if job == "sequential":
            settings["MPRESS_CHUNK"] = "0"
        if link is not None:
            settings["MPRESS_LINK"] = link
        of_nccl = nccl.environment(nccl_transport) if nccl_transport else {}
        env = {**os.environ, **settings, **transport_environment(transport), **of_nccl,
               **(environment or {})}  # fmt: skip
        env = {name: value for name, value in env.items() if value is not None}
        status, said = _execute(command, env, most_seconds)
        result = json.loads(out.read_text()) if out.exists() else None
        if status != 0 or result is None:
            raise JobError(said.strip() or f"the ranks ended with status {status}", result)
        return result


def _execute(command: Sequence[str], env: dict[str, str], most: float | None) -> tuple[int, str]:
    """Its exit status and what it said; standard error goes on where it ends well."""
    # Of a session of its own, all processes can be ended; else they are the terminal's.
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, start_new_session=most is not None,
    ) as process:  # fmt: skip
        try:
            printed, complained, has_ended = communicate(process, most)
        except BaseException:
            process.kill()
            raise
    if not has_ended:
        return 124, f"ended after {most:.0f} s\n{complained}{printed}"
    if process.returncode == 0:
        sys.stderr.write(complained)
    return process.returncode, complained + printed


def communicate(process: subprocess.Popen[str], most: float | None) -> tuple[str, str, bool]:
    """What it writes to its standard output and error, and whether it ended within `most` seconds;
    else it is ended, and, where it does not end soon, all of the session that it leads."""
    try:
        return (*process.communicate(timeout=most), True)
    except subprocess.TimeoutExpired:
        process.terminate()
    try:
        return (*process.communicate(timeout=_ENDING_SECONDS), False)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "", "", False


def summary(
    result: Mapping[str, Any], benchmark: str, job: str, references: Sequence[str] = ("none",)
) -> list[Row]:
    """A row a case and path: medians, and times over those of `none`, or other paths, in the same
    round: `over_PATH`, and `over_FORM` for those of forms_of() with the same codec."""
    ranks = result["ranks"]
    directions = ranks * (ranks - 1) if benchmark == "bibandwidth" else 1
    groups: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    for row in result["rows"]:
        groups[row.get("op", ""), row["data"], row["bytes"]].append(row)
    found = []
    for rows in groups.values():
        seconds = {row["path"]: row["seconds"] for row in rows}
        beside = {path: times for path, times in seconds.items() if path in references}
        for row in rows:
            forms = {
                form: times
                for path, times in seconds.items()
                if (form := form_of(path)) and path == form + FORM + row["path"]
            }
            found.append(_summary(row, beside | forms, directions) | {"job": job})
    return found


def _summary(row: Row, beside: Mapping[str, list[float]], directions: int) -> Row:
    seconds, nbytes = row["seconds"], row["bytes"]
    median = statistics.median(seconds)
    op = {"op": row["op"]} if "op" in row else {}
    found: Row = {
        **op, "data": row["data"], "bytes": nbytes, "path": row["path"], "seconds": median,
        "interval": list(median_interval(seconds)[1:]),
        "quartiles": [float(q) for q in np.quantile(seconds, (0.25, 0.75))],
        "bandwidth": directions * nbytes / median,
        "samples": len(seconds), "iterations": row["iterations"], "window": row["window"],
    }  # fmt: skip
    for name, others in beside.items():
        if name != row["path"]:
            pairs = [one / other for one, other in zip(seconds, others, strict=True)]
            found[f"over_{name}"], *found[f"over_{name}_interval"] = median_interval(pairs)
    if op:
        parts = {name: row.get("most", {}).get(name, 0) / row["calls"] for name in PARTS}
        found |= {name: seconds for name, seconds in parts.items() if seconds > 0}
    if row["path"] not in BASELINES:
        found["check"] = row["check"]
    if row["path"] not in BASELINES and row["raw_bytes"]:
        shares = {way: row[way] / row["sent"] for way in ("chunked", *LINK_COUNTERS.values())}
        found |= {
            "ratio": row["raw_bytes"] / row["wire_bytes"],
            **shares,
            "way": _way(shares),
            "loopback_share": row["loopback_bytes"] / row["wire_bytes"],
        }
        # Of a message; or of a call, on the rank that takes most.
        for name in TIMES:
            found[name] = row["most"][name] / row["calls"] if op else row[name] / row["sent"]
    return found


def _way(shares: Mapping[str, float]) -> str:
    """Of most messages: a link's name, mpi, or several where none had most."""
    ways = {name: shares[counter] for name, counter in LINK_COUNTERS.items()}
    ways["mpi"] = 1 - sum(ways.values())
    return next((way for way, share in ways.items() if share > _MOST), "several")


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
    """Which way MPI's messages took: `seen` is tcp where the loopback's own counter saw them (MPICH
    that is told not to share memory says that its ranks are apart), otherwise network between
    hosts, shm within one, and None where there were none or the host does not tell; `right` is
    whether that was asked for."""
    rows = [row for row in result["rows"] if row["wire_bytes"] and row["path"] not in BASELINES]
    rows = [row for row in rows if not any(row[counter] for counter in LINK_COUNTERS.values())]
    wire_bytes = sum(row["wire_bytes"] for row in rows)
    share = sum(row["loopback_bytes"] for row in rows) / wire_bytes if rows else 0.0
    seen = None
    if share >= _SHARES["tcp"] and result["sees_loopback"]:
        seen = "tcp"
    elif result["peer"] == "other-host":
        seen = "network"
    elif rows and result["sees_loopback"]:
        seen = "shm" if share <= _SHARES["shm"] else None
    fitting = {"network": ("mpi", "tcp")}.get(seen, ("mpi", seen))
    right = seen is None or asked in fitting
    return {"asked": asked, "seen": seen, "loopback_share": share, "right": right}


def link_seen(rows: Iterable[Row], asked: str | None) -> dict[str, Any]:
    """Which link the messages took, by mpress's own counter, from rows of summary(): `seen` is
    peer, host or mpi, or several where none had most; None where mpress counted none."""
    ways = {row["way"] for row in rows if "way" in row}
    seen = next(iter(ways)) if len(ways) == 1 else "several" if ways else None
    return {"asked": asked, "seen": seen}


def document(
    plan: Mapping[str, Any],
    result: Mapping[str, Any],
    transport: str,
    nccl_transport: str | None = None,
) -> dict[str, Any]:
    """What is needed to judge the rows, which come later; ready for JSON."""
    return codec_bench.document([]) | {
        "kind": "p2p",
        **{name: plan[name] for name in ("benchmark", "from", "to")},
        "ranks": result["ranks"],
        "mpi": result["mpi"],
        "gpu": result["gpu"],
        "gpu_aware": result["gpu_aware"],
        "transport": transport_seen(result, transport),
        "nccl": nccl_transport or ("socket" if transport == "tcp" else "nvlink"),
    }
