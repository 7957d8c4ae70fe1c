"""bench/report_host_link.py, bench/report_aware.py and their topics for users: losses in bold,
goals beside what was reached, an MPI that knows no GPUs to compare with."""

from __future__ import annotations

import copy

MB = 1 << 20


def host_link(raw_us: float, mpi_us: float) -> dict:
    rows = [
        {"link": link, "codec": codec, "bytes": nbytes, "both": both,
         "us": us * (0.1 if codec == "szp:rel=0.001" else 1)}
        for both in (False, True)
        for nbytes in (64 << 10, 256 * MB)
        for codec in ("none", "szp:rel=0.001", "zfp:4", "mpc")
        for link, us in (("host", raw_us), ("mpi", mpi_us))
    ]  # fmt: skip
    ceiling = [
        {"gpus": n, "memory_node": 0, "out_gb_s": 50.0, "in_gb_s": 60.0, "both_gb_s": 80.0 / n}
        for n in (1, 2, 4)
    ]
    return {"gpu": "GPU", "gpus": 4, "date": "2026-01-01", "commit": "abcdef1", "ceiling": ceiling,
            "rows": rows}  # fmt: skip


def test_the_host_link_beside_what_bounds_it(bench, tmp_path):
    page, links = bench("report_host_link"), bench("user_links")
    document = {"runs": [host_link(10000.0, 20000.0)]}
    assert page.ceiling(document["runs"][0], False) == 50
    assert page.ceiling(document["runs"][0], True) == 40  # two GPUs exchange messages
    text = page.section(document, tmp_path / "x.svg")
    assert "| one way, 256 MB: raw, us | at most 5100 | 10000.0 | **missed** |" in text
    assert "| one way, 256 MB: `szp:rel=0.001`, time cut by | 93% | 90.0% | **missed** |" in text
    assert "| 256 MB | 10000.0 | 1000.0 | 10000.0 | 10000.0 | 54% | 20000.0 |" in text
    topic = links.without_reach(document).text
    assert "| one way, 256 MB | 0.50 | 0.10 | 1.00 | 1.00 | 54% |" in topic
    assert topic.count("GPU, 4 GPUs of one host, 2026-01-01") == 1
    slow = {"runs": [host_link(30000.0, 20000.0)]}
    assert "| 256 MB | **30000.0** | **3000.0** |" in page.section(slow, tmp_path / "x.svg")
    assert "| one way, 256 MB | **1.50** | 0.10 |" in links.without_reach(slow).text


def aware(name: str, **times: float) -> dict:
    """Times of paths in us, of each size and shape."""
    shapes = {"plain": ("latency", "window", "both"), "none": ("latency", "window", "both")}
    rows = [
        {"path": path.replace("_", ", "), "shape": shape, "bytes": nbytes, "us": us}
        for path, us in times.items()
        for shape in shapes.get(path, ("latency",))
        for nbytes in (64 << 10, 32 * MB)
    ]
    for row in rows:
        row["path"] = row["path"].replace("zfp4", "zfp:4")
        if row["path"] == "none":
            row |= {"over": row["us"] / times["plain"], "added_us": row["us"] - times["plain"]}
    return {"name": name, "mpi": "MPI", "gpu": ["GPU, 1.2"], "date": "2026-01-01",
            "commit": "abcdef1", "rows": rows}  # fmt: skip


def test_an_mpi_that_takes_memory_of_gpus(bench, tmp_path):
    page, links = bench("report_aware"), bench("user_links")
    runs = [
        aware("aware", plain=10, none=10.1, plain_long=10, zfp4_peer=5, zfp4_mpi=20),
        aware("other", zfp4_peer=4),
    ]
    document = {"runs": runs}
    text = page.section(document, tmp_path / "x.svg")
    lines = {cells[0]: cells[1:] for line in text.splitlines()
             if (cells := line.strip("| ").split(" | "))}  # fmt: skip
    goal = next(lines[key] for key in lines if "below 1 MB, added to plain" in key)
    assert goal == ["at most 0.12 us", "0.10 us", "reached"]
    goal = next(lines[key] for key in lines if "over those under MPI, other, GPU" in key)
    assert goal == ["at most 1.05", "1.250", "**missed**"]
    assert lines["window of 16, 32 MB"] == ["10.00", "**1.010**", "-"]
    assert lines["32 MB"] == ["-", "**1.250**", "-"]  # the last table: over the other MPI
    assert "GPU, driver 1.2; 2026-01-01" in text
    topic = links.under_aware(document)
    assert "| MPI, aware, GPU, 32 MB | - | - | 0.50 | **2.00** | - | - |" in topic.text
    assert "| one way, 64 KB | **1.01** | - |" in topic.text
    assert [line[2].startswith("**") for line in topic.glance] == [True, True]
    page.plot(document, tmp_path / "x.svg")
    apart = copy.deepcopy(document)
    apart["runs"][1]["gpu"] = ["NVIDIA Other, 1.2"]  # times of another machine tell nothing
    assert "which knows no GPUs" not in page.section(apart, tmp_path / "x.svg")
    alone = copy.deepcopy(document)
    alone["runs"].pop()
    assert "which knows no GPUs" not in page.section(alone, tmp_path / "x.svg")


def test_pairs_of_calls_become_messages(bench):
    """There and back is two messages, and a window is sixteen; a pair is what is compared."""
    lines = [f"ping-pong: Send, Recv\t4096\t4\t20000\t{own}" for own in (20400, 20200, 29000)]
    lines += ["window of 16, one way\t4096\t34\t160000\t168000", "Sendrecv\t4096\t1\t1\t1"]
    rows = bench("cuda_aware").rows_of("\n".join(lines), "auto", has_plain=True)
    assert [(row["path"], row["shape"], row["us"]) for row in rows] == [
        ("plain", "latency", 10.0), ("auto", "latency", 10.2),
        ("plain", "window", 10.0), ("auto", "window", 10.5),
    ]  # fmt: skip
    assert [(row["over"], row["added_us"]) for row in rows if "over" in row] == [
        (1.02, 0.2), (1.05, 0.5)
    ]  # fmt: skip
