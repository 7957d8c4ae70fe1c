"""Write docs/dev/results-programs.md from bench/results/program-*.json, of bench/programs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from programs import lammps, mpich_tests, osu, packages
from report_p2p import size as size_name
from tables import filled, generated_by, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "dev" / "results-programs.md"
PARTS = ("lammps", "mpich-tests", "osu", "packages")
"""Of the page: the names of results."""


HEAD = """\
# Results: other people's programs

{generated}
Programs that know nothing of mpress, as they come: plain, and under `mpress run`.
"""

LAMMPS = """\
## LAMMPS

`apt-get install lammps`, then `python bench/programs/lammps.py --json FILE`: a Lennard-Jones melt
of {atoms} atoms, {steps} steps, {ranks} ranks, {repeat} runs of each kind, by turns, between
network namespaces as hosts (bench/cluster.py, which takes root) whose links a token bucket holds to
a rate; TCP. mpress has its default, which loses nothing and knows nothing of the network before.
Times are medians, and the least and the greatest. "Over plain" is the
median of what a run takes over the plain one beside it. "Same results": the table of thermodynamics
to 16 digits, and each atom's position and velocity at the end to 17, in every run.

LAMMPS {lammps}, Open MPI {openmpi}; {cpu}, {cores} cores, others' load about {load:.0f}; {date},
commit `{commit}`.
"""

LOSSLESS = """\
Only codecs without loss are for LAMMPS: it packs atoms' numbers between their coordinates, as
doubles that are none, and a bound would change them.
"""

MPICH_TESTS = """\
## MPICH's own tests

`apt-get source --download-only mpich`, then `python bench/programs/mpich_tests.py SOURCE`: host
memory, everything that mpress can compress compressed with `mpc`. "End well": without mpress.

{source}, under MPICH {mpi}; {cpu}, {cores} cores; {date}, commit `{commit}`.
"""

PACKAGES = """\
## Simulation codes

`apt-get install` them, then `python bench/programs/packages.py --json FILE`: small cases of codes
as Debian has them, on this host, twice plain, under mpress as it comes (`auto`), and with
everything that mpress can compress compressed with `mpc`. "Same results": what the program prints
of its results, and the files that it writes of them, byte for byte.

Open MPI {mpi}; {cpu}, {cores} cores; {date}, commit `{commit}`.
"""

OSU = """\
## OSU's micro-benchmarks

`python bench/programs/osu.py SOURCE`, with `--memory cuda` in memory of GPUs, `--mpicc` under
another MPI: messages and collective calls of floats, which the programs check themselves. "Well":
of those that end well without mpress, or of all where none does. `mpc` forced: everything that
mpress can compress is, and so many messages were. `auto` is mpress's default: where plain ones end
well the median of what its calls take over theirs, by bytes.
"""

OSU_RUN = """\
{source}, {chosen}. Memory of {memory}, {ranks} {mpi}; {where}; {date}, commit
`{commit}`.{endings}
"""

OSU_VALUES = """\
What they print with `auto`: microseconds of a call, of those that do not block with as long a
computation beside it; or MB/s of windows.
"""


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def osu_section(run: dict[str, Any]) -> list[str]:
    programs = [osu.program_of(row) for row in run["rows"]]
    bad = Counter(one.runs["plain"].ending for one in programs)
    endings = "".join(f" Without mpress {number} of {len(programs)} end in a {how}."
                      for how, number in bad.items() if how == "segmentation fault")  # fmt: skip
    memory = "GPUs" if run["memory"] == "cuda" else "the host"
    where = run["gpu"] if run["memory"] == "cuda" else f"{run['cpu']}, {run['cores']} cores"
    chosen = "all programs"
    if run["only"]:
        chosen = "those named " + ", ".join(f"`{one.name}`" for one in programs)
    has_neighbors = any("neighbor" in one.name for one in programs)
    ranks = f"{run['ranks']} ranks" + (", 3 of neighbours," if has_neighbors else ",")
    facts = {**run, "ranks": ranks, "chosen": chosen, "memory": memory, "where": where,
             "endings": endings, "commit": run["commit"][:7]}  # fmt: skip
    lines = osu.lines(programs)
    told = [column for column in zip(osu.HEADINGS, *lines, strict=True)
            if any(cell != "-" for cell in column[1:])]  # fmt: skip
    headings, *lines = zip(*told, strict=True)
    text = [OSU_RUN.format(**facts).strip(), table(headings, lines).strip()]
    failed = [f"- `{one.folder}/{one.name}`, `{mode}`: {ran.ending}" for one in programs
              for mode, ran in one.runs.items() if mode != "plain" and ran.ending != osu.WELL
              and one.runs["plain"].ending == osu.WELL]  # fmt: skip
    if failed:
        text.append("Only without mpress these end well:\n\n" + "\n".join(failed))
    if run["memory"] == "cuda":
        sizes = sorted({size for one in programs for size in one.runs["auto"].values})
        values = [[f"`{one.name}`" + (", MB/s" if osu.is_rate(one.name) else ""),
                   *(number(one.runs["auto"].values.get(size)) for size in sizes)]
                  for one in programs]  # fmt: skip
        text += [OSU_VALUES.strip(), table(["", *map(size_name, sizes)], values).strip()]
    return text


def page(
    runs: list[dict[str, Any]],
    tests: list[dict[str, Any]],
    osus: list[dict[str, Any]],
    codes: list[dict[str, Any]],
) -> str:
    text = [HEAD.format(generated=generated_by("report_programs.py")).strip()]
    for run in codes:
        text.append(PACKAGES.format(**{**run, "commit": run["commit"][:7]}).strip())
        lines = [packages.line(packages.row_of(row)) for row in run["rows"]]
        text.append(table(packages.HEADINGS, lines).strip())
    for run in tests:
        text.append(MPICH_TESTS.format(**{**run, "commit": run["commit"][:7]}).strip())
        folders = [mpich_tests.Folder(**row) for row in run["rows"]]
        lines = [folder.line() for folder in folders] + [mpich_tests.total(folders).line()]
        text.append(table(mpich_tests.HEADINGS, lines).strip())
        failed = [f"- `{one['test']}`" for folder in folders for one in folder.failed]
        if failed:
            text.append("Only without mpress these end well:\n\n" + "\n".join(failed))
    if osus:
        text.append(OSU.strip())
    for run in osus:
        text += osu_section(run)
    for run in runs:
        text.append(LAMMPS.format(**{**run, "commit": run["commit"][:7]}).strip())
        for network in run["networks"]:
            text.append(f"{network['hosts']} hosts, {network['rate'] / 1e6:g} Mbit/s each:")
            text.append(table(lammps.HEADINGS, map(lammps.line, network["rows"])).strip())
        text.append(LOSSLESS.strip())
    return filled("\n\n".join(text))


def read(name: str, folder: Path = RESULTS) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob(f"program-{name}*.json"))]


def main() -> None:
    PAGE.write_text(page(*map(read, PARTS)))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
