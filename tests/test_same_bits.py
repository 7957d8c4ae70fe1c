"""Blocks of collective calls that several ranks get (tests/mpi/same_bits): encoded once, passed on
as they came, and the same bits on every rank, also where the codec is lossy."""

import json

import pytest

EXTENDED = pytest.mark.extended
SHARED = {"MPI_Allgather", "MPI_Allgatherv", "MPI_Bcast"}
# A codec, and what the program is told of it.
CODECS = {"szp:abs=1e-3": "abs=1e-3", "szp:rel=1e-3": "rel=1e-3", "zfp:16": "loose", "mpc": "exact"}
# MPICH takes ranks of odd numbers, and those of even ones, for another host's each.
TWO_HOSTS = {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}


def forced(codec: str) -> tuple[str, ...]:
    return ("--codec", codec, "--force", "--threshold", "0")


def sent(done) -> list[dict]:
    """What was sent for the calls that several ranks get the same from."""
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.report["totals"]["errors"] == 0
    found = [row for row in done.report["rows"]
             if row["direction"] == "send" and row["operation"] in SHARED]  # fmt: skip
    assert {row["operation"] for row in found} <= SHARED
    return found


def encoded(rows: list[dict]) -> int:
    return sum(row["messages"] for row in rows if row["codec"] != "none")


@pytest.fixture
def several_hosts(mpi):
    if mpi.name not in ("mpich", "abi", "default"):
        pytest.skip("only MPICH takes parts of a host for hosts")
    return TWO_HOSTS


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=EXTENDED), 3,
                                   pytest.param(5, marks=EXTENDED)])  # fmt: skip
