"""Programs that are built with a sanitizer, whose runtime is a shared library that wants to come
before all others, beneath the preload library. In tests/sanitize mpress itself is instrumented."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from execution import ROOT, execute

from mpress.cli import launch

FORCED = ("--force", "--threshold", "0")
# MPI keeps memory to the end. The last two it needs under ThreadSanitizer, without mpress, too.
QUIET = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1",
    "UCX_MEM_EVENTS": "no",
    "PMIX_MCA_gds": "hash",
}


@pytest.fixture
def sanitized(mpi, tmp_path):
    """sanitized(kind, options...): tests/mpi/sanitized.c with that sanitizer."""

    def build(kind: str, *options: str) -> Path:
        program, source = tmp_path / "sanitized", ROOT / "tests" / "mpi" / "sanitized.c"
        flags = [f"-fsanitize={kind}", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *options]
        done = execute([mpi.mpicc, *flags, source, "-lm", "-o", program])
        assert done.status == 0, f"the compiler has no runtime for {kind}? {done.output}"
        return program

    return build


def check(done, *, is_compressed: bool = True) -> None:
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    assert "Sanitizer" not in done.stderr, done.stderr
    if is_compressed:
        assert done.report["totals"]["compressed_messages"] > 0


def test_address(sanitized, mpress_run):
    """mpress stays in the buffers, and what does not is found."""
    program = sanitized("address")
    for codec, bound in (("mpc", 0), ("zfp:16", 1), ("szp:abs=1e-3", 1.001e-3), ("auto", 0)):
        check(mpress_run(2, program, [str(bound)], ["--codec", codec, *FORCED], QUIET))
    wrong = mpress_run(2, program, ["0", "overflow"], FORCED, QUIET)
    assert wrong.status != 0 and "heap-buffer-overflow" in wrong.stderr, wrong.output


@pytest.mark.parametrize("kind", ["thread", "undefined"])
def test_others(kind, sanitized, mpi, mpress_run):
    """Data that mpress's thread has copied is no race. (What Open MPI copies in it is one; and in
    programs of the standard ABI mpress has no thread.)"""
    threads = mpi.name in ("default", "mpich")
    settings = {"MPRESS_PROGRESS": "thread", "MPRESS_CHUNK": "8K"} if threads else {}
    check(mpress_run(2, sanitized(kind), ["0"], ["--codec", "mpc", *FORCED], QUIET | settings))


def test_ways_to_start_one(sanitized, mpi, mpirun, mpress_run, tmp_path):
    """Found on PATH, by a script, behind another program, and with LD_PRELOAD set by hand."""
    program = sanitized("address")
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\nPATH={shlex.quote(str(tmp_path))}:$PATH\nsanitized "$@"\n')
    script.chmod(0o755)
    check(mpress_run(2, script, ["0"], FORCED, QUIET))
    check(mpress_run(2, "env", ["A=b", str(program), "0"], FORCED, QUIET))
    library = launch.required_preload_library()
    settings = [f"LD_PRELOAD={library}", f"MPRESS_JOB={'5a' * 16}", "MPRESS_FORCE=1"]
    by_hand = mpirun(2, "env", [*settings, program, "0"], QUIET)
    check(by_hand, is_compressed=False)


def test_options_of_the_program(sanitized, mpress_run):
    """Where those are its own, the user is told which one it needs."""
    program = sanitized("address", "-DOWN_OPTIONS")
    done = mpress_run(1, program, ["0"], FORCED)
    assert done.status != 0
    assert done.stderr.startswith("mpress: the program's own __asan_default_options()"), done.output
    option = done.stderr.splitlines()[0].rpartition(" ASAN_OPTIONS=")[2]
    check(mpress_run(2, program, ["0"], FORCED, {"ASAN_OPTIONS": option}))
