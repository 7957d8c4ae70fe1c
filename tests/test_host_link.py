"""Messages between GPUs that do not reach each other, by host memory that both have pinned:
simulated ones, with peer access switched off."""

from __future__ import annotations

import pytest
from compiled_programs import on_rank_1
from test_device_link import LATE, PARTS, SETTINGS, check_refusal, checked

EXTENDED = pytest.mark.extended
NOT_PINNED = "memory that they share cannot be pinned"
NOTHING_TO_SHARE = "there is no memory that processes may share"


def hosted_messages(done, sender=None, receiver=None):
    return sum(
        row["messages"]
        for row in done.report["rows"]
        if (row["direction"], row["way"]) == ("send", "host")
        and sender in (None, row["rank"])
        and receiver in (None, row["peer"])
    )


@pytest.fixture
def hosted(simulated_gpu):
    """The environment of ranks whose GPUs reach the host's memory alone; what they share is given
    back."""
    return {
        **simulated_gpu,
        "SIMULATED_GPU_PEERS": "0",
        "SIMULATED_GPU_LEAKS": "shared",
        "MPRESS_LINK": "host",
        "MPRESS_POOL_LIMIT": "64M",
    }


# MPICH 5.0 may crash where it cancels a send after others.
ALONE = ["cancelled sends"]
TOGETHER = [*sorted(PARTS.keys() - {"unreceived", *ALONE}), "unreceived"]  # which comes last


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("parts", [TOGETHER, ALONE], ids=["together", "alone"])
def test_what_mpi_promises(parts, setting, mpi_program, mpress_run, hosted):
    options, env = SETTINGS[setting]
    done = checked(mpress_run(2, mpi_program("device_linked"), parts, options, {**env, **hosted}))
    totals = done.report["totals"]
    assert totals["peer_messages"] == totals["direct_messages"] == 0
    assert 0 < hosted_messages(done) <= totals["messages"]


# Who asks for the link gets it as by default: of that one part shows as much as four.
PEER_PARTS = ["every device", "at once", "while under way", "host"]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("part", "link"),
    [
        *((part, "auto") for part in PEER_PARTS),
        ("every device", "host"),
        *(pytest.param(part, "host", marks=EXTENDED) for part in PEER_PARTS[1:]),
    ],
)
def test_gpus_that_do_not_reach_each_other(link, part, setting, mpi_program, mpress_run, hosted):
    """They need not ask for it; and one sentence says how messages go."""
    options, env = SETTINGS[setting]
    env = {**env, **hosted, "MPRESS_LINK": link}
    done = checked(mpress_run(2, mpi_program("device_peers"), [part], options, env))
    assert hosted_messages(done) > 0 or part in ("at once", "while under way")
    assert done.report["totals"]["peer_messages"] == 0
    assert "through MPI" not in done.stderr
    for receiver in (0, 1):
        said = f"to GPUs of rank {receiver} go by way of the host's memory: its memory of GPUs"
        # Of some parts, only rank 1 receives; and "at once" ends before anything is shared.
        is_certain = link == "auto" and receiver == 1 and part != "at once"
        assert done.stderr.count(said) in ([0] if link == "host" else [1] if is_certain else [0, 1])


@pytest.mark.parametrize("link", ["auto", "host"])
def test_each_pair_has_its_way(link, mpi_program, mpress_run, hosted):
    """One rank of three reaches no other's GPU: what it gets goes by the host, in `auto`; the
    others use the link between GPUs."""
    env = {**hosted, "SIMULATED_GPU_PEERS": "1", "MPRESS_LINK": link}
    arguments = ["every device", "0"]
    done = checked(mpress_run(3, mpi_program("device_peers"), arguments, env=env))
    for receiver in range(3):
        for sender in {0, 1, 2} - {receiver}:
            by_host = hosted_messages(done, sender, receiver)
            assert (by_host > 0) == (link == "host" or receiver == 0)


@pytest.mark.parametrize("link", ["auto", "host"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_pinning_refused(setting, link, mpi_program, mpress_run, hosted):
    options, env = SETTINGS[setting]
    env = {**env, **hosted, "SIMULATED_GPU_MAP": "0", "MPRESS_LINK": link}
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], options, env))
    assert hosted_messages(done) == 0
    for rank in (0, 1):
        said = f"messages from GPUs of rank {rank} go through MPI: {NOT_PINNED}"
        assert done.stderr.count(said) == 1


@pytest.mark.parametrize("link", ["auto", "host"])
def test_processes_that_find_nothing_of_each_other(
    link, preloadable, mpi_program, mpress_run, hosted
):
    """As in containers with process numbers of their own."""
    library = preloadable("apart")
    env = {**hosted, "MPRESS_LINK": link, "LD_PRELOAD": library}
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], env=env))
    assert hosted_messages(done) == 0
    for receiver in (0, 1):
        said = f"to GPUs of rank {receiver} go through MPI: its process cannot be looked at"
        assert done.stderr.count(said) == 1
    assert "the host's memory" not in done.stderr


