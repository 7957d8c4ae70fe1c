"""Simulation codes as Debian has them, unmodified: do they compute the same under mpress?

    apt-get install abinit abinit-data cp2k cp2k-data elk-lapw gpaw gpaw-data lammps lammps-data
    apt-get install nwchem-openmpi python3-meep-openmpi python3-mpi4py python3-petsc4py
    apt-get install quantum-espresso quantum-espresso-data
    python bench/programs/packages.py --json bench/results/program-packages.json

Each computes a small case on ranks of this host: twice plain, under mpress as it comes, and with
everything compressed that can be, without loss. Tells how many messages that were, at which ratio,
and whether all that the program says of its results, or writes, has the same bits. Where programs
add up arrays over more than two ranks, mpress adds in an order of its own; these cases have two, or
programs that do not. What is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from programs.builds import FORCED, launched
from tables import table

from mpress.codec_bench import cpu_name, git_commit

MPIEXEC = ("mpirun.openmpi", "--oversubscribe")
PYTHON = "/usr/bin/python3"  # whose packages Debian's are
MODES = {"plain": None, "again": None, "auto": (), "mpc": FORCED}
"""Options of `mpress run`."""


@dataclass(frozen=True)
class Case:
    package: str
    command: tuple[str, ...]
    files: dict[str, str]
    """What lies in its folder; a text that begins with / is that of a file."""
    output: str = ""
    """Lines that tell of results: a pattern."""
    written: tuple[str, ...] = ()
    """Files that hold results."""
    ranks: int = 2
    about: str = ""


def water() -> str:
    """27 molecules in a box of 9.85 Angstrom."""
    side = 9.85 / 3
    atoms = []
    for i in range(27):
        x, y, z = ((i // 3**axis % 3 + 0.5) * side for axis in range(3))
        atoms += [f"O {x:.6f} {y:.6f} {z:.6f}", f"H {x + 0.757:.6f} {y:.6f} {z + 0.586:.6f}",
                  f"H {x - 0.757:.6f} {y:.6f} {z + 0.586:.6f}"]  # fmt: skip
    return "\n".join([str(len(atoms)), "water", *atoms, ""])


SILICON = ("0 0 0", "0 .5 .5", ".5 0 .5", ".5 .5 0", ".25 .25 .25", ".25 .75 .75", ".75 .25 .75",
           ".76 .74 .25")  # fmt: skip
"""The last one is out of its place."""

ABINIT = """\
acell 3*10.26
natom 8 ntypat 1 znucl 14 typat 8*1
xred {atoms}
ecut 14 nband 24
kptopt 0 nkpt 2 kpt .25 .25 .25  .25 .25 -.25 wtk .5 .5
nsym 1
nstep 12 tolvrs 1.0d-10
pp_dirpath "./" pseudos "14si.pspnc"
paral_kgb 1
npkpt 1 npband 2 npfft 1
"""
CP2K = """\
&GLOBAL
  PROJECT water
  RUN_TYPE MD
  PRINT_LEVEL LOW
&END GLOBAL
&MOTION
  &MD
    ENSEMBLE NVE
    STEPS 2
    TIMESTEP 0.5
    TEMPERATURE 300.0
  &END MD
