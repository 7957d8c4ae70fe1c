"""Write docs/dev/results-exchange.md from bench/results/exchange-*.json, of bench/exchange.py."""

from pathlib import Path
from typing import Any

from tables import page_of_runs, read_runs, table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "dev" / "results-exchange.md"
FASTER = {"auto": 1.7, "szp:rel=1e-4": 9}
"""How many times as fast as plain on a link of 1 Gbit/s, of `sines`."""
SLOWER = {"first": 1.03, "later": 1.01}
"""Of plain's time, within a host."""

HEAD = """\
# Results: an exchange without preparation

{generated}
`python bench/exchange.py` measures this: two ranks of a Python program exchange doubles by
`MPI_Sendrecv`, both ways at once, started with no profile, nothing learned before and nothing
forced. Plain is the program without mpress; each path is a job of its own, and they take turns. The
time of an exchange is that of the rank that took longest. "First" is the sum of a job's first
exchanges, in which links are learned, "later" the median of the others; medians of jobs, and of
their ratios to the plain job of the same turn, with 95 % intervals. *sines* is a sum of waves along
a line, *wave* a field of a wave equation, whose low bits are noise to a codec without loss.
"""


def verdict(row: dict[str, Any], run: dict[str, Any]) -> str:
    path = row["path"]
    if path == "plain":
        return ""
    if not run["rate"]:
        reached = all(row[f"{part}_over_plain"][0] <= most for part, most in SLOWER.items())
        wanted = f"at most {SLOWER['first']}, {SLOWER['later']}"
    elif run["rate"] == 1e9 and row["data"] == "sines" and path in FASTER:
        reached = 1 / row["later_over_plain"][0] >= FASTER[path]
        wanted = f"{FASTER[path]:g} times as fast"
    else:
        return ""
    return f"{wanted}: {'reached' if reached else '**missed**'}"


def cell(over: list[float]) -> str:
    median, low, high = over
    return f"{median:.3f} ({low:.3f} to {high:.3f})"


def section(run: dict[str, Any]) -> str:
    lines = []
    for row in run["rows"]:
        times = f"{1 / row['later_over_plain'][0]:.2f}"
        lines.append([
            row["data"], row["path"], f"{1e3 * row['first']:.0f}", cell(row["first_over_plain"]),
            f"{1e3 * row['later']:.2f}", cell(row["later_over_plain"]), times, verdict(row, run),
        ])  # fmt: skip
    where = f"two hosts, {run['rate'] / 1e9:g} Gbit/s each" if run["rate"] else "one host"
    about = (
        f"{where}; {run['bytes'] >> 20} MB each way, {run['count']} exchanges a job, of which "
        f"{run['first']} count as the first, {run['rows'][0]['jobs']} jobs of each; {run['cpu']}, "
        f"{run['cores']} cores; {run['date']}, commit `{run['commit'][:7]}`."
    )
    headings = ["data", "path", "first, ms", "over plain", "later, ms", "over plain",
                "times as fast", "wanted"]  # fmt: skip
    return f"{about[0].upper()}{about[1:]}\n\n{table(headings, lines, 2)}"


def page(runs: list[dict[str, Any]]) -> str:
    return page_of_runs(HEAD, "report_exchange.py", section, runs)


def read() -> list[dict[str, Any]]:
    return read_runs("exchange-*.json")


def main() -> None:
    PAGE.write_text(page(read()))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
