"""Machines that results are of, as pages tell them apart."""

from typing import Any

Row = dict[str, Any]


def gpu_of(run: Row) -> str:
    """The model alone: "H100" of "NVIDIA H100 80GB HBM3, driver"."""
    gpu = run["gpu"] if isinstance(run["gpu"], str) else run["gpu"][0]
    words = gpu.partition(",")[0].removeprefix("NVIDIA ").split()
    return words[0]


def place_of(run: Row) -> str:
    """Of ranks that have a GPU each, whose memory it is unless that is said, and when."""
    memory = "" if run["memory"] == "device" else f"{run['memory']} memory, "
    return f"{run['ranks']} {gpu_of(run)}s, {memory}{run['date']}"


class Latest:
    """For pages that leave out what was measured again on as many GPUs of the same model."""

    def __init__(self, runs: list[Row]) -> None:
        self.runs = sorted(runs, key=lambda run: run["date"], reverse=True)
        self._first: dict[Any, Row] = {}

    def has(self, run: Row, *what: Any) -> bool:
        """Is this the run that shows it? To be asked in the order of `runs`."""
        return self._first.setdefault((gpu_of(run), run["ranks"], *what), run) is run

    def shown(self) -> list[Row]:
        """Those that show anything."""
        return [run for run in self.runs if any(one is run for one in self._first.values())]


def one_each(runs: list[Row]) -> list[Row]:
    """Of each model of GPU the run with the most of them."""
    most: dict[str, Row] = {}
    for run in runs:
        best = most.setdefault(gpu_of(run), run)
        if run["most_ranks"] > best["most_ranks"]:
            most[gpu_of(run)] = run
    return list(most.values())
