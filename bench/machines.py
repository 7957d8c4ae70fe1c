"""Machines that results are of, as pages tell them apart."""

from typing import Any

Row = dict[str, Any]


def gpu_of(run: Row) -> str:
    """The model alone: "H100" of "NVIDIA H100 80GB HBM3, driver"."""
    gpu = run["gpu"] if isinstance(run["gpu"], str) else run["gpu"][0]
    words = gpu.partition(",")[0].removeprefix("NVIDIA ").split()
    return words[0]


def one_each(runs: list[Row]) -> list[Row]:
    """Of each model of GPU the run with the most of them."""
    most: dict[str, Row] = {}
    for run in runs:
        best = most.setdefault(gpu_of(run), run)
        if run["most_ranks"] > best["most_ranks"]:
            most[gpu_of(run)] = run
    return list(most.values())
