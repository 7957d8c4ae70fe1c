"""OSU's micro-benchmarks, plain and under mpress: does what they send come right, and how fast?

    python bench/programs/osu.py osu-micro-benchmarks-7.4.tar.gz --json FILE
    python bench/programs/osu.py SOURCE --memory cuda --mpicc /usr/bin/mpicc --json FILE

Builds them from their source, a tar file of release 7 or a folder that it was unpacked to, and
runs messages and collective calls of floats, which they check (their option -c): plain, under
mpress as it comes, and with everything compressed that it can compress, by turns. Tells for each
program how it ended, and what a call took over a plain one. In memory of GPUs a plain one ends
badly where the MPI does not take that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from programs.builds import BIN, ENVIRONMENT, FORCED, execute, launched, unpack
from report_p2p import size as size_name
from tables import table

from mpress.codec_bench import cpu_name, git_commit

FOLDERS = ("pt2pt/standard", "pt2pt/persistent", "collective/blocking",
           "collective/non_blocking", "collective/persistent",
           "collective/neighborhood")  # fmt: skip
MODES = {"plain": None, "auto": (), "mpc": FORCED}
"""Options of `mpress run`."""
NOT_CHECKED = ("osu_barrier", "osu_ibarrier", "osu_barrier_persistent", "osu_latency_mp")
"""They move no data, or do not let it be checked."""
RATES = ("bw", "bibw", "mbw_mr")
"""Of whose names' parts: what they print is a bandwidth, not a time."""
WELL = "well"
SHOWN = (65536, 1 << 20, 4 << 20)


@dataclass
class Run:
    ending: str
    values: dict[int, float] = field(default_factory=dict)  # what a program prints, by bytes
    output: str = ""  # its end, where it did not end well
    compressed: int = 0  # messages


@dataclass
class Program:
    folder: str
    name: str
    runs: dict[str, Run] = field(default_factory=dict)

    def over_plain(self, mode: str, size: int) -> float | None:
        """Of times; None where one is missing."""
        mine, plain = (self.runs[one].values.get(size) for one in (mode, "plain"))
        if not mine or not plain:
            return None
        return plain / mine if is_rate(self.name) else mine / plain


def is_rate(name: str) -> bool:
    return any(part in name for part in RATES)


def built(source: Path, root: Path, options: argparse.Namespace) -> Path:
    """Where the programs' folders are."""
    if source.is_file():
        root.mkdir(parents=True, exist_ok=True)
        if not (root / "configure").exists():
            unpack(source, root)
        source = root
    build = root / f"build-{options.memory}"
    if not (build / "c" / "Makefile").exists():
        build.mkdir(parents=True, exist_ok=True)
        cuda = []
        if options.memory == "cuda":
            prefix = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").resolve().parents[1]
            cuda = ["--enable-cuda=basic", f"--with-cuda={prefix}",
                    f"LDFLAGS=-L{prefix}/lib64/stubs"]  # fmt: skip
        execute([str(source.resolve() / "configure"), f"CC={options.mpicc}",
                 f"CXX={options.mpicc}", *cuda], build)  # fmt: skip
    # An MPI without the calls of version 4 lets some not be built: those are not listed then.
    for folder in FOLDERS:
        subprocess.run(["make", "-k", "-j", str(os.cpu_count())], cwd=build / "c/mpi" / folder,
                       env=ENVIRONMENT, capture_output=True)  # fmt: skip
    return build / "c" / "mpi"


def found(build: Path, only: str) -> list[Program]:
    return [
        Program(folder, path.name)
        for folder in FOLDERS
        for path in sorted((build / folder).glob("osu_*"))
        if not path.suffix and os.access(path, os.X_OK) and path.name not in NOT_CHECKED
        and re.search(only, path.name)
    ]  # fmt: skip


def arguments(program: Program, options: argparse.Namespace) -> list[str]:
    said = ["-c", "-T", "mpi_float", "-m", f"{options.least}:{options.most}",
            "-i", str(options.iterations), "-x", "3"]  # fmt: skip
    if options.memory == "cuda":
        said += ["-d", "cuda"]
        if program.folder.startswith("pt2pt"):
            said += ["D", "D"]
    return said


def ending(code: int, text: str) -> str:
    if "egmentation fault" in text or code in (-signal.SIGSEGV, 128 + signal.SIGSEGV,
                                               signal.SIGSEGV):  # fmt: skip
        return "segmentation fault"
    if re.search(r"\bFail$", text, re.MULTILINE):
        return "wrong results"
    return WELL if code == 0 else f"code {code}"


def run(build: Path, program: Program, mode: str, options: argparse.Namespace) -> Run:
    # Their Cartesian grid has neighbours from three on.
    ranks = max(options.ranks, 3 if "neighbor" in program.name else 1)
    path = build / program.folder / program.name
    ended = launched([str(path), *arguments(program, options)], ranks, MODES[mode], path.parent,
                     options.limit, [options.mpiexec])  # fmt: skip
    how = f"not in {options.limit:.0f} s" if ended.code is None else ending(ended.code, ended.text)
    lines = re.findall(r"^(\d+)\s+([\d.]+)", ended.text, re.MULTILINE)
    if how == WELL and not lines:
        how = "no results"
    return Run(how, {int(size): float(value) for size, value in lines},
               "" if how == WELL else ended.text[-1000:], ended.compressed)  # fmt: skip


