"""mpress info --protocols: which protocol carries messages of which sizes, and why."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from mpress import trace
from mpress.cli.console import make_table, print_facts, print_table, size_text
from mpress.cli.errors import UserError
from mpress.cli.launch import required_preload_library
from mpress.p2p import jobs

SIZES = (256 << 10, 1 << 20, 4 << 20, 32 << 20)
"""Of the messages by which ranks learn what links and data are like, before they say."""

_PEERS = {"same-host": "of its host", "other-host": "of another host"}
_MEMORY = {"host": "memory of the host", "device": "memory of a GPU"}
_MOST = 1 << 30
_UNSUITED = 5
"""Of what is not meant for such messages at all: `eager`, where nothing is encoded."""


def show(
    console: Console,
    ranks: int | None,
    link: str | None,
    mpiexec: str | None,
    json_file: Path | None,
    from_file: Path | None,
) -> None:
    """Prints the table of a job of its own, or of `from_file`, which MPRESS_PROTOCOLS named."""
    found = read(from_file) if from_file else ask(ranks or 2, link, mpiexec, False)
    print_tables(console, found)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=1) + "\n")


def read(file: Path, *more: str) -> dict[str, Any]:
    """What another job has written, with these fields beside those of messages."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"--from {file}: expected what MPRESS_PROTOCOLS names: {error}") from None
    fields = {"rank", "ranks", "codec", "forced", "tables", *more}
    if not isinstance(found, dict) or not fields <= set(found):
        raise UserError(f"--from {file}: expected what MPRESS_PROTOCOLS names: it is another file")
    return found


def ask(ranks: int, link: str | None, mpiexec: str | None, calls: bool) -> dict[str, Any]:
    """Ranks exchange messages, and make collective calls, as a program would, so that there is
    something to decide by."""
    required_preload_library()
    specs = [os.environ.get("MPRESS_CODEC", "auto")]
    plan = {"ranks": ranks, "sizes": SIZES, "specs": specs, "calls": calls}
    with tempfile.TemporaryDirectory(prefix="mpress-protocols-") as folder:
        table = Path(folder) / "protocols.json"
        try:
            jobs.run(plan, "auto", link=link, mpiexec=mpiexec, program=("-m", "mpress.p2p.ways"),
                     environment={"MPRESS_PROTOCOLS": str(table)})  # fmt: skip
        except jobs.JobError as error:
            raise UserError(str(error)) from None
        if not table.exists():
            raise UserError("mpress was off in the ranks, so there is no table")
        return dict(json.loads(table.read_text()))


def print_tables(console: Console, found: dict[str, Any]) -> None:
    """What a file that MPRESS_PROTOCOLS named says."""
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
