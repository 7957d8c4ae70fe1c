"""`mpress bench alltoall` and its like."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import BIN, execute

from mpress.p2p import data, jobs

WORKER = Path(__file__).with_name("simulated_messages.py")
FEW = ("--repeat", "3", "--seconds", "0.01", "--warmup", "1")


@pytest.mark.parametrize("op", jobs.COLLECTIVES)
def test_on_the_host(op, mpi, mpi4py_env, tmp_path):
    file, picture = tmp_path / "result.json", tmp_path / "times.svg"
    command = [BIN / "mpress", "bench", op, "-n", "2", "--sizes", "64K", "--field", "turb",
               "--spec", "mpc", "--spec", "szp:rel=1e-2", "--spec", "auto", "--beside", "mpi",
               "--beside", "messages", "--mpiexec", mpi.mpiexec, "--json", file, "--plot", picture,
               *FEW]  # fmt: skip
    done = execute(command, {**mpi.env, **mpi4py_env})
    assert done.status == 0, done.output
    document = json.loads(file.read_text())
    rows = {(row["job"], row["path"]): row for row in document["rows"]}
    paths = ["none", "mpc", "szp:rel=0.01", "mpi", "messages"]
    assert set(rows) == {("forced", p) for p in paths} | {
        ("auto", p) for p in ("none", "auto", "mpi", "messages")
    }
    assert document["benchmark"] == op and document["ranks"] == 2
    forced = {path: rows["forced", path] for path in paths}
    assert all(forced[path]["check"]["kept"] for path in paths[:3])
    assert forced["mpc"]["ratio"] > 1.1
    assert forced["szp:rel=0.01"]["ratio"] > 4
    assert forced["szp:rel=0.01"]["check"]["max_error"] > 0
    assert all("over_mpi" in forced[path] for path in paths if path != "mpi")
    assert "MPI's own" in done.stdout and "Isend and Irecv, raw" in done.stdout
    assert "the slowest rank" in done.stdout and picture.read_text().startswith("<?xml")


@pytest.mark.parametrize("op", jobs.COLLECTIVES)
def test_on_devices(op, mpi, mpi4py_env, simulated_gpu, tmp_path):
    np.save(tmp_path / "turb.npy", data.make("turb", 1 << 20, "f32"))
    paths = ["none", "mpc", "mpi", "messages"]
    plan = {
        "benchmark": op, "ranks": 3, "from": "device", "to": "device", "warmup": 4, "repeat": 2,
        "seconds": 0.01, "window": 1, "files": {"turb": str(tmp_path / "turb.npy")},
        "cases": [{"data": "turb", "bytes": 64 << 10, "paths": paths}],
    }  # fmt: skip
    result = jobs.run(
        plan, "forced", link="peer", mpiexec=str(mpi.mpiexec), program=[str(WORKER)],
        environment={**mpi.env, **mpi4py_env, **simulated_gpu},
    )  # fmt: skip
    rows = {row["path"]: row for row in jobs.summary(result, op, "forced", ("none", "mpi"))}
    assert list(rows) == paths
    for path in ("none", "mpc"):
        assert rows[path]["check"]["kept"] and rows[path]["peer"] > 0.5
    assert rows["mpc"]["ratio"] > 1.1 > rows["none"]["ratio"]


@pytest.mark.parametrize("arguments, said", [
    (("-n", "1"), "-n 1: expected 2 ranks or more"),
    (("--memory", "disk"), "--memory 'disk': expected H, host, D or device"),
    (("--beside", "plain"), "--beside 'plain': expected one of mpi, messages, nccl"),
    (("--beside", "nccl"), "expected NCCL, a GPU a rank, and --memory device"),
    (("--sizes", "12"), "expected multiples of 8 bytes"),
])  # fmt: skip
def test_what_cannot_be(arguments, said):
    done = execute([BIN / "mpress", "bench", "alltoall", *arguments])
    assert done.status == 2 and said in done.stderr