@pytest.mark.parametrize(
    ("link", "peers"),
    [
        ("auto", "0"),
        ("auto", "1"),
        ("peer", "1"),
        ("host", "0"),
        pytest.param("peer", "0", marks=EXTENDED),
        pytest.param("host", "1", marks=EXTENDED),
    ],
)
def test_no_memory_to_share(link, peers, preloadable, mpi_program, mpress_run, hosted):
    """Links begin with memory that processes share: where the system gives none, MPI has all."""
    library = preloadable("no_memory")
    env = {**hosted, "MPRESS_LINK": link, "SIMULATED_GPU_PEERS": peers, "LD_PRELOAD": library}
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], env=env))
    totals = done.report["totals"]
    assert totals["peer_messages"] == totals["direct_messages"] == hosted_messages(done) == 0
    for rank in (0, 1):
        said = f"messages to and from GPUs of rank {rank} go through MPI: {NOTHING_TO_SHARE}"
        assert done.stderr.count(said) == 1
    assert done.stderr.count("go through MPI") == 2


@pytest.mark.parametrize(("link", "pieces"), [("auto", 3), ("host", 2)])
def test_no_memory_for_messages(link, pieces, preloadable, mpi_program, mpress_run, hosted):
    """There is some for what ranks tell each other, and for what each link tells of itself."""
    library = preloadable("no_memory", f"-DPIECES={pieces}")
    env = {**hosted, "MPRESS_LINK": link, "LD_PRELOAD": library}
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], env=env))
    assert hosted_messages(done) == 0
    for rank in (0, 1):
        said = f"messages from GPUs of rank {rank} go through MPI: {NOTHING_TO_SHARE}"
        assert done.stderr.count(said) == 1


def test_little_memory(mpi_program, mpress_run, hosted):
    """What has no room goes by MPI; a limit below all messages leaves the link unused."""
    env = {**hosted, "MPRESS_POOL_LIMIT": "1M"}
    done = checked(mpress_run(2, mpi_program("device_linked"), ["more than fits"], env=env))
    assert 0 < hosted_messages(done) < done.report["totals"]["messages"]
    env = {**hosted, "MPRESS_POOL_LIMIT": "16K"}
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], env=env))
    assert hosted_messages(done) == 0


def test_calls_longer_than_their_window(mpi_program, mpress_run, hosted):
    """What a blocking collective call has on its way takes no more memory than its window, which
    blocks take in turn: so all of them find room where there is little."""
    by_host = {}
    for window, limit in (("16K", "64M"), ("16K", "64K"), ("32M", "64K")):
        env = {**hosted, "MPRESS_CHUNK": "4K", "MPRESS_HOST_WINDOW": window}
        env |= {"MPRESS_POOL_LIMIT": limit, "MPRESS_JOINT_KERNELS": "never"}
        arguments = ["11", "120", "device"]
        done = checked(mpress_run(2, mpi_program("blocks"), arguments, ["--codec", "none"], env))
        by_host[window, limit] = hosted_messages(done)
    # The first ones go by MPI, until the other rank has opened what this one shares.
    assert by_host["16K", "64K"] >= by_host["16K", "64M"] - 8
    assert by_host["16K", "64K"] > by_host["32M", "64K"] + 16 > 16


def test_what_communicators_keep_leaves_room_for_messages(mpi_program, mpress_run, hosted):
    env = {**hosted, "MPRESS_POOL_LIMIT": "4M"}
    done = checked(mpress_run(2, mpi_program("device_many"), [], ["--codec", "none"], env))
    rows = [row for row in done.report["rows"] if row["direction"] == "send"]
    assert any(row["algorithm"] == "one-kernel" and row["way"] == "host" for row in rows)
    messages = [row for row in rows if row["operation"] == "MPI_Send" and row["way"] == "host"]
    assert sum(row["messages"] for row in messages) >= 16


@pytest.mark.parametrize(
    ("peers", "link"),
    [("0", "auto"), ("1", "auto"), *(pytest.param(x, "host", marks=EXTENDED) for x in "01")],
)
def test_communicators_made_anew(peers, link, mpi_program, mpress_run, hosted):
    """Each one's calls are kernels again, by the way that its devices have, and none leaves
    memory."""
    env = {**hosted, "SIMULATED_GPU_PEERS": peers, "MPRESS_LINK": link}
    options = ["--codec", "none"]
    done = checked(mpress_run(3, mpi_program("device_afresh"), ["24"], options, env))
    rows = [row for row in done.report["rows"] if row["algorithm"] == "one-kernel"]
    way = "peer" if (peers, link) == ("1", "auto") else "host"
    assert {row["way"] for row in rows if row["raw_bytes"]} == {way}
    assert {row["operation"] for row in rows} == {"MPI_Allreduce", "MPI_Alltoall", "MPI_Bcast"}


