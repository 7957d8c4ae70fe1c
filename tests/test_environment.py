"""The preload library in the environment of shells, launchers and daemons, and in programs that do
other things than communicate or come by MPI in other ways."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from execution import ROOT, execute

from mpress import trace
from mpress.cli import launch

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")
PRELOAD = str(launch.required_preload_library())
# What `mpress run` sets, without the job's identity.
LOADED = {
    "LD_PRELOAD": PRELOAD,
    "MPRESS_CODEC": "mpc",
    "MPRESS_FORCE": "1",
    "MPRESS_THRESHOLD": "0",
}


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "for i in 1 2; do echo $((i + 1)) | cat; done; exit 7"],
        ["sh", "-c", "(sleep 0.01 & wait) && ls -d / | sort && trap 'echo end' EXIT"],
        [sys.executable, "-c", "import subprocess; subprocess.run(['echo', 'child'], check=True)"],
        [sys.executable, "-c", "import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))"],
        ["env", "-i", "/bin/echo", "bare"],
        ["sh", "-c", "nohup sh -c 'echo daemon >&2' </dev/null"],
    ],
)
def test_programs_without_mpi_do_not_notice(command):
    plain = execute(command)
    loaded = execute(command, env=LOADED | {"MPRESS_JOB": "0" * 32})
    assert (loaded.status, loaded.stdout, loaded.stderr) == (
        plain.status, plain.stdout, plain.stderr)  # fmt: skip


def test_it_needs_little_of_the_process_that_loads_it():
    """No MPI, no CUDA, no C++ library: nothing that a shell would have to wait for."""
    command = ["sh", "-c", "cat /proc/self/maps"]
    mapped = execute(command, env=LOADED).stdout
    assert "libmpress_preload" in mapped
    for unwanted in ("libmpi", "libcuda", "libstdc++", "libmpress_mpich", "libmpress_openmpi"):
        assert unwanted not in mapped


@pytest.mark.parametrize(
    ("set_before", "found"),
    [({}, "16"), ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, "1"), ({"MPRESS_DISABLE": "1"}, "unset")],
)
def test_gpus_are_to_look_at_many_streams(set_before, found):
    """Before the program's first call: CUDA may start before MPI."""
    command = ["sh", "-c", "echo ${CUDA_DEVICE_MAX_CONNECTIONS-unset}"]
    assert execute(command, env=LOADED | set_before).stdout == found + "\n"


MODES = ["children", "idle", "asks", "quits", "aborts", "early", "late"]


@pytest.mark.parametrize("mode", MODES)
def test_surroundings(mode, mpi_program, mpirun, mpress_run):
    program = mpi_program("surroundings")
    plain = mpirun(2, program, [mode])
    done = mpress_run(2, program, [mode], options=FORCED)
    assert done.status == plain.status
    assert done.stdout == plain.stdout
    if mode in ("idle", "asks"):
        assert done.stderr.count("\n") == 1 and "left no statistics" in done.stderr
        return
    if mode not in ("quits", "aborts"):  # where the launcher speaks
        assert done.stderr == plain.stderr
    totals = done.report["totals"]
    sent = {"children": 8, "early": 4, "late": 4}.get(mode, 2)
    assert totals["compressed_messages"] == totals["decoded_messages"] == sent
    finished = [rank["finished"] for rank in done.report["ranks"]]
    assert finished == [mode not in ("quits", "aborts")] * 2


@pytest.mark.parametrize("progress", ["calls", "thread"])
def test_children_that_go_on_as_they_are(progress, mpi, mpi_program, mpress_run):
    """Of fork, without another program: they leave what is under way, and the statistics, alone."""
    if progress == "thread" and mpi.name == "abi":
        pytest.skip("has no way to look at requests from several threads")
    options = ["--codec", "mpc", "--force", "--threshold", "0"]
    env = {"MPRESS_PROGRESS": progress}
    done = mpress_run(2, mpi_program("forked"), options=options, env=env)
    assert done.status == 0 and done.stdout == "ok\n", done.output
    sent = [row for row in done.report["rows"] if row["direction"] == "send"]
    messages = [row for row in sent if row["operation"] == "MPI_Isend"]
    assert {row["codec"] for row in messages} == {"mpc"}
    assert sum(row["messages"] for row in messages) == 2 * 6
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] and totals["errors"] == 0
    assert all(rank["finished"] for rank in done.report["ranks"])


@pytest.mark.parametrize("mode", ["children", "late"])
def test_preload_in_the_launchers_environment(mode, mpi_program, mpirun, tmp_path):
    """The launcher's own processes load the library too; MPRESS_JOB names the job."""
    job = {"MPRESS_JOB": "0123456789abcdef" * 2, "MPRESS_RECORD": str(tmp_path)}
    program = mpi_program("surroundings")
    plain = mpirun(2, program, [mode])
    done = mpirun(2, program, [mode], env=LOADED | job)
    assert (done.status, done.stdout, done.stderr) == (plain.status, plain.stdout, plain.stderr)
    assert trace.merge(tmp_path)["totals"]["compressed_messages"] > 0


