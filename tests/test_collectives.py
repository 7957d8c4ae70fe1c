"""Collective calls that mpress serves: tests/mpi/blocks, against what MPI promises."""

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
SERVED = {"MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gather", "MPI_Gatherv",
          "MPI_Scatter", "MPI_Scatterv", "MPI_Allgather", "MPI_Allgatherv",
          "MPI_Bcast"}  # fmt: skip
EXTENDED = pytest.mark.extended


def served(done) -> dict[str, int]:
    """Blocks that were sent as messages, by call."""
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.report["totals"]["errors"] == 0
    found: dict[str, int] = {}
    for row in done.report["rows"]:
        if row["direction"] == "send" and row["operation"] in SERVED:
            found[row["operation"]] = found.get(row["operation"], 0) + row["messages"]
    return found


@pytest.mark.parametrize("link", ["auto", "mpi", "host"])
@pytest.mark.parametrize("codec", [FORCED, ("--codec", "none")], ids=["mpc", "none"])
@pytest.mark.parametrize(
    "ranks", [pytest.param(2, marks=EXTENDED), 3, pytest.param(5, marks=EXTENDED)]
)
def test_blocks(ranks, codec, link, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    done = mpress_run(ranks, mpi_program("blocks"), [str(ranks), "80"], codec, env=env)
    assert set(served(done)) == SERVED
    totals = done.report["totals"]
    assert (totals["compressed_messages"] > 30) == (codec is FORCED)
    assert (totals["peer_messages"] > 0) == (link == "auto")
    assert (totals["host_messages"] > 0) == (link == "host")


WITH_OWN_COUNTS = {"MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gatherv", "MPI_Scatterv"}


@pytest.mark.parametrize(
    ("ranks", "link", "is_shared"),
    [
        pytest.param(2, "peer", False, marks=EXTENDED),
        pytest.param(2, "host", False, marks=EXTENDED),
        (3, "peer", True),
        (3, "host", False),
        (5, "peer", False),
        pytest.param(5, "host", True, marks=EXTENDED),
    ],
)
def test_short_blocks_by_one_kernel(ranks, link, is_shared, mpi_program, mpress_run, simulated_gpu):
    """Where each rank has a device to itself, one kernel a rank brings blocks on devices, by memory
    of theirs that all reach, or of the host's, and no messages."""
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    env["SIMULATED_GPU_SHARED"] = str(int(is_shared))
    arguments = [str(40 + ranks), "200", "device"]
    done = mpress_run(ranks, mpi_program("blocks"), arguments, ("--codec", "none"), env=env)
    assert set(served(done)) == SERVED
    rows = [r for r in done.report["rows"] if r["algorithm"] == "one-kernel"]
    by_kernels = {r["operation"] for r in rows}
    assert {r["way"] for r in rows if r["raw_bytes"]} <= {link}
    # Members open memory meanwhile, which takes a busy machine more calls than some kinds get.
    assert len(by_kernels) == 0 if is_shared else len(by_kernels) >= 5
    assert is_shared or by_kernels & WITH_OWN_COUNTS


# Members find out alike by each link, but for their memory.
@pytest.mark.parametrize(
    ("codec", "argument", "link"),
    [
        *(("none", "as-counted", link) for link in ("peer", "host")),
        ("none", "too-long", "peer"),
        ("none", "much-kept", "host"),
        ("none", "idle", "host"),
        ("mpc", "as-counted", "peer"),
        pytest.param("none", "too-long", "host", marks=EXTENDED),
        pytest.param("none", "much-kept", "peer", marks=EXTENDED),
        pytest.param("none", "idle", "peer", marks=EXTENDED),
        pytest.param("mpc", "as-counted", "host", marks=EXTENDED),
    ],
)
def test_own_counts_by_one_kernel(codec, argument, link, mpi_program, mpress_run, simulated_gpu):
    """Members find out together that all blocks are short, that each waits for what the others
    bring, and that none of them wants to encode, or copies much for itself alone."""
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    options = ("--codec", codec, "--force", "--threshold", "16K")
    done = mpress_run(4, mpi_program("own_counts"), [argument], options, env=env)
    assert done.status == 0 and done.stdout == "ok\n", done.output
    rows = [r for r in done.report["rows"] if r["operation"] == "MPI_Alltoallv"]
    by_kernels = sum(r["messages"] for r in rows if r["algorithm"] == "one-kernel")
    is_by_kernels = codec == "none" and argument != "much-kept"
    assert by_kernels > 20 if is_by_kernels else by_kernels == 0
    assert done.report["totals"]["compressed_messages"] > 0 or codec == "none"


@pytest.mark.parametrize(
    ("link", "count", "algorithm"),
    [
        ("mpi", 1 << 20, "pairwise"),
        ("mpi", 1 << 16, "scattered"),
        pytest.param("host", 1 << 20, "scattered", marks=EXTENDED),
        pytest.param("peer", 1 << 20, "scattered", marks=EXTENDED),
    ],
)
def test_partners_at_once(link, count, algorithm, mpi_program, mpress_run, simulated_gpu):
    """Payloads crowd where MPI brings them, whatever GPUs could do for each other."""
    env = {**simulated_gpu, "MPRESS_LINK": link}
    options = ("--codec", "zfp:24", "--force")
    done = mpress_run(4, mpi_program("long_alltoall"), [str(count)], options, env=env)
    assert done.status == 0 and done.stdout == "ok\n", done.output
    rows = [row for row in done.report["rows"] if row["operation"] == "MPI_Alltoall"]
    assert {row["algorithm"] for row in rows if row["direction"] == "send"} == {algorithm}


def test_no_buffer_on_a_device(mpi_program, mpress_run, simulated_gpu):
    """There could be one: members tell each other that there is none, and MPI serves."""
    done = mpress_run(3, mpi_program("blocks"), ["7", "80", "host"], env=simulated_gpu)
    assert served(done) == {}


def test_a_device_that_comes_late(mpi_program, mpress_run, simulated_gpu):
    done = mpress_run(3, mpi_program("blocks"), ["8", "80", "late"], env=simulated_gpu)
    assert served(done)


@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=EXTENDED) for n in (2, 4))])
def test_no_gpu_at_all(ranks, mpi_program, mpress_run, simulated_gpu):
    """Compressing pays, or is asked for: on memory of the host."""
    env = {**simulated_gpu, "MPRESS_GPU": "off"}
    done = mpress_run(ranks, mpi_program("blocks"), ["9", "80", "host"], FORCED, env=env)
    assert set(served(done)) == SERVED
    assert done.report["totals"]["compressed_messages"] > 30
    done = mpress_run(ranks, mpi_program("blocks"), ["9", "60", "host"], env=env)
    assert served(done) == {}


