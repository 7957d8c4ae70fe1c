"""bench/collectives.py and bench/reductions.py: what they measure, in which order, and what is kept
of jobs that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpress.p2p import jobs

pytestmark = pytest.mark.usefixtures("served_jobs")
MB = 1 << 20
WORKER = Path(__file__).with_name("simulated_messages.py")


@pytest.fixture
def calls(bench):
    return bench("calls")


@pytest.fixture
def driver(bench):
    return bench("collectives")


def test_all_links_of_a_machine(calls, driver, mpi, mpi4py_env, simulated_gpu, tmp_path):
    out = tmp_path / "collectives.json"
    wanted = driver.Wanted(
        2, "device", ("alltoall", "bcast"), [128 << 10], ["mpc"], ("turb",), ("turb",)
    )
    job_list = calls.all_jobs(calls.KINDS, ("peer", "mpi"), ("mpi",), "device")
    assert [(j.kind, j.link, j.nccl) for j in job_list] == [
        ("forced", "peer", "nvlink"), ("forced", "mpi", "shm"),
        ("auto", "peer", "nvlink"), ("auto", "mpi", "shm"),
    ]  # fmt: skip
    calls.measure(
        out, wanted, job_list, seconds=1000, mpiexec=str(mpi.mpiexec), program=[str(WORKER)],
        environment={**mpi.env, **mpi4py_env, **simulated_gpu}, repeat=1,
    )  # fmt: skip
    document = json.loads(out.read_text())
    assert [(job["failure"], job["left_out"]) for job in document["jobs"]] == [(None, [])] * 4
    assert document["mpi"] and document["date"] and document["versions"]["mpress"]
    rows = {(r["job"], r["link"], r["op"], r["path"]): r for r in document["rows"]}
    both = ["none", "mpc"]
    forms = [f"{form}/{spec}" for form in jobs.FORMS for spec in both]
    paths = {
        ("forced", "alltoall"): {*both, *forms, "mpi", "plain"},
        ("forced", "bcast"): {*both, *(f for f in forms if f.endswith("none")), "mpi", "plain"},
        ("auto", "alltoall"): {"none", "auto", "scattered/none", "mpi"},
        ("auto", "bcast"): {"none", "auto", "scattered/none", "mpi"},
    }
    assert set(rows) == {(kind, link, op, path) for (kind, op), every in paths.items()
                         for path in every for link in ("peer", "mpi")}  # fmt: skip
    for (kind, link, op, path), row in rows.items():
        assert row["bytes"] == (64 << 10 if op == "alltoall" else 128 << 10)
        assert row["in_all"] == 128 << 10 and row["transport"] == "mpi"
        if kind == "forced" and path in both:
            assert row["check"]["kept"] and row["way"] == link
            assert row["over_plain"] > 0 and row["over_mpi"] > 0


def test_a_job_that_fails_is_noted(calls, driver, monkeypatch, tmp_path):
    """With the rows that it had written; the others are measured."""
    counted = dict.fromkeys(("raw_bytes", "wire_bytes", "loopback_bytes"), 0)
    case = {"op": "bcast", "data": "turb", "window": 1, "iterations": 1, "calls": 2,
            "path": "none", "seconds": [1.0], "check": None, **counted}  # fmt: skip

    def run(plan, kind, *, link, **_):
        known = {"ranks": 2, "mpi": "an MPI", "gpu_aware": False, "peer": "same-host",
                 "sees_loopback": False}  # fmt: skip
        rows = [case | {"bytes": one["bytes"]} for one in plan["cases"]]
        if link == "host":
            raise jobs.JobError("out of memory", {**known, "rows": rows[:1], "left_out": []})
        if link == "mpi":
            raise jobs.JobError("no such program")
        return {**known, "rows": rows, "left_out": []}

    monkeypatch.setattr(jobs, "run", run)
    wanted = driver.Wanted(2, "device", ("bcast",), [1 << 10, 1 << 20], [], ("turb",), ("turb",))
    job_list = calls.all_jobs(("forced",), ("host", "mpi", "auto"), ("mpi",), "device")
    found = calls.measure(tmp_path / "out.json", wanted, job_list, seconds=1000)
    assert found == json.loads((tmp_path / "out.json").read_text())
    of_jobs = {job["link"]: job for job in found["jobs"]}
    assert of_jobs["host"]["failure"] == "out of memory"
    assert of_jobs["host"]["left_out"] == [{"op": "bcast", "data": "turb", "bytes": 1 << 10}]
    assert of_jobs["mpi"]["failure"] == "no such program" and len(of_jobs["mpi"]["left_out"]) == 2
    assert of_jobs["auto"]["failure"] is None
    assert [(row["link"], row["bytes"]) for row in found["rows"]] == [
        ("host", 1 << 20), ("auto", 1 << 20), ("auto", 1 << 10),
    ]  # fmt: skip


def test_without_time_nothing_is_measured(calls, driver, tmp_path):
    wanted = driver.Wanted(2, "host", ("bcast",), [1 << 10], [], ("turb",), ("turb",))
    job_list = calls.all_jobs(calls.KINDS, (), ("mpi", "tcp"), "host")
    found = calls.measure(tmp_path / "out.json", wanted, job_list, seconds=1)
    assert [(job["transport"], job["failure"]) for job in found["jobs"]] == [
        (transport, "no time was left") for transport in ("mpi", "tcp", "mpi", "tcp")
    ]
    assert found["rows"] == [] and all(job["left_out"] for job in found["jobs"])


def test_reductions_by_all_links(bench, calls, mpi, mpi4py_env, simulated_gpu, tmp_path):
    driver = bench("reductions")
    out = tmp_path / "reductions.json"
    wanted = driver.Wanted(
        2, "device", ("allreduce", "reduce_scatter"), [8, MB], ["szp:rel=0.001", "szp:abs"],
        ("turb",), ("bits",), tcp_sizes=(MB,),
    )  # fmt: skip
    job_list = calls.all_jobs(calls.KINDS, ("peer", "mpi"), ("tcp",), "device")
    job_list.insert(2, calls.Job(calls.TIMELINE, "peer", "mpi"))
    by_blocks = {"MPRESS_JOINT_KERNELS": "never"}  # one kernel has no parts
    calls.measure(
        out, wanted, job_list, seconds=1000, mpiexec=str(mpi.mpiexec), program=[str(WORKER)],
        environment={**mpi.env, **mpi4py_env, **simulated_gpu, **by_blocks}, repeat=1,
    )  # fmt: skip
    document = json.loads(out.read_text())
    assert document["kind"] == "reductions"
    assert [(job["failure"], job["left_out"]) for job in document["jobs"]] == [(None, [])] * 5
    timeline = next(one for one in document["timelines"] if one["path"] == "szp:rel=0.001")
    parts = bench("call_timeline").parts(timeline, 2)
    assert list(parts) == ["call", *bench("call_timeline").PARTS]
    assert parts.pop("call") == pytest.approx(sum(parts.values())) and min(parts.values()) >= 0
    rows = {(r["job"], r["link"], r["op"], r["bytes"], r["path"]): r for r in document["rows"]}
    assert len(rows) == len(document["rows"])
    of_links = {link: {key[2:] for key in rows if key[:2] == ("forced", link)}
                for link in ("peer", "mpi")}  # fmt: skip
    beside = {"none", "mpi", "plain"}
    of_short = {(op, 8, path) for op in wanted.ops for path in beside}
    assert of_short <= of_links["peer"] and of_links["mpi"].isdisjoint(of_short)
    known = next(path for *_, path in of_links["peer"] if path.startswith("szp:abs="))
    both = {"none", "szp:rel=0.001"}
    forms = {f"{form}/{spec}" for spec in both
             for form in (*jobs.SUM_FORMS["allreduce"], "host-ring", "host-doubling")}  # fmt: skip
    of_long = {path for op, nbytes, path in of_links["peer"] if (op, nbytes) == ("allreduce", MB)}
    assert of_long == {*beside, *both, known, *forms}
    bound = float(known.partition("=")[2])
    for (kind, link, op, nbytes, path), row in rows.items():
        assert row["in_all"] == nbytes
        assert path in jobs.BASELINES or row["check"]["kept"], (kind, link, op, path)
        assert ("copy_seconds" in row) == (path == "plain" or path.startswith(jobs.STAGED))
        if op == "allreduce" and jobs.form_of(path):
            assert 0 < row["sum_seconds"] < row["seconds"]
        if kind == "forced" and nbytes == MB and path in (known, "szp:rel=0.001"):
            assert row["check"]["bound"] == pytest.approx(bound, rel=0.01)
            assert row["ratio"] > 2 and row["over_plain"] > 0, (link, op)
    autos = {(link, op, nbytes, path) for kind, link, op, nbytes, path in rows if kind == "auto"}
    assert autos == {(link, op, nbytes, path) for path in ("none", "auto", "mpi")
                     for link, op, nbytes in (
                         ("peer", "allreduce", 8), ("peer", "allreduce", MB),
                         ("peer", "reduce_scatter", MB), ("mpi", "allreduce", MB),
                         ("mpi", "reduce_scatter", MB),
                     )}  # fmt: skip


def test_the_most_important_reductions_come_first(bench, calls):
    driver = bench("reductions")
    wanted = driver.Wanted(
        2, "device", driver.OPS, [8, MB, 256 * MB], ["mpc", "szp:abs"], ("wave", "turb"),
        ("wave",), True, (16 * MB, 256 * MB), {"wave": 0.5, "turb": 2},
    )  # fmt: skip
    peer, tcp = calls.all_jobs(("forced",), ("auto", "mpi"), ("tcp",), "device")
    cases = wanted.cases(peer)
    assert [(case["op"], case["data"], case["bytes"]) for case in cases[:4]] == [
        ("allreduce", "wave", 256 * MB), ("allreduce", "wave", MB), ("allreduce", "wave", 8),
        ("allreduce", "turb", 256 * MB),
    ]  # fmt: skip
    # What MPI makes in memory of the host takes too long for the longest.
    assert cases[0]["paths"] == ["none", "nccl", "mpc", "szp:abs=0.5"]
    assert cases[2]["paths"] == ["none", "nccl", "mpi", "plain"]
    assert cases[3]["paths"][3] == "szp:abs=2" and not cases[3]["check"]
    assert [(case["op"], case["data"]) for case in wanted.cases(tcp)] == [
        ("allreduce", "wave"), ("allreduce", "wave"), ("allreduce", "turb"),
        ("reduce_scatter", "wave"), ("reduce_scatter", "turb"), ("reduce", "wave"),
        ("reduce", "turb"),
    ]  # fmt: skip
    assert (peer.nccl, tcp.nccl) == ("nvlink", "socket")


def test_parts_of_a_call_make_up_the_whole(bench):
    """Of a rank: what overlaps counts for what ends later."""
    timelines = bench("call_timeline")
    name, longest = "MPI_Allreduce", 4 * MB

    def event(rank, what, begin, end, **arguments):
        return {"ph": "X", "pid": rank, "name": what, "ts": begin, "dur": end - begin,
                "args": arguments}  # fmt: skip

    def call(end: float) -> list:
        long = {"raw_bytes": longest, "codec": "szp"}
        return [
            one for rank in (0, 1) for one in (
                event(rank, name, 0, end + rank),
                event(rank, f"{name} to {1 - rank}", 10, 11, raw_bytes=32, codec="none"),
                event(rank, f"{name} from {1 - rank}", 20, 60, message=1, **long),
                event(rank, "encode 1", 20, 35, message=7, raw_bytes=longest // 2),
                event(rank, "encode 0", 20, 30, message=7, raw_bytes=longest // 2),
                event(rank, f"{name} to {1 - rank}", 21, 35, message=1, **long),
                event(rank, "arrive 0", 22, 40, message=1, raw_bytes=longest),
                event(rank, f"{name} from {1 - rank}", 41, 99, message=2, **long),
                event(rank, f"{name} to {1 - rank}", 41, 70, message=2, **long),
                event(rank, "arrive 0", 42, 65, message=2, raw_bytes=longest),
                event(rank, "decode 0", 65, 99, message=2, raw_bytes=longest),
            )
        ]  # fmt: skip

    events = []
    for number, end in enumerate((999, 888, 777, 666, 150, 100, 120)):  # links open, at first
        others = [event(rank, name, end + 10, end + 11) for rank in (0, 1)]  # of the worker
        events += [one | {"ts": one["ts"] + 2000.0 * number} for one in call(end) + others]
    case = {"op": "allreduce", "bytes": 2 * longest}
    found = timelines.typical(events, case, "szp:rel=0.001", 2)
    assert {one["end"] for one in found if one["what"] == name} == {120, 121}
    assert next(one for one in found if one["what"] == "encode")["pieces"] == 2
    assert timelines.typical(events, case, "mpc", 2) == []
    timeline = case | {"events": found}
    assert timelines.parts(timeline, 2) == {
        "call": 121, "range": 10, "exchange": 10, "encode": 15, "contributions": 5, "sum": 30,
        "sums of others": 0, "decode": 51,
    }  # fmt: skip


def test_what_is_asked_for_on_the_command_line(bench, calls, monkeypatch):
    driver, asked = bench("reductions"), []
    monkeypatch.setattr(driver.calls, "measure", lambda *given, **_: asked.append(given))
    options = ["--memory", "host", "--ranks", "3", "--sizes", "8", "1M", "--jobs", "forced",
               "--specs", "szp:abs", "szp:rel=1e-3", "--fields", "turb"]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["reductions.py", *options])
    driver.main()
    ((_, wanted, job_list),) = asked
    # Whole elements for each rank of a reduce-scatter.
    assert wanted.sizes == [12, MB // 12 * 12] and wanted.specs == ["szp:abs", "szp:rel=0.001"]
    assert (wanted.ranks, wanted.memory, list(wanted.fields)) == (3, "host", ["turb"])
    assert job_list == [calls.Job("forced", None, "tcp")]
    monkeypatch.setattr("sys.argv", ["reductions.py", *options, "--specs", "szp"])
    with pytest.raises(SystemExit, match="reductions: --specs"):
        driver.main()