&END MOTION
&FORCE_EVAL
  METHOD QS
  &DFT
    BASIS_SET_FILE_NAME GTH_BASIS_SETS
    POTENTIAL_FILE_NAME POTENTIAL
    &MGRID
      CUTOFF 200
    &END MGRID
    &QS
      EPS_DEFAULT 1.0E-10
    &END QS
    &SCF
      SCF_GUESS ATOMIC
      EPS_SCF 1.0E-6
      MAX_SCF 20
      &OT ON
        MINIMIZER DIIS
        PRECONDITIONER FULL_SINGLE_INVERSE
      &END OT
    &END SCF
    &XC
      &XC_FUNCTIONAL Pade
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 9.85 9.85 9.85
    &END CELL
    &TOPOLOGY
      COORD_FILE_NAME water.xyz
      COORD_FILE_FORMAT XYZ
    &END TOPOLOGY
    &KIND H
      BASIS_SET DZVP-GTH
      POTENTIAL GTH-PADE-q1
    &END KIND
    &KIND O
      BASIS_SET DZVP-GTH
      POTENTIAL GTH-PADE-q6
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""
ELK = """\
tasks
  0

avec
  5.13  5.13  0.00
  5.13  0.00  5.13
  0.00  5.13  5.13

sppath
  '/usr/share/elk-lapw/species/'

atoms
  2
  'Ga.in'
  1
  0.0  0.0  0.0
  'As.in'
  1
  0.26 0.25 0.25

ngridk
  3  3  3

tforce
  .true.
"""
GPAW = """\
from ase.build import bulk
from ase.parallel import parprint
from gpaw import GPAW, FermiDirac

silicon = bulk("Si", cubic=True)
silicon.rattle(0.05, seed=3)
calculator = GPAW(
    mode="fd", h=0.22, xc="LDA", kpts=(2, 2, 1), symmetry={"point_group": False}, nbands=24,
    occupations=FermiDirac(0.1), convergence={"density": 1e-5, "eigenstates": 1e-7},
    txt="gpaw.txt", parallel={"domain": 2, "band": 1},
)
silicon.calc = calculator
parprint("RESULT", repr(silicon.get_potential_energy()), repr(silicon.get_forces().tolist()))
parprint("RESULT", repr(calculator.get_eigenvalues(0).tolist()))
density = calculator.get_pseudo_density()
parprint("RESULT", repr(float(density.sum())), repr(density[::5, ::5, ::5].tolist()))
"""
LAMMPS = """\
units metal
lattice diamond 5.431
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
pair_style tersoff
pair_coeff * * Si.tersoff Si
mass 1 28.06
velocity all create 1000.0 376847 loop geom
fix 1 all npt temp 1000 1000 0.1 iso 0 0 1
timestep 0.001
thermo 20
thermo_modify format float %.16g
run 100
write_dump all custom end.dump id x y z vx vy vz modify sort id format float %.17g
"""
MEEP = """\
import hashlib

import meep as mp
import numpy as np

cell = mp.Vector3(10, 6, 3)
resonance = mp.LorentzianSusceptibility(frequency=0.4, gamma=0.01, sigma=1)
simulation = mp.Simulation(
    cell_size=cell, boundary_layers=[mp.PML(1.0)], resolution=8,
    geometry=[
        mp.Block(mp.Vector3(mp.inf, 1, 1), center=mp.Vector3(), material=mp.Medium(epsilon=12)),
        mp.Cylinder(radius=1, height=1, center=mp.Vector3(2, 1),
                    material=mp.Medium(epsilon=4, E_susceptibilities=[resonance])),
    ],
    sources=[mp.Source(mp.GaussianSource(0.15, fwidth=0.1), component=mp.Ez,
                       center=mp.Vector3(-3.5, 0))],
)
region = mp.FluxRegion(center=mp.Vector3(3.5, 0), size=mp.Vector3(0, 4, 2))
flux = simulation.add_flux(0.15, 0.1, 5, region)
simulation.run(until=20)
field = simulation.get_array(center=mp.Vector3(), size=cell, component=mp.Ez)
fluxes = mp.get_fluxes(flux)
if mp.am_master():
    bits = hashlib.sha256(np.ascontiguousarray(field)).hexdigest()
    print("RESULT", *map(repr, fluxes), bits)
"""
NWCHEM = """\
start pw
geometry units angstroms noautosym
 system crystal
  lat_a 5.43 lat_b 5.43 lat_c 5.43 alpha 90 beta 90 gamma 90
 end
{atoms}
end
nwpw
 cutoff 15.0
 loop 10 5
end
task pspw gradient
"""
PETSC = """\
import hashlib
import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc

grid = PETSc.DMDA().create([48] * 3, dof=1, stencil_width=1, boundary_type=("periodic",) * 3)
x, local = grid.createGlobalVec(), grid.createLocalVec()
(x0, x1), (y0, y1), (z0, z1) = grid.getRanges()
i, j, k = np.meshgrid(*map(np.arange, (x0, y0, z0), (x1, y1, z1)), indexing="ij")
grid.getVecArray(x)[:, :, :] = np.sin(0.1 * i) * np.cos(0.2 * j) + 0.01 * k
shape = (x1 - x0 + 2, y1 - y0 + 2, z1 - z0 + 2)
for _ in range(100):  # heat
    grid.globalToLocal(x, local)
    g = local.getArray().reshape(shape, order="F")
    mid = g[1:-1, 1:-1, 1:-1]
    around = (g[2:, 1:-1, 1:-1] + g[:-2, 1:-1, 1:-1] + g[1:-1, 2:, 1:-1] + g[1:-1, :-2, 1:-1]
              + g[1:-1, 1:-1, 2:] + g[1:-1, 1:-1, :-2])
    grid.getVecArray(x)[:, :, :] = mid + 0.1 * (around - 6 * mid)
scatter, everything = PETSc.Scatter.toAll(x)
scatter.scatter(x, everything, mode=PETSc.ScatterMode.FORWARD)
bits = hashlib.sha256(everything.getArray().tobytes()).hexdigest()
PETSc.Sys.Print("RESULT", PETSc.COMM_WORLD.tompi4py().gather(bits))
"""
QUANTUM_ESPRESSO = """\
&control
 calculation='scf', prefix='si', pseudo_dir='./', outdir='./tmp', tprnfor=.true., tstress=.true.
/
&system
 ibrav=1, celldm(1)=10.26, nat=8, ntyp=1, ecutwfc=24.0, nosym=.true., nbnd=20, occupations='fixed'
/
&electrons
 conv_thr=1.0d-10, diagonalization='david'
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS crystal
{atoms}
K_POINTS automatic
 2 2 1 1 1 1
"""


