"""Write docs/dev/results-neighbourhoods.md from bench/results/iso-*.json, which are what
`mpress bench iso ... --json` writes."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tables import page_of_runs, read_runs, table

from mpress.bench import iso_plots
from mpress.cli.bench_iso_tables import what_of, where_of
from mpress.cli.console import size_text

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "dev" / "results-neighbourhoods.md"

HEAD = """\
# Results: neighbourhoods

{generated}
Exchanges, halos and the making of neighbourhoods beside MPI's own calls, by `mpress bench iso`
([API](../api.md) says how it measures). Times are microseconds of the slowest rank, means of
launches; "over" is the median of the ratios to a call of MPI's in the same rounds, with its 95 %
interval.
"""

Row = dict[str, Any]


def label(row: Row) -> str:
    return row["method"] if row["spec"] in (None, "none") else f"{row['method']} {row['spec']}"


def over(row: Row, name: str = "over") -> str:
    if name not in row:
        return ""
    return "{:.3f} ({:.3f} to {:.3f})".format(row[name], *row[f"{name}_interval"])


def microseconds(row: Row) -> str:
    return f"{row['seconds'] * 1e6:.{2 if row['seconds'] < 1e-4 else 0}f}"


def by_size(run: Row) -> str:
    """Of blocks: a line a size, a column a method."""
    rows, reference = run["rows"], run["reference"]
    methods = list(dict.fromkeys(map(label, rows)))
    others = [name for name in methods if name != reference]
    cells = {(row["bytes"], label(row)): row for row in rows}
    lines = []
    for nbytes in dict.fromkeys(row["bytes"] for row in rows):
        base = cells.get((nbytes, reference))
        auto = cells.get((nbytes, "auto"), {})
        best = f"{over(auto, 'over_best')}, {auto['best']}" if "best" in auto else ""
        lines.append([
            size_text(nbytes), microseconds(base) if base else "",
            *(over(cells[nbytes, name]) for name in others), best,
        ])  # fmt: skip
    names = [*(f"{name} over {reference}" for name in others), "auto over best"]
    return table(["block", f"{reference}, us", *names], lines)


def by_method(run: Row) -> str:
    """Of halos, and of making neighbourhoods: a line a method."""
    lines = []
    for row in run["rows"]:
        ratio = f"{row['ratio']:.2f}" if row["spec"] not in (None, "none") else ""
        lines.append([label(row), microseconds(row), over(row), ratio])
    return table(["method", "us", f"over {run['reference']}", "ratio"], lines)


def picture_of(run: Row) -> str:
    mpi = "" if run["mpi"].startswith("MPICH") else "-openmpi"
    return f"neighbourhoods-{'x'.join(map(str, run['plan']['grid']))}{mpi}.svg"


def section(run: Row) -> str:
    plan = run["plan"]
    about = (
        f"{what_of(plan)}. {run['launches']} launches, {run['cpu']}, {run['date']}, commit "
        f"`{(run['commit'] or 'unknown')[:7]}`."
    )
    if "network" in run:
        about += f" {run['network']}."
    tables = by_size(run) if plan["stage"] == "communication" else by_method(run)
    if plan["stage"] == "communication":
        tables += f"\n\n![Time over {run['reference']} by the bytes of a block]({picture_of(run)})"
    title = f"{plan['stage'].capitalize()}: {run['mpi']}, {where_of(run)}"
    return f"## {title}\n\n{about}\n\n{tables}"


def page(runs: list[Row]) -> str:
    return page_of_runs(HEAD, "report_iso.py", section, runs)


def main() -> None:
    runs = read_runs("iso-*.json")
    PAGE.write_text(page(runs))
    for run in runs:
        if run["plan"]["stage"] == "communication":
            with tempfile.TemporaryDirectory() as folder:
                iso_plots.draw(run, Path(folder))
                shutil.move(Path(folder) / "ratios.svg", PAGE.parent / picture_of(run))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
