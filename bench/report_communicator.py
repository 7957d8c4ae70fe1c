"""Write docs/dev/results-communicator.md from bench/results/communicator-host.json."""

import json
from pathlib import Path
from typing import Any

from tables import filled, generated_by, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "communicator-host.json"
PAGE = ROOT / "docs" / "dev" / "results-communicator.md"
LIMIT = 3.0

HEAD = """\
# Results: what a call of mpress.Communicator costs

{generated}

What it takes over the same call of mpi4py's, where nothing is compressed, at the default settings:
NumPy arrays of doubles, on one rank and two. *Beside the preload*: mpi4py's own communicator under
`mpress run`, by turns in one process. *Beside plain mpi4py*: jobs without mpress, by turns with
jobs whose Communicator is the first. Microseconds a call, on rank 0: the median of mpi4py's, and of
the differences with its 95 % interval.

{cpu}, {cores} cores; {mpi}, Python {python}, mpi4py {mpi4py}, NumPy {numpy}; {date}, commit
`{commit}`; load average {load} while it ran. `python bench/communicator.py` measures this. Two
ranks need two idle cores, else their interval is wide. Wanted: at most {limit:g} µs a call.
"""
BESIDE = {"preload": "the preload", "plain": "plain mpi4py"}


def verdict(row: dict[str, Any]) -> str:
    low, high = row["interval_us"]
    if high <= LIMIT:
        return "reached"
    return "**missed**" if low > LIMIT else "unsettled"


def page(document: dict[str, Any]) -> str:
    facts = {key: document[key] for key in ("cpu", "cores", "mpi", "date")}
    load = " to ".join(str(value) for value in document["load_average"])
    head = HEAD.format(
        generated=generated_by("report_communicator.py").strip(),
        load=load,
        limit=LIMIT,
        commit=document["commit"][:7],
        **{key: document["versions"][key] for key in ("python", "mpi4py", "numpy")},
        **facts,
    )
    parts = [head.strip()]
    for beside, name in BESIDE.items():
        lines = [
            [row["call"], str(row["ranks"]), str(row["bytes"]), f"{row['mpi4py_us']:.2f}",
             f"{row['added_us']:.2f}", "{:.2f} to {:.2f}".format(*row["interval_us"]), verdict(row)]
            for row in document["rows"] if row["beside"] == beside
        ]  # fmt: skip
        names = ("call", "ranks", "bytes", "mpi4py", "added", "95 % interval", "")
        parts += [f"## Beside {name}", table(names, lines).strip()]
    return filled("\n\n".join(parts))


def main() -> None:
    PAGE.write_text(page(json.loads(RESULTS.read_text())))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
