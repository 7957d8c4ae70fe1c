"""Collective calls, and others that are no messages, on buffers in device memory: simulated GPUs,
whose memory neither MPI nor mpress can touch without ending the program."""

import pytest

EXTENDED = pytest.mark.extended


# Three have groups of two sizes, neighbours twice over and a root that is not the first.
@pytest.mark.parametrize(
    "ranks", [1, pytest.param(2, marks=EXTENDED), 3, pytest.param(4, marks=EXTENDED)]
)
def test_every_collective_call(ranks, mpi_program, mpress_run, simulated_gpu):
    done = mpress_run(ranks, mpi_program("device_collectives"), env=simulated_gpu)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


@pytest.mark.parametrize(
    ("program", "arguments"), [("device_collectives", []), ("blocks", ["5", "80"])]
)
def test_calls_of_an_mpi_that_takes_devices(
    program, arguments, mpi_program, mpress_run, simulated_gpu
):
    """MPI gets buffers as they are, unless one has gaps."""
    env = {**simulated_gpu, "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
    done = mpress_run(3, mpi_program(program), arguments, ("--codec", "none"), env=env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


@pytest.mark.parametrize("lacking", ["nothing", "device memory", "device memory, pinned memory"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_calls_on_device_memory(ranks, lacking, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_LEAKS": "shared", "MPRESS_LINK": "peer"}
    done = mpress_run(ranks, mpi_program("device_calls"), [lacking], env=env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


@pytest.mark.parametrize("ranks", [1, 2])
def test_devices_that_refuse_to_work(ranks, mpi_program, mpress_run, simulated_gpu):
    done = mpress_run(ranks, mpi_program("device_calls"), ["devices"], env=simulated_gpu)
    assert done.status == 0, done.output
    assert "device 0 refuses to work" in done.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_takes_memory_of_the_host_alone(
    ranks, tmp_path, mpi_program, mpress_run, simulated_gpu
):
    file = str(tmp_path / "file")
    done = mpress_run(ranks, mpi_program("device_refused"), [file], env=simulated_gpu)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert "MPI_Win_create was given memory of a device" in done.stderr
