"""docs/performance.md: what a user decides by. Every number on the page is of a file of results."""

from typing import Any

import user_codecs
import user_messages
import user_program
from tables import GENERATED, table
from user_values import Row, commits, mpi

HEAD = """\
# Performance

{generated}
A number without a unit is what mpress takes over what the peer takes, in time or in bytes. Below 1
mpress wins. In **bold** the peer wins. Each table names its commit and its machine. `mpress tune`
and `mpress bench` measure your own machine.

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
}


def machine(name: str, document: Row) -> str:
    run = document["runs"][0] if name == "p2p" else document
    gpus = run.get("gpus", [run["gpu"]] if "gpu" in run else [])
    count = run.get("most_ranks", 2 if name == "p2p" else len(gpus))
    parts = [run["cpu"]]
    if gpus:
        parts.append(f"{count} x {gpus[0]}")
    return ", ".join(parts)


def software(name: str, document: Row) -> str:
    runs = document["runs"] if name == "p2p" else [document]
    parts = [f"mpress {runs[0]['versions']['mpress']}"]
    parts += dict.fromkeys(mpi(run) for run in runs if "mpi" in run)
    if "runtime" in document:
        parts.append(f"CUDA runtime {document['runtime']}")
    if name == "host":
        parts.append(f"zfpy {document['versions']['zfpy']}")
    return ", ".join(parts)


def sources(found: dict[str, Any], files: dict[str, str]) -> str:
    lines = []
    for name, command in MEASURED_BY.items():
        runs = found[name]["runs"] if name == "p2p" else [found[name]]
        dates = ", ".join(sorted({run["date"] for run in runs}))
        lines.append([
            f"`{files[name]}`", f"`{command}`", commits(found[name]), dates,
            machine(name, found[name]), software(name, found[name]),
        ])  # fmt: skip
    headings = ("file", "measured by", "commit", "date", "machine", "software")
    return table(headings, lines, words=len(headings))


def page(found: dict[str, Any], files: dict[str, str]) -> str:
    topics = [
        user_messages.linked(found["peer"]),
        user_messages.by_mpi(found["p2p"]),
        user_messages.idle(found["overhead"], found["p2p"], found["peer"]),
        user_codecs.topic(found["host"], found["cuda"]),
        user_program.topic(found["wave"]),
    ]
    glance = [line for topic in topics for line in topic.glance]
    return "\n".join([
        HEAD.format(generated=GENERATED),
        table(("question", "best", "worst"), glance, words=3),
        *(topic.text for topic in topics),
        NOT_MEASURED, SOURCES, sources(found, files),
    ])  # fmt: skip
