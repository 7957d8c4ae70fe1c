"""Which way messages take between ranks: python -m mpress.p2p.ways PLAN.json OUT.json.

Ranks under `mpress run` send each other messages from each kind of memory, raw and compressed;
rank 0 writes how long they took and what mpress counted of them. check() starts them, and
`mpress info --gpu` prints what came out.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from mpress import _core, trace
from mpress.p2p import data, memory
from mpress.p2p.message import codec_comm, message

_OPENING = 12  # messages until links are open, and GPUs awake
_SAMPLES = 7
_SAMPLE_SECONDS = 0.02
_MOST_TURNS = 50
_TAG = 2
_FIELD = "wave"

Allocators = Mapping[str, Callable[[int, int], Any]]


def _pairs(hosts: list[str]) -> list[tuple[int, int]]:
    """Rank 0 with each other rank of its host, and with the first of every other host."""
    return [
        (0, rank)
        for rank, host in enumerate(hosts)
        if rank > 0 and (host == hosts[0] or hosts.index(host) == rank)
    ]


def _counted(peer: int) -> Counter[tuple[str, str, str | None]]:
    """Messages to and from a rank so far, by direction, way and detour."""
    record = trace.own_record()
    found: Counter[tuple[str, str, str | None]] = Counter()
    for row in record.rows if record else []:
        if row["peer"] == peer and row["direction"] != "complete":
            found[row["direction"], row["way"], row["detour"]] += row["messages"]
    return found


def _most(counted: Counter[tuple[str, str, str | None]], direction: str, field: int) -> str | None:
    """The way (1) or detour (2) of most messages of a direction."""
    of_direction = [(count, key[field]) for key, count in counted.items() if key[0] == direction]
    return max(of_direction, key=lambda one: one[0])[1] if of_direction else None


def _exchange(comm: MPI.Comm, peer: int, out: Any, into: Any, values: np.ndarray) -> dict[str, Any]:
    """A message to and fro, the lower rank first; its one-way time, and what was counted."""
    out.write(values)
    outgoing, incoming = (message(buffer.address, values) for buffer in (out, into))

    def turns(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            if comm.rank < peer:
                comm.Send(outgoing, peer, _TAG)
                comm.Recv(incoming, peer, _TAG)
            else:
                comm.Recv(incoming, peer, _TAG)
                comm.Send(outgoing, peer, _TAG)
        return (time.perf_counter() - begin) / count / 2

    turns(_OPENING)
    once = min(turns(1) for _ in range(3))
    count = max(1, min(_MOST_TURNS, int(_SAMPLE_SECONDS / once / 2)))
    count = min(count, comm.sendrecv(count, peer, source=peer))
    before = _counted(peer)
    seconds = statistics.median(turns(count) for _ in range(_SAMPLES))
    return {"seconds": seconds, "counted": _counted(peer) - before}


def _rows(
    comm: MPI.Comm, pair: tuple[int, int], exchanged: list[Any], about: dict[str, Any]
) -> list[dict[str, Any]]:
    """A row for each direction of a pair; `exchanged`: what each rank found."""
    return [
        {
            "from": source, "to": target, **about, "seconds": exchanged[pair[0]]["seconds"],
            "way": _most(exchanged[target]["counted"], "receive", 1),
            "detour": _most(exchanged[source]["counted"], "send", 2),
        }
        for source, target in (pair, pair[::-1])
    ]  # fmt: skip


def run(plan: dict[str, Any], allocators: Allocators, device: int) -> dict[str, Any] | None:
    """What rank 0 writes. `allocators`: of each kind of memory, by the rank's device and bytes."""
    comm = MPI.COMM_WORLD
    hosts = comm.allgather(socket.gethostname())
    ranks = comm.allgather({"host": socket.gethostname(), "device": device})
    values = data.make(_FIELD, max(plan["sizes"]), "f32")
    comms = {spec: codec_comm(comm, spec) for spec in plan["specs"]}
    rows = []
    for pair in _pairs(hosts):
        peer = "same-host" if hosts[pair[0]] == hosts[pair[1]] else "other-host"
        for kind, allocate in allocators.items():
            for spec, one in comms.items():
                for nbytes in plan["sizes"]:
                    found = None
                    if comm.rank in pair:
                        out, into = allocate(device, nbytes), allocate(device, nbytes)
                        other = pair[1 - pair.index(comm.rank)]
                        found = _exchange(one, other, out, into, data.cut(values, nbytes))
                    exchanged = comm.gather(found)
                    about = {"peer": peer, "memory": kind, "spec": spec, "bytes": nbytes}
                    if exchanged is not None:
                        rows += _rows(comm, pair, exchanged, about)
    if plan.get("calls"):
        _call(comm, allocators, device, values)
    record = trace.own_record()
    said = comm.gather(record.said if record else [])
    return {
        "mpi": _core.mpi_name(MPI.Get_library_version()),
        "gpu_aware": bool(record and record.gpu_aware),
        "ranks": ranks,
        "rows": rows,
        "said": said,
    }


def _call(comm: MPI.Comm, allocators: Allocators, device: int, values: np.ndarray) -> None:
    """Collective calls, in which ranks tell each other what their devices reach."""
    for allocate in allocators.values():
        buffer, sum_of_all = allocate(device, values.nbytes), allocate(device, values.nbytes)
        buffer.write(values)
        for _ in range(4):
            comm.Bcast(message(buffer.address, values))
            comm.Allreduce(message(buffer.address, values), message(sum_of_all.address, values))


def main(allocators: Allocators | None = None, device: int | None = None) -> None:
    comm = MPI.COMM_WORLD
    plan = comm.bcast(json.loads(Path(sys.argv[1]).read_text()) if comm.rank == 0 else None)
    if allocators is None:
        allocators = {"host": lambda _, nbytes: memory.HostBuffer(nbytes)}
        # By Split_type each rank is alone where the MPI uses no shared memory.
        hosts = comm.allgather(MPI.Get_processor_name())
        if min(comm.allgather(memory.devices())) > 0:
            device = hosts[: comm.rank].count(hosts[comm.rank]) % memory.devices()
            memory.use_device(device)
            allocators |= {
                "device": lambda _, nbytes: memory.CudaBuffer(nbytes),
                "pool": lambda _, nbytes: memory.PoolBuffer(nbytes),
            }
    result = run(plan, allocators, device or 0)
    if comm.rank == 0:
        Path(sys.argv[2]).write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
