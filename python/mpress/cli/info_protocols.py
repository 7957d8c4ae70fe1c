"""mpress info --protocols: which protocol carries messages of which sizes, and why."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from mpress import trace
from mpress.cli.console import make_table, print_facts, print_table, size_text

_PEERS = {"same-host": "of its host", "other-host": "of another host"}
_MEMORY = {"host": "memory of the host", "device": "memory of a GPU"}
_MOST = 1 << 30
_UNSUITED = 5
"""Of what is not meant for such messages at all: `eager`, where nothing is encoded."""


def print_tables(console: Console, found: dict[str, Any]) -> None:
    """Prints what job_tables.tables() returns of messages."""
    forced = ", which is forced" if found["forced"] else ""
    console.print(
        f"messages of floats from rank {found['rank']} of {found['ranks']}, "
        f"codec {found['codec']}{forced}, as that rank knows its links and data"
    )
    for table in found["tables"]:
        _print_table(console, table)


def _print_table(console: Console, table: dict[str, Any]) -> None:
    title = f"\nfrom {_MEMORY[table['memory']]} to rank {table['peer']}, {_PEERS[table['on']]}"
    printed = make_table(
        title, "bytes", ("protocol", "codec", "raw, us", "compressed, us", "why not compressed")
    )
    for column in (1, 2, -1):
        printed.columns[column].justify = "left"
    for row in table["ranges"]:
        last = "" if row["last"] == _MOST else size_text(row["last"] + 4)
        printed.add_row(
            f"{size_text(row['first'])} ..{' below ' + last if last else ''}",
            row["protocol"],
            trace.CODECS[row["codec"]],
            _times(row, 0),
            _times(row, 1),
            trace.REASONS[row["reason"]] or "",
        )
    print_table(console, printed)
    refusals = {
        (refusal["protocol"], trace.DETOURS[refusal["why_not"]])
        for row in table["ranges"]
        if table["memory"] == "device"
        for refusal in row["refusals"]
        if refusal["why_not"] != _UNSUITED
    }
    reasons: dict[str, str] = {}
    for protocol, why in sorted(refusals, key=str):
        reasons[protocol] = f"{reasons[protocol]}; {why}" if protocol in reasons else str(why)
    if reasons:
        print_facts(console, "protocols that carry none of some sizes, and why", reasons)


def _times(row: dict[str, Any], which: int) -> str:
    """Of the first and the last size of a range; where there is no last one, of 1G."""
    seconds = [row[f"seconds_at_{end}"][which] for end in ("first", "last")]
    return " .. ".join("?" if not one else f"{one * 1e6:.3g}" for one in seconds)
