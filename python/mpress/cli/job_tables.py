"""What the ranks of a job decide about messages and collective calls, as the job has written it to
the file that MPRESS_PROTOCOLS names: for mpress info --protocols and --algorithms."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from mpress.cli.errors import UserError
from mpress.cli.launch import required_preload_library
from mpress.p2p import jobs

SIZES = (256 << 10, 1 << 20, 4 << 20, 32 << 20)
"""Of the messages by which ranks learn what links and data are like, before they say."""


def tables(
    ranks: int | None, link: str | None, mpiexec: str | None, from_file: Path | None, calls: bool
) -> dict[str, Any]:
    """Of a job of its own, or of `from_file`. `calls`: those of collective calls are wanted."""
    if from_file:
        return _read(from_file, *(["calls"] if calls else []))
    return _ask(ranks or 2, link, mpiexec, calls)


def _read(file: Path, *more: str) -> dict[str, Any]:
    """What another job has written, with these fields beside those of messages."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"--from {file}: expected what MPRESS_PROTOCOLS names: {error}") from None
    fields = {"rank", "ranks", "codec", "forced", "tables", *more}
    if not isinstance(found, dict) or not fields <= set(found):
        raise UserError(f"--from {file}: expected what MPRESS_PROTOCOLS names: it is another file")
    return found


def _ask(ranks: int, link: str | None, mpiexec: str | None, calls: bool) -> dict[str, Any]:
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
