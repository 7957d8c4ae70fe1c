"""mpi4py under the preload: its own test suite ends as it does without, test by test.

The wheel is the real one, which opens libmpi at run time; the suite comes from the source
distribution of the same version. tests/mpi4py_suite.py runs it with messages that are large
enough for frames.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import pytest
from compiled_programs import made_once
from execution import ROOT, execute, on_path

RUNNER = ROOT / "tests" / "mpi4py_suite.py"
FORCED = ("--codec", "mpc", "--force", "--threshold", "0")

# Messages, requests and what lives around them, on any number of ranks.
MESSAGES = (
    "p2p_buf", "p2p_buf_matched", "p2p_obj", "p2p_obj_matched", "request", "status", "buffer",
    "msgzero", "grequest", "comm", "comm_inter", "cco_obj_inter", "attributes", "group",
    "errhandler", "errorcode", "exceptions", "handle", "session", "subclass", "threads",
)  # fmt: skip
# What passes through, and what takes long on many ranks. Of processes that are spawned, and of
# one-sided communication, tests/mpi has less that takes seconds; "all" has the suite's.
OTHERS = (
    "p2p_buf_part", "util_pkl5", "cco_buf", "cco_buf_inter", "dynproc", "file", "win",
)  # fmt: skip
# Those of arrays, for arrays of GPUs. Windows, files and partitioned communication take the host's
# memory alone, and say so (docs/semantics.md).
OF_ARRAYS = (
    "p2p_buf", "p2p_buf_matched", "cco_buf", "cco_buf_inter", "cco_nb_buf", "cco_vec", "cco_nb_vec",
    "cco_vec_inter", "cco_ngh_buf", "cco_pr_buf", "cco_pr_vec", "cco_pr_ngh_buf", "pack",
)  # fmt: skip


def without_duplicates(modules, but=()):
    """Most of the suite's cases are there for duplicates of a communicator too ("...Dup"), which
    take as long again and go the same way. Those modules keep theirs."""
    return tuple(name if name in but else f"{name}.*[!p]" for name in modules)


def of_world(modules):
    """Of the suite's cases, those of all ranks: neither duplicates nor MPI_COMM_SELF."""
    return tuple(f"{name}.*World" for name in modules)


# Duplicates and MPI_COMM_SELF where they are cheap, of messages and of collective calls. Pack calls
# are MPI's alone.
FEW_OF_ARRAYS = (
    "p2p_buf_matched", "cco_nb_buf", "cco_vec_inter",
    *without_duplicates(("p2p_buf", "cco_buf", "cco_buf_inter")),
    *of_world(("cco_vec", "cco_nb_vec", "cco_ngh_buf", "cco_pr_buf", "cco_pr_vec",
               "cco_pr_ngh_buf")),
    "pack.*[!f]",
)  # fmt: skip


# Each of the suite's classes is there for MPI_COMM_SELF too: one rank alone would add little.
DEFAULT = [
    pytest.param(2, MESSAGES, id="messages-2"),
    pytest.param(2, ("p2p_buf", *OTHERS), id="others-2"),
]
EXTENDED = [
    pytest.param(ranks, None, id=f"all-{ranks}", marks=pytest.mark.extended)
    for ranks in range(1, 6)
]


@pytest.fixture(scope="session")
def tests_of_mpi4py(build_dir) -> Path:
    """The folder of mpi4py's tests, from PyPI where it is not there yet."""
    version = metadata.version("mpi4py")
    downloads = build_dir / "mpi4py"
    folder = downloads / f"mpi4py-{version}" / "test"
    with made_once(folder.parent):
        if not folder.exists():
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--no-binary", "mpi4py", "--dest", downloads, f"mpi4py=={version}"]
            done = execute(command, timeout=900)
            assert done.status == 0, done.output
            [archive] = downloads.glob(f"mpi4py-{version}.tar.gz")
            with tarfile.open(archive) as opened:
                members = [m for m in opened if m.name.startswith(f"mpi4py-{version}/test/")]
                opened.extractall(downloads, members=members, filter="data")
    return folder


def outcomes(folder: Path, ranks: int) -> list[dict[str, list[str]]]:
    """For each rank: the outcomes of each test, those of its failed subtests included."""
    result = []
    for rank in range(ranks):
        ended = defaultdict(list)
        for line in (folder / f"rank-{rank}.jsonl").read_text().splitlines():
            name, outcome = json.loads(line)
            ended[name].append(outcome)
        result.append(dict(ended))
    return result


