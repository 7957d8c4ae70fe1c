"""Random scripts of collective calls for tests/mpi/scripted, and the settings of mpress to run them
under, as hypothesis draws and shrinks them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

# What the program may expect of a codec.
BOUNDS = {
    "none": "exact",
    "mpc": "exact",
    "szp:rel=1e-3": "rel=1e-3",
    "szp:abs=1e-2": "abs=1e-2",
    "zfp:16": "loose",
}
ONE_COUNT = ("bcast", "gather", "scatter", "allgather", "alltoall")
MANY_COUNTS = ("allgatherv", "gatherv", "scatterv")
MATRIX = ("alltoallv", "alltoallw")
OPS = (*ONE_COUNT, *MANY_COUNTS, *MATRIX)
FORMS = ("blocking", "immediate", "persistent")
COMMS = ("world", "reversed", "halves")
LEAVES = ("f32", "f64", "i32")
DATA = ("smooth", "noise", "wild", "huge", "constant", "nothing")
# Elements of the largest block of a call. What is drawn for a call of N ranks is a Nth of it.
SIZES = (40, 0, 1000, 5000, 20000, 80000)
LAYOUTS = {"contiguous": "c", "gaps": "g", "backwards": "b", "any": "cgb"}
PLACES = {"host": "h", "device": "0", "any": "h01"}
# How mpress may serve a call, where it suits the communicator's hosts; the first: as costs tell.
ALGORITHMS = {
    "bcast": ("", "linear", "binomial", "chain", "scatter-ring", "scatter-doubling", "two-shot"),
    "allgather": ("", "scattered", "ring", "doubling", "bruck", "by-host"),
    "alltoall": ("", "scattered", "pairwise"),
}
MOST_ACTIONS = 60


@dataclass(frozen=True)
class Setting:
    """Variables of the environment, and whether buffers may lie on devices."""

    variables: dict[str, str]
    has_devices: bool


@dataclass
class Script:
    """`ranks` run the `lines` with `codec` and `options` of mpress, in the environment `env`."""

    ranks: int
    codec: str
    options: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def bound(self) -> str:
        return BOUNDS[self.codec]

    def __repr__(self) -> str:
        env = " ".join(f"{name}={value}" for name, value in self.env.items())
        words = " ".join([f"{self.ranks} ranks, --codec", self.codec, *self.options])
        return "\n".join([f"{words}, {env or 'no variables'}, bound {self.bound}", *self.lines])


def counts(op: str, ranks: int, most: int, is_symmetric: bool, unit: int, seed: int) -> list[int]:
    """Elements, in whole units: the most, none, or any number between."""
    chance = random.Random(seed)

    def one() -> int:
        number = chance.choice((0, most, chance.randint(0, most), chance.randint(0, most)))
        return number // unit * unit

    if op in ONE_COUNT:
        return [most // unit * unit]
    if op in MANY_COUNTS:
        return [one() for _ in range(ranks)]
    matrix = [[one() for _ in range(ranks)] for _ in range(ranks)]
    for i in range(ranks):
        for j in range(i) if is_symmetric else ():
            matrix[i][j] = matrix[j][i]
    return [number for row in matrix for number in row]


@st.composite
def calls(draw: st.DrawFn, ranks: int, on_devices: bool) -> str:
    op = draw(st.sampled_from(OPS))
    form = draw(st.sampled_from(FORMS))
    in_place = op != "bcast" and draw(st.integers(0, 5)) == 5
    if op in MATRIX and form != "blocking":
        in_place = False  # Open MPI 5 mixes up what they bring
    seed = draw(st.integers(0, 99))
    chance = random.Random(seed)
    layouts = [draw(st.sampled_from(list(LAYOUTS))) for _ in range(2)]
    places = [draw(st.sampled_from(list(PLACES))) if on_devices else "host" for _ in range(2)]
    leaf = draw(st.sampled_from((*LEAVES, "mixed") if op == "alltoallw" else LEAVES))

    def letters(choice: str, is_one: bool = False) -> str:
        one = chance.choice(choice)
        return "".join(one if is_one else chance.choice(choice) for _ in range(ranks))

    # MPIs choose how to gather to all by what a rank's own types tell, and wait for each other
    # where that differs.
    sides = [
        f"{letters(LAYOUTS[layout], op.startswith('allgather'))}:{letters(PLACES[place])}"
        for layout, place in zip(layouts, places, strict=True)
    ]
    unit = 1 if layouts == ["contiguous", "contiguous"] else 4
    most = draw(st.sampled_from(SIZES))
    if op != "bcast":
        most //= ranks
    if op == "alltoall" and form == "persistent":
        most = max(most, unit)  # of nothing, MPICH 5.0 between hosts divides by zero
    numbers = counts(op, ranks, most, in_place, unit, seed)
    words = [
        f"call {op} {form} comm={draw(st.sampled_from(COMMS))}",
        f"root={draw(st.integers(0, ranks - 1))} in_place={int(in_place)}",
        f"order={draw(st.integers(0, 2)) if op not in ONE_COUNT else 0}",
        f"leaf={leaf} data={draw(st.sampled_from(DATA))} seed={seed}",
        f"starts={draw(st.integers(1, 3)) if form == 'persistent' else 1}",
        f"out={sides[0]} in={sides[1]} counts={','.join(map(str, numbers))}",
    ]
    return " ".join(words)


@st.composite
def scripts(draw: st.DrawFn, codec: str, settings: list[Setting]) -> Script:
    ranks = draw(st.integers(1, 9))
    setting = draw(st.sampled_from(settings))
    options = ("--force", "--threshold", "0")
    if draw(st.integers(0, 4)) == 4:
        options = ()  # mpress decides where it pays
    script = Script(ranks, codec, options, dict(setting.variables))
    chosen = {op: draw(st.sampled_from(names)) for op, names in ALGORITHMS.items()}
    if any(chosen.values()):
        named = (f"{op}={algorithm}" for op, algorithm in chosen.items() if algorithm)
        script.env["MPRESS_ALGORITHM"] = ",".join(named)
    # Not a list, which as a rule would be short. What is left out shrinks well.
    for _ in range(MOST_ACTIONS):
        kind = draw(st.integers(0, 9))
        if kind > 2:
            script.lines.append(draw(calls(ranks, setting.has_devices)))
        elif kind > 0:
            script.lines.append("drain" if kind == 1 else f"wait {draw(st.integers(0, 9))}")
    return script
