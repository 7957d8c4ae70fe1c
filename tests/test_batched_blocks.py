"""Blocks that a device encodes for several ranks in one launch (tests/mpi/batched_blocks.c): the
simulated queues count how often they are given something to encode."""

import pytest
from test_same_bits import several_hosts as several_hosts  # fixtures

EXTENDED = pytest.mark.extended
CODECS = ["zfp:8", "szp:abs=1e-3", "szp:rel=1e-3", "mpc"]
FORMS = ["immediate", "persistent", "alltoallv", "alltoallw", "mixed", "noise", "scatter",
         "scatterv", "scatter in place"]  # fmt: skip
WAYS = {
    "host link": {"MPRESS_LINK": "host"},
    "an MPI that takes device memory": {
        "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1", "MPRESS_LINK": "mpi",
    },
    "the host publishes": {"SIMULATED_GPU_MAP": "0"},
}  # fmt: skip
BLOCK = 30000  # floats: one chunk


def few(*values):
    """The first always, the others where there is time."""
    return [values[0], *(pytest.param(value, marks=EXTENDED) for value in values[1:])]


@pytest.fixture
def launches(mpi_program, mpress_run, simulated_gpu):
    """launches(n, codec): a call takes `n` of a rank that has blocks for three others."""

    def check(expected, codec, *forms, floats=BLOCK, env=()):
        options = ("--codec", codec, "--force", "--threshold", "0")
        env = {**simulated_gpu, "SIMULATED_GPU_LEAKS": "shared", **dict(env)}
        args = [str(floats), str(expected), *(forms or ["blocking"])]
        done = mpress_run(4, mpi_program("batched_blocks"), args, options, env=env)
        assert done.status == 0, done.output
        assert done.stdout == "ok\n"
        assert done.report["totals"]["errors"] == 0

    return check


@pytest.mark.parametrize("codec", CODECS)
def test_a_call_takes_one_launch(codec, launches):
    launches(1, codec)


@pytest.mark.parametrize("codec", few("szp:rel=1e-3", "mpc"))
def test_forms(codec, mpi, launches):
    """In one job, but for that whose ranks are to meet in another way. Under the standard ABI MPI
    serves calls with requests."""
    apart = {"mixed", *(["immediate", "persistent"] if mpi.name == "abi" else [])}
    launches(1, codec, *(form for form in FORMS if form not in apart))
    launches(1, codec, "mixed")


@pytest.mark.parametrize("codec", few(*reversed(CODECS)))
@pytest.mark.parametrize("way", WAYS)
def test_ways(way, codec, launches):
    launches(1, codec, "blocking", "noise", env=WAYS[way])


@pytest.mark.parametrize("form", ["blocking", "alltoallv"])
def test_on_two_hosts(form, several_hosts, launches):
    """One of the others shares the host; blocks for the two elsewhere are eager messages."""
    launches(3, "zfp:8", form, env=several_hosts)


def test_chunks_of_all_blocks_go_together(launches):
    launches(1, "szp:abs=1e-3", floats=200000, env={"MPRESS_CHUNK": "4K"})


def test_chunks_of_one_range_have_a_launch_a_block(launches):
    launches(3, "szp:rel=1e-3", floats=200000, env={"MPRESS_CHUNK": "4K"})


@EXTENDED
def test_more_chunks_than_a_launch_takes(launches):
    env = {"MPRESS_CHUNK": "4K", "MPRESS_LINK": "host", "MPRESS_POOL_LIMIT": "256M"}
    launches(2, "szp:abs=1e-3", floats=1450000, env=env)
