"""Write docs/dev/results-programs.md from bench/results/program-*.json, of bench/programs."""

import json
from pathlib import Path
from typing import Any

from programs import lammps
from tables import filled, generated_by, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "dev" / "results-programs.md"


HEAD = """\
# Results: other people's programs

{generated}
Programs of Debian's packages, as they come, between network namespaces as hosts (bench/cluster.py,
which takes root) whose links a token bucket holds to a rate; TCP. Plain, and under `mpress run`
with its default, which loses nothing and knows nothing of the network before. Runs take turns;
times are medians, and the least and the greatest.
"""

LAMMPS = """\
## LAMMPS

`apt-get install lammps`, then `python bench/programs/lammps.py --json FILE`: a Lennard-Jones melt
of {atoms} atoms, {steps} steps, {ranks} ranks, {repeat} runs of each kind. "Over plain" is the
median of what a run takes over the plain one beside it. "Same results": the table of thermodynamics
to 16 digits, and each atom's position and velocity at the end to 17, in every run.

LAMMPS {lammps}, Open MPI {openmpi}; {cpu}, {cores} cores, others' load about {load:.0f}; {date},
commit `{commit}`.
"""

LOSSLESS = """\
Only codecs without loss are for LAMMPS: it packs atoms' numbers between their coordinates, as
doubles that are none, and a bound would change them.
"""


def page(runs: list[dict[str, Any]]) -> str:
    text = [HEAD.format(generated=generated_by("report_programs.py")).strip()]
    for run in runs:
        text.append(LAMMPS.format(**{**run, "commit": run["commit"][:7]}).strip())
        for network in run["networks"]:
            text.append(f"{network['hosts']} hosts, {network['rate'] / 1e6:g} Mbit/s each:")
            text.append(table(lammps.HEADINGS, map(lammps.line, network["rows"])).strip())
        text.append(LOSSLESS.strip())
    return filled("\n\n".join(text))


def read(folder: Path = RESULTS) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("program-lammps*.json"))]


def main() -> None:
    PAGE.write_text(page(read()))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
