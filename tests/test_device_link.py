"""Messages that go from GPU to GPU, between simulated ones: who sends so, and that MPI's rules hold
where only the headers are MPI's."""

from __future__ import annotations

import pytest

SETTINGS = {
    "as they are": ((), {}),
    "encoded, in chunks": (
        ("--codec", "mpc", "--force", "--threshold", "0"),
        {"MPRESS_CHUNK": "4K"},
    ),
}
# Parts of device_linked, and how many of their messages find memory that the other rank has opened.
PARTS = {
    "truncation": 240,
    "no send waits": 420,
    "more than fits": None,
    "synchronous": 240,
    "order": None,
    "probes": 120,
    "what does not compress": 120,
    "unreceived": 3,
    "completions": 42,
    "cancelled receives": 120,
    "cancelled sends": 240,
    "freed": 180,
    "persistent": 120,
    "communicators": 120,
}
NOT_PROMISED = {"no send waits", "unreceived"}


@pytest.fixture
def linked(simulated_gpu):
    """The environment of ranks whose GPUs reach each other; what they share is given back."""
    return {**simulated_gpu, "SIMULATED_GPU_LEAKS": "shared", "MPRESS_POOL_LIMIT": "4M"}


def checked(done):
    assert done.status == 0, done.output
    assert done.stdout.endswith("ok\n"), done.output
    assert done.report["totals"]["errors"] == 0
    assert all(rank["finished"] for rank in done.report["ranks"])
    return done


def check_refusal(done, failing):
    """One device of two has failed, which ended no rank."""
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert f"rank {failing}: device {failing} refuses to work" in done.stderr
    assert f"device {1 - failing} refuses" not in done.stderr


def linked_messages(done, sender, receiver):
    return sum(
        row["messages"]
        for row in done.report["rows"]
        if (row["direction"], row["rank"], row["peer"], row["way"])
        == ("send", sender, receiver, "peer")
    )


def received_messages(done, operation, way):
    return sum(
        row["messages"]
        for row in done.report["rows"]
        if (row["direction"], row["operation"], row["way"]) == ("receive", operation, way)
    )


@pytest.mark.parametrize("call", ["wait", "blocking", "gather"])
def test_a_header_that_leaves_late(call, mpi, mpi_program, mpress_run, linked):
    """Who waits for its data to be taken lets MPI send the header, which the other waits for."""
    done = checked(
        mpress_run(2, mpi_program("device_behind"), [call], ("--codec", "none"), env=linked)
    )
    is_left_to_mpi = mpi.name == "abi" and call == "gather"  # where it has no progress hook
    assert (linked_messages(done, 0, 1) > 0) == (not is_left_to_mpi)


@pytest.mark.parametrize("way", ["peer", "mpi"])
def test_what_comes_is_passed_on_before_it_is_decoded(way, mpi, mpi_program, mpress_run, linked):
    if mpi.name == "abi":
        pytest.skip("whose MPI has no progress hook: it serves what does not block")
    env = {**linked, "MPRESS_LINK": way, "MPRESS_ALGORITHM": "bcast=chain", "MPRESS_CHUNK": "16K"}
    options = ("--codec", "mpc", "--force", "--threshold", "0")
    checked(mpress_run(3, mpi_program("device_passing_on"), ["1", "2", "12000"], options, env=env))


# What is left unreceived comes last. MPICH 5.0 may crash where it cancels a send after others.
ALONE = [["cancelled sends"], *([part] for part, count in PARTS.items() if count is None)]
TOGETHER = [*sorted(part for part in PARTS if [part] not in ALONE and part != "unreceived"),
            "unreceived"]  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("parts", [TOGETHER, *ALONE], ids=lambda parts: parts[0])
def test_what_mpi_promises(parts, setting, mpi_program, mpress_run, linked):
    options, env = SETTINGS[setting]
    program = mpi_program("device_linked")
    done = checked(mpress_run(2, program, parts, options, {**env, **linked}))
    count = done.report["totals"]["peer_messages"]
    if all(PARTS[part] is not None for part in parts):
        assert count == sum(PARTS[part] for part in parts)
    else:
        assert 0 < count < done.report["totals"]["messages"]


