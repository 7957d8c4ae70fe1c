"""Algorithms of the collective calls that mpress serves: every one of them is right under real
ranks, is what reports name, and is taken by all ranks alike."""

import pytest
from test_collectives import EXTENDED, FORCED, SERVED, served

from mpress import _core, trace

HOSTS = {"one": None, "two": "2", "each its own": "4"}
"""MPIR_CVAR_NUM_CLIQUES: into how many hosts MPICH parts a host of four ranks."""

SETS = [
    "bcast=linear,scatter=linear,gather=linear,allgather=scattered,alltoall=scattered",
    "bcast=binomial,allgather=ring,alltoall=pairwise",
    "bcast=chain,allgather=doubling",
    "bcast=scatter-ring,allgather=bruck",
    "bcast=scatter-doubling,allgather=by-host",
    "bcast=two-shot",
]
USUAL = [(choice, "one") for choice in SETS[1:4]] + [(SETS[5], "one"), (SETS[5], "two")]
"""Of `make test`; test_collectives_random draws all of them, too."""

ON_SHARED_HOSTS = {
    "bcast": {"binomial", "two-shot"},
    "scatter": {"linear"},
    "gather": {"linear"},
    "allgather": {"by-host"},
    "alltoall": {"scattered", "pairwise"},
}


def algorithms(done) -> dict[str, set[str]]:
    """By operation, without MPI_ and the letters of other forms."""
    found: dict[str, set[str]] = {}
    for row in done.report["rows"]:
        if row["operation"] in SERVED:
            name = row["operation"].removeprefix("MPI_").lower()
            if not name.endswith(("v", "w")):
                found.setdefault(name, set()).add(row["algorithm"])
    return found


@pytest.mark.parametrize(
    ("choice", "hosts"),
    [
        pytest.param(
            choice,
            hosts,
            id=f"{choice.split(',')[0]}-{hosts}",
            marks=() if (choice, hosts) in USUAL else EXTENDED,
        )
        for choice in SETS
        for hosts in HOSTS
    ],
)
def test_every_algorithm(choice, hosts, mpi, mpi_program, mpress_run, simulated_gpu):
    if hosts != "one" and mpi.name == "openmpi":
        pytest.skip("only MPICH takes parts of a host for hosts")
    env = {**simulated_gpu, "MPRESS_ALGORITHM": choice}
    if HOSTS[hosts]:
        env["MPIR_CVAR_NUM_CLIQUES"] = HOSTS[hosts]
    done = mpress_run(4, mpi_program("blocks"), ["31", "40"], FORCED, env=env)
    assert served(done)
    found = algorithms(done)
    for item in choice.split(","):
        operation, algorithm = item.split("=")
        if hosts == "two" and algorithm not in ON_SHARED_HOSTS[operation]:
            assert found[operation] & ON_SHARED_HOSTS[operation]
        elif hosts == "two":  # some communicators have a rank a host, or all of one
            assert algorithm in found[operation]
        elif algorithm == "by-host":
            assert algorithm not in found[operation]
        else:
            assert found[operation] == {algorithm}
    for name in found:
        calls = [row for row in done.report["rows"]
                 if row["operation"] == f"MPI_{name.capitalize()}"
                 and row["direction"] == "complete"]  # fmt: skip
        assert sum(row["messages"] for row in calls) > 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("ring", "expected OPERATION=ALGORITHM, with one of bcast, scatter"),
        ("reduce=ring", "expected OPERATION=ALGORITHM"),
        ("bcast=", "expected for bcast one of linear binomial chain"),
        ("bcast=ring", "expected for bcast one of linear binomial chain"),
        ("alltoall=scattered,bcast=two_shot", "expected for bcast one of"),
        ("alltoall=bruck", "expected for alltoall one of scattered pairwise"),
    ],
)
def test_what_is_no_algorithm(value, said, mpi_program, mpress_run):
    done = mpress_run(1, mpi_program("blocks"), ["1", "1"], env={"MPRESS_ALGORITHM": value})
    assert done.status != 0
    assert f"MPRESS_ALGORITHM='{value}'" in done.stderr and said in done.stderr


def test_names_of_the_statistics():
    assert [name or "none" for name in trace.ALGORITHMS] == _core.algorithms()


def test_reports_tell_why_mpi_served_calls(mpi, mpi_program, mpress_run):
    """All ranks' calls; those that mpress served are not among them. A persistent call counts when
    it is made. Calls that do not block have one reason where nothing lets mpress proceed."""
    done = mpress_run(2, mpi_program("left_to_mpi"), options=("--codec", "mpc", "--force"))
    assert served(done) == {"MPI_Bcast": 1}
    left = {
        ("MPI_Allreduce", "a communicator of one rank"): 2,
        ("MPI_Allreduce", "an operation or a type that mpress does not combine"): 2,
        ("MPI_Alltoall", "in place"): 2,
        ("MPI_Alltoallv", "no pair is long enough"): 2,
        ("MPI_Bcast", "shorter than the threshold"): 6,
        ("MPI_Bcast", "a communicator of one rank"): 2,
        ("MPI_Neighbor_allgather", "no pair is long enough"): 2,
        ("MPI_Neighbor_alltoallv", "no pair is long enough"): 2,
    }
    later = {
        ("MPI_Neighbor_alltoallw", "no call that blocks came before it on its communicator"): 2
    }
    if "has persistent calls" in done.stderr:
        later |= {
            ("MPI_Allgather", "a communicator of one rank"): 2,
            ("MPI_Gather", "shorter than the threshold"): 2,
            ("MPI_Gatherv", "no pair is long enough"): 2,
            ("MPI_Scatter", "there are too many persistent ones"): 2,
        }
    found = {(row["operation"], row["reason"]): row["calls"] for row in done.report["left_to_mpi"]}
    if mpi.name == "abi":
        reason = "it does not block, and nothing lets mpress proceed meanwhile"
        later = {(operation, reason): calls for (operation, _), calls in later.items()}
        assert found.pop(("MPI_Bcast", reason)) == 2 * 4096
    assert found == left | later
