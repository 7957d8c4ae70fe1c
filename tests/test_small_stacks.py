"""Task runtimes and user-level threads call MPI on stacks of 16 to 64 KB: mpress needs little more
than the MPI itself, in every family of calls, on every instruction set, in first calls too."""

from __future__ import annotations

import re

import pytest

MOST = 8 << 10
RANKS = 2
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
CHUNK = {"MPRESS_CHUNK": "16K"}


def needs(done) -> dict[str, int]:
    """Bytes of stack by "CODEC/FAMILY", of the rank that needed most."""
    assert done.status == 0, done.output
    found: dict[str, int] = {}
    for name, text in re.findall(r"^stack (\S+) (\d+)$", done.stdout, re.MULTILINE):
        found[name] = max(found.get(name, 0), int(text))
    return found


@pytest.fixture(scope="module")
def plain(mpi_program, mpirun) -> dict[str, int]:
    return needs(mpirun(RANKS, mpi_program("small_stacks")))


def check(done, plain) -> None:
    found = needs(done)
    assert found.keys() == plain.keys() and len(found) > 100
    over = {name: need - plain[name] for name, need in found.items()}
    assert not {name: more for name, more in over.items() if more > MOST}
    assert any(more > 0 for more in over.values())


@pytest.mark.xdist_group("small-stacks")
@pytest.mark.parametrize(
    "isa",
    # Codecs alone are measured on each by tests/codec/scratch_test.cpp.
    ["portable", pytest.param("avx2", marks=pytest.mark.extended), "avx512"],
)
def test_calls_need_little_stack(isa, plain, mpi_program, mpress_run):
    env = {"MPRESS_ISA": isa} | CHUNK
    done = mpress_run(RANKS, mpi_program("small_stacks"), options=FORCED, env=env)
    check(done, plain)
    assert done.report["totals"]["compressed_messages"] > 1000


@pytest.mark.xdist_group("small-stacks")
def test_calls_with_device_memory_need_little_stack(plain, mpi_program, mpress_run, simulated_gpu):
    program, env = mpi_program("small_stacks"), simulated_gpu | CHUNK
    check(mpress_run(RANKS, program, ["devices"], options=FORCED, env=env), plain)
