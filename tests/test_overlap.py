"""Receives under way that share a buffer: MPI forbids it, every MPI tolerates it."""

from __future__ import annotations

import pytest

CODECS = {
    "none": ("--codec", "none"),
    "auto": ("--codec", "auto"),
    "forced": ("--codec", "mpc", "--force"),
}


@pytest.mark.parametrize(
    ("codec", "chunk"),
    [
        ("none", "1M"),
        ("auto", "1M"),
        ("forced", "0"),
        ("forced", "4096"),
        *(pytest.param("forced", x, marks=pytest.mark.extended) for x in ("64K", "256K")),
    ],
)
def test_windows_into_one_buffer(codec, chunk, mpi_program, mpress_run):
    env = {"MPRESS_CHUNK": chunk, "MPRESS_THRESHOLD": "1K"}
    done = mpress_run(2, mpi_program("overlapping"), options=CODECS[codec], env=env)
    assert done.status == 0, done.output
    assert "corrupt" not in done.output
    assert done.report["totals"]["errors"] == 0
    compressed = sum(row["messages"] for row in done.report["rows"] if row["codec"] == "mpc")
    assert (compressed > 0) == (codec == "forced")


def test_the_program_itself(mpi_program, mpirun):
    done = mpirun(2, mpi_program("overlapping"))
    assert done.status == 0, done.output
