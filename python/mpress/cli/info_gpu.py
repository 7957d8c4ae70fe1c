"""mpress info --gpu: which way messages take between GPUs, how fast it is, and why it is that."""

from __future__ import annotations

import json
import socket
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mpress.cli.console import make_table, print_facts, print_table, size_text
from mpress.cli.errors import UserError
from mpress.cli.launch import backend, required_preload_library
from mpress.cli.ways import NOTES, WAYS
from mpress.p2p import jobs, memory

SIZES = (64 << 10, 1 << 20, 32 << 20)
SPECS = ("none", "mpc")
_MEMORY = {"host": "host", "device": "GPU", "pool": "GPU, pool"}
_PEERS = {"same-host": "same host", "other-host": "other host"}
_MOST_RANKS = 8


def show(
    console: Console,
    ranks: int | None,
    link: str | None,
    mpiexec: str | None,
    json_file: Path | None,
) -> None:
    """Prints what this process sees of GPUs; then starts ranks, and prints their messages."""
    names = memory.names()
    _print_gpus(console, names)
    if backend("cuda") is None:
        raise UserError("--gpu: this mpress was built without CUDA: install nvcc, and it, again")
    if not names:
        raise UserError("--gpu: no GPU was found: no message is in memory of one")
    required_preload_library()
    ranks = ranks or max(2, min(len(names), _MOST_RANKS))
    try:
        found = check(ranks, link=link, mpiexec=mpiexec)
    except jobs.JobError as error:
        raise UserError(str(error)) from None
    print_check(console, found)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n")


def check(ranks: int, **how: Any) -> dict[str, Any]:
    """Messages between rank 0 and all others of its host, and the first of every other host.

    `how` goes to jobs.run. Returns `mpi`, `gpu_aware`, `ranks` (host and GPU of each), `said` (what
    each rank said meanwhile), and `rows`: of a direction of a pair, a kind of memory, a spec and a
    size, with `from`, `to`, `peer` (same-host, other-host), `memory` (host, device, pool), `spec`,
    `bytes`, `seconds` one way, `way` as the receiver counted it and `detour`, why it was no shorter
    one, as the sender did (both of mpress.trace). Raises jobs.JobError.
    """
    plan = {"ranks": ranks, "sizes": SIZES, "specs": SPECS}
    return jobs.run(plan, "forced", **{"program": ("-m", "mpress.p2p.ways"), **how})


def print_check(console: Console, found: dict[str, Any]) -> None:
    """What check() returned."""
    ranks = found["ranks"]
    takes = "takes memory of GPUs itself" if found["gpu_aware"] else "knows no GPUs"
    console.print(f"\n{found['mpi']}, which {takes}; {len(ranks)} ranks")
    if len({(rank["host"], rank["device"]) for rank in ranks}) < len(ranks):
        console.print("  several ranks use one GPU, which works for one of them at a time")
    print_table(console, _table(found["rows"]))
    ways = sorted({row["way"] for row in found["rows"] if row["way"]}, key=list(WAYS).index)
    print_facts(console, "ways", {WAYS[way]: NOTES[way] for way in ways})
    costs = _cost_of_pools(found["rows"])
    if costs:
        console.print(
            f"\nMemory of pools (cudaMallocAsync, expandable segments) cannot be shared, so it is "
            f"copied first: raw {size_text(SIZES[-1])} take {costs:.2f} times as long."
        )


def _print_gpus(console: Console, names: list[str]) -> None:
    facts = {}
    for number, name in enumerate(names):
        reached = [str(other) for other in range(len(names)) if memory.can_reach(number, other)]
        facts[str(number)] = name + (
            f", reaches {', '.join(reached)}" if reached else
            ", reaches no other" if len(names) > 1 else ""
        )  # fmt: skip
    title = f"GPUs that this process sees on {socket.gethostname()}"
    print_facts(console, title if facts else title + ": none", facts)


def _table(rows: list[dict[str, Any]]) -> Table:
    """A row for all directions of a kind that went one way: the slowest of them."""
    sizes = sorted({row["bytes"] for row in rows})
    groups: dict[tuple[str, str, str], dict[tuple[int, int], dict[int, dict[str, Any]]]]
    groups = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        groups[row["peer"], row["memory"], row["spec"]][row["from"], row["to"]][row["bytes"]] = row
    table = make_table(
        "messages between two ranks, one way; the slowest pair counts",
        "to a rank of the",
        ("memory", "data", "pairs", *(f"{size_text(size)}, us" for size in sizes),
         f"{size_text(sizes[-1])}, GB/s", "way", "why no shorter one"),
    )  # fmt: skip
    for column in (1, 2, 3, -2, -1):
        table.columns[column].justify = "left"
    for (peer, kind, spec), directions in groups.items():
        alike: dict[tuple[str, str | None], list[tuple[int, int]]] = defaultdict(list)
        for direction, by_size in directions.items():
            longest = by_size[sizes[-1]]
            alike[longest["way"], longest["detour"]].append(direction)
        for (way, detour), members in alike.items():
            times = {n: max(directions[pair][n]["seconds"] for pair in members) for n in sizes}
            data = "raw" if spec == "none" else f"by {spec}"
            pairs = ", ".join(f"{source}-{target}" for source, target in members if source < target)
            table.add_row(
                _PEERS[peer],
                _MEMORY[kind],
                data,
                pairs or ", ".join(f"{source}-{target}" for source, target in members),
                *(f"{times[n] * 1e6:.{1 if times[n] < 1e-4 else 0}f}" for n in sizes),
                f"{sizes[-1] / times[sizes[-1]] / 1e9:.1f}",
                WAYS[way] if way else "-",
                detour or "",
            )
    return table


def _cost_of_pools(rows: list[dict[str, Any]]) -> float | None:
    """Raw messages from memory that cannot be shared, over those from memory that can, where this
    makes a difference to the way."""
    times: dict[str, float] = defaultdict(float)
    for row in rows:
        if row["spec"] == "none" and row["bytes"] == SIZES[-1] and row["peer"] == "same-host":
            times[row["memory"]] = max(times[row["memory"]], row["seconds"])
    shared = any(row["memory"] == "device" and row["way"] == "direct" for row in rows)
    return times["pool"] / times["device"] if shared and times["pool"] else None