@pytest.mark.parametrize(("ranks", "modules"), [*DEFAULT, *EXTENDED])
def test_own_suite(ranks, modules, tests_of_mpi4py, mpi, mpi4py_env, mpirun, mpress_run, tmp_path):
    names = [f"test_{m}" for m in modules or ()]
    names = names or sorted(path.stem for path in tests_of_mpi4py.glob("test_*.py"))
    # Processes that the suite spawns look for its modules.
    env = on_path(mpi4py_env, tests_of_mpi4py)
    options = (*FORCED, "--mpiexec", os.fspath(mpi.mpiexec))  # Python does not tell its MPI
    timeout = 600 if modules else 3600

    def run(launch, folder, **options):
        (tmp_path / folder).mkdir()
        place = "few-host" if modules else "host"
        args = [RUNNER, tests_of_mpi4py, tmp_path / folder, place, *names]
        return launch(ranks, sys.executable, args, env=env, timeout=timeout, **options)

    plain = run(mpirun, "plain")
    preloaded = run(mpress_run, "preloaded", options=options)
    expected = outcomes(tmp_path / "plain", ranks)
    assert len(expected[0]) > 15 * len(names), plain.output
    assert outcomes(tmp_path / "preloaded", ranks) == expected, preloaded.output
    assert preloaded.status == plain.status
    totals = preloaded.report["totals"]
    assert totals["compressed_messages"] >= 300 * ranks
    assert totals["compressed_messages"] == totals["decoded_messages"]
    assert totals["errors"] == 0
    assert all(rank["finished"] for rank in preloaded.report["ranks"])


@pytest.fixture(params=["simulated", pytest.param("cuda", marks=pytest.mark.cuda)])
def cupy_env(request, mpi4py_env) -> dict[str, str]:
    """The environment of programs that use mpi4py and CuPy, or what stands in for that."""
    if request.param == "cuda":
        return mpi4py_env
    return request.getfixturevalue("simulated_cupy")


@pytest.mark.parametrize(
    ("ranks", "modules", "least"),
    [
        (2, FEW_OF_ARRAYS, 150),
        *(pytest.param(n, OF_ARRAYS, 300, marks=pytest.mark.extended) for n in (2, 3)),
    ],
)
def test_own_suite_on_gpus(
    ranks, modules, least, tests_of_mpi4py, cupy_env, mpi, mpress_run, tmp_path
):
    options = (*FORCED, "--mpiexec", os.fspath(mpi.mpiexec))
    env = {**cupy_env, "MPRESS_CHUNK": "4K"}
    place = "few-device" if modules is FEW_OF_ARRAYS else "device"
    args = [RUNNER, tests_of_mpi4py, tmp_path, place, *(f"test_{m}" for m in modules)]
    done = mpress_run(ranks, sys.executable, args, options=options, env=env, timeout=600)
    assert done.status == 0, done.output
    for ended in outcomes(tmp_path, ranks):
        assert len(ended) > least
        wrong = {name for name, found in ended.items() if {"failed", "error"} & set(found)}
        assert not wrong, done.output
        assert sum(found == ["passed"] for found in ended.values()) > least
    totals = done.report["totals"]
    assert totals["compressed_messages"] >= 300 * ranks
    if mpi.name in ("default", "mpich", "openmpi"):  # others let no threads look at requests
        assert totals["chunked_messages"] > 0
    assert totals["errors"] == 0


ARRAYS = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
after, before = (rank + 1) % size, (rank - 1) % size

def field(rank, kind):
    return (np.sin(np.arange(30000).reshape(100, 300) / 1000) + rank).astype(kind)

for kind in "fdFD":
    mine, wanted, got = field(rank, kind), field(before, kind), np.empty((100, 300), kind)
    comm.Sendrecv(mine, after, recvbuf=got, source=before)
    assert (got == wanted).all()
    got[:] = 0
    requests = [comm.Irecv(got, before), comm.Isend(mine, after)]
    MPI.Request.Waitall(requests)
    assert (got == wanted).all()
    # A column, and a message whose size the receiver asks for.
    column = MPI._typedict[kind].Create_vector(100, 1, 300).Commit()
    got[:] = 7
    request = comm.Isend([mine, 1, column], after)
    status = MPI.Status()
    comm.Probe(before, MPI.ANY_TAG, status)
    assert status.Get_count(MPI._typedict[kind]) == 100
    comm.Recv([got, 1, column], before)
    request.Wait()
    assert (got[:, 0] == wanted[:, 0]).all() and (got[:, 1:] == 7).all()
    column.Free()
    everything = np.empty((size, 100, 300), kind)
    comm.Allgather(mine, everything)
    assert all((everything[r] == field(r, kind)).all() for r in range(size))
    assert comm.sendrecv({"array": mine}, after, source=before)["array"].tobytes() == (
        wanted.tobytes())
if rank == 0:
    print("ok")
"""


def test_arrays_travel_compressed(mpi, mpi4py_env, mpress_run):
    options = (*FORCED, "--mpiexec", os.fspath(mpi.mpiexec))
    done = mpress_run(3, sys.executable, ["-c", ARRAYS], options=options, env=mpi4py_env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n" and done.stderr == ""
    totals = done.report["totals"]
    assert totals["compressed_messages"] == totals["decoded_messages"] >= 3 * 4 * 2
    assert totals["wire_bytes"] < 0.8 * totals["raw_bytes"]
