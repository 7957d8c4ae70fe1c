"""docs/dev/results-streams.md: mpress's own collective calls with a stream."""

from typing import Any

from report_p2p import size
from tables import GENERATED, table

Row = dict[str, Any]

HEAD = """\
# Results: calls with a stream

{generated}
Collective calls of `mpress/mpress.h`, uncompressed, between GPUs of one host that reach each other;
microseconds, medians of the longest of all ranks. `python bench/streams.py` measures this.

- *without*: a call without a stream, from its begin until it returns.
- *returns*: one with a stream that holds nothing, until it returns.
- *begins*: the same, until what is behind it in the stream has begun.
- *returns, busy*: as *returns*, where the stream has some 200 µs of other work to do first.

Wanted of 1 MB: it returns within {returns} µs, and what is behind it begins at most {later} µs
later than a call without a stream takes.
"""
RETURNS, LATER, BYTES = 15, 5, 1 << 20


def verdict(row: Row) -> str:
    if row["bytes"] != BYTES:
        return ""
    reached = row["returns"] <= RETURNS and row["begins"] <= row["blocking"] + LATER
    return "reached" if reached else "**missed**"


def section(document: Row) -> str:
    parts = [HEAD.format(generated=GENERATED, returns=RETURNS, later=LATER)]
    for run in document["runs"]:
        parts.append(
            f"## {run['gpu']}, {run['most_ranks']} ranks\n\n{run['date']}, commit "
            f"{run['commit'][:7]}.\n"
        )
        names = ("call", "bytes", "without", "returns", "begins", "returns, busy", "")
        lines = [
            [row["op"], size(row["bytes"]),
             *(f"{row[name]:.1f}" for name in ("blocking", "returns", "begins", "busy_returns")),
             verdict(row)]
            for row in run["rows"]
        ]  # fmt: skip
        parts.append(table(names, lines))
    return "\n".join(parts)