@pytest.mark.parametrize("family", ["ALLTOALL", "GATHER", "SCATTER", "ALLGATHER", "BCAST"])
def test_kill_switches(family, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, f"MPRESS_DISABLE_{family}": "1"}
    done = mpress_run(2, mpi_program("blocks"), ["10", "80"], env=env)
    left = {name for name in SERVED if name.rstrip("vw") == f"MPI_{family.capitalize()}"}
    assert set(served(done)) == SERVED - left


def test_by_mpi_alone(mpi_program, mpirun):
    """The program is right without mpress."""
    done = mpirun(3, mpi_program("blocks"), ["11", "60", "host"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=EXTENDED) for n in (1, 2))])
def test_in_the_progress_thread(seed, mpi, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "MPRESS_PROGRESS": "thread"}
    done = mpress_run(3, mpi_program("blocks"), [str(20 + seed), "40"], FORCED, env=env)
    if mpi.name == "abi":
        assert "no way to look at requests from several threads" in done.stderr
    else:
        assert served(done)


RAW = ("--codec", "none")


@pytest.mark.parametrize(
    ("link", "form", "codec"),
    [
        ("auto", "", RAW),
        ("mpi", "", FORCED),
        ("host", "", RAW),
        ("auto", "immediate", FORCED),
        ("auto", "persistent", RAW),
        *(
            pytest.param(*one, marks=EXTENDED)
            for one in (
                ("auto", "", FORCED),  # as the next test has it, between blocks
                ("mpi", "", RAW),
                ("host", "", FORCED),
                ("auto", "immediate", RAW),
                ("auto", "persistent", FORCED),
            )
        ),
    ],
)
def test_a_device_that_fails(link, form, codec, mpi, mpi_program, mpress_run, simulated_gpu):
    if form and mpi.name == "abi":
        pytest.skip("MPI serves such calls, and the other ranks wait")
    env = {**simulated_gpu, "MPRESS_LINK": link}
    done = mpress_run(3, mpi_program("blocks_failing"), [form], codec, env=env)
    assert done.status == 0 and "ok" in done.stdout, done.output
    assert "device 0 refuses to work" in done.stderr


@pytest.mark.parametrize("pieces", [1, pytest.param(2, marks=EXTENDED)])
@pytest.mark.parametrize("link", ["auto", "host"])
def test_a_device_that_fails_between_blocks(link, pieces, mpi_program, mpress_run, simulated_gpu):
    """Of what it was given to encode for all at once, some have theirs."""
    env = {**simulated_gpu, "MPRESS_LINK": link}
    args = ["blocking", str(pieces)]
    done = mpress_run(3, mpi_program("blocks_failing"), args, FORCED, env=env)
    assert done.status == 0 and "ok" in done.stdout, done.output
    assert "rank 0: device 0 refuses to work" in done.stderr
