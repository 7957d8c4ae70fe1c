"""bench/p2p_peer.py and what bench/report_peer.py makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpress.p2p import jobs

WORKER = Path(__file__).with_name("simulated_messages.py")
MB = 1 << 20


def microseconds(path: str, nbytes: int, link: str) -> float:
    """Of a machine that was made up."""
    if link == "mpi":
        return 60 + nbytes / 20e3
    start, rate = {
        "none": (15, 370e3), "auto": (15, 370e3), "peer-copy": (8, 383e3), "nccl": (14, 365e3),
        "zfp:4": (30, 1200e3), "szp:rel=0.001": (35, 700e3), "mpc": (50, 300e3),
        "szp:abs=0.02": (30, 900e3), "szp:abs=0.5": (30, 600e3),
    }[path]  # fmt: skip
    return start + nbytes / rate


def made_up(p2p_peer, sizes) -> dict:
    """A document as of three GPUs; `auto` compresses nothing."""
    rows = []
    absolute = {"wave": "szp:abs=0.02", "turb": "szp:abs=0.5"}
    for job in p2p_peer.all_jobs(("wave", "turb"), sizes, 3, absolute):
        measured = [
            {
                "data": case["data"], "bytes": case["bytes"], "path": path, "window": 1,
                "iterations": 1, "raw_bytes": case["bytes"], "chunked": 0, "loopback_bytes": 0,
                "wire_bytes": case["bytes"] / (1 if path in ("none", "auto") else 8),
                "seconds": [1e-6 * microseconds(path, case["bytes"], job.link)] * 3,
                "peer": int(job.link == "peer"), "by_host": 0, "sent": 1,
                **dict.fromkeys(jobs.TIMES, 0),
                "check": None if path in jobs.BASELINES else {"kept": path != "mpc"},
            }
            for case in job.cases
            for path in case["paths"]
        ]  # fmt: skip
        result = {"ranks": job.ranks, "rows": measured}
        beside = {"benchmark": job.benchmark, "ranks": job.ranks, "link": job.link}
        for row in jobs.summary(result, job.benchmark, job.label, p2p_peer.REFERENCES):
            rows.append(row | beside)
    facts = dict.fromkeys(("gpu", "cpu", "mpi", "date", "commit"), "made up")
    return facts | {"most_ranks": 3, "rows": rows}


def test_what_was_wanted_beside_what_was_reached(bench, tmp_path):
    sizes = [64 << 10, 32 * MB, 256 * MB]
    document = made_up(bench("p2p_peer"), sizes)
    picture = tmp_path / "peer.svg"
    other = document | {"gpu": "NVIDIA Other 80GB", "most_ranks": 2}
    bench("report_peer").plot({"runs": [document, other]}, picture)
    text = bench("report_peer").section({"runs": [document]}, picture)
    lines = {cells[0]: cells[1:] for line in text.splitlines() if (cells := split(line))}
    for goal, outcome in {
        "one way, 32 MB: raw, bandwidth of one copy's": ["85%", "90.5%", "reached"],
        "one way, 256 MB: raw, bandwidth of one copy's": ["95%", "95.7%", "reached"],
        "one way, 256 MB: raw, time over NCCL's": ["at most 1", "0.988", "reached"],
        "one way, 256 MB: `zfp:4` on wave, time cut by": ["55%", "64.2%", "reached"],
        "one way, 256 MB: `szp:rel=0.001` on wave, time cut by": ["55%", "41.0%", "**missed**"],
        "one way, 256 MB: `szp:abs=0.02` on wave, time cut by": ["55%", "53.7%", "**missed**"],
        "one way, 256 MB: `mpc` on wave, over raw":
            ["at most 1, or refused", "1.276, refused", "reached"],
        "one way, 64 KB: raw, faster than by way of the host": ["3x", "4.17x", "reached"],
        "all pairs of 3 at once, 32 MB: raw, time over NCCL's": ["at most 1", "0.998", "reached"],
        "one way: messages that arrived as promised": ["all", "35 of 40", "**missed**"],
        "both ways at once: of messages, went from GPU to GPU":
            ["all", "100.0% at least", "reached"],
    }.items():  # fmt: skip
        assert lines[goal] == outcome, goal
    assert picture.read_text().startswith("<?xml")
    text = bench("report_peer").section({"runs": [other, document]}, picture)
    assert text.count("![") == 1  # one picture of all machines
    assert "all pairs" not in text[: text.index("## 3 x made up")]


def test_users_see_one_run_a_gpu_model(bench):
    runs = [{"gpu": gpu, "most_ranks": ranks} for gpu, ranks in (
        ("NVIDIA H200", 2), ("NVIDIA H100 80GB HBM3", 2), ("NVIDIA H200", 4),
    )]  # fmt: skip
    assert bench("machines").one_each(runs) == [runs[2], runs[1]]
    assert [bench("machines").gpu_of(run) for run in runs] == ["H200", "H100", "H200"]


@pytest.mark.extended
def test_the_matrix_is_measured(bench, mpi, mpi4py_env, simulated_gpu, monkeypatch, tmp_path):
    for name, value in {**mpi.env, **mpi4py_env, **simulated_gpu}.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "peer.json"
    sizes = [64 << 10, 2 * MB]
    bench("p2p_peer").measure(
        out, seconds=0, sizes=sizes, names=("wave", "turb"), mpiexec=str(mpi.mpiexec),
        program=[str(WORKER)], most_ranks=2,
    )  # fmt: skip
    document = json.loads(out.read_text())
    assert document["kind"] == "p2p-peer" and "[link linked, device]" in document["profile"]
    rows = document["rows"]
    assert {row["bytes"] for row in rows} == set(sizes)
    assert {(row["benchmark"], row["job"]) for row in rows} == {
        ("latency", "forced"), ("latency", "auto"), ("latency", "staged"),
        ("bibandwidth", "forced"), ("bibandwidth", "auto"),
    }  # fmt: skip
    assert all(row["check"]["kept"] for row in rows if row.get("check"))
    # Without the link to itself, or NCCL, what is left is compared with `none`.
    paths = {row["path"] for row in rows}
    bounded = {path for path in paths if path.startswith("szp:abs=")}
    assert len(bounded) == 2  # one for each field
    assert paths - bounded == {"none", "zfp:4", "szp:rel=0.001", "mpc", "auto"}
    assert all((row["peer"] > 0.99) == (row["link"] == "peer") for row in rows)
    page = bench("report_peer").section({"runs": [document]}, tmp_path / "peer.svg")
    assert "from GPU to GPU" in page


def split(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def test_a_message_of_typical_time(bench):
    def message(number: int, begin: float, time: float) -> list[dict]:
        def event(rank: int, name: str, at: float, end: float) -> dict:
            return {"ph": "X", "pid": rank, "name": name, "ts": begin + at, "dur": end - at,
                    "args": {"message": number}}  # fmt: skip

        return [
            event(1, "MPI_Recv from 0", -5, time), event(0, "MPI_Send to 1", 0, time - 9),
            event(0, "encode 0", 1, 4), event(0, "encode 1", 2, 7), event(1, "decode 0", 4, 9),
            event(1, "copy in 1", 8, time - 1), event(1, "copy in 2", 8, time - 2),
        ]  # fmt: skip

    timeline = bench("message_timeline")
    times = [900] * 9 + [20, 60, 30, 50, 40] * 3  # the first ones do not count
    events = [e for i, time in enumerate(times) for e in message(i, 1000 * i, time)]
    other = [{"ph": "M", "args": {}}, {"ph": "X", "pid": 0, "name": "MPI_Wait", "args": {}}]
    typical = timeline.typical_message([*other, *events])
    assert typical[0] == {"rank": 0, "what": "encode 0", "begin": 1, "end": 4}
    assert typical[-1] == {"rank": 1, "what": "MPI_Recv from 0", "begin": -5, "end": 40}
    found = {"path": "szp", "data": "wave", "bytes": 256 * MB, "events": typical}
    assert bench("report_peer").timeline(found).splitlines()[0::2] == [
        "| `szp`, wave, 256 MB: 40 in all | from when to when |",
        "| rank 0 encodes | 1 to 4; 2 to 7 |",
        "| rank 1 copies | 8 to 39 |",
    ]