def measured(build: Path, program: Program, options: argparse.Namespace) -> None:
    """By turns; of what a program prints the median, and of endings the first that was not well."""
    runs: dict[str, list[Run]] = {mode: [] for mode in MODES}
    for number in range(options.repeat):
        for mode, so_far in runs.items():
            if number == 0 or so_far[-1].ending == WELL:
                so_far.append(run(build, program, mode, options))
    for mode, all_of_it in runs.items():
        last = all_of_it[-1]
        last.values = {
            size: statistics.median(one.values[size] for one in all_of_it if size in one.values)
            for size in last.values
        }
        program.runs[mode] = last


def counted(programs: list[Program], mode: str) -> str:
    """How many of those that end well when plain, or of all if none does."""
    well = [one for one in programs if one.runs["plain"].ending == WELL] or programs
    return f"{sum(one.runs[mode].ending == WELL for one in well)} of {len(well)}"


HEADINGS = ["folder", "programs", "plain: well", "`auto`: well", "`mpc` forced: well",
            "compressed", *(f"`auto`, {size_name(size)}" for size in SHOWN)]  # fmt: skip


def line(name: str, programs: list[Program]) -> list[str]:
    """Of the table that is printed, and of docs/dev/results-programs.md."""
    cells = [name, str(len(programs)),
             str(sum(one.runs["plain"].ending == WELL for one in programs)),
             counted(programs, "auto"), counted(programs, "mpc"),
             str(sum(one.runs["mpc"].compressed for one in programs))]  # fmt: skip
    for size in SHOWN:
        ratios = [ratio for one in programs if (ratio := one.over_plain("auto", size))]
        cells.append(f"{statistics.median(ratios):.2f}" if ratios else "-")
    return cells


def lines(programs: list[Program]) -> list[list[str]]:
    folders = {folder: [one for one in programs if one.folder == folder] for folder in FOLDERS}
    return [*(line(folder, those) for folder, those in folders.items() if those),
            line("all", programs)]  # fmt: skip


def program_of(row: dict[str, Any]) -> Program:
    """Of a row of the results."""
    runs = {
        mode: Run(**{**one, "values": {int(size): value for size, value in one["values"].items()}})
        for mode, one in row["runs"].items()
    }
    return Program(row["folder"], row["name"], runs)


def gpu_name() -> str | None:
    asked = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    if not shutil.which(asked[0]):
        return None
    names = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
    return f"{len(names)} x {names[0]}" if names else None


def library_version(mpiexec: str) -> str:
    text = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, env=ENVIRONMENT)
    if said := re.search(r"\((?:Open MPI|OpenRTE)\) (\S+)", text.stdout):
        return f"Open MPI {said[1]}"
    said = re.search(r"Version:\s+(\S+)", text.stdout)
    return f"MPICH {said[1]}" if said else "unknown"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="OSU's source: a tar file or a folder")
    parser.add_argument("--build", type=Path, default=Path("build/osu"),
                        help="where they are built; default build/osu")  # fmt: skip
    parser.add_argument("--memory", choices=("host", "cuda"), default="host")
    parser.add_argument("--mpicc", default=str(BIN / "mpicc"), help="default: of this environment")
    parser.add_argument("-n", "--ranks", type=int, default=2, help="default 2")
    parser.add_argument("--only", default="", metavar="PATTERN", help="programs whose names fit")
    parser.add_argument("--least", type=int, default=4096, metavar="BYTES", help="default 4096")
    parser.add_argument("--most", type=int, default=4 << 20, metavar="BYTES", help="default 4 MB")
    parser.add_argument("--iterations", type=int, default=20, help="of a size; default 20")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind; default 3")
    parser.add_argument("--limit", type=float, default=120, metavar="S", help="default 120")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    options.mpiexec = str(Path(options.mpicc).parent / "mpiexec")
    return options


def main() -> int:
    options = parsed()
    build = built(options.source, options.build.resolve(), options)
    programs = found(build, options.only)
    if not programs:
        raise SystemExit(f"osu: no program was built in {build} whose name fits {options.only!r}")
    for program in programs:
        measured(build, program, options)
        endings = ", ".join(f"{mode} {one.ending}" for mode, one in program.runs.items())
        print(f"{program.folder}/{program.name}: {endings}", flush=True)
    print("\n" + table(HEADINGS, lines(programs)))
    document = {
        "format": 1, "kind": "program-osu", "date": time.strftime("%Y-%m-%d"),
        "commit": git_commit(), "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
        "gpu": gpu_name(), "mpi": library_version(options.mpiexec), "memory": options.memory,
        "source": options.source.name, "only": options.only, "ranks": options.ranks,
        "iterations": options.iterations, "repeat": options.repeat,
        "rows": list(map(asdict, programs)),
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    # Where none ends well without mpress, all have to with it.
    well = [one for one in programs if one.runs["plain"].ending == WELL] or programs
    return 1 if any(run.ending != WELL for one in well for run in one.runs.values()
                    if run is not one.runs["plain"]) else 0  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