def test_the_launchers_identity_serves(mpi_program, mpirun, tmp_path):
    """Without MPRESS_JOB: what the launcher calls the job; where it says nothing (MPICH's own
    launcher), mpress is off and tells so once."""
    names = ("PMIX_NAMESPACE", "PMI_JOBID", "FLUX_JOB_ID", "PALS_APID", "SLURM_JOB_ID")
    ask = "import os, sys; print(sum(name in os.environ for name in sys.argv[1:]))"
    named = mpirun(1, sys.executable, ["-c", ask, *names]).stdout != "0\n"
    env = LOADED | {"MPRESS_RECORD": str(tmp_path)}
    done = mpirun(2, mpi_program("surroundings"), ["children"], env=env)
    assert done.status == 0 and done.stdout == "ok\n"
    if named:
        assert done.stderr == ""
        assert trace.merge(tmp_path)["totals"]["compressed_messages"] == 8
    else:
        assert done.stderr.startswith("mpress: off: ") and done.stderr.count("\n") == 1


def test_programs_one_after_another(mpi_program, mpress_run):
    program = mpi_program("surroundings")
    script = f"{program} early && {program} late"
    done = mpress_run(None, "sh", ["-c", script], options=FORCED)
    assert done.status == 0 and done.stdout == "ok\nlate\n" and done.stderr == ""
    assert [rank["finished"] for rank in done.report["ranks"]] == [True, True]
    assert done.report["totals"]["compressed_messages"] == 4


@pytest.fixture(scope="module")
def dlopened(mpi, tmp_path_factory) -> Path:
    """tests/mpi/dlopened.c, not linked with MPI."""
    program = tmp_path_factory.mktemp("dlopened") / "dlopened"
    command = [mpi.mpicc, "-O1", "-o", program, ROOT / "tests/mpi/dlopened.c"]
    done = execute([*command, "-Wl,--as-needed", "-ldl"])
    assert done.status == 0, done.output
    return program


@pytest.fixture(scope="module")
def both(mpi, tmp_path_factory) -> Path:
    """The library that docs/semantics.md describes: mpress and MPI in one."""
    library = tmp_path_factory.mktemp("both") / "libmpi_mpress.so"
    done = execute([mpi.mpicc, "-shared", "-o", library, "-Wl,--no-as-needed", PRELOAD])
    assert done.status == 0, done.output
    return library


@pytest.fixture(scope="module")
def libmpi(both) -> str:
    """The MPI library itself, as the dynamic linker finds it."""
    lines = execute(["ldd", both]).stdout.splitlines()
    [path] = [line.split()[2] for line in lines if line.split()[0].startswith("libmpi")]
    return path


def said(ranks: int) -> list[str]:
    return [f"rank {rank}: 5000 elements, 0 wrong" for rank in range(ranks)]


@pytest.mark.parametrize("how", ["local", "deep", "global", "default"])
def test_programs_that_look_mpi_up(how, dlopened, libmpi, mpi, mpress_run):
    """Looked up in libmpi itself, calls are MPI's: all of them, so messages are raw, and nothing
    waits for ranks that mpress does not hear of."""
    options = (*FORCED, "--mpiexec", str(mpi.mpiexec))  # the program does not tell its MPI
    done = mpress_run(2, dlopened, [libmpi, how], options=options)
    assert done.status == 0, done.output
    assert sorted(done.stdout.splitlines()) == said(2)
    if how == "default":
        assert done.stderr == ""
        assert done.report["totals"]["compressed_messages"] == 2
    else:
        assert done.stderr.count("\n") == 1 and "none of its MPI calls came by" in done.stderr
        assert done.report["ranks"] == []


@pytest.mark.parametrize("how", ["local", "deep"])
def test_a_library_with_both_compresses_them(how, dlopened, both, mpi, mpress_run):
    options = (*FORCED, "--mpiexec", str(mpi.mpiexec))
    done = mpress_run(2, dlopened, [str(both), how], options=options)
    assert done.status == 0 and done.stderr == "", done.output
    assert sorted(done.stdout.splitlines()) == said(2)
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] == 2


def test_ctypes(mpress_run, both):
    """The same in an interpreter."""
    code = (
        "import ctypes, sys; mpi = ctypes.CDLL(sys.argv[1]); "
        "assert mpi.MPI_Init(None, None) == 0; assert mpi.MPI_Finalize() == 0; print('ok')"
    )
    done = mpress_run(None, sys.executable, ["-c", code, str(both)], options=FORCED)
    assert done.status == 0 and done.stdout == "ok\n" and done.stderr == "", done.output
    assert [rank["finished"] for rank in done.report["ranks"]] == [True]
