"""LAMMPS as Debian has it, unmodified, between hosts with a slow network: plain, and under mpress.

    apt-get install lammps                      # its MPI is Open MPI
    python bench/programs/lammps.py --json bench/results/program-lammps.json

A Lennard-Jones melt (LAMMPS's own benchmark in.lj) on the hosts of bench/cluster.py, which takes
root. Runs take turns. Tells what was compressed, the time of the loop, and whether the table of
thermodynamics and every atom's last position and velocity have the same bits. Only codecs without
loss: LAMMPS packs atoms' numbers between their coordinates, as doubles that are none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import BIN, Cluster, ClusterError, checked_plan, environment
from tables import table

from mpress.codec_bench import cpu_name, git_commit

# After bench/in.lj of LAMMPS (GPL-2): 4 atoms a cell.
INPUT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 10
thermo_modify format float %.16g
run {steps}
write_dump all custom end.dump id x y z vx vy vz modify sort id format float %.17g
"""
MODES = ("plain", "auto")  # the latter is mpress's default


def once(cluster: Cluster, ranks: int, mode: str, folder: Path) -> dict[str, Any]:
    """One run in an empty folder: its times, its results, and what was compressed."""
    launcher = cluster.mpirun(ranks)
    program = ["lmp", "-in", "in.lj", "-log", "none"]
    if mode == "plain":
        command = [*launcher, "-n", str(ranks), *program]
    else:
        command = [str(BIN / "mpress"), "run", "-n", str(ranks), "--codec", mode, "--report",
                   "report.json", "--mpiexec", shlex.join(launcher), "--", *program]  # fmt: skip
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    loop = re.search(r"Loop time of (\S+) on", done.stdout)
    thermo = re.search(r"^Step .*?(?=^Loop time)", done.stdout, re.DOTALL | re.MULTILINE)
    if done.returncode or not loop or not thermo:
        raise ClusterError(f"{shlex.join(command)}\nended with {done.returncode}:\n"
                           f"{done.stdout}{done.stderr}")  # fmt: skip
    found: dict[str, Any] = {
        "seconds": float(loop[1]),
        "thermo": thermo[0],
        "end": hashlib.sha256((folder / "end.dump").read_bytes()).hexdigest(),
    }
    if mode != "plain":
        found["report"] = json.loads((folder / "report.json").read_text())
    return found


def summed_up(mode: str, runs: list[dict[str, Any]], plain: list[dict[str, Any]]) -> dict[str, Any]:
    """A row: medians of the runs of a mode, beside those without mpress."""
    seconds = [run["seconds"] for run in runs]
    row: dict[str, Any] = {
        "mode": mode, "seconds": statistics.median(seconds), "all_seconds": seconds,
        "over_plain": statistics.median(
            mine / its["seconds"] for mine, its in zip(seconds, plain, strict=True)
        ),
        "same_thermo": all(run["thermo"] == plain[0]["thermo"] for run in runs),
        "same_end": all(run["end"] == plain[0]["end"] for run in runs),
    }  # fmt: skip
    if mode != "plain":
        totals = runs[-1]["report"]["totals"]
        row |= {name: totals[name] for name in
                ("messages", "compressed_messages", "raw_bytes", "wire_bytes")}  # fmt: skip
        sent = [one for one in runs[-1]["report"]["rows"] if one["direction"] == "send"]
        packed = [one for one in sent if one["codec"] != "none"]
        row["compressed_raw_bytes"] = sum(one["raw_bytes"] for one in packed)
        row["compressed_wire_bytes"] = sum(one["wire_bytes"] for one in packed)
        row["left_raw"] = runs[-1]["report"]["left_raw"]
    return row


def line(row: dict[str, Any]) -> list[str]:
    """Of the table that is printed, and of docs/dev/results-programs.md."""
    times = f"{min(row['all_seconds']):.2f} to {max(row['all_seconds']):.2f}"
    cells = [row["mode"], f"{row['seconds']:.2f} ({times})", f"{row['over_plain']:.2f}"]
    if row["mode"] == "plain":
        return [*cells, "-", "-", "-", "-"]
    share = row["compressed_messages"] / row["messages"]
    size = row["compressed_raw_bytes"] / max(row["compressed_messages"], 1) / 1e3
    ratio = row["compressed_raw_bytes"] / max(row["compressed_wire_bytes"], 1)
    same = "yes" if row["same_thermo"] and row["same_end"] else "**no**"
    return [*cells, f"{row['compressed_messages']} of {row['messages']} ({100 * share:.0f} %)",
            f"{size:.0f} KB", f"{ratio:.2f}", same]  # fmt: skip


HEADINGS = ["run", "loop, s", "over plain", "compressed messages", "of, on average", "ratio",
            "same results"]  # fmt: skip


def measured(options: argparse.Namespace, rate: str) -> dict[str, Any]:
    plan = checked_plan(options.hosts, rate, None)
    runs: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    with Cluster(plan) as cluster, tempfile.TemporaryDirectory(prefix="mpress-lammps-") as name:
        for number in range(options.repeat):
            for mode in MODES:
                folder = Path(name) / f"{mode}-{number}"
                folder.mkdir()
                text = INPUT.format(cells=options.cells, steps=options.steps)
                (folder / "in.lj").write_text(text)
                runs[mode].append(once(cluster, options.ranks, mode, folder))
    rows = [summed_up(mode, found, runs["plain"]) for mode, found in runs.items()]
    return {"rate": plan.rate, "hosts": plan.hosts, "rows": rows}


def package(name: str) -> str:
    """The version of one of Debian's packages, or nothing."""
    query = ["dpkg-query", "-W", "-f", "${Version}", name]
    return subprocess.run(query, capture_output=True, text=True).stdout if shutil.which(
        "dpkg-query") else ""  # fmt: skip


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=2, help="default 2")
    parser.add_argument("-n", "--ranks", type=int, help="default: one a host")
    parser.add_argument("--rates", nargs="+", default=["1gbit", "100mbit"], metavar="RATE",
                        help="of a host, each way; default 1gbit 100mbit")  # fmt: skip
    parser.add_argument("--cells", type=int, default=16, help="an edge; 4 atoms each; default 16")
    parser.add_argument("--steps", type=int, default=200, help="default 200")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each kind; default 5")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    options.ranks = options.ranks or options.hosts
    return options


def main() -> int:
    options = parsed()
    if not shutil.which("lmp"):
        print("lammps: there is no lmp on PATH: apt-get install lammps", file=sys.stderr)
        return 1
    document = {
        "format": 1, "kind": "program-lammps", "date": time.strftime("%Y-%m-%d"),
        "commit": git_commit(), "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
        "lammps": package("lammps"), "openmpi": package("openmpi-bin"),
        "ranks": options.ranks, "atoms": 4 * options.cells**3, "steps": options.steps,
        "repeat": options.repeat, "networks": [],
    }  # fmt: skip
    same = True
    try:
        for rate in options.rates:
            found = measured(options, rate)
            document["networks"].append(found)
            print(f"\n{options.ranks} ranks, {found['hosts']} hosts, {rate}\n")
            print(table(HEADINGS, map(line, found["rows"])), flush=True)
            same &= all(row["same_thermo"] and row["same_end"] for row in found["rows"])
    except ClusterError as error:
        print(f"lammps: {error}", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