def listed(atoms: tuple[str, ...], shift: str = " Si {}") -> str:
    return "\n".join(shift.format(atom) for atom in atoms)


CASES = (
    Case("abinit", ("abinit", "in.abi"),
         {"in.abi": ABINIT.format(atoms="  ".join(SILICON)),
          "14si.pspnc": "/usr/share/abinit/psp/14si.pspnc"},
         output=r"^ ETOT |etotal|^ +[xyz]?cart_forces|sigma\(", written=("in*_DEN", "in*_WFK"),
         about="ground state of silicon, bands on two ranks"),
    Case("cp2k", ("cp2k.psmp", "in.inp"), {"in.inp": CP2K, "water.xyz": water()},
         output="ENERGY\\|", written=("water-pos-1.xyz", "water-RESTART.wfn"),
         about="molecular dynamics of 27 molecules of water by density functional theory"),
    Case("elk-lapw", ("elk-lapw",), {"elk.in": ELK},
         written=("TOTENERGY.OUT", "EIGVAL.OUT", "FERMIDOS.OUT", "STATE.OUT"),
         about="ground state of GaAs, all electrons"),
    Case("gpaw", (PYTHON, "in.py"), {"in.py": GPAW}, output="^RESULT",
         about="silicon on a grid that two ranks share"),
    Case("lammps", ("lmp", "-in", "in.lmp", "-log", "none"),
         {"in.lmp": LAMMPS, "Si.tersoff": "/usr/share/lammps/potentials/Si.tersoff"},
         output=r"^ +\d+ +[\d.e+-]+ ", written=("end.dump",),
         about="13,824 atoms of silicon at constant pressure"),
    Case("python3-meep-openmpi", (PYTHON, "in.py"), {"in.py": MEEP}, output="^RESULT", ranks=3,
         about="a waveguide and a resonator in the time domain"),
    Case("nwchem-openmpi", ("nwchem.openmpi", "in.nw"), {"in.nw": NWCHEM.format(
         atoms=listed(SILICON))}, output="total PSPW energy|^ +\\d+ Si", written=("pw.movecs",),
         about="silicon in plane waves"),
    Case("python3-petsc4py", (PYTHON, "in.py"), {"in.py": PETSC}, output="RESULT", ranks=4,
         about="heat on a distributed grid, gathered to all"),
    Case("quantum-espresso", ("pw.x", "-in", "in.pw"),
         {"in.pw": QUANTUM_ESPRESSO.format(atoms=listed(SILICON)),
          "Si.pz-vbc.UPF": "/usr/share/espresso/pseudo/Si.pz-vbc.UPF"},
         output="^!|total energy|force =|^ +(-?\\d+\\.\\d+ +){3}", written=("tmp/si.save/*.dat",),
         about="ground state, forces and stress of silicon in plane waves"),
)  # fmt: skip


@dataclass
class Run:
    code: int
    seconds: float
    results: str
    """A hash of them; empty: there are none."""
    output: str = ""
    """Its end, where it did not end well."""
    messages: int = 0
    compressed: int = 0
    raw_bytes: int = 0
    """Of those that were compressed."""
    wire_bytes: int = 0

    @property
    def is_well(self) -> bool:
        return self.code == 0 and bool(self.results)


@dataclass
class Row:
    package: str
    version: str
    about: str
    ranks: int
    runs: dict[str, Run] = field(default_factory=dict)

    def same(self, mode: str) -> bool:
        return self.runs[mode].is_well and self.runs[mode].results == self.runs["plain"].results

    @property
    def is_right(self) -> bool:
        """All of it, as far as the program itself has the same results twice."""
        return self.same("again") and self.same("auto") and self.same("mpc")


