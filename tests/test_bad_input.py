"""What is set wrongly ends with one message that names the culprit, and never with a hang."""

from __future__ import annotations

import pytest
from compiled_programs import on_rank_1

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MPRESS_CODECS", "mpc", "unknown environment variable MPRESS_CODECS; did you mean"),
        ("MPRESS_DISABLE_BARRIER", "1", "unknown environment variable MPRESS_DISABLE_BARRIER; did"),
        ("MPRESS_CODEC", "zzz", "MPRESS_CODEC: codec spec 'zzz': unknown codec"),
        ("MPRESS_THRESHOLD", "-5", "MPRESS_THRESHOLD='-5': expected bytes"),
        ("MPRESS_FORCE", "yes", "MPRESS_FORCE='yes': expected 0 or 1"),
    ],
)
def test_wrong_settings(name, value, message, mpi_program, mpress_run):
    done = mpress_run(2, mpi_program("one_message"), env={name: value})
    assert done.status != 0
    assert done.stderr.count(message) == 1


def test_rate_out_of_range_for_the_type(mpi_program, mpress_run):
    options = ("--codec", "zfp:48", "--force", "--threshold", "0")
    done = mpress_run(2, mpi_program("one_message"), options=options)
    assert done.status != 0
    assert "the rate for f32 must be" in done.stderr


def test_ranks_with_different_settings(tmp_path, mpi_program, mpress_run):
    script = on_rank_1(tmp_path, mpi_program("one_message"), "export MPRESS_CODEC=szp:abs=1")
    done = mpress_run(2, script, options=FORCED)
    assert done.status != 0
    assert "runs with other settings: codec=" in done.stderr


@pytest.mark.extended  # it waits as long as ranks may take to start
def test_a_rank_without_mpress(tmp_path, mpi_program, mpress_run):
    script = on_rank_1(tmp_path, mpi_program("one_message"), "unset LD_PRELOAD")
    done = mpress_run(2, script, options=FORCED)
    assert done.status != 0
    assert "only 1 of 2 ranks on this host loaded mpress; without it: rank 1" in done.stderr


def test_programs_without_mpi_are_left_alone(mpress_run):
    done = mpress_run(2, "/bin/sh", ["-c", "(echo one); ls / > /dev/null && echo two"])
    assert done.status == 0
    assert sorted(done.stdout.split()) == ["one", "one", "two", "two"]