@pytest.mark.parametrize("part", ["what does not compress", "truncation"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_devices_that_cannot_publish(setting, part, mpi_program, mpress_run, linked):
    """They do not write to memory of the host, so the host says what has come."""
    options, env = SETTINGS[setting]
    env = {**env, **linked, "SIMULATED_GPU_MAP": "0"}
    done = checked(mpress_run(2, mpi_program("device_linked"), [part], options, env))
    assert done.report["totals"]["peer_messages"] == PARTS[part]


def test_the_program_is_right_without_mpress(mpi_program, mpirun, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_OPEN": "1"}
    parts = sorted(PARTS.keys() - NOT_PROMISED)
    done = mpirun(2, mpi_program("device_linked"), parts, env)
    assert done.status == 0, done.output


def test_memory_of_cancelled_messages_comes_free(preloadable, mpi_program, mpress_run, linked):
    library = preloadable("cancels")
    env = {**linked, "LD_PRELOAD": library}
    done = checked(mpress_run(2, mpi_program("device_linked"), ["cancelled sends"], env=env))
    assert done.stdout.startswith("cancelled")
    assert done.report["totals"]["peer_messages"] == PARTS["cancelled sends"]


# Parts of device_direct, and the least of their messages that are taken from where the sender's
# program has them; where that depends on who is quicker, none.
DIRECT = {
    "received": 50,
    "blocking": 0,
    "both ways": 0,
    "looked at late": 40,  # more where the machine is idle
    "not looking": 1,
    "taken before a barrier": 10,
    "freed memory": 12,
    "freed early": 0,
    "elsewhere": 30,
    "requests": 0,
}


@pytest.mark.parametrize("chunk", [pytest.param("1M", marks=pytest.mark.extended), "4K"])
@pytest.mark.parametrize("part", DIRECT)
def test_from_the_program_s_memory(part, chunk, mpi_program, mpress_run, linked):
    env = {**linked, "MPRESS_POOL_LIMIT": "64M", "MPRESS_CHUNK": chunk}
    done = checked(mpress_run(2, mpi_program("device_direct"), [part], env=env))
    assert done.report["totals"]["direct_messages"] >= DIRECT[part]


# The same of device_direct_long.
LONG = {
    "received": 10,
    "blocking": 0,
    "both ways": 0,
    "looked at late": 10,
    "not looking": 0,
    "freed memory": 8,
    "freed early": 0,
    "elsewhere": 5,
    "requests": 0,
}


@pytest.mark.parametrize("part", LONG)
def test_long_ones_take_turns(part, mpi_program, mpress_run, linked):
    env = {**linked, "MPRESS_POOL_LIMIT": "64M"}
    done = checked(mpress_run(2, mpi_program("device_direct_long"), [part], env=env))
    assert done.report["totals"]["direct_messages"] >= LONG[part]


def test_offers_take_no_memory(mpi_program, mpress_run, linked):
    """What the link has no room for may be taken from where it is all the same; and where it is
    not, it goes by MPI, so that nobody waits."""
    program = mpi_program("device_direct")
    env = {**linked, "MPRESS_POOL_LIMIT": "1M", "MPRESS_CHUNK": "4K"}
    done = checked(mpress_run(2, program, ["no room"], env=env))
    # Of 40 sends at once, 25 have room; in six rounds of twelve the receiver takes none before all
    # are sent, and some of those it may truncate.
    assert received_messages(done, "MPI_Irecv", "chunks") >= 6 * (40 - 25 - 10)
    env = {**linked, "MPRESS_POOL_LIMIT": "2M"}
    totals = checked(mpress_run(2, program, ["too long"], env=env)).report["totals"]
    assert totals["direct_messages"] >= 8
    checked(mpress_run(2, program, ["looked at before another"], env={**env, "MPRESS_CHUNK": "4K"}))
    totals = checked(mpress_run(2, program, ["nothing but too long"], env=env)).report["totals"]
    assert totals["direct_messages"] >= 6
    totals = checked(mpress_run(2, program, ["ahead"], env=env)).report["totals"]
    assert 0 < totals["chunked_messages"] < 5


def test_nothing_of_the_program_s_memory_is_opened(mpi_program, mpress_run, linked):
    env = {**linked, "MPRESS_DISABLE_ZERO_COPY": "1"}
    done = checked(mpress_run(2, mpi_program("device_direct"), ["received"], env=env))
    assert done.report["totals"]["direct_messages"] == 0
    assert done.report["totals"]["peer_messages"] > 50


def test_little_of_the_program_s_memory_is_kept(mpi_program, mpress_run, linked):
    """What others have open does not come free: blocks are shared up to the limit."""
    program = mpi_program("device_direct")
    env = {**linked, "MPRESS_POOL_LIMIT": "1M"}
    done = checked(mpress_run(2, program, ["freed memory"], env=env))
    assert done.report["totals"]["direct_messages"] == 2 * 2
    env = {**linked, "MPRESS_POOL_LIMIT": "400K"}
    done = checked(mpress_run(2, program, ["received"], env=env))
    assert done.report["totals"]["direct_messages"] == 0
    assert done.report["totals"]["peer_messages"] > 50


@pytest.mark.parametrize(
    ("ranks", "without", "setting"),
    [
        (3, (), "as they are"),
        (2, (0,), "as they are"),
        (2, (1,), "encoded, in chunks"),
        (3, (0, 2), "encoded, in chunks"),
    ],
)
def test_who_can_open(ranks, without, setting, mpi_program, mpress_run, linked):
    """The ranks `without` cannot open what others share: they are sent messages by the host."""
    options, env = SETTINGS[setting]
    arguments = ["every device", *map(str, without)]
    env = {**env, **linked, "MPRESS_POOL_LIMIT": "64M"}
    done = checked(mpress_run(ranks, mpi_program("device_peers"), arguments, options, env))
    for receiver in range(ranks):
        for sender in set(range(ranks)) - {receiver}:
            # The first message makes the receiver look; the next one, and the first from another
            # device, makes the sender share what is then opened.
            # What is encoded may land before.
            expected = [0] if receiver in without else [13, 14]
            assert linked_messages(done, sender, receiver) in expected
        said = f"to GPUs of rank {receiver} go by way of the host's memory: its memory of GPUs"
        assert done.stderr.count(said) == (receiver in without)


PLAIN, CUT = SETTINGS


@pytest.mark.parametrize(
    ("part", "setting", "without"),
    [
        pytest.param(part, setting, without, marks=marks)
        for part, others in (
            ("at once", [(PLAIN, (1,)), (CUT, ())]),
            ("while under way", [(PLAIN, ()), (CUT, ()), (CUT, (1,))]),
            ("host", [(PLAIN, ()), (CUT, (1,))]),
        )
        for setting in SETTINGS
        for without in ((), (1,))
        for marks in [() if (setting, without) in others else pytest.mark.extended]
    ],
)
def test_ways_that_change(part, without, setting, mpi_program, mpress_run, linked):
    options, env = SETTINGS[setting]
    arguments = [part, *map(str, without)]
    env = {**env, **linked, "MPRESS_POOL_LIMIT": "64M"}
    done = checked(mpress_run(2, mpi_program("device_peers"), arguments, options, env))
    if part == "while under way":
        # What is encoded lands where the sender has opened it, and goes on.
        expected = [0] if without else [6] if "encoded" in setting else [1]
        assert linked_messages(done, 0, 1) in expected
    if part == "host":
        # To the host, and between devices of which one was known: types that MPI could not receive
        # a header with go through it.
        assert (linked_messages(done, 0, 1) > 8) == (not without)


LATE = [(0, 20), (1, 30)]  # the device that fails, and after how much work


@pytest.mark.parametrize(
    ("failing", "after"),
    [
        *[(0, 1), (0, 9), (1, 0), (1, 4)],
        *(pytest.param(*one, marks=pytest.mark.extended) for one in LATE),
    ],
)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_device_that_fails(setting, failing, after, mpi_program, mpress_run, linked):
    options, env = SETTINGS[setting]
    arguments = [str(failing), str(after)]
    env = {**env, **linked, "MPRESS_CHUNK": "4K"}
    check_refusal(mpress_run(2, mpi_program("device_failing"), arguments, options, env), failing)


@pytest.mark.parametrize("after", [1, 294])
def test_a_device_that_fails_without_memory_of_the_link(after, mpi_program, mpress_run, linked):
    """Before the first chunk has gone to MPI, of the second message and of the third."""
    env = {**linked, "MPRESS_CHUNK": "4K", "MPRESS_POOL_LIMIT": "1M"}
    arguments = ["0", str(after), "600000"]
    done = mpress_run(2, mpi_program("device_failing"), arguments, env=env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


def test_a_header_of_a_rank_that_shares_nothing(mpi_program, mpress_run, linked):
    done = checked(mpress_run(2, mpi_program("device_misled"), env=linked))
    assert done.stderr.count("rank 0: a frame announces chunks that cannot come") == 4


@pytest.mark.parametrize("part", ["merged", "sessions"])
def test_other_worlds(part, mpi_program, mpress_run, linked):
    """Processes that were spawned, and communicators beside which there are sessions."""
    program = mpi_program("device_worlds")
    done = checked(mpress_run(2, program, [part], env=linked))
    assert (done.report["totals"]["peer_messages"] > 0) == (part == "merged")


@pytest.mark.parametrize(
    "env", [{"MPRESS_LINK": "mpi"}, {"MPRESS_CHUNK": "0"}, {"MPRESS_POOL_LIMIT": "16K"}]
)
def test_without_the_link(env, mpi_program, mpress_run, linked):
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], env=linked | env))
    assert done.report["totals"]["peer_messages"] == 0
    assert "go through MPI" not in done.stderr


@pytest.mark.parametrize("link", ["auto", "peer"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_an_mpi_that_takes_devices(setting, link, mpi_program, mpress_run, linked):
    """It has links of its own for what is not encoded, and mpress's is for who asks for it."""
    options, env = SETTINGS[setting]
    count = 26 if link == "peer" or "--force" in options else 0
    env = {**env, **linked, "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
    env |= {"MPRESS_LINK": link, "MPRESS_POOL_LIMIT": "64M"}
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], options, env))
    assert 0 <= done.report["totals"]["peer_messages"] - count <= (2 if count else 0)
