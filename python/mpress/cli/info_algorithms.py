"""mpress info --algorithms: which algorithm serves collective calls of which sizes, and why."""

from __future__ import annotations

import itertools
from typing import Any

from rich.console import Console

from mpress.cli.console import make_table, print_facts, print_table, size_text

_MEMORY = {"host": "memory of the host", "device": "memory of GPUs"}
_MOST = 1 << 30


def print_tables(console: Console, found: dict[str, Any]) -> None:
    """Prints what job_tables.tables() returns of collective calls."""
    forced = ", which is forced" if found["forced"] else ""
    console.print(
        f"blocking calls of floats on MPI_COMM_WORLD, of {found['ranks']} ranks, "
        f"codec {found['codec']}{forced}, as all ranks decide"
    )
    if not found["calls"]:
        console.print("MPI serves all of them")
    for memory, text in _MEMORY.items():
        calls = [call for call in found["calls"] if call["memory"] == memory]
        if calls:
            _print_table(console, f"\n{text}", calls)


def _print_table(console: Console, title: str, calls: list[dict[str, Any]]) -> None:
    printed = make_table(title, "call", ("bytes", "algorithm", "schedule", "links alone, us"))
    for column in (1, 2, 3):
        printed.columns[column].justify = "left"
    reasons: dict[str, dict[str, None]] = {}
    for call in calls:
        for number, row in enumerate(_merged(call["ranges"])):
            last = "" if row["last"] == _MOST else f" below {size_text(row['last'] + 4)}"
            printed.add_row(
                "" if number else call["call"],
                f"{size_text(row['first'])} ..{last}",
                row["algorithm"],
                row["schedule"],
                _times(row["seconds"]),
            )
        for refusal in itertools.chain(*(row["refusals"] for row in call["ranges"])):
            reasons.setdefault(refusal["algorithm"], {})[refusal["why_not"]] = None
    print_table(console, printed)
    if reasons:
        facts = {algorithm: "; ".join(why) for algorithm, why in reasons.items()}
        print_facts(console, "algorithms that serve none of some sizes, and why", facts)


def _merged(ranges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ranges that differ in the reasons alone as one."""
    found: list[dict[str, Any]] = []
    for row in ranges:
        if found and all(found[-1][key] == row[key] for key in ("algorithm", "schedule")):
            seconds = [found[-1]["seconds"][0], row["seconds"][1]]
            found[-1] = {**found[-1], "last": row["last"], "seconds": seconds}
        else:
            found.append(row)
    return found


def _times(seconds: list[float]) -> str:
    """Of the first and the last size of a range; where there is no last one, of 1G."""
    return " .. ".join(f"{one * 1e6:.3g}" for one in seconds) if seconds[0] else ""
