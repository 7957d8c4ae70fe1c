"""Write docs/dev/results-programs.md from bench/results/program-*.json, of bench/programs."""

import json
from pathlib import Path
from typing import Any

from programs import lammps, mpich_tests
from tables import filled, generated_by, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "dev" / "results-programs.md"


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


def page(runs: list[dict[str, Any]], tests: list[dict[str, Any]]) -> str:
    text = [HEAD.format(generated=generated_by("report_programs.py")).strip()]
    for run in tests:
        text.append(MPICH_TESTS.format(**{**run, "commit": run["commit"][:7]}).strip())
        folders = [mpich_tests.Folder(**row) for row in run["rows"]]
        lines = [folder.line() for folder in folders] + [mpich_tests.total(folders).line()]
        text.append(table(mpich_tests.HEADINGS, lines).strip())
        failed = [f"- `{one['test']}`" for folder in folders for one in folder.failed]
        if failed:
            text.append("Only without mpress these end well:\n\n" + "\n".join(failed))
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
    PAGE.write_text(page(read("lammps"), read("mpich-tests")))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
