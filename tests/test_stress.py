"""Random programs of messages and collective calls, checked bit for bit: tests/mpi/stress.

Each run follows from its seed, so a failure tells how to see it again. For hours of it, with seeds
of its own: make stress SECONDS=3600.
"""

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
RAW = ("--codec", "none")
TIMEOUT = 600

EXTENDED = pytest.mark.extended


def checked(outcome):
    assert outcome.status == 0, outcome.output
    assert outcome.stdout.endswith("ok\n"), outcome.output
    return outcome


@pytest.fixture(scope="module")
def stress(mpi_program):
    return mpi_program("stress")


def cuts(mpi, threads: int) -> bool:
    """Whether large messages go in chunks: not where MPI lets no threads look at requests."""
    return threads == 1 or mpi.name in ("default", "mpich", "openmpi")


@pytest.mark.parametrize(
    ("ranks", "seed", "options"),
    [
        (1, 1, ("--rounds", "50")),
        (2, 2, ("--rounds", "30")),
        (2, 3, ("--rounds", "200", "--max-bytes", "4000")),
        (3, 4, ("--rounds", "40")),
        (4, 5, ("--rounds", "30", "--max-bytes", "100000")),
        (2, 6, ("--rounds", "30", "--threads", "2")),
        pytest.param(
            2, 7, ("--rounds", "30", "--threads", "4", "--max-bytes", "100000"), marks=EXTENDED
        ),
    ],
)
def test_compressed(ranks, seed, options, stress, mpress_run):
    arguments = ["--seed", str(seed), *options]
    outcome = checked(mpress_run(ranks, stress, arguments, FORCED, timeout=TIMEOUT))
    totals = outcome.report["totals"]
    assert totals["compressed_messages"] > 100
    assert totals["errors"] == 0