def version(package: str) -> str | None:
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Version}", package]
    done = subprocess.run(asked, capture_output=True, text=True)
    state, _, number = done.stdout.partition(" ")
    return number if done.returncode == 0 and state == "installed" else None


def results(case: Case, folder: Path, output: str) -> str:
    """A hash of what the program tells and writes of its results."""
    hashed, has_any = hashlib.sha256(), False
    lines = [line for line in output.splitlines() if case.output and re.search(case.output, line)]
    for part in case.written:
        paths = sorted(folder.glob(part))
        has_any = has_any or bool(paths)
        for path in paths:
            hashed.update(path.read_bytes())
    hashed.update("\n".join(lines).encode())
    return hashed.hexdigest() if has_any or lines else ""


def run(case: Case, mode: str, limit: float) -> Run:
    with tempfile.TemporaryDirectory(prefix="mpress-packages-") as scratch:
        folder = Path(scratch)
        for name, text in case.files.items():
            (folder / name).write_text(Path(text).read_text() if text[0] == "/" else text)
        ended = launched(case.command, case.ranks, MODES[mode], folder, limit, MPIEXEC,
                         {"OMP_NUM_THREADS": "1"})  # fmt: skip
        code = -1 if ended.code is None else ended.code
        found = Run(code, ended.seconds, results(case, folder, ended.text))
    if not found.is_well:
        found.output = ended.text[-2000:]
    if ended.report:
        packed = [one for one in ended.report["rows"]
                  if one["direction"] == "send" and one["codec"] != "none"]  # fmt: skip
        found.messages = ended.report["totals"]["messages"]
        found.compressed = ended.compressed
        found.raw_bytes = sum(one["raw_bytes"] for one in packed)
        found.wire_bytes = sum(one["wire_bytes"] for one in packed)
    return found


HEADINGS = ["package, and what it computes", "ranks", "compressed messages", "ratio",
            "same results: `mpc` forced", "`auto`"]  # fmt: skip


def line(row: Row) -> list[str]:
    """Of the table that is printed, and of docs/dev/results-programs.md."""
    forced = row.runs["mpc"]

    def verdict(mode: str) -> str:
        if row.same(mode):
            return "yes"
        return "**no**" if row.same("again") else "differ without mpress"

    ratio = f"{forced.raw_bytes / forced.wire_bytes:.2f}" if forced.wire_bytes else "-"
    return [f"{row.package} {row.version}: {row.about}", str(row.ranks),
            f"{forced.compressed} of {forced.messages}", ratio, verdict("mpc"),
            verdict("auto")]  # fmt: skip


def row_of(found: dict[str, Any]) -> Row:
    """Of a row of the results."""
    return Row(**{**found, "runs": {mode: Run(**one) for mode, one in found["runs"].items()}})


def measured(case: Case, number: str, limit: float) -> Row:
    row = Row(case.package, number, case.about, case.ranks)
    for mode in MODES:
        ran = row.runs[mode] = run(case, mode, limit)
        if not ran.is_well:
            print(f"{case.package}, {mode}: code {ran.code}\n{ran.output}", file=sys.stderr)
    return row


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="PATTERN", help="packages whose names fit")
    parser.add_argument("--limit", type=float, default=600, metavar="S", help="default 600")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    launcher = MPIEXEC[0]
    if not shutil.which(launcher):
        raise SystemExit(f"packages: {launcher} is missing: apt-get install openmpi-bin")
    rows = []
    for case in CASES:
        if not re.search(options.only, case.package):
            continue
        number = version(case.package)
        if number is None:
            print(f"{case.package}: not installed", file=sys.stderr)
            continue
        row = measured(case, number, options.limit)
        rows.append(row)
        print(f"{case.package}: {'the same' if row.is_right else 'NOT the same'} in "
              f"{', '.join(f'{mode} {one.seconds:.0f} s' for mode, one in row.runs.items())}",
              flush=True)  # fmt: skip
    print("\n" + table(HEADINGS, list(map(line, rows))))
    document = {
        "format": 1, "kind": "program-packages", "date": time.strftime("%Y-%m-%d"),
        "commit": git_commit(), "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
        "mpi": subprocess.run([launcher, "--version"], capture_output=True,
                              text=True).stdout.splitlines()[0].split()[-1],
        "rows": list(map(asdict, rows)),
    }  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if rows and all(row.is_right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
