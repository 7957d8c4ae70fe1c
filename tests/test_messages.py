"""MPI programs keep their meaning while their messages travel compressed.

Every program of tests/mpi checks what MPI promises and exits with an error where it is broken; the
report tells that frames were really sent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
EXTENDED = pytest.mark.extended

PROGRAMS = [
    ("p2p", 1),
    ("p2p", 2),
    ("p2p", 4),
    ("isendrecv", 1),
    ("isendrecv", 3),
    ("truncate", 2),
    ("probe", 1),
    ("probe", 3),
    ("requests", 1),
    ("requests", 3),
    ("derived", 1),
    ("derived", 2),
    ("threads", 2),
    ("threads", 3),
    ("overtake", 2),
    ("lifetimes", 1),
    ("lifetimes", 2),
    ("arguments", 1),
    ("arguments", 2),
    ("spawn", 1),
    ("recycled", 2),
    ("truncate", 3),
    ("raised_once", 2),
    ("reposted", 2),
    ("buffered_restart", 2),
    ("inter", 2),
    ("handles", 1),
    ("handles", 2),
]


def totals(done):
    return done.report["totals"]


def rows(done, **wanted):
    """Lines of the report with these values."""
    return [
        row
        for row in done.report["rows"]
        if all(row[name] == value for name, value in wanted.items())
    ]


@pytest.mark.parametrize(("name", "ranks"), PROGRAMS)
def test_semantics(name, ranks, mpi_program, mpress_run):
    outcome = mpress_run(ranks, mpi_program(name), options=FORCED)
    assert outcome.status == 0, outcome.stderr
    assert "ok" in outcome.stdout
    assert totals(outcome)["compressed_messages"] > 0
    assert totals(outcome)["errors"] == 0
    assert all(rank["finished"] for rank in outcome.report["ranks"])


OTHERS = {"sessions", "attributes", "attributes_bound", "is_complete"}


@pytest.mark.parametrize("name", sorted({name for name, _ in PROGRAMS} | OTHERS))
def test_programs_are_right_without_mpress(name, mpi_program, mpirun):
    done = mpirun(2, mpi_program(name))
    assert done.status == 0, done.output


def has_hooks(mpi):
    """Is it an MPICH with MPIX_Async_start? That of .venv/bin may be any MPI."""
    header = Path(mpi.mpicc).parent.parent / "include" / "mpi_proto.h"
    is_there = mpi.name in ("mpich", "default") and header.exists()
    return is_there and "MPIX_Async_" in header.read_text()


@pytest.mark.parametrize("how", [["polled"], ["hooked"], ["hooked", "threads"]])
def test_what_is_complete_is_there(how, mpi, mpi_program, mpress_run):
    """Whatever tells that a request is complete."""
    done = mpress_run(2, mpi_program("is_complete"), how, FORCED, {"MPRESS_CHUNK": "65536"})
    assert done.status == 0, done.output
    assert "ok" in done.stdout
    assert totals(done)["compressed_messages"] > 10
    if has_hooks(mpi):
        # On communicators of MPICH's streams.
        assert rows(done, operation="MPI_Send", reason="peer of another world")


@pytest.mark.parametrize("name", ["attributes", "attributes_bound"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_attributes_are_the_programs(name, ranks, mpi, mpi_program, mpress_run):
    """MPI calls callbacks of attributes for what the program does alone. Non-blocking calls on a
    new communicator are served all the same, unless keyvals come from a language binding."""
    done = mpress_run(ranks, mpi_program(name), options=FORCED)
    assert done.status == 0, done.output
    assert "ok" in done.stdout
    assert totals(done)["compressed_messages"] > 0
    if has_hooks(mpi) and name == "attributes":
        assert rows(done, operation="MPI_Bcast")


# Extended: what others show, but p2p to oneself. The messages of "recycled" are smaller.
MOST_RANKS = dict(sorted(PROGRAMS, key=lambda case: case[1]))
USUAL = {("p2p", 1), *MOST_RANKS.items()}
LARGE = [
    pytest.param(*case, marks=() if case in USUAL else EXTENDED)
    for case in PROGRAMS
    if case[0] != "recycled"
]


@pytest.mark.parametrize(("name", "ranks"), LARGE)
def test_semantics_in_chunks(name, ranks, mpi_program, mpress_run):
    """The same programs, with every message of 8 KiB and more cut."""
    outcome = mpress_run(ranks, mpi_program(name), options=FORCED, env={"MPRESS_CHUNK": "4K"})
    assert outcome.status == 0, outcome.stderr
    assert "ok" in outcome.stdout
    assert totals(outcome)["errors"] == 0
    # Not every MPICH has chunks under MPI_THREAD_MULTIPLE.
    if name != "threads":
        assert totals(outcome)["chunked_messages"] > 0


@pytest.mark.parametrize("ranks", [2, 3])
def test_chunks(ranks, mpi_program, mpress_run):
    outcome = mpress_run(ranks, mpi_program("chunks"), options=FORCED, env={"MPRESS_CHUNK": "64K"})
    assert outcome.status == 0, outcome.stderr
    assert "ok" in outcome.stdout
    assert totals(outcome)["chunked_messages"] > 100
    assert totals(outcome)["errors"] == 0
    assert all(rank["finished"] for rank in outcome.report["ranks"])


def test_chunks_that_hold_too_much_memory_go_in_one_piece(mpi_program, mpress_run):
    env = {"MPRESS_CHUNK": "64K", "MPRESS_POOL_LIMIT": "600K"}
    outcome = mpress_run(2, mpi_program("chunks"), options=FORCED, env=env)
    assert outcome.status == 0, outcome.stderr
    assert totals(outcome)["chunked_messages"] == 0
    assert totals(outcome)["compressed_messages"] > 100


@pytest.mark.parametrize("options", [FORCED, ("--codec", "none")], ids=["frames", "raw"])
@pytest.mark.parametrize("chunk", ["0", "4K"])
def test_an_error_is_raised_once(options, chunk, mpi_program, mpress_run):
    env = {"MPRESS_CHUNK": chunk}
    outcome = mpress_run(2, mpi_program("raised_once"), options=options, env=env)
    assert outcome.status == 0, outcome.stderr


@pytest.mark.parametrize("leaving", ["throw", "jump"])
@pytest.mark.parametrize("chunk", ["0", "64K"])
def test_handlers_may_throw_and_jump_away(leaving, chunk, mpi_program, mpress_run):
    env = {"MPRESS_CHUNK": chunk}
    args = ["mpress", leaving]
    outcome = mpress_run(2, mpi_program("throwing"), args, options=FORCED, env=env)
    assert outcome.status == 0, outcome.output


def test_handlers_that_throw_are_right_without_mpress(mpi_program, mpirun):
    done = mpirun(2, mpi_program("throwing"))
    assert done.status == 0, done.output


def test_wrong_arguments_under_thread_multiple(mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("arguments"), ["threads"], options=FORCED)
    assert outcome.status == 0, outcome.stderr


@pytest.mark.parametrize("chunk", ["1M", "64K"])
def test_a_recycled_communicator_has_its_own_ranks(chunk, mpi_program, mpress_run):
    """Peers are told, and chunks are sent, by their rank in MPI_COMM_WORLD."""
    env = {"MPRESS_CHUNK": chunk}
    outcome = mpress_run(3, mpi_program("freed_communicators"), options=FORCED, env=env)
    assert outcome.status == 0, outcome.stderr
    sent = rows(outcome, direction="send", operation="MPI_Isend")
    assert {row["peer"] for row in sent} == {2}
    assert sum(row["messages"] for row in sent) == 60


@pytest.mark.parametrize("codec", ["mpc:dim=1", "zfp:32", "szp:abs=1e-30"])
def test_every_codec_travels(codec, mpi_program, mpress_run):
    """Bounds so tight that the program cannot tell the codec from a lossless one."""
    options = ("--codec", codec, "--force", "--threshold", "4K")
    outcome = mpress_run(2, mpi_program("one_message"), options=options)
    assert outcome.status == 0, outcome.stderr
    assert "rank 1: intact" in outcome.stdout


@pytest.mark.parametrize("codec", ["szp:abs=1", "zfp:4"])
def test_only_runs_of_floats_are_lossy(codec, mpi_program, mpress_run):
    options = ("--codec", codec, "--force", "--threshold", "0")
    outcome = mpress_run(2, mpi_program("exact"), options=options)
    assert outcome.status == 0, outcome.stderr
    assert totals(outcome)["compressed_messages"] == 0
    assert outcome.report["left_raw"]["not a run of f32 or f64"]["messages"] == 14


def test_lossy_error_is_bounded(mpi_program, mpress_run):
    options = ("--codec", "szp:abs=0.001", "--force", "--threshold", "4K")
    outcome = mpress_run(2, mpi_program("bounded"), ["0.001"], options=options)
    assert outcome.status == 0, outcome.stderr
    [sent] = rows(outcome, direction="send", codec="szp")
    assert sent["messages"] == 3
    assert sent["wire_bytes"] * 3 < sent["raw_bytes"]


def test_threshold_and_reasons(mpi_program, mpress_run):
    options = ("--codec", "mpc", "--force", "--threshold", "64K")
    outcome = mpress_run(2, mpi_program("p2p"), options=options)
    assert outcome.status == 0, outcome.stderr
    left = outcome.report["left_raw"]
    assert left["below the threshold"]["messages"] > 0
    assert left["not a run of f32 or f64"]["messages"] > 0
    for row in rows(outcome, direction="send"):
        if row["codec"] != "none":
            assert row["raw_bytes"] >= 65536 * row["messages"]


def test_counts_agree_between_sender_and_receiver(mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("one_message"), options=FORCED)
    [sent] = rows(outcome, direction="send")
    [received] = rows(outcome, direction="receive")
    assert (sent["rank"], sent["peer"], sent["operation"]) == (0, 1, "MPI_Send")
    assert (received["rank"], received["peer"], received["operation"]) == (1, 0, "MPI_Recv")
    for name in ("messages", "raw_bytes", "wire_bytes", "codec"):
        assert sent[name] == received[name]
    assert sent["raw_bytes"] == 160000
    assert sent["wire_bytes"] < sent["raw_bytes"]
    assert sent["encode_seconds"] > 0
    assert received["decode_seconds"] > 0


@pytest.mark.parametrize(
    ("part", "raw", "encoded"),
    [
        ("hints", {"switched off": 80}, 40),
        ("communicators", {"switched off": 40}, 40),
        ("types", {"not a run of f32 or f64": 40}, 40),
        ("data", {"incompressible": 40}, 40),
        ("by turns", {"incompressible": 40}, 40),
        ("exchanges", {"incompressible": 80}, 80),
        ("replaced", {"not a run of f32 or f64": 80}, 0),
        ("lengths", {"not a run of f32 or f64": 1200}, 0),
    ],
)
def test_decisions_end_with_what_they_rest_on(part, raw, encoded, mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("standing"), [part], options=FORCED)
    assert outcome.status == 0, outcome.output
    left = {reason: row["messages"] for reason, row in outcome.report["left_raw"].items()}
    assert left == raw
    assert totals(outcome)["compressed_messages"] == encoded
    received = rows(outcome, direction="receive")
    assert sum(row["messages"] for row in received) == sum(raw.values()) + encoded


@pytest.mark.parametrize("part", ["ending", "refused"])
def test_calls_that_end_a_decision_stay_mpis(part, mpi_program, mpirun, mpress_run):
    """Messages from callbacks of a communicator that ends; those that MPI refuses are none."""
    assert mpirun(2, mpi_program("standing"), [part]).status == 0
    outcome = mpress_run(2, mpi_program("standing"), [part], options=FORCED)
    assert outcome.status == 0, outcome.output
    received = rows(outcome, direction="receive")
    if part == "refused":
        assert sum(row["messages"] for row in received) == 40
        assert sum(row["raw_bytes"] for row in received) == 4 * (39 * 200 + 20 * 64 + 42)
        assert sum(row["messages"] for row in rows(outcome, direction="send")) == 40


def test_waits_are_told(mpi_program, mpress_run):
    """Every other message comes 5 ms late."""
    outcome = mpress_run(2, mpi_program("standing"), ["late"], options=FORCED)
    assert outcome.status == 0, outcome.output
    [encoded] = rows(outcome, direction="receive", codec="mpc")
    assert encoded["messages"] == 40
    assert encoded["wait_seconds"] > 0.75 * 40 * 5e-3
    every = sum(row["wait_seconds"] for row in rows(outcome, direction="receive"))
    assert every < outcome.report["run_seconds"]


def test_sessions_alone_are_left_alone(mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("sessions"), ["alone"], options=FORCED)
    assert outcome.status == 0, outcome.output
    assert outcome.stdout.count("ok") == 2


def test_no_frames_once_there_are_sessions(mpi_program, mpress_run):
    """One message of each rank before the session, others beside it and after MPI_Finalize."""
    outcome = mpress_run(2, mpi_program("sessions"), options=FORCED)
    assert outcome.status == 0, outcome.output
    assert outcome.stdout.count("ok") == 2
    assert totals(outcome)["compressed_messages"] == 2
    assert outcome.report["left_raw"]["sessions in use"]["messages"] >= 4


def test_unforced_messages_stay_raw_where_nothing_is_known(mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("one_message"), options=())
    assert outcome.status == 0
    assert totals(outcome)["compressed_messages"] == 0
    assert outcome.report["left_raw"]["costs never measured"]["messages"] == 1


def test_slow_link_is_compressed_without_force(mpi_program, mpress_run):
    options = ("--codec", "mpc", "--link-rate", "10Mbit")
    outcome = mpress_run(2, mpi_program("one_message"), options=options)
    assert outcome.status == 0
    assert totals(outcome)["compressed_messages"] == 1
    assert outcome.report["simulated_link"]


def test_incompressible_messages_go_raw(mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("one_message"), ["return", "noise"], options=FORCED)
    assert outcome.status == 0, outcome.stderr
    assert "rank 1: intact" in outcome.stdout
    assert outcome.report["left_raw"]["incompressible"]["messages"] == 1


@pytest.mark.parametrize("disable", ["MPRESS_DISABLE_P2P", "MPRESS_DISABLE"])
def test_kill_switches(disable, mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("p2p"), options=FORCED, env={disable: "1"})
    assert outcome.status == 0, outcome.stderr
    assert outcome.report["totals"]["compressed_messages"] == 0


@pytest.mark.parametrize(
    ("family", "program", "operations"),
    [
        ("PERSISTENT", "requests", {"MPI_Start"}),
        ("SENDRECV", "requests", {"MPI_Sendrecv_replace"}),
        ("DERIVED", "derived", None),
    ],
)
def test_families_are_switched_off(family, program, operations, mpi_program, mpress_run):
    """Nothing of the family is compressed, and what else was compressed still is."""
    program = mpi_program(program)
    before = mpress_run(2, program, options=FORCED)
    after = mpress_run(2, program, options=FORCED, env={f"MPRESS_DISABLE_{family}": "1"})
    assert after.status == 0, after.stderr

    def compressed(done):
        lines = rows(done, direction="send", reason=None)
        return {line["operation"]: line["messages"] for line in lines if line["rank"] == 0}

    assert after.report["left_raw"]["switched off"]["messages"] > 0
    assert 0 < totals(after)["compressed_messages"] < totals(before)["compressed_messages"]
    if operations is not None:
        assert operations <= set(compressed(before))
        assert not operations & set(compressed(after))
        others = {
            k: v for k, v in compressed(before).items() if not k.startswith(tuple(operations))
        }
        assert others.items() <= compressed(after).items()


@pytest.mark.parametrize("at", [0, 16, 30, 60, 64, 100, 5000])
def test_corrupt_frames_are_errors(at, mpi_program, mpress_run):
    """A bit of the header, the payload's header or its data: never wrong data without an error."""
    program = mpi_program("spoilt")
    outcome = mpress_run(2, program, [str(at), "return"], options=FORCED)
    if at == 0:
        # Without its nonce nothing tells the frame from data; the size still does not lie.
        assert outcome.stdout == "changed\n"
        return
    assert "error: mpress: a compressed message is corrupt" in outcome.stdout
    assert "the frame from rank 1" in outcome.stderr
    fatal = mpress_run(2, program, [str(at)], options=FORCED)
    assert fatal.status != 0
    assert "mpress: a compressed message is corrupt" in fatal.stderr
    assert totals(fatal)["compressed_messages"] == 1  # kept, although the job was aborted


def test_record_survives_a_crash(mpi_program, mpress_run):
    outcome = mpress_run(2, mpi_program("one_message"), ["abort"], options=FORCED)
    assert outcome.status != 0
    assert totals(outcome)["compressed_messages"] == 1
    assert not all(rank["finished"] for rank in outcome.report["ranks"])


@pytest.mark.parametrize("calls", ["blocking", "immediate", "persistent"])
@pytest.mark.parametrize(("elements", "kind"), [(0, "double"), (100, "int"), (20000, "double")])
def test_all_ways_to_send_count(elements, kind, calls, mpi_program, mpress_run):
    """Persistent sends as the others, whatever their type."""
    sizes = {"int": 4, "double": 8}
    done = mpress_run(2, mpi_program("counted"), [str(elements), calls, kind])
    assert done.status == 0, done.output
    sent = rows(done, direction="send")
    assert sum(row["messages"] for row in sent) == 3
    assert sum(row["raw_bytes"] for row in sent) == 3 * elements * sizes[kind]