def rounds(threads: int, number: int) -> list[str]:
    """Fewer of several threads, which wait for each other: `make stress` has hours of them."""
    return ["--threads", str(threads), "--rounds", str(number if threads == 1 else number // 4)]


@pytest.mark.parametrize(("ranks", "seed", "threads"), [(1, 11, 1), (3, 12, 1), (2, 13, 3)])
def test_in_chunks(ranks, seed, threads, stress, mpress_run, mpi):
    """Most messages of some size are two chunks or more."""
    arguments = ["--seed", str(seed), *rounds(threads, 36)]
    env = {"MPRESS_CHUNK": "8K"}
    outcome = checked(mpress_run(ranks, stress, arguments, FORCED, env=env, timeout=TIMEOUT))
    if cuts(mpi, threads):
        assert outcome.report["totals"]["chunked_messages"] > 30


@pytest.mark.parametrize(
    ("ranks", "seed", "threads", "chunk", "options"),
    [
        pytest.param(2, 21, 1, None, FORCED, marks=EXTENDED),
        (3, 22, 1, "8K", FORCED),
        (2, 23, 3, "8K", FORCED),
        pytest.param(2, 24, 1, "8K", ("--codec", "none"), marks=EXTENDED),
        (2, 25, 2, None, ()),
    ],
)
def test_devices(ranks, seed, threads, chunk, options, stress, mpress_run, simulated_gpu, mpi):
    """Half the buffers lie on simulated GPUs."""
    arguments = ["--seed", str(seed), *rounds(threads, 36), "--devices"]
    careful = [] if options is FORCED else ["--careful"]
    env = {**simulated_gpu, "MPRESS_LINK": "mpi", **({"MPRESS_CHUNK": chunk} if chunk else {})}
    outcome = checked(
        mpress_run(ranks, stress, [*arguments, *careful], options, env=env, timeout=TIMEOUT)
    )
    assert outcome.report["totals"]["errors"] == 0
    if chunk and cuts(mpi, threads):
        assert outcome.report["totals"]["chunked_messages"] > 30


@pytest.mark.parametrize(
    ("ranks", "seed", "threads", "codec", "link"),
    [
        (3, 51, 1, RAW, "mpi"),
        (2, 52, 2, FORCED, "mpi"),
        pytest.param(2, 53, 3, RAW, "peer", marks=EXTENDED),
        pytest.param(3, 54, 2, FORCED, "auto", marks=EXTENDED),
    ],
)
def test_an_mpi_that_takes_devices(
    ranks, seed, threads, codec, link, stress, mpress_run, simulated_gpu
):
    """It gets memory of devices, but what has gaps packed."""
    arguments = ["--seed", str(seed), *rounds(threads, 36), "--devices"]
    careful = [] if codec is FORCED else ["--careful"]
    env = {**simulated_gpu, "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
    env["MPRESS_LINK"] = link
    outcome = checked(
        mpress_run(ranks, stress, [*arguments, *careful], codec, env=env, timeout=TIMEOUT)
    )
    assert outcome.report["totals"]["errors"] == 0


@pytest.mark.parametrize(
    ("ranks", "seed", "threads"),
    [
        *(pytest.param(2, seed, threads, marks=EXTENDED) for seed, threads in ((31, 1), (32, 3))),
        (3, 33, 1),
    ],
)
def test_devices_without_memory_to_spare(ranks, seed, threads, stress, mpress_run, simulated_gpu):
    arguments = ["--seed", str(seed), *rounds(threads, 36), "--scarce", "--max-bytes", "30000"]
    env = {**simulated_gpu, "MPRESS_LINK": "mpi", "MPRESS_CHUNK": "4K"}
    outcome = checked(mpress_run(ranks, stress, arguments, FORCED, env=env, timeout=TIMEOUT))
    assert outcome.report["totals"]["errors"] == 0


@pytest.mark.parametrize(
    ("ranks", "seed", "threads", "options", "codec", "link"),
    [
        (3, 41, 1, (), FORCED, "peer"),
        pytest.param(2, 42, 2, (), FORCED, "peer", marks=EXTENDED),
        (2, 43, 2, (), RAW, "peer"),
        pytest.param(4, 44, 1, ("--one-way",), FORCED, "peer", marks=EXTENDED),
        # Threads copy run by run, as devices have no memory to gather in: up to a quarter of a
        # million runs each.
        pytest.param(2, 1436102573, 2, ("--scarce",), FORCED, "peer", marks=EXTENDED),
        (2, 45, 2, ("--scarce", "--max-bytes", "100000"), FORCED, "peer"),
        pytest.param(3, 46, 1, (), FORCED, "host", marks=EXTENDED),
        (2, 47, 2, (), RAW, "host"),
        (4, 48, 1, ("--one-way",), FORCED, "auto"),
    ],
)
def test_by_links_between_gpus(
    ranks, seed, threads, options, codec, link, stress, mpi, mpress_run, simulated_gpu
):
    """Of all sizes, between all pairs, with codecs of each communicator's own."""
    number = 8 if "--scarce" in options else 36
    arguments = ["--seed", str(seed), *rounds(threads, number), "--devices", *options]
    careful = [] if codec is FORCED else ["--careful"]
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    env |= {"MPRESS_CHUNK": "8K", "MPRESS_POOL_LIMIT": "16M"}
    outcome = checked(
        mpress_run(ranks, stress, [*arguments, *careful], codec, env=env, timeout=TIMEOUT)
    )
    totals = outcome.report["totals"]
    assert totals["errors"] == 0
    if mpi.name == "abi" and threads > 1:
        # It cannot look at requests from several threads.
        assert totals["peer_messages"] == totals["host_messages"] == 0
    elif "--scarce" not in options:
        least = 0 if link == "auto" else 15  # which has the longer ones alone
        assert totals["peer_messages"] > least or link == "host"
        assert totals["host_messages"] > least or link == "peer"


@pytest.mark.parametrize(
    ("options", "threads"), [((), 1), (("--threshold", "4K", "--link-rate", "1Gbit"), 2)]
)
def test_where_it_pays(options, threads, stress, mpress_run):
    """Unforced: nothing is known of the link, or some sizes pay and others do not."""
    arguments = ["--seed", "8", "--rounds", "40", "--threads", str(threads)]
    checked(mpress_run(2, stress, [*arguments, "--careful"], options, timeout=TIMEOUT))


@pytest.mark.parametrize(
    ("ranks", "seed", "threads"),
    [
        pytest.param(1, 1, 1, marks=EXTENDED),
        (3, 4, 1),
        pytest.param(2, 6, 2, marks=EXTENDED),
        (2, 4, 4),
    ],
)
def test_the_program_is_right_without_mpress(ranks, seed, threads, stress, mpirun):
    arguments = ["--seed", str(seed), *rounds(threads, 40), "--careful"]
    checked(mpirun(ranks, stress, arguments, timeout=TIMEOUT))


def test_devices_that_reach_each_other(stress, mpress_run, simulated_gpu):
    """Also what probes took from MPI before MPI_Isendrecv_replace overwrites nothing that is still
    to be sent."""
    arguments = ["--seed", "8", "--rounds", "30", "--threads", "3", "--devices",
                 "--max-bytes", "100000"]  # fmt: skip
    env = {**simulated_gpu, "MPRESS_LINK": "peer", "MPRESS_CHUNK": "4K"}
    outcome = checked(mpress_run(2, stress, arguments, FORCED, env=env, timeout=TIMEOUT))
    assert outcome.report["totals"]["errors"] == 0
