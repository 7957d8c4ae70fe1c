"""`mpress bench alltoall` and its like."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from execution import BIN, execute

from mpress import _core
from mpress.p2p import blocks, data, jobs, rounds

pytestmark = pytest.mark.usefixtures("served_jobs")
WORKER = Path(__file__).with_name("simulated_messages.py")
FEW = ("--repeat", "3", "--seconds", "0.01", "--warmup", "1")


@pytest.fixture
def bench(mpi, mpi4py_env, tmp_path):
    """bench(op, *args): `mpress bench OP`; returns what it printed, and its JSON."""

    def run(op, *args):
        file = tmp_path / "result.json"
        command = [BIN / "mpress", "bench", op, "--mpiexec", mpi.mpiexec, "--json", file, *FEW]
        done = execute([*command, *args], {**mpi.env, **mpi4py_env})
        assert done.status == 0, done.output
        return done.stdout, json.loads(file.read_text())

    return run


@pytest.mark.parametrize("op", [op for op in jobs.COLLECTIVES if op != "alltoall"])
def test_every_operation(op, bench):
    printed, document = bench(
        op, "-n", "2", "--sizes", "64K", "--field", "turb", "--spec", "mpc", "--beside", "mpi",
        "--beside", "scattered",
    )  # fmt: skip
    rows = {row["path"]: row for row in document["rows"]}
    assert set(rows) == {"none", "mpc", "mpi", "scattered/none", "scattered/mpc"}
    assert document["benchmark"] == op and all(row["op"] == op for row in rows.values())
    assert all(row["check"]["kept"] for path, row in rows.items() if path != "mpi")
    assert rows["mpc"]["ratio"] > 1.1 and rows["scattered/mpc"]["ratio"] > 1.1
    assert rows["mpc"]["over_scattered"] > 0 and "Isend and Irecv, mpc, mpi" in printed


@pytest.mark.parametrize(
    "op",
    ["allreduce", *(pytest.param(op, marks=pytest.mark.extended) for op in jobs.REDUCTIONS[1:])],
)
def test_every_reduction(op, bench):
    printed, document = bench(
        op, "-n", "2", "--sizes", "256K", "--spec", "mpc", "--spec", "szp:rel=1e-4",
        "--spec", "zfp:8", "--beside", "mpi", "--beside", "two-shot",
    )  # fmt: skip
    rows = {row["path"]: row for row in document["rows"]}
    specs = ("none", "mpc", "szp:rel=1e-04", "zfp:8")
    assert set(rows) == {*specs, "mpi", *(f"two-shot/{spec}" for spec in specs)}
    assert "two shots, hops, zfp:8, mpi" in printed
    assert all(row["check"]["kept"] for path, row in rows.items() if path != "mpi")
    assert rows["szp:rel=1e-04"]["check"]["promise"] == "bound"
    assert rows["szp:rel=1e-04"]["ratio"] > 8 and "bytes a rank" in printed


def test_all_that_is_compared(bench, tmp_path):
    op, picture = "alltoall", tmp_path / "times.svg"
    printed, document = bench(
        op, "-n", "2", "--sizes", "64K", "--field", "turb", "--spec", "mpc",
        "--spec", "szp:rel=1e-2", "--spec", "auto", "--beside", "mpi", "--beside", "scattered",
        "--beside", "pairwise", "--plot", picture,
    )  # fmt: skip
    rows = {(row["job"], row["path"]): row for row in document["rows"]}
    specs = ["none", "mpc", "szp:rel=0.01"]
    paths = [*specs, *(f"{form}/{spec}" for form in jobs.FORMS for spec in specs)]
    autos = ("none", "auto", "mpi", *(f"{f}/{s}" for f in jobs.FORMS for s in ("none", "auto")))
    assert set(rows) == {("forced", p) for p in (*paths, "mpi")} | {("auto", p) for p in autos}
    assert document["benchmark"] == op and document["ranks"] == 2
    assert (document["nccl"], document["gpu_aware"]) == ("nvlink", False)
    forced = {path: rows["forced", path] for path in paths}
    assert all(row["check"]["kept"] for row in forced.values())
    assert forced["mpc"]["ratio"] > 1.1
    assert forced["szp:rel=0.01"]["ratio"] > 4
    assert forced["szp:rel=0.01"]["check"]["max_error"] > 0
    # Messages are always compressed as asked for, and what their forms take is counted by a call.
    for form in jobs.FORMS:
        assert forced[f"{form}/szp:rel=0.01"]["ratio"] > 4
        assert forced[f"{form}/none"]["ratio"] == 1
        assert 0 < forced[f"{form}/mpc"]["encode_seconds"] < 2 * forced[f"{form}/mpc"]["seconds"]
        assert forced["mpc"][f"over_{form}"] > 0 and forced["none"][f"over_{form}"] > 0
    assert all("over_mpi" in forced[path] and "wait_seconds" in rows["forced", "scattered/none"]
               for path in paths)  # fmt: skip
    for row in rows.values():
        assert row["op"] == op and row["interval"][0] <= row["seconds"] <= row["interval"][1]
        assert row.get("way", "mpi") == "mpi"
    for text in ("MPI's own", "Isend and Irecv, raw, mpi", "Sendrecv by turns, mpc, mpi", "wait",
                 "the slowest rank", "MPI's own, beside auto"):  # fmt: skip
        assert text in printed
    assert picture.read_text().startswith("<?xml")


def test_blocks_of_uneven_size(bench):
    printed, document = bench(
        "alltoall", "--uneven", "-n", "3", "--sizes", "24K", "--field", "turb", "--spec", "mpc",
        "--beside", "mpi", "--beside", "pairwise",
    )  # fmt: skip
    assert document["benchmark"] == "alltoallv" and "bytes a pair, on average" in printed
    rows = {row["path"]: row for row in document["rows"]}
    assert set(rows) == {"none", "mpc", "mpi", "pairwise/none", "pairwise/mpc"}
    assert all(row["check"]["kept"] for path, row in rows.items() if path != "mpi")
    assert rows["pairwise/mpc"]["ratio"] > 1.1


def test_counts_of_uneven_blocks():
    counts = blocks.counts("alltoallv", 4, 1000)
    assert counts.sum() == 4 * 4 * 1000
    planes = [3, 3, 2, 2]
    np.testing.assert_allclose(counts, np.outer(planes, planes) * 160, atol=1)
    for rank in range(4):
        outgoing, incoming = blocks.of_rank("alltoallv", rank, counts)
        assert [outgoing[p].count for p in range(4)] == list(counts[rank])
        assert [incoming[p].count for p in range(4)] == list(counts[:, rank])
        for places in (outgoing, incoming):
            assert all(places[p].first + places[p].count == places[p + 1].first for p in range(3))
    for role in ("send", "receive"):
        assert 8 * 4800 <= blocks.room("alltoallv", role, 4, 8 * 1000) < 8 * 4810
    assert blocks.room("bcast", "send", 4, 80) == 80
    assert blocks.room("gather", "receive", 4, 80) == 320


@pytest.mark.parametrize(
    "ops",
    [
        ("alltoall", "bcast"),
        pytest.param(("allgather", "scatter", "gather"), marks=pytest.mark.extended),
    ],
)
def test_on_devices(ops, mpi, mpi4py_env, simulated_gpu, tmp_path):
    np.save(tmp_path / "turb.npy", data.make("turb", 1 << 20, "f32"))
    forms = [f"{form}/{spec}" for form in jobs.FORMS for spec in ("none", "mpc")]
    paths = ["none", "mpc", *forms, "plain", "mpi"]
    plan = {
        "benchmark": "alltoall", "ranks": 3, "from": "device", "to": "device", "warmup": 4,
        "repeat": 2, "seconds": 0.01, "window": 1, "files": {"turb": str(tmp_path / "turb.npy")},
        "cases": [{"op": op, "data": "turb", "bytes": 64 << 10, "paths": paths}
                  for op in ops],
    }  # fmt: skip
    result = jobs.run(
        plan, "forced", link="peer", mpiexec=str(mpi.mpiexec), program=[str(WORKER)],
        environment={**mpi.env, **mpi4py_env, **simulated_gpu},
    )  # fmt: skip
    found = jobs.summary(result, "alltoall", "forced", ("none", "mpi"))
    rows = {(row["op"], row["path"]): row for row in found}
    assert list(rows) == [(op, path) for op in ops for path in paths]
    for op in ops:
        for path in ("none", "mpc", *forms):
            assert rows[op, path]["check"]["kept"] and rows[op, path]["peer"] > 0.5
        for path in ("mpc", "scattered/mpc", "pairwise/mpc"):
            assert rows[op, path]["ratio"] > 1.1 > rows[op, "none"]["ratio"]


def test_baselines_bring_the_same(mpi, mpi4py_env, simulated_gpu, tmp_path):
    np.save(tmp_path / "turb.npy", data.make("turb", 1 << 20, "f32"))
    paths = ["plain", "mpi", "nccl", "scattered/mpc", "pairwise/none"]
    plan = {
        "benchmark": "alltoall", "ranks": 3, "from": "device", "to": "device", "warmup": 1,
        "repeat": 1, "seconds": 0.01, "window": 1, "files": {"turb": str(tmp_path / "turb.npy")},
        "cases": [{"op": op, "data": "turb", "bytes": 24 << 10, "paths": paths}
                  for op in jobs.MOVING],
    }  # fmt: skip
    result = jobs.run(
        plan, "forced", link="peer", mpiexec=str(mpi.mpiexec),
        program=[str(WORKER.with_name("checked_collectives.py"))],
        environment={**mpi.env, **mpi4py_env, **simulated_gpu},
    )  # fmt: skip
    rows = {(row["op"], row["path"]): row["check"] for row in result["rows"]}
    assert set(rows) == {(op, path) for op in jobs.MOVING for path in paths}
    assert all(check == {"promise": "exact", "kept": True, "max_error": 0.0}
               for check in rows.values())  # fmt: skip


@pytest.mark.parametrize(
    "ops",
    [("allreduce", "reduce"), pytest.param(("reduce_scatter",), marks=pytest.mark.extended)],
)
def test_rounds_of_messages(ops, mpi, mpi4py_env, simulated_gpu, tmp_path):
    """Where partial sums travel, in memory of devices, or staged: the sums are right, and a codec
    in every hop loses more than one that bounds the result."""
    np.save(tmp_path / "turb.npy", data.make("turb", 1 << 20, "f32"))
    specs = ["none", "mpc", "szp:abs=1e-3"]
    plan = {
        "benchmark": "allreduce", "ranks": 3, "from": "device", "to": "device", "warmup": 1,
        "repeat": 1, "seconds": 0.01, "window": 1, "files": {"turb": str(tmp_path / "turb.npy")},
        "cases": [
            {"op": op, "data": "turb", "bytes": 240_000 - 12, "paths": [
                *specs, *(f"{form}/{spec}" for form in jobs.forms_of(op) for spec in specs),
            ]}
            for op in ops
        ],
    }  # fmt: skip
    result = jobs.run(
        plan, "forced", link="peer", mpiexec=str(mpi.mpiexec), program=[str(WORKER)],
        environment={**mpi.env, **mpi4py_env, **simulated_gpu},
    )  # fmt: skip
    found = jobs.summary(result, "allreduce", "forced", ("none",))
    rows = {(row["op"], row["path"]): row for row in found}
    assert len(rows) == sum(len(case["paths"]) for case in plan["cases"])
    for (op, path), row in rows.items():
        form, spec = jobs.form_of(path), jobs.codec_of(path)
        check = row["check"]
        assert check["kept"], (op, path, check)
        if spec in ("none", "mpc"):
            assert check["promise"] == "exact" and check["max_error"] < 1e-5
        elif form is None:
            assert check["promise"] == "bound" and check["max_error"] <= 1e-3
            assert row["over_ring" if op != "reduce" else "over_binomial"] > 0
        else:
            assert check["promise"] == "unbounded" and 0 < check["max_error"] < 4e-3
        if form and spec != "none":
            assert row["ratio"] > 1.1 and row["encode_seconds"] > 0
        if form and form.startswith(jobs.STAGED):
            assert row["peer"] == 0
    if "allreduce" not in ops:
        return
    # Of three ranks two hops' losses come together.
    assert max(rows["allreduce", f"{form}/szp:abs=1e-3"]["check"]["max_error"]
               for form in jobs.SUM_FORMS["allreduce"]) > 1e-3  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("op", jobs.REDUCTIONS)
def test_rounds_add_up(op, ranks):
    """What each rank brings comes once into each result; schedules played by hand."""
    count = 4 * ranks + (0 if op == "reduce_scatter" else 3)
    for form in jobs.SUM_FORMS[op]:
        every = [rounds.rounds_of(form, op, rank, ranks, count) for rank in range(ranks)]
        has = [np.full(count, 1 << rank) for rank in range(ranks)]
        assert len({len(one) for one in every}) == 1
        for number in range(len(every[0])):
            before = [one.copy() for one in has]
            sent = {(rank, part.peer): [] for rank in range(ranks)
                    for part in every[rank][number].sends}  # fmt: skip
            for rank in range(ranks):
                for part in every[rank][number].sends:
                    sent[rank, part.peer].append((part.first, part.count))
            for rank in range(ranks):
                for part in every[rank][number].receives:
                    assert sent[part.peer, rank].pop(0) == (part.first, part.count)
                    place = slice(part.first, part.first + part.count)
                    came = before[part.peer][place]
                    assert not part.combines or not np.any(has[rank][place] & came)
                    has[rank][place] = has[rank][place] + came if part.combines else came
            assert not any(sent.values())
        for rank in range(ranks):
            wanted = has[rank]
            if op == "reduce_scatter":
                wanted = wanted[4 * rank : 4 * rank + 4]
            if op != "reduce" or rank == 0:
                assert np.all(wanted == (1 << ranks) - 1), (form, rank)


@pytest.mark.parametrize("arguments, said", [
    (("ring", "gather", 0, 2), "reduction is 'gather'; expected allreduce, reduce or"),
    (("rings", "reduce", 0, 2), "algorithm is 'rings'; expected two-shot, ring, doubling"),
    (("ring", "allreduce", 2, 2), "rank is 2; expected 0 to 1"),
    (("ring", "allreduce", 0, 0), "size is 0; expected 1 or more"),
    (("binomial", "reduce", 0, 2, 5), "root is 5; expected 0 to 1"),
    (("ring", "reduce", 0, 2), "algorithm is ring, in which no partial sums"),
])  # fmt: skip
def test_what_no_schedule_can_be(arguments, said):
    with pytest.raises(ValueError, match=said):
        _core.sum_schedule(*arguments)


def test_work_of_rounds():
    assert _core.sum_work("ring", "allreduce", 4) == [(0.25, 0.25, 0.25, 1)] * 3 + [
        (0.25, 0.25, 0.25, 1), (0.25, 0.0, 0.25, 1), (0.25, 0.0, 0.25, 1),
    ]  # fmt: skip
    assert _core.sum_work("ring", "reduce", 4) == []


@pytest.mark.parametrize("arguments, said", [
    (("-n", "1"), "-n 1: expected 2 ranks or more"),
    (("--memory", "disk"), "--memory 'disk': expected H, host, D or device"),
    (("--beside", "messages"), "expected one of plain, mpi, scattered, pairwise, nccl"),
    (("--beside", "plain"), "--beside plain: expected --memory device"),
    (("--nccl", "ib"), "--nccl 'ib': expected one of nvlink, shm, socket"),
    (("--beside", "nccl"), "expected NCCL, a GPU a rank, and --memory device"),
    (("--sizes", "12"), "expected multiples of 8 bytes"),
])  # fmt: skip
def test_what_cannot_be(arguments, said):
    done = execute([BIN / "mpress", "bench", "alltoall", *arguments])
    assert done.status == 2 and said in done.stderr


def test_staged_rounds_need_devices():
    done = execute([BIN / "mpress", "bench", "reduce", "--beside", "host-binomial"])
    assert done.status == 2 and "--beside host-binomial: expected --memory device" in done.stderr
    done = execute([BIN / "mpress", "bench", "reduce", "--beside", "ring"])
    assert done.status == 2 and "two-shot, binomial, host-two-shot, host-binomial" in done.stderr


def test_only_an_all_to_all_is_uneven():
    done = execute([BIN / "mpress", "bench", "gather", "--uneven"])
    assert done.status == 2 and "--uneven: expected it of alltoall, not of gather" in done.stderr


def test_ranks_that_take_too_long_are_ended(mpi, mpi4py_env):
    with pytest.raises(jobs.JobError, match="ended after 1 s") as error:
        jobs.run(
            {"ranks": 2}, "auto", mpiexec=str(mpi.mpiexec), environment={**mpi.env, **mpi4py_env},
            program=["-c", "import time; time.sleep(3600)"], most_seconds=1,
        )  # fmt: skip
    assert error.value.result is None
