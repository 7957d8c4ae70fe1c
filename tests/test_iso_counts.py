"""Messages and blocks of neighbourhoods' exchanges between real ranks: what a library beneath
mpress counts (tests/mpi/count_messages.c), what mpress's record says, and what follows from the
list. For grids of more ranks, tests/unit/schedule_neighbourhoods_test.cpp has schedules simulated.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from execution import ROOT
from test_api import compile_api_program

from mpress import trace

EXTENDED = pytest.mark.extended
BLOCK = 12  # bytes, in the program
CALLS = 2


@dataclass(frozen=True)
class Counts:
    """What each rank of a torus sends: messages, which message combining has one of a round, and
    blocks; where dimensions are longer than two radii, so that no two offsets meet."""

    ranks: int
    arguments: str
    """Dimensions, the list, its radius and inner radius."""
    direct: int
    rounds: int
    digit_rounds: int
    alltoall: int
    digits: int
    gather: int
    reduce: int

    def expected(self) -> dict[tuple[str, str], tuple[int, int]]:
        direct = self.direct, self.direct
        return {
            ("alltoall", "direct"): direct,
            ("alltoall", "combining"): (self.rounds, self.alltoall),
            ("alltoallv", "digits"): (self.digit_rounds, self.digits),
            ("allgather", "direct"): direct,
            ("allgather", "combining"): (self.rounds, self.gather),
            ("reduce", "direct"): direct,
            ("reduce", "combining"): (self.rounds, self.reduce),
            ("scatter_reduce", "direct"): direct,
            ("scatter_reduce", "combining"): (self.rounds, self.gather),
        }


TORI = [
    Counts(9, "2 moore 1 -1", 8, 4, 4, 12, 12, 8, 4),  # with itself, which takes no message
    Counts(9, "2 neumann 1 0", 4, 4, 4, 4, 4, 4, 4),
    Counts(27, "3 moore 1 0", 26, 6, 6, 54, 54, 26, 6),
]
MORE_TORI = [
    Counts(16, "2 cube 2 -1", 15, 6, 6, 24, 24, 15, 6),
    Counts(25, "2 moore 2 0", 24, 8, 8, 40, 40, 24, 8),
    Counts(27, "3 neumann 1 0", 6, 6, 6, 6, 6, 6, 6),
    Counts(49, "2 moore 3 0", 48, 12, 8, 84, 112, 48, 12),
    Counts(64, "3 cube 2 -1", 63, 9, 9, 144, 144, 63, 9),
    Counts(81, "4 moore 1 0", 80, 8, 8, 216, 216, 80, 8),
]


@pytest.fixture
def count(build_dir, mpi, mpirun, preloadable, tmp_path):
    """count(ranks, arguments): of each call and algorithm, a row of each rank: messages sent and
    received, those to itself, bytes sent. What mpress has recorded says the same."""
    program = compile_api_program(ROOT / "tests" / "api" / "neighbour_counts.c", mpi, build_dir)
    library = preloadable("count_messages")

    def run(ranks: int, arguments: str) -> dict[tuple[str, str], np.ndarray]:
        records = tmp_path / "records"
        records.mkdir()
        env = {"LD_PRELOAD": library, "MPRESS_LINK": "mpi", "MPRESS_RECORD": str(records)}
        done = mpirun(ranks, program, arguments.split(), env)
        assert done.status == 0, done.output
        lines = [line.split() for line in done.stdout.splitlines()]
        found: dict[tuple[str, str], np.ndarray] = {}
        for call, algorithm, rank, *numbers in lines:
            rows = found.setdefault((call, algorithm), np.full((ranks, 4), -1))
            rows[int(rank)] = numbers
        check_record(found, trace.merge(records)["rows"])
        return found

    return run


def check_record(found: dict[tuple[str, str], np.ndarray], rows: list[dict]) -> None:
    recorded: Counter[tuple] = Counter()
    for row in rows:
        if not row["operation"].startswith("mpress_iso_neighbor_"):
            continue
        key = row["operation"].removeprefix("mpress_iso_neighbor_"), row["algorithm"], row["rank"]
        assert row["peer"] != row["rank"] or row["direction"] == "complete"
        recorded[key, row["direction"], "messages"] += row["messages"]
        recorded[key, row["direction"], "bytes"] += row["raw_bytes"]
        assert row["raw_bytes"] == row["wire_bytes"]
    for (call, algorithm), ranks in found.items():
        for rank, (sends, receives, _, sent) in enumerate(ranks.tolist()):
            name = "scattered" if algorithm == "direct" else "combining"
            key = call, name, rank
            assert recorded[key, "send", "messages"] == CALLS * sends
            assert recorded[key, "send", "bytes"] == CALLS * sent
            if name == "combining":  # what comes as it was sent is counted by its sender alone
                assert recorded[key, "receive", "messages"] == CALLS * receives
            assert recorded[key, "complete", "messages"] == CALLS


@pytest.mark.parametrize("row", [*TORI, *(pytest.param(row, marks=EXTENDED) for row in MORE_TORI)])
def test_tori(row, count):
    dims, *rest = row.arguments.split()
    found = count(row.ranks, " ".join([dims, "1", *rest]))
    for key, (messages, blocks) in row.expected().items():
        expected = messages, messages, 0, blocks * BLOCK
        assert (found.pop(key) == expected).all(), key
    assert not found


@pytest.mark.parametrize(
    ("ranks", "periodic", "radius"), [(9, False, 1), (4, True, 1), pytest.param(9, True, 3)]
)
def test_borders_and_aliases(ranks, periodic, radius, count):
    """Where neighbours are missing, or several are one process, or this one."""
    found = count(ranks, f"2 {int(periodic)} moore {radius} -1")
    side = round(ranks**0.5)
    offsets = list(itertools.product(range(-radius, radius + 1), repeat=2))
    targets, hops = np.zeros(ranks, int), 0
    for rank, offset in itertools.product(range(ranks), offsets):
        at = np.array([rank // side, rank % side]) + offset
        if not periodic and ((at < 0) | (at >= side)).any():
            continue
        steps = np.array(offset) % side if periodic else np.array(offset)
        targets[rank] += steps.any()
        hops += np.count_nonzero(steps)
    distances = min(2 * radius, side - 1) if periodic else 2 * radius
    for (call, algorithm), rows in found.items():
        sends, receives, own, sent = rows.T
        assert (own == 0).all() and sends.sum() == receives.sum()
        if algorithm == "direct" and call in ("alltoall", "scatter_reduce"):
            assert (sends == targets).all() and (sent == targets * BLOCK).all()
        elif algorithm == "direct":  # one block for all neighbours that are one process
            assert (sends == np.minimum(targets, ranks - 1)).all()
        elif algorithm == "combining":
            assert (sends <= 2 * distances).all()
            assert sends.max() == 2 * distances
        if (call, algorithm) == ("alltoall", "combining"):
            assert sent.sum() == hops * BLOCK
