"""Copies of the program's that have returned before the device is done count, in every way that a
call goes on simulated GPUs: those fault where work of mpress's does not begin behind them."""

from __future__ import annotations

import pytest

RAW = ("--codec", "none")
ENCODED = ("--codec", "mpc", "--force", "--threshold", "0")
PEER = {"MPRESS_LINK": "peer"}
HOST = {"MPRESS_LINK": "host", "SIMULATED_GPU_PEERS": "0"}
BY_MPI = {"MPRESS_LINK": "mpi"}
CHUNKS = {"MPRESS_CHUNK": "64K"}
WAYS = {
    "peer link, as it is": (RAW, PEER),
    "peer link, encoded, in chunks": (ENCODED, {**PEER, **CHUNKS}),
    "peer link, with little memory": (RAW, {**PEER, "MPRESS_POOL_LIMIT": "100K"}),
    "one device": (RAW, {**PEER, "SIMULATED_GPU_SHARED": "1"}),
    "host link, as it is": (RAW, {**HOST, **CHUNKS}),
    "host link, encoded": (ENCODED, HOST),
    "MPI, as it is": (RAW, BY_MPI),
    "MPI, encoded": (ENCODED, BY_MPI),
    "MPI, encoded, in chunks": (ENCODED, {**BY_MPI, **CHUNKS}),
    "MPI that takes devices": (
        ENCODED,
        {**BY_MPI, **CHUNKS, "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"},
    ),
    "progress thread": (ENCODED, {**PEER, "MPRESS_PROGRESS": "thread"}),
}


# Extended: as it is in chunks, and in the test below.
@pytest.mark.parametrize(
    "way",
    [pytest.param(x, marks=pytest.mark.extended if x == "MPI, encoded" else ()) for x in WAYS],
)
def test_what_has_returned_is_sent(way, mpi, mpi_program, mpress_run, simulated_gpu):
    options, env = WAYS[way]
    if mpi.name == "abi" and "MPRESS_PROGRESS" in env:
        pytest.skip("has no way to look at requests from several threads")
    arguments = ["long"] if "SIMULATED_GPU_OPEN" in env else []
    done = mpress_run(
        3, mpi_program("device_returned"), arguments, options=options, env={**simulated_gpu, **env}
    )
    assert done.status == 0, done.output
    assert "ok" in done.stdout
    assert done.report["totals"]["errors"] == 0


@pytest.mark.parametrize("way", ["peer link, as it is", "host link, encoded", "MPI, encoded"])
def test_other_streams_are_not_waited_for(way, mpi_program, mpress_run, simulated_gpu):
    """Blocking ones that hold work until the call is over, or are captured meanwhile."""
    options, env = WAYS[way]
    done = mpress_run(
        2, mpi_program("device_returned"), ["held"], options=options, env={**simulated_gpu, **env}
    )
    assert done.status == 0, done.output
    assert "ok" in done.stdout
