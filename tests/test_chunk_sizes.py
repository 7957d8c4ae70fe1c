"""Ranks need not cut their messages alike: each goes by its own profile, or MPRESS_CHUNK, and
receivers take what comes. On simulated GPUs."""

from __future__ import annotations

import sys

import pytest
from compiled_programs import on_rank_1
from execution import execute

from mpress import _core, tune
from mpress.cli import launch

SETTINGS = {"raw": ("--codec", "none"), "encoded": ("--codec", "mpc", "--force")}


@pytest.fixture
def profile_of(mpi, mpi_program, mpress_run, tmp_path):
    """profile_of(chunk): a file that says so of messages between devices."""
    done = mpress_run(1, mpi_program("library_name"))
    assert done.status == 0, done.output
    name = _core.mpi_name(done.stdout)
    ask = f"from mpress import _core; print(_core.transport_settings({name!r}))"
    transport = execute([sys.executable, "-c", ask], mpi.env).stdout.strip()

    def write(chunk):
        profile = tune.Profile(_core.hardware())
        profile.add(tune.Link("same-host", "device", name, transport, {4096: 1e-5}, chunk))
        path = tmp_path / f"{chunk}.profile"
        path.write_text(profile.text())
        return str(path)

    return write


def chunked(done):
    """Messages in chunks that ranks 0 and 1 sent."""
    return [
        sum(
            row["messages"]
            for row in done.report["rows"]
            if (row["direction"], row["rank"], row["way"]) == ("send", rank, "chunks")
        )
        for rank in (0, 1)
    ]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    ("own", "env", "expected"),
    [
        ((128 << 10, 1 << 20), {}, [24, 6]),
        pytest.param((1 << 20, 64 << 10), {}, [6, 30], marks=pytest.mark.extended),
        ((128 << 10, 1 << 20), {"MPRESS_CHUNK": "256K"}, [12, 12]),
    ],
)
def test_profiles_that_differ(
    own, env, expected, setting, tmp_path, mpi_program, mpress_run, simulated_gpu, profile_of
):
    first, second = map(profile_of, own)
    script = on_rank_1(tmp_path, mpi_program("device_chunked"), f"export MPRESS_PROFILE={second}")
    env = {**simulated_gpu, **env, "MPRESS_LINK": "mpi", "MPRESS_PROFILE": first}
    done = mpress_run(2, script, [tmp_path], SETTINGS[setting], env)
    assert done.status == 0, done.stderr
    assert done.stdout == "ok\n" and done.stderr == ""
    assert chunked(done) == expected
    assert done.report["totals"]["errors"] == 0


@pytest.mark.parametrize("other", ["0", "4K", "2M"])
@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.extended), "mpc"])
def test_settings_that_differ(other, codec, tmp_path, mpi_program, mpirun, simulated_gpu):
    """As no job of `mpress run` has them. Where one rank has no chunks, none has."""
    script = on_rank_1(tmp_path, mpi_program("device_chunked"), f"export MPRESS_CHUNK={other}")
    env = {
        "LD_PRELOAD": str(launch.required_preload_library()),
        "MPRESS_JOB": "0123456789abcdef" * 2,
        "MPRESS_LINK": "mpi",
        "MPRESS_CODEC": codec,
        "MPRESS_FORCE": "1",
        "MPRESS_CHUNK": "64K",
    }
    done = mpirun(2, script, [tmp_path], {**simulated_gpu, **env})
    assert (done.status, done.stdout, done.stderr) == (0, "ok\n", "")


def test_the_program_is_right_without_mpress(tmp_path, mpi_program, mpirun, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_OPEN": "1"}
    done = mpirun(2, mpi_program("device_chunked"), [tmp_path], env)
    assert done.status == 0, done.output
