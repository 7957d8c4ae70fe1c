"""Collective calls of all forms under way at once: tests/mpi/in_flight checks every byte."""

import pytest
from test_collectives import EXTENDED, FORCED, served

LINKS = ["auto", pytest.param("mpi", marks=EXTENDED), pytest.param("host", marks=EXTENDED)]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("codec", [FORCED, ("--codec", "none")], ids=["mpc", "none"])
@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=EXTENDED), 4])
def test_all_forms_mixed(ranks, codec, link, mpi_program, mpress_run, simulated_gpu):
    """Blocking, non-blocking and persistent ones, and messages, on communicators that overlap."""
    env = {**simulated_gpu, "MPRESS_LINK": link}
    done = mpress_run(ranks, mpi_program("in_flight"), ["mix", str(ranks), "15"], codec, env=env)
    assert len(served(done)) > 4  # of ten, by chance


@pytest.mark.parametrize("codec", [("--codec", "none"), FORCED], ids=["none", "mpc"])
def test_a_device_that_comes_late(codec, mpi_program, mpress_run, simulated_gpu):
    """What was begun before goes to MPI, in its turn, or pair by pair; persistent calls stay as
    they were made."""
    arguments = ["mix", "8", "24", "late"]
    done = mpress_run(3, mpi_program("in_flight"), arguments, codec, env=simulated_gpu)
    assert served(done)


def test_no_buffer_on_a_device(mpi_program, mpress_run, simulated_gpu):
    """There could be one: members tell each other that there is none, and MPI serves, later."""
    done = mpress_run(3, mpi_program("in_flight"), ["mix", "7", "15", "host"], env=simulated_gpu)
    assert served(done) == {}


def test_no_gpu_at_all(mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "MPRESS_GPU": "off"}
    done = mpress_run(3, mpi_program("in_flight"), ["mix", "9", "15", "host"], FORCED, env=env)
    assert "MPI_Bcast" in served(done)
    assert done.report["totals"]["compressed_messages"] > 30


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=EXTENDED)])
def test_in_the_progress_thread(seed, mpi, mpi_program, mpress_run, simulated_gpu):
    if mpi.name == "abi":
        pytest.skip("no way to look at requests from several threads")
    env = {**simulated_gpu, "MPRESS_PROGRESS": "thread"}
    done = mpress_run(3, mpi_program("in_flight"), ["mix", str(seed), "10"], FORCED, env=env)
    assert served(done)


def test_by_mpi_alone(mpi_program, mpirun):
    """The program is right without mpress."""
    done = mpirun(3, mpi_program("in_flight"), ["mix", "11", "15", "host"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


@pytest.mark.parametrize("part", ["thousand", "orders"])
def test_many_at_once(part, mpi, mpi_program, mpress_run):
    """A rank passes on what it gets while it waits in another communicator's call; communicators
    are first used in other orders by other ranks, and freed with calls under way."""
    done = mpress_run(4, mpi_program("in_flight"), [part], FORCED, env={"MPRESS_GPU": "off"})
    sent = served(done).get("MPI_Bcast", 0)
    # Where MPI does not let mpress in while it waits, or make a communicator while other calls are
    # under way, it serves non-blocking calls itself; the first of the thousand is blocking.
    if mpi.name == "abi" or (mpi.name == "openmpi" and part == "orders"):
        assert sent == {"thousand": 3, "orders": 0}[part]
    else:
        assert sent >= {"thousand": 3003, "orders": 15}[part]


@pytest.mark.parametrize("algorithm", ["chain", "scatter-ring"])
def test_blocked_in_mpi(algorithm, mpi, mpi_program, mpress_run):
    """Who has a block to pass on waits in MPI_Barrier for those who wait for it."""
    env = {"MPRESS_GPU": "off", "MPRESS_ALGORITHM": f"bcast={algorithm}"}
    done = mpress_run(4, mpi_program("in_flight"), ["blocked"], FORCED, env=env, timeout=60)
    assert bool(served(done)) == (mpi.name != "abi")
