"""docs/performance.md: what a user decides by. Every number on the page is of a file of results."""

from typing import Any

import user_codecs
import user_collectives
import user_links
import user_messages
import user_program
import user_reductions
from tables import GENERATED, table
from user_values import Row, Topic, commits, mpi

HEAD = """\
# Performance

{generated}
A number without a unit is what mpress takes over what the peer takes, in time or in bytes. Below 1
mpress wins. In **bold** the peer wins. Each topic or table names its machine; commits stand [at the
end](#where-the-numbers-come-from). `mpress tune` and `mpress bench` measure your own machine.

## At a glance

The best and the worst case of each question, from the topics below:
"""
NOT_MEASURED = """\
## What was not measured

No file of results covers messages between hosts, messages in host memory, other GPUs than those
named here, or more of them. TCP between ranks of one host stands in for a network.
"""
SOURCES = """\
## Where the numbers come from

Tables of different commits are not one experiment. `python bench/report.py` makes this page from
the files in `bench/results/`. The [developers' pages](dev/README.md) have every row, the goals, the
timelines, and what was tried.
"""
MEASURED_BY = {
    "peer": "bench/p2p_peer.py",
    "p2p": "bench/p2p_device.py",
    "overhead": "bench/p2p_overhead.py",
    "host": "bench/run.py",
    "cuda": "bench/codec_cuda.py",
    "wave": "bench/wave_scaling.py",
    "host_link": "bench/host_link.py",
    "aware": "bench/cuda_aware.py",
    "collectives": "bench/collectives.py",
    "reductions": "bench/reductions.py",
    "quality": "bench/gzccl_table.py",
    "streams": "bench/streams.py",
    "gaps": "bench/gaps.py",
}


def machine(name: str, run: Row) -> str:
    parts = [run["cpu"]] if "cpu" in run else []
    gpus = run.get("gpus", [run["gpu"]] if "gpu" in run else [])
    if isinstance(gpus, int):  # how many
        gpus = [run["gpu"]] * gpus
    if name == "aware":
        gpus = [run["gpu"][0].partition(",")[0]]
    count = run.get("most_ranks", 2 if name in ("p2p", "aware") else len(gpus))
    if gpus:
        parts.append(f"{count} x {gpus[0]}")
    return ", ".join(parts)


def software(name: str, runs: list[Row]) -> str:
    first = runs[0]
    version = first.get("version") or first.get("versions", {}).get("mpress")
    parts = [f"mpress {version}"] if version else []
    parts += dict.fromkeys(mpi(run) for run in runs if run.get("mpi"))
    if "runtime" in first:
        parts.append(f"CUDA runtime {first['runtime']}")
    if name == "host":
        parts.append(f"zfpy {first['versions']['zfpy']}")
    return ", ".join(parts)


def sources(found: dict[str, Any], files: dict[str, str]) -> str:
    """A line a file of results."""
    lines = []
    for name, command in MEASURED_BY.items():
        if name not in found:
            continue
        document = found[name]
        of_files = [(files[name], document)] if name in files else [
            (run["file"], {"runs": [run]}) for run in document["runs"]
        ]  # fmt: skip
        for file, one in of_files:
            runs = one.get("runs", [one])
            dates = ", ".join(sorted({run["date"] for run in runs}))
            lines.append([
                f"`{file}`", f"`{command}`", commits(one), dates, machine(name, runs[0]),
                software(name, runs),
            ])  # fmt: skip
    headings = ("file", "measured by", "commit", "date", "machine", "software")
    return table(headings, lines, words=len(headings))


def of_links(found: dict[str, Any]) -> list[Topic]:
    topics = {"host_link": user_links.without_reach, "aware": user_links.under_aware}
    return [topic(found[name]) for name, topic in topics.items() if name in found]


def page(found: dict[str, Any], files: dict[str, str]) -> str:
    topics = [
        user_messages.linked(found["peer"]),
        *of_links(found),
        user_messages.by_mpi(found["p2p"]),
        user_messages.idle(found["overhead"], found["p2p"], found["peer"]),
        user_codecs.topic(found["host"], found["cuda"]),
        user_program.topic(found["wave"]),
    ]
    if "collectives" in found:
        topics.insert(-3, user_collectives.topic(found["collectives"]))
    if "reductions" in found:
        topics.insert(-3, user_reductions.topic(found["reductions"]))
    glance = [line for topic in topics for line in topic.glance]
    return "\n".join([
        HEAD.format(generated=GENERATED),
        table(("question", "best", "worst"), glance, words=3),
        *(topic.text for topic in topics),
        NOT_MEASURED, SOURCES, sources(found, files),
    ])  # fmt: skip
