"""`mpress bench latency`, `bandwidth`, `bibandwidth`, on buffers of the host and of simulated GPUs;
what they take for arrived; how they sum up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from execution import BIN, execute

import mpress
from mpress.p2p import arrival, data, jobs

pytestmark = pytest.mark.usefixtures("served_jobs")
WORKER = Path(__file__).with_name("simulated_messages.py")
EXTENDED = pytest.mark.extended
FEW = ("--repeat", "3", "--seconds", "0.01", "--warmup", "2")


@pytest.fixture
def bench(mpi, mpi4py_env, tmp_path):
    """bench(name, *args): `mpress bench NAME`; returns what it printed, and its JSON."""

    def run(name, *args):
        file = tmp_path / "result.json"
        command = [BIN / "mpress", "bench", name, *FEW, "--mpiexec", mpi.mpiexec, "--json", file]
        done = execute([*command, *args], {**mpi.env, **mpi4py_env})
        assert done.status == 0, done.output
        return done.output, json.loads(file.read_text())

    return run


def arrived(rows) -> bool:
    return all(row["check"]["kept"] for row in rows if row["path"] not in jobs.BASELINES)


@pytest.mark.parametrize(
    "name",
    [
        "latency",
        pytest.param("bandwidth", marks=EXTENDED),
        pytest.param("bibandwidth", marks=EXTENDED),
    ],
)
def test_codecs_beside_raw_messages(bench, tmp_path, name):
    picture = tmp_path / "curves.svg"
    printed, document = bench(
        name, "--sizes", "64K-2M", "--factor", "32", "--field", "constant", "--field", "turb",
        "--spec", "mpc", "--spec", "zfp:8", "--spec", "auto", "--beside", "host",
        "--plot", picture,
    )  # fmt: skip
    rows = {(r["job"], r["path"], r["data"], r["bytes"]): r for r in document["rows"]}
    paths = [("forced", p) for p in ("none", "mpc", "zfp:8", "host")]
    paths += [("auto", "none"), ("auto", "auto")]
    every = {(*p, d, n) for p in paths for d in ("constant", "turb") for n in (64 << 10, 2 << 20)}
    assert set(rows) == every
    assert arrived(rows.values())
    for row in rows.values():
        low, high = row["quartiles"]
        assert 0 < low <= row["seconds"] <= high
        directions = 2 if name == "bibandwidth" else 1
        assert row["bandwidth"] == pytest.approx(directions * row["bytes"] / row["seconds"])
        assert ("over_none" in row) == (row["path"] != "none")
    large = rows["forced", "zfp:8", "turb", 2 << 20]
    assert large["ratio"] == pytest.approx(4, rel=0.01)
    assert large["encode_seconds"] > 0 and large["decode_seconds"] > 0
    assert large["check"]["promise"] == "as decoded" and large["check"]["max_error"] > 0
    assert rows["forced", "mpc", "constant", 2 << 20]["ratio"] > 50
    assert rows["forced", "none", "turb", 2 << 20]["ratio"] == 1
    assert (document["benchmark"], document["from"], document["to"]) == (name, "host", "host")
    assert document["kind"] == "p2p" and document["mpi"] and document["cpu"]
    for word in (name, "64K", "2M", "zfp:8", "MPI on the host", "none, beside auto", "arrived"):
        assert word in printed
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_the_transport_is_the_one_asked_for(bench, transport):
    printed, document = bench(
        "latency", "--sizes", "1M", "--field", "rand", "--spec", "none", "--transport", transport
    )
    assert document["transport"]["seen"] in (transport, None)
    assert document["transport"]["asked"] == transport
    if document["transport"]["seen"]:
        assert {"shm": "shared memory", "tcp": "TCP"}[transport] in printed


def test_the_link_is_the_one_asked_for(bench):
    printed, document = bench(
        "latency", "--sizes", "64K", "--field", "rand", "--spec", "auto", "--link", "peer"
    )
    assert document["link"] == {"asked": "peer", "seen": "mpi"}  # of the host's memory
    assert "mpress: --link peer: the messages went by MPI" in printed
    assert "from GPU to GPU" not in printed


def test_data_of_a_file(bench, tmp_path):
    field = tmp_path / "field.npy"
    np.save(field, np.linspace(0, 1, 3000).reshape(30, 100))
    _, document = bench("latency", "--sizes", "64K", "--file", field, "--spec", "szp:abs=1e-4")
    row = next(row for row in document["rows"] if row["path"].startswith("szp"))
    assert row["data"] == "field.npy" and row["ratio"] > 4
    assert row["check"]["promise"] == "bound" and 0 < row["check"]["max_error"] <= 1e-4


@pytest.mark.parametrize("name, places", [
    pytest.param("latency", ("device", "device"), marks=EXTENDED), ("latency", ("host", "device")),
    ("bandwidth", ("device", "host")), ("bibandwidth", ("device", "device")),
])  # fmt: skip
def test_memory_of_devices(mpi, mpi4py_env, simulated_gpu, tmp_path, name, places):
    np.save(tmp_path / "turb.npy", data.make("turb", 1 << 20, "f32"))
    paths = ["none", "mpc", "szp:rel=0.001", "host"]
    plan = {
        "benchmark": name, "from": places[0], "to": places[1], "warmup": 2, "repeat": 2,
        "seconds": 0.01, "window": 3, "files": {"turb": str(tmp_path / "turb.npy")},
        "cases": [{"data": "turb", "bytes": n, "paths": paths} for n in (64 << 10, 1 << 20)],
    }  # fmt: skip
    env = {**mpi.env, **mpi4py_env, **simulated_gpu}
    result = jobs.run(
        plan, "forced", mpiexec=str(mpi.mpiexec), environment=env, program=[str(WORKER)]
    )
    rows = jobs.summary(result, name, "forced")
    assert [(r["bytes"], r["path"]) for r in rows] == [
        (n, p) for n in (64 << 10, 1 << 20) for p in paths
    ]
    assert arrived(rows)
    assert all(row["ratio"] > 1.1 for row in rows if row["path"] in ("mpc", "szp:rel=0.001"))


@pytest.mark.parametrize("link", [pytest.param("mpi", marks=EXTENDED), "peer"])
def test_all_pairs_of_ranks(mpi, mpi4py_env, simulated_gpu, tmp_path, link):
    np.save(tmp_path / "turb.npy", data.make("turb", 1 << 20, "f32"))
    nbytes, paths = 256 << 10, ["none", "mpc", "host", "peer-copy"]
    plan = {
        "benchmark": "bibandwidth", "ranks": 3, "from": "device", "to": "device", "warmup": 4,
        "repeat": 2, "seconds": 0.01, "window": 2, "files": {"turb": str(tmp_path / "turb.npy")},
        "cases": [{"data": "turb", "bytes": nbytes, "paths": paths}],
    }  # fmt: skip
    env = {**mpi.env, **mpi4py_env, **simulated_gpu}
    result = jobs.run(
        plan, "forced", link=link, mpiexec=str(mpi.mpiexec), environment=env, program=[str(WORKER)]
    )
    rows = jobs.summary(result, "bibandwidth", "forced", ("none", "host"))
    assert [row["path"] for row in rows] == ["none", "mpc", "host"]  # no copies without a driver
    assert arrived(rows) and result["ranks"] == 3
    assert jobs.link_seen(rows, link) == {"asked": link, "seen": link}
    for row in rows:
        assert row["bandwidth"] == pytest.approx(6 * nbytes / row["seconds"])
    assert "over_host" in rows[0] and "over_none" in rows[2]


def test_messages_in_one_piece(bench):
    _, document = bench(
        "latency", "--sizes", "4M", "--field", "turb", "--spec", "zfp:8", "--sequential"
    )
    rows = {(row["job"], row["path"]): row for row in document["rows"]}
    assert arrived(rows.values()) and len(rows) == 4
    assert rows["sequential", "zfp:8"]["chunked"] == 0
    assert rows["forced", "zfp:8"]["chunked"] == pytest.approx(1)


def test_a_job_that_fails_says_why(mpi, mpi4py_env, tmp_path):
    plan = {"benchmark": "latency", "from": "host", "to": "host", "window": 1,
            "files": {"x": str(tmp_path / "none.npy")},
            "cases": [{"data": "x", "bytes": 8, "paths": ["none"]}]}  # fmt: skip
    env = {**mpi.env, **mpi4py_env}
    with pytest.raises(jobs.JobError, match=r"none\.npy"):
        jobs.run(plan, "forced", mpiexec=str(mpi.mpiexec), environment=env)


@pytest.mark.parametrize("args, culprit", [
    (("--from", "gpu"), "gpu"), (("--sizes", "12"), "--sizes 12"), (("--sizes", "1X"), "1X"),
    (("--type", "f16"), "f16"), (("--field", "sea"), "sea"), (("--spec", "gzip"), "gzip"),
    (("--transport", "rdma"), "rdma"), (("--beside", "copy"), "--beside copy"),
    (("--link", "nvlink"), "nvlink"), (("--beside", "peer-copy"), "--beside peer-copy"),
    (("--file", "/no/x.npy"), "/no/x.npy"), (("--json", "/no/x.json"), "/no/x.json"),
    (("--plot", "/no/x.svg"), "/no/x.svg"),
])  # fmt: skip
def test_what_is_refused(args, culprit):
    done = execute([BIN / "mpress", "bench", "latency", "--sizes", "64K", *args])
    assert done.status == 2, done.output
    assert done.stderr.startswith("mpress: ") and done.stderr.count("\n") == 1, done.stderr
    assert culprit in done.stderr


def test_what_counts_as_arrived():
    sent = data.make("turb", 64 << 10, "f32")
    spoilt = sent.copy()
    spoilt.view(np.uint32)[100] ^= 1
    for spec in ("none", "mpc", "auto"):
        assert arrival.judge(spec, sent, sent.copy())["kept"]
        assert not arrival.judge(spec, sent, spoilt)["kept"]
    for spec in ("zfp:8", "szp:rel=1e-3"):
        decoded = mpress.codec(spec).decode(mpress.codec(spec).encode(sent))
        assert arrival.judge(spec, sent, decoded)["kept"]
        decoded[7] += 0.1
        found = arrival.judge(spec, sent, decoded)
        assert not found["kept"] and found["max_error"] > 0.05


@pytest.mark.parametrize("name", data.NAMES)
def test_data_have_the_size_asked_for(name):
    for kind, nbytes in (("f32", 100_000), ("f64", 64 << 10)):
        values = data.make(name, nbytes, kind)
        assert values.nbytes == nbytes and values.dtype == {"f32": "f4", "f64": "f8"}[kind]


def test_short_messages_are_like_the_whole():
    values = np.arange(1 << 20, dtype=np.float32)
    for nbytes in (8, 4000, 64 << 10, 1 << 20, 4 << 20):
        message = data.cut(values, nbytes)
        assert message.nbytes == nbytes
        assert (np.diff(message) > 0).all()  # no element twice
        if nbytes >= 64 << 10:
            assert message[0] < values.size / 16 and message[-1] > values.size * 15 / 16
    np.testing.assert_array_equal(data.cut(values[:5], 48), [*range(5), *range(5), 0, 1])


def test_times_are_compared_round_by_round():
    counted = {
        "raw_bytes": 4000, "wire_bytes": 1000, "encode_seconds": 0.4, "decode_seconds": 0.2,
        "wait_seconds": 0.1, "sent": 10, "chunked": 10, "peer": 0, "by_host": 0,
        "loopback_bytes": 950, "check": None,
    }  # fmt: skip
    case = {"data": "x", "bytes": 400, "window": 1, "iterations": 1, **counted}
    drifting = [1.0, 2.0, 4.0, 8.0, 16.0]  # a machine that gets slower
    result = {
        "ranks": 2,
        "peer": "same-host",
        "sees_loopback": True,
        "rows": [
            {**case, "path": "none", "seconds": drifting},
            {**case, "path": "mpc", "seconds": [t / 2 for t in drifting]},
        ],
    }
    none, mpc = jobs.summary(result, "latency", "forced")
    assert "over_none" not in none and none["seconds"] == 4
    assert mpc["over_none"] == 0.5 and mpc["over_none_interval"] == [0.5, 0.5]
    assert mpc["ratio"] == 4 and mpc["encode_seconds"] == pytest.approx(0.04)
    assert jobs.transport_seen(result, "tcp")["right"]
    assert not jobs.transport_seen(result, "shm")["right"]
    assert jobs.transport_seen({**result, "sees_loopback": False}, "shm")["seen"] is None
    # MPICH that is told not to share memory says that its ranks are apart.
    apart = {**result, "peer": "other-host"}
    assert jobs.transport_seen(apart, "tcp")["seen"] == "tcp"
    # Between hosts the loopback's counter stands still.
    apart["rows"] = [{**row, "loopback_bytes": 0} for row in result["rows"]]
    assert jobs.transport_seen(apart, "tcp") == {
        "asked": "tcp", "seen": "network", "loopback_share": 0, "right": True
    }  # fmt: skip
    assert not jobs.transport_seen(apart, "shm")["right"]


def test_the_link_is_told_by_what_was_counted():
    by_mpi, by_peer = {"way": "mpi"}, {"way": "peer"}
    assert jobs.link_seen([by_mpi, {}], "auto") == {"asked": "auto", "seen": "mpi"}
    assert jobs.link_seen([by_peer, by_peer], "peer")["seen"] == "peer"
    assert jobs.link_seen([by_mpi, by_peer], None)["seen"] == "several"
    assert jobs.link_seen([by_peer, {"way": "several"}], None)["seen"] == "several"
    assert jobs.link_seen([{}], None)["seen"] is None
    # What went from GPU to GPU tells nothing of the MPI's transport.
    row = {"path": "none", "wire_bytes": 1000, "loopback_bytes": 0, "peer": 10, "by_host": 0}
    told = jobs.transport_seen({"sees_loopback": True, "peer": "same-host", "rows": [row]}, "tcp")
    assert told["seen"] is None and told["right"]


def test_python_m_mpress():
    done = execute([sys.executable, "-m", "mpress", "info"])
    assert done.status == 0 and "MPRESS_CODEC" in done.stdout