@pytest.mark.parametrize(
    ("program", "arguments", "options"),
    [
        ("reductions_linked", ["7", "80", "held"], ["--codec", "none"]),
        ("blocks", ["17", "100", "device"], ["--codec", "none"]),
        ("blocks", ["18", "80", "device"], ["--codec", "mpc", "--force", "--threshold", "0"]),
        ("reductions", ["19", "60", "rel=1e-4", "device"],
         ["--codec", "szp:rel=1e-4", "--force", "--threshold", "0"]),
    ],
)  # fmt: skip
def test_calls_where_one_rank_cannot_pin(
    program, arguments, options, mpi, tmp_path, mpi_program, mpress_run, hosted
):
    """The others meet in memory of the host, and it in none: no call of its is a kernel, and all
    are right."""
    script = on_rank_1(tmp_path, mpi_program(program), "export SIMULATED_GPU_MAP=0")
    options = [*options, "--mpiexec", str(mpi.mpiexec)]
    done = checked(mpress_run(3, script, arguments, options, hosted))
    rows = [row for row in done.report["rows"] if row["raw_bytes"]]
    assert any(row["way"] == "host" for row in rows)
    by_kernels = [row for row in rows if row["algorithm"] == "one-kernel"]
    assert not any(1 in (row["rank"], row["peer"]) for row in by_kernels)


SUMS = ["--codec", "szp:abs=1e-4", "--force", "--threshold", "0"]


@pytest.mark.parametrize(("alone", "short"), [([], "16K"), (["alone"], "64K")])
def test_sums_longer_than_their_window(alone, short, mpi_program, mpress_run, hosted):
    """Once it is known how short payloads are, they take a window in turn, and so find room where
    there is little; also those of a rank that brings next to nothing."""
    by_host = {}
    for window in (short, "32M"):
        env = {**hosted, "MPRESS_CHUNK": "16K", "MPRESS_HOST_WINDOW": window}
        env["MPRESS_POOL_LIMIT"] = "2M"
        arguments = ["1e-3", "800000", *alone]
        done = checked(mpress_run(2, mpi_program("reductions_long"), arguments, SUMS, env))
        by_host[window] = hosted_messages(done)
    assert by_host[short] > by_host["32M"]


def test_windows_change_no_bit(mpi, mpi_program, mpress_run, hosted):
    if mpi.name == "abi":
        pytest.skip("what does not block is MPI's there, and has other bits than what blocks")
    printed = set()
    for window in ("8K", "32M"):
        env = {**hosted, "MPRESS_CHUNK": "4K", "MPRESS_HOST_WINDOW": window}
        done = mpress_run(2, mpi_program("reductions_alike"), ["0", "device"], SUMS, env)
        assert done.status == 0, done.output
        assert hosted_messages(done) > 0
        printed.add(done.stdout)
    assert len(printed) == 1


@pytest.mark.parametrize("pieces", [0, 1, 3, 5, *(pytest.param(n, marks=EXTENDED) for n in (2, 4))])
def test_a_device_that_fails_in_a_window(pieces, mpi_program, mpress_run, hosted):
    env = {**hosted, "MPRESS_CHUNK": "4K", "MPRESS_HOST_WINDOW": "8K"}
    arguments = ["", str(pieces), "1000000", "1"]
    done = mpress_run(2, mpi_program("reductions_failing"), arguments, SUMS, env=env)
    assert done.status == 0 and "ok" in done.stdout, done.output


@pytest.mark.parametrize("env", [{"MPRESS_LINK": "mpi"}, {"MPRESS_CHUNK": "0"}])
def test_without_the_link(env, mpi_program, mpress_run, hosted):
    done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], env=hosted | env))
    assert hosted_messages(done) == 0
    assert "go through MPI" not in done.stderr


@pytest.mark.parametrize(
    ("failing", "after"),
    [(0, 1), (0, 9), (1, 0), (1, 4), *(pytest.param(*one, marks=EXTENDED) for one in LATE)],
)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_device_that_fails(setting, failing, after, mpi_program, mpress_run, hosted):
    options, env = SETTINGS[setting]
    arguments = [str(failing), str(after)]
    env = {**env, **hosted, "MPRESS_CHUNK": "4K"}
    check_refusal(mpress_run(2, mpi_program("device_failing"), arguments, options, env), failing)


def test_a_header_of_a_rank_that_shares_nothing(mpi_program, mpress_run, hosted):
    done = checked(mpress_run(2, mpi_program("device_misled"), env=hosted))
    assert done.stderr.count("rank 0: a frame announces chunks that cannot come") == 4


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_mpi_that_takes_devices(setting, mpi_program, mpress_run, hosted):
    """The link is for what is compressed, or for who asks for it."""
    options, env = SETTINGS[setting]
    is_compressed = "--force" in options
    env = {**env, **hosted, "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
    for link in ("auto", "host"):
        env["MPRESS_LINK"] = link
        done = checked(mpress_run(2, mpi_program("device_peers"), ["every device"], options, env))
        assert (hosted_messages(done) > 0) == (link == "host" or is_compressed)
