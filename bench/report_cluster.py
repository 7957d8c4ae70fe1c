"""Write docs/dev/results-cluster.md from bench/results/cluster-*.json, of bench/cluster.py."""

import json
from pathlib import Path
from typing import Any

from tables import GENERATED, filled, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "dev" / "results-cluster.md"
NAMES = {"bcast": "Bcast", "allgather": "Allgather", "alltoall": "Alltoall",
         "allreduce": "Allreduce"}  # fmt: skip

HEAD = """\
# Results: a cluster on one machine

{generated}
`python bench/cluster.py collectives --json FILE` measures this: network namespaces as hosts, one
rank each, joined by links that a token bucket holds to their rate, out and in; TCP; memory of the
host; the wave field in single precision. A time is that of one call of the rank for which it is
longest; medians of samples by turns in one job, with 95 % intervals. "Raw": mpress's own schedules,
nothing compressed; it and szp are forced, `auto` is in a job of its own. The buckets let a
millisecond's bytes (125 KB) through at once; packets are jumbo frames, and ranks of MPICH that wait
sleep between looks, so that hosts leave the machine's cores to each other. Factors are over the
MPI's own call in the same job; bold: slower than that.
"""


def factor(over_mpi: float) -> str:
    text = f"{1 / over_mpi:.2f}"
    return f"**{text}**" if over_mpi > 1 else text


def cell(row: dict[str, Any]) -> str:
    low, high = (1e3 * bound for bound in row["interval"])
    return f"{1e3 * row['seconds']:.0f} ({low:.0f} to {high:.0f})"


def section(run: dict[str, Any]) -> str:
    """A run: a line an operation."""
    lines = []
    for op in dict.fromkeys(row["op"] for row in run["rows"]):
        rows = [row for row in run["rows"] if row["op"] == op]
        own = next(row for row in rows if row["path"] == "mpi" and row["job"] == "forced")
        line = [NAMES[op], cell(own)]
        for path, job in (("none", "forced"), ("auto", "auto"), ("szp:rel=1e-04", "forced")):
            found = next((r for r in rows if (r["path"], r["job"]) == (path, job)), None)
            ratio = f", ratio {found['ratio']:.1f}" if found and found.get("ratio", 1) > 1 else ""
            line += [f"{cell(found)}{ratio}", factor(found["over_mpi"])] if found else ["-", "-"]
        lines.append(line)
    headings = ["call", "MPI's own, ms", "raw, ms", "times as fast", "auto, ms", "times as fast",
                "szp:rel=1e-4, ms", "times as fast"]  # fmt: skip
    about = (
        f"{run['hosts']} hosts, {run['rate'] / 1e9:g} Gbit/s each, {run['bytes']} a rank; "
        f"{run['mpi']}; {run['cpu']}, {run['cores']} cores for all ranks; {run['date']}, commit "
        f"`{run['commit'][:7]}`."
    )
    return f"{about}\n\n{table(headings, lines)}"


def page(runs: list[dict[str, Any]]) -> str:
    text = HEAD.format(generated=GENERATED.replace("report.py", "report_cluster.py"))
    return filled("\n\n".join([text.strip(), *(section(run).strip() for run in runs)]))


def read(folder: Path = RESULTS) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("cluster-*.json"))]


def main() -> None:
    PAGE.write_text(page(read()))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
