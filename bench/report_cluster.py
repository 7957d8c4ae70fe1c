"""Write docs/dev/results-cluster.md from bench/results/cluster-*.json, of bench/cluster.py."""

from pathlib import Path
from typing import Any

from tables import page_of_runs, read_runs, table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "dev" / "results-cluster.md"
NAMES = {"bcast": "Bcast", "allgather": "Allgather", "alltoall": "Alltoall",
         "allreduce": "Allreduce"}  # fmt: skip

HEAD = """\
# Results: a cluster on one machine

{generated}
`python bench/cluster.py collectives --json FILE` measures this: network namespaces as hosts, one
rank each, joined by links that a token bucket holds to their rate, out and in; TCP; the wave field
in single precision. With `--memory D` each rank has a GPU of its own, and they talk by the MPI
alone. A time is that of one call of the rank for which it is longest; medians of samples by turns
in one job, with 95 % intervals. "Raw": mpress's own schedules, nothing compressed; it and szp are
forced, `auto` is in a job of its own. The buckets let a millisecond's bytes (125 KB at 1 Gbit/s)
through at once, which shortens what compresses well by up to that millisecond; packets are jumbo
frames, and ranks of MPICH that wait sleep between looks, so that hosts leave the machine's cores to
each other. Factors are over the MPI's own call in the same job, of GPUs' memory with copies out and
in; bold: slower than that.
"""


def factor(row: dict[str, Any], own: dict[str, Any]) -> str:
    """How many times as fast as the MPI's own: the median of pairs, where they were kept."""
    over_own = row.get("over_mpi", row["seconds"] / own["seconds"])
    text = f"{1 / over_own:.2f}"
    return f"**{text}**" if over_own > 1 else text


def cell(row: dict[str, Any]) -> str:
    low, high = (1e3 * bound for bound in row["interval"])
    digits = 0 if high >= 10 else 1
    return f"{1e3 * row['seconds']:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def memory_of(run: dict[str, Any]) -> str:
    return f"memory of a GPU each, {run['gpu']}" if run.get("gpu") else "memory of the host"


def delay(run: dict[str, Any]) -> str:
    latency = run["latency"]
    return f"{latency * 1e6:g} us of latency" if latency else "no latency added"


def section(run: dict[str, Any]) -> str:
    """A run: a line an operation."""
    lines = []
    beside = "plain" if run.get("gpu") else "mpi"
    spec = next(row["path"] for row in run["rows"] if row["path"].startswith("szp"))
    for op in dict.fromkeys(row["op"] for row in run["rows"]):
        rows = {(row["path"], row["job"]): row for row in run["rows"] if row["op"] == op}
        line = [NAMES[op], cell(rows[beside, "forced"])]
        for path, job in (("none", "forced"), ("auto", "auto"), (spec, "forced")):
            row = rows.get((path, job))
            ratio = f", ratio {row['ratio']:.1f}" if row and row.get("ratio", 1) > 1 else ""
            line += [f"{cell(row)}{ratio}", factor(row, rows[beside, job])] if row else ["-", "-"]
        lines.append(line)
    own = "copies and MPI's own, ms" if run.get("gpu") else "MPI's own, ms"
    headings = ["call", own, "raw, ms", "times as fast", "auto, ms", "times as fast",
                f"szp:rel={float(spec.split('=')[1]):.0e}, ms".replace("e-0", "e-"),
                "times as fast"]  # fmt: skip
    about = (
        f"{run['hosts']} hosts, {run['rate'] / 1e9:g} Gbit/s each, {delay(run)}, "
        f"{run['bytes']} a rank; {memory_of(run)}; {run['mpi']}; {run['cpu']}, "
        f"{run['cores']} cores for all ranks; {run['date']}, commit `{run['commit'][:7]}`."
    )
    return f"{about}\n\n{table(headings, lines)}"


def page(runs: list[dict[str, Any]]) -> str:
    return page_of_runs(HEAD, "report_cluster.py", section, runs)


def read() -> list[dict[str, Any]]:
    return read_runs("cluster-*.json")


def main() -> None:
    PAGE.write_text(page(read()))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
