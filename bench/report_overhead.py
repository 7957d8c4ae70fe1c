"""docs/dev/results-raw-calls.md: what a call costs whose message stays raw."""

from typing import Any

from tables import GENERATED, table

Row = dict[str, Any]

HEAD = """\
# Results: calls whose messages stay raw

{generated}
What mpress adds to a call that it leaves raw, at the default settings: doubles, to itself (one
rank) or to another rank. In one process, blocks of calls go by turns through mpress and straight
to the MPI library; of each pair the difference counts. Nanoseconds a call: the median of the plain
calls, and of the differences with its 95 % interval.

{cpu}, {cores} cores; {mpi}; {date}, commit {commit}; load average {load} while it
ran. `python bench/p2p_overhead.py` measures this. Pairs share what disturbs them; two ranks need
two idle cores all the same, else their interval is wide. Wanted: at most {limit} ns a call. (Under
`MPI_THREAD_MULTIPLE` mpress makes a `Sendrecv` a receive that is posted, a send and a wait, so that
no probe of another thread comes between.)
"""
LIMIT = 150


def section(document: Row) -> str:
    names = ("ranks", "threads", "GPU", "pattern", "bytes", "plain", "added", "95 % interval", "")
    lines = []
    for row in document["rows"]:
        low, high = row["interval_ns"]
        settled = high - low < LIMIT
        verdict = "reached" if high <= LIMIT else "**missed**" if settled else "unsettled"
        lines.append([
            str(row["ranks"]), row["threads"], "used" if row.get("cuda") else "-",
            row["pattern"], str(row["bytes"]),
            f"{row['plain_ns']:.0f}", f"{row['added_ns']:.0f}", f"{low:.0f} to {high:.0f}", verdict,
        ])  # fmt: skip
    load = " to ".join(str(value) for value in document["load_average"])
    facts = {key: document[key] for key in ("cpu", "cores", "mpi", "date", "commit")}
    head = HEAD.format(**facts, load=load, limit=LIMIT, generated=GENERATED)
    return head + "\n" + table(names, lines)
