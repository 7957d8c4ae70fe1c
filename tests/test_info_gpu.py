"""`mpress info --gpu`: which way messages between GPUs take, and why."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from execution import MPRESS, execute
from rich.console import Console

from mpress import trace
from mpress.cli import info_gpu

pytestmark = pytest.mark.usefixtures("served_jobs")
WORKER = Path(__file__).with_name("simulated_ways.py")


@pytest.fixture
def check(mpi, mpi4py_env, simulated_gpu, monkeypatch):
    """check(ranks, link=None, **environment): what the ranks found, and what is printed of it."""
    monkeypatch.setattr(info_gpu, "SIZES", (64 << 10, 2 << 20))

    def run(ranks, link=None, **environment):
        env = {**mpi.env, **mpi4py_env, **simulated_gpu, **environment}
        found = info_gpu.check(
            ranks, link=link, mpiexec=str(mpi.mpiexec), environment=env, program=(str(WORKER),)
        )
        out = io.StringIO()
        info_gpu.print_check(Console(file=out, width=400, markup=False), found)
        return found, out.getvalue()

    return run


def ways(found, spec="none"):
    """By kind of memory, of the largest messages: the ways and detours there are."""
    kinds: dict[str, set] = {}
    for row in found["rows"]:
        if row["spec"] == spec and row["bytes"] == info_gpu.SIZES[-1]:
            kinds.setdefault(row["memory"], set()).add((row["way"], row["detour"]))
    return kinds


def test_between_linked_gpus(check):
    found, printed = check(3)
    pairs = {(row["from"], row["to"]) for row in found["rows"]}
    assert pairs == {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert all(row["seconds"] > 0 and row["peer"] == "same-host" for row in found["rows"])
    # On a loaded machine a receiver may be too late for what is offered to it, and is not asked
    # for a while.
    assert ways(found)["device"] <= {("direct", None), ("peer", None)}
    copied = ("peer", trace.DETOURS[9])
    assert copied in ways(found)["pool"] <= {copied, ("peer", None)}
    assert ways(found)["host"] == {("whole", None)}
    encoded = ways(found, "mpc")
    assert encoded["device"] == encoded["pool"] == {("peer", None)}
    assert [rank["device"] for rank in found["ranks"]] == [0, 1, 0] and not found["gpu_aware"]
    assert "several ranks use one GPU" in printed and "knows no GPUs" in printed
    assert "GPU to GPU" in printed and trace.DETOURS[9] in printed


def test_gpus_that_do_not_reach_each_other(check):
    found, printed = check(2, SIMULATED_GPU_PEERS="0")
    assert ways(found)["device"] == ways(found)["pool"] == {("host", trace.DETOURS[6])}
    assert all("by way of the host's memory" in text for [text] in found["said"])
    assert "host memory of both GPUs" in printed and trace.DETOURS[6] in printed
    assert "times as long" not in printed


def test_by_mpi_alone(check):
    found, printed = check(2, link="mpi")
    assert ways(found)["device"] == {("chunks", trace.DETOURS[2])}
    assert trace.DETOURS[2] in printed


def test_an_mpi_that_takes_memory_of_gpus(check):
    found, _ = check(2, MPRESS_GPU_AWARE="1", SIMULATED_GPU_OPEN="1")
    assert found["gpu_aware"]
    assert {way for way, _ in ways(found)["device"]} == {"whole"}
    assert ways(found, "mpc")["device"] == {("peer", None)}


@pytest.mark.parametrize("arguments, said", [
    (("-n", "2"), "-n: expected --gpu, --protocols or --algorithms beside it"),
    (("--link", "mpi"), "--link: expected --gpu, --protocols or --algorithms beside it"),
    (("--gpu", "--link", "ring"), "--link 'ring': expected one of auto, mpi, peer, host"),
    (("--gpu", "-n", "1"), "-n 1: expected 2 ranks or more"),
])  # fmt: skip
def test_what_cannot_be(arguments, said):
    done = execute([MPRESS, "info", *arguments])
    assert done.status == 2 and said in done.stderr


def test_a_machine_without_a_gpu():
    done = execute([MPRESS, "info", "--gpu"], {"CUDA_VISIBLE_DEVICES": ""})
    assert done.status == 2
    assert "none" in done.stdout and "no GPU was found" in done.stderr
