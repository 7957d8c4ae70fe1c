"""MPI_Info hints on communicators rule over the environment; reports tell which codec was used."""

from __future__ import annotations

from collections import Counter

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")


@pytest.fixture
def hints(mpi_program, mpress_run):
    """hints(part, ...): runs that part of tests/mpi/hints.c on two ranks."""

    def run(*args, options=FORCED):
        return mpress_run(2, mpi_program("hints"), args, options=options)

    return run


def sent(done, rank=0):
    """How many messages of a rank went with each codec, or raw for each reason."""
    count = Counter()
    for row in done.report["rows"]:
        if row["direction"] == "send" and row["rank"] == rank:
            count[row["reason"] or row["codec"]] += row["messages"]
    return count


def test_duplicates_inherit_hints_and_others_do_not(hints):
    done = hints("inheritance")
    assert done.status == 0, done.stderr
    assert done.stdout.splitlines() == [
        "dup: zfp:16 -",
        "parent: zfp:16 1M",
        "idup: zfp:16 1M",
        "dup with nothing: - -",
        "idup with zfp: zfp:16 -",
        "split: - -",
        "world: - -",
        "ok",
    ]
    assert sent(done) == {"zfp": 3, "below the threshold": 1, "mpc": 2}


def test_hints_of_calls_that_make_communicators(hints):
    done = hints("creation")
    assert done.status == 0, done.stderr
    calls = ["split_type", "dist_graph_create_adjacent", "dist_graph_create", "create_from_group"]
    assert done.stdout.splitlines() == [f"{call}: zfp:16 -" for call in calls] + ["ok"]
    assert sent(done) == {"zfp": 4}


@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=pytest.mark.extended)])
def test_reductions_need_the_same_hints(ranks, mpi, mpi_program, mpress_run):
    # MPI's library for the standard ABI serves calls that do not block.
    arguments = ["blocking"] if mpi.name == "abi" else []
    done = mpress_run(ranks, mpi_program("hints_differ"), arguments, options=FORCED)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


def test_hints_change_at_any_time(hints):
    """none, zfp, szp, auto by turns on one persistent send."""
    done = hints("change")
    assert done.status == 0, done.stderr
    assert sent(done) == {"switched off": 1, "zfp": 1, "szp": 1, "mpc": 1}


def test_hints_rule_over_the_environment(hints):
    done = hints("creation", options=("--codec", "none", "--force", "--threshold", "0"))
    assert sent(done) == {"zfp": 4}
    done = hints("creation", options=("--codec", "none"))
    assert sent(done) == {"costs never measured": 4}  # a hint is no force


def test_the_kill_switch_rules_over_hints(mpi_program, mpress_run):
    program = mpi_program("hints")
    done = mpress_run(2, program, ["creation"], options=FORCED, env={"MPRESS_DISABLE_P2P": "1"})
    assert done.status == 0, done.stderr
    assert sent(done) == {"switched off": 4}


@pytest.mark.parametrize(
    ("chunk", "chunked"),
    [("16K", ["4K", "16K", "32K"]), ("64K", []), ("0", [])],  # of messages of 64 KiB
)
def test_chunks_are_the_communicator_s(chunk, chunked, mpi_program, mpress_run):
    """But no shorter than those that any receiver expects."""
    for hint in ("0", "4K", "16K", "32K", "64K"):
        env = {"MPRESS_CHUNK": chunk}
        done = mpress_run(2, mpi_program("hints"), ["chunk", hint], FORCED, env)
        assert done.status == 0, done.stderr
        assert done.report["totals"]["chunked_messages"] == (2 if hint in chunked else 0)


def test_ranks_may_differ(hints):
    done = hints("ranks_differ")
    assert done.status == 0, done.stderr
    assert sent(done, rank=0) == {"mpc": 1}
    assert sent(done, rank=1) == {"zfp": 1}


@pytest.mark.parametrize(
    ("key", "value", "what", "message"),
    [
        ("mpress_codec", "zpf:4", "VALUE", "mpress_codec: codec spec 'zpf:4': unknown codec"),
        ("mpress_threshold", "lots", "VALUE", "mpress_threshold='lots': expected bytes, such"),
        ("mpress_reproducible", "yes", "VALUE", "mpress_reproducible='yes': expected 0 or 1"),
        ("mpress_chunk", "5000", "VALUE", "mpress_chunk='5000': expected 0, or bytes: a multiple"),
        ("mpress_treshold", "1", "KEY", "unknown info key mpress_treshold; did you mean mpress_t"),
    ],
)
def test_wrong_hints_are_errors(key, value, what, message, hints):
    done = hints("wrong", key, value)
    assert done.status == 0, done.stderr
    told = dict(line.split(": ") for line in done.stdout.splitlines()[:-1])
    assert told.pop("after") == "- -"
    calls = ("set_info", "dup_with_info", "create_from_group")
    assert told == dict.fromkeys(calls, f"MPI_ERR_INFO_{what}")
    assert done.stderr.count(f"mpress: rank 0: {message}") == 3
    assert sent(done) == {"mpc": 1}


@pytest.mark.parametrize("part", ["inheritance", "creation", "change", "ranks_differ"])
def test_the_program_is_right_without_mpress(part, mpi_program, mpirun):
    done = mpirun(2, mpi_program("hints"), [part])
    assert done.status == 0, done.output