def test_on_hosts_and_devices(ranks, codec, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_LEAKS": "shared", "MPRESS_CHUNK": "64K"}
    args = [CODECS[codec], str(ranks), "30"]
    done = mpress_run(ranks, mpi_program("same_bits"), args, forced(codec), env=env)
    assert encoded(sent(done)) > min(10 * (ranks - 1), 20)
    assert done.report["totals"]["peer_messages"] > 0


@pytest.mark.parametrize(
    "codec", ["szp:abs=1e-3", *(pytest.param(codec, marks=EXTENDED) for codec in list(CODECS)[1:])]
)
@pytest.mark.parametrize("ranks", [4, pytest.param(7, marks=EXTENDED)])
def test_on_two_hosts(
    ranks, codec, several_hosts, mpi_program, mpress_run, simulated_gpu
):  # fmt: skip
    env = {**simulated_gpu, **several_hosts, "MPRESS_CHUNK": "64K"}
    args = [CODECS[codec], str(40 + ranks), "30"]
    done = mpress_run(ranks, mpi_program("same_bits"), args, forced(codec), env=env)
    assert encoded(sent(done)) > 20


@pytest.mark.parametrize("algorithms", ["bcast=chain,allgather=ring", "bcast=two-shot"])
def test_on_devices_that_pass_on(algorithms, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "MPRESS_CHUNK": "16K", "MPRESS_ALGORITHM": algorithms}
    done = mpress_run(4, mpi_program("same_bits"), ["rel=1e-3", "6", "30"],
                      forced("szp:rel=1e-3"), env=env)  # fmt: skip
    assert encoded(sent(done)) > 20


@pytest.mark.parametrize("link", [pytest.param("peer", marks=EXTENDED), "host",
                                  pytest.param("mpi", marks=EXTENDED)])  # fmt: skip
def test_with_little_memory(link, mpi_program, mpress_run, simulated_gpu):
    """Where slots are few, blocks take other ways, to some of their readers or to all."""
    env = {**simulated_gpu, "MPRESS_LINK": link, "MPRESS_CHUNK": "32K",
           "MPRESS_POOL_LIMIT": "300K"}  # fmt: skip
    done = mpress_run(3, mpi_program("same_bits"), ["abs=1e-3", "9", "30"],
                      forced("szp:abs=1e-3"), env=env)  # fmt: skip
    rows = sent(done)
    assert {row["way"] for row in rows} >= {"whole", "chunks"}


def test_on_memory_of_the_host(mpi_program, mpress_run, simulated_gpu):
    """Without a GPU in sight."""
    env = {**simulated_gpu, "MPRESS_GPU": "off"}
    codec = "szp:rel=1e-3"
    done = mpress_run(3, mpi_program("same_bits"), [CODECS[codec], "6", "30", "host"],
                      forced(codec), env=env)  # fmt: skip
    assert encoded(sent(done)) > 20


@pytest.mark.parametrize("place", ["host", "devices"])
@pytest.mark.parametrize("codec", ["szp:rel=1e-3", pytest.param("zfp:16", marks=EXTENDED)])
def test_a_broadcast_s_root_too(codec, place, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "MPRESS_SAME_BITS": "1", "MPRESS_CHUNK": "64K"}
    done = mpress_run(3, mpi_program("same_bits"), [CODECS[codec], "21", "40", place],
                      forced(codec), env=env)  # fmt: skip
    assert encoded(sent(done)) > 20


def test_in_the_progress_thread(mpi, mpi_program, mpress_run, simulated_gpu):
    if mpi.name == "abi":
        pytest.skip("has no way to look at requests from several threads")
    env = {**simulated_gpu, "MPRESS_PROGRESS": "thread", "MPRESS_CHUNK": "64K"}
    codec = "szp:abs=1e-3"
    done = mpress_run(3, mpi_program("same_bits"), [CODECS[codec], "15", "30"], forced(codec),
                      env=env)  # fmt: skip
    assert encoded(sent(done)) > 20


def test_by_mpi_alone(mpi_program, mpirun):
    """The program is right without mpress."""
    done = mpirun(3, mpi_program("same_bits"), ["exact", "5", "20", "host"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize("place", ["host", "devices"])
@pytest.mark.parametrize(
    ("op", "blocks", "readers"), [("bcast", 3, 3), ("allgather", 4, 4)], ids=["bcast", "allgather"]
)
def test_encoded_once(
    op, blocks, readers, place, mpi_program, mpress_run, simulated_gpu, tmp_path
):  # fmt: skip
    """A block is encoded by its origin alone, once, and decoded once by each that has it with a
    loss: a broadcast's three pieces by three, an all-gather's four blocks by all four."""
    calls, file = 3, tmp_path / "trace.json"
    options = (*forced("szp:abs=1e-4"), "--trace", file)
    env = {**simulated_gpu, "MPRESS_ALGORITHM": "bcast=two-shot"}
    done = mpress_run(4, mpi_program("shared_blocks"), [op, str(calls), "60000", place], options,
                      env=env)  # fmt: skip
    rows = sent(done)
    assert encoded(rows) == sum(row["messages"] for row in rows) > 0
    spans = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    kinds = [event["cat"] for event in spans]
    assert kinds.count("encode") == calls * blocks
    assert kinds.count("decode") == calls * blocks * readers
    shown = [event["args"] for event in spans if event["cat"] == "send"]
    assert len(shown) == sum(row["messages"] for row in rows)
    assert sum(one["wire_bytes"] for one in shown) == sum(row["wire_bytes"] for row in rows)
    # Whoever passes a block on has no part in that; each reader's bytes count.
    if op == "bcast":
        assert {row["rank"] for row in rows if row["encode_seconds"] > 0} == {1}
    assert len({row["rank"] for row in rows}) == 4
    raw = sum(row["raw_bytes"] for row in rows)
    assert raw == calls * 60000 * 8 * (3 if op == "bcast" else 12)
    assert sum(row["wire_bytes"] for row in rows) < raw / 2


def test_encoded_once_on_two_hosts(
    several_hosts, mpi_program, mpress_run, simulated_gpu, tmp_path
):  # fmt: skip
    file = tmp_path / "trace.json"
    options = (*forced("szp:abs=1e-4"), "--trace", file)
    done = mpress_run(4, mpi_program("shared_blocks"), ["allgather", "3", "60000", "devices"],
                      options, env={**simulated_gpu, **several_hosts})  # fmt: skip
    assert encoded(sent(done)) == 3 * 12
    events = [event["cat"] for event in json.loads(file.read_text())["traceEvents"]
              if event["ph"] == "X"]  # fmt: skip
    assert events.count("encode") == 3 * 4 and events.count("decode") == 3 * 16


def test_passed_on_as_it_comes(mpi_program, mpress_run, simulated_gpu, tmp_path):
    """Between devices that have opened each other's memory, a piece of a broadcast leaves the rank
    that passes it on before its last chunk has come there. On busy processors few do: in one of
    several runs at least."""
    calls, file = 40, tmp_path / "trace.json"
    options = (*forced("szp:abs=1e-4"), "--trace", file)
    env = {**simulated_gpu, "MPRESS_ALGORITHM": "bcast=two-shot", "MPRESS_CHUNK": "64K"}
    for _ in range(5):
        done = mpress_run(4, mpi_program("shared_blocks"),
                          ["bcast", str(calls), "400000", "devices"], options, env=env)  # fmt: skip
        assert encoded(sent(done)) > 0
        if early_pieces(file, calls) > 0:
            return
    raise AssertionError("no piece left early")


def early_pieces(file, calls):
    spans = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    early = 0
    for rank in (0, 2, 3):  # rank 1 has the whole
        mine = [event for event in spans if event["pid"] == rank]
        from_root = [(event["cat"], event["ts"], event["ts"] + event["dur"]) for event in mine
                     if event["args"].get("peer") == 1]  # fmt: skip
        pieces = sorted(span[1:] for span in from_root if span[0] == "receive")
        leaves = sorted(event["ts"] for event in mine if event["cat"] == "send")
        assert len(pieces) == calls and len(leaves) == 2 * calls
        for (begin, end), leave in zip(pieces, leaves[::2], strict=True):
            came = [end_of for kind, _, end_of in from_root
                    if kind == "arrive" and begin <= end_of <= end]  # fmt: skip
            early += leave < max(came)
    return early


@pytest.mark.parametrize("link", ["auto", "host", pytest.param("mpi", marks=EXTENDED)])
@pytest.mark.parametrize("pieces", [0, *(pytest.param(n, marks=EXTENDED) for n in (1, 2, 3, 5, 9))])
def test_a_device_that_fails(link, pieces, mpi_program, mpress_run, simulated_gpu):
    """A reader's is that reader's error alone; an origin tells all that lack its block."""
    env = {**simulated_gpu, "MPRESS_LINK": link}
    done = mpress_run(3, mpi_program("shared_failing"), [str(pieces)],
                      forced("szp:abs=1e-3"), env=env)  # fmt: skip
    assert done.status == 0 and "ok" in done.stdout, done.output
    assert "refuses to work" in done.stderr or pieces > 0


def test_a_device_that_fails_while_it_passes_on(mpi_program, mpress_run, simulated_gpu):
    """Whatever it had done by then: nothing, some of the chunks, or all."""
    env = {**simulated_gpu, "MPRESS_ALGORITHM": "bcast=chain", "MPRESS_CHUNK": "64K"}
    program, came = mpi_program("passing_failing"), set()
    for pieces in (0, 1, 3, 8, 40):
        done = mpress_run(3, program, [str(pieces)], forced("szp:abs=1e-3"), env=env)
        assert done.status == 0 and "ok" in done.stdout, (pieces, done.output)
        came.add("did not come" not in done.stdout)
    assert came == {False, True}


def test_readers_wait_for_no_decoder_of_who_passes_on(
    several_hosts, mpi, mpi_program, mpress_run, simulated_gpu
):
    """Nor where there are fewer rooms for what MPI brings from another host than chunks."""
    if mpi.name == "abi":
        pytest.skip("whose MPI has no progress hook: it serves what does not block")
    env = {**simulated_gpu, **several_hosts, "MPRESS_CHUNK": "64K"}
    args = ["1", "3", "1600000"]
    done = mpress_run(4, mpi_program("device_passing_on"), args, forced("szp:abs=1e-3"), env=env)
    assert done.status == 0 and done.stdout == "ok\n", done.output
