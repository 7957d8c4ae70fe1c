"""What mpress leaves alone runs as ever beside messages that are compressed: one program a family
of calls, each of which also checks what it is told and given."""

from __future__ import annotations

import pytest

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")

FAMILIES = [
    ("windows", 2),
    ("windows", 3),
    ("shared_file", 2),
    ("shared_file", 3),
    ("partitioned", 2),
    ("collectives", 2),
    ("collectives", 3),
    ("worlds", 2),
    ("worlds", 4),
    ("own_requests", 1),
    ("own_requests", 2),
]

# MPICH's ports need a network layer that the wheel's default is not.
PORTS = {"MPIR_CVAR_CH4_NETMOD": "ofi"}


@pytest.mark.parametrize(("name", "ranks"), FAMILIES)
def test_families_run_unchanged(name, ranks, mpi_program, mpirun, mpress_run, tmp_path):
    env = PORTS if name == "worlds" else {}
    args = [str(tmp_path / "file")] if name in ("shared_file", "worlds") else []
    plain = mpirun(ranks, mpi_program(name), args, env=env)
    assert plain.status == 0, plain.output
    done = mpress_run(ranks, mpi_program(name), args, options=FORCED, env=env)
    assert done.status == 0, done.output
    assert done.stdout == plain.stdout == "ok\n"
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] > 0
    assert totals["errors"] == 0
    assert all(rank["finished"] for rank in done.report["ranks"])
