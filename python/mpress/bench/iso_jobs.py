"""Starts the ranks of `mpress bench iso`, several times, and sums up what they measured."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpress import codec_bench
from mpress.bench import statistics
from mpress.bench.names import ALGORITHMS
from mpress.p2p.jobs import JobError, median_interval

Row = dict[str, Any]
Key = tuple[int, str, str | None]

# mpi4py.run ends the job where a rank fails: the others would wait for ever.
PROGRAM = (sys.executable, "-m", "mpi4py", "-m", "mpress.bench.iso_worker")


def run(
    plan: Mapping[str, Any], launches: int, command_of: Callable[[list[str]], list[str]]
) -> list[dict[str, Any]]:
    """What the worker wrote in each launch, whose seeds differ. `command_of` puts a launcher in
    front of a program. Raises JobError."""
    return [
        _launch({**plan, "seed": plan["seed"] + number}, command_of) for number in range(launches)
    ]


def _launch(
    plan: Mapping[str, Any], command_of: Callable[[list[str]], list[str]]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mpress-bench-") as folder:
        plan_file, out = Path(folder) / "plan.json", Path(folder) / "out.json"
        plan_file.write_text(json.dumps(plan))
        done = subprocess.run(
            command_of([*PROGRAM, str(plan_file), str(out)]),
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode != 0 or not out.exists():
            said = (done.stderr + done.stdout).strip()
            raise JobError(said or f"the ranks ended with status {done.returncode}")
        sys.stderr.write(done.stderr)
        return json.loads(out.read_text())


def summary(results: Sequence[Mapping[str, Any]], reference: str) -> list[Row]:
    """A row for each size and method: the mean over launches of the means within them, without
    outliers, and how it compares with `reference` in the same rounds:

    over, over_interval    the median of the ratios, of all launches, and its 95 % interval
    minus, minus_interval  the same of the differences, in seconds
    over_means, over_means_interval   the mean of the launches' ratios of means
    over_best, over_best_interval, best   of `auto`: the same as `over`, beside the mpress algorithm
                           with the least mean of those that were measured by themselves
    """
    launches: dict[Key, list[list[float]]] = {}
    facts: dict[Key, Row] = {}
    for result in results:
        for row in result["rows"]:
            key = row["bytes"], row["method"], row["spec"]
            launches.setdefault(key, []).append(row["seconds"])
            facts[key] = {name: value for name, value in row.items() if name != "seconds"}
    means = {key: statistics.launch_means(every) for key, every in launches.items()}
    rows = []
    for key in sorted(launches, key=lambda one: one[0]):  # methods stay in their order
        nbytes, method, spec = key
        mean, interval = statistics.mean_interval(means[key])
        every = np.concatenate(launches[key])
        row = facts[key] | {
            "seconds": mean, "interval": interval, "launches": means[key],
            "quartiles": [float(q) for q in np.quantile(every, (0.25, 0.5, 0.75))],
            "rounds_measured": [len(one) for one in launches[key]],
            "outliers": sum(map(statistics.outliers, launches[key])),
        }  # fmt: skip
        base = _key_of(launches, nbytes, reference)
        if base is not None and base != key:
            row |= _compared(launches[key], launches[base], "over")
            ratios = [one / other for one, other in zip(means[key], means[base], strict=True)]
            row["over_means"], row["over_means_interval"] = statistics.mean_interval(ratios)
        fixed = [
            one for name in ALGORITHMS[1:] if (one := _key_of(launches, nbytes, name)) is not None
        ]
        if method == "auto" and spec in (None, "none") and fixed:
            best = min(fixed, key=lambda one: float(np.mean(means[one])))
            row["best"] = best[1]
            row |= _compared(launches[key], launches[best], "over_best")
        rows.append(row)
    return rows


def _key_of(launches: Mapping[Key, Any], nbytes: int, method: str) -> Key | None:
    """That of a method without a codec."""
    found = ((nbytes, method, spec) for spec in (None, "none"))
    return next((key for key in found if key in launches), None)


def _compared(
    times: Sequence[Sequence[float]], others: Sequence[Sequence[float]], name: str
) -> Row:
    pairs = [
        pair
        for one, other in zip(times, others, strict=True)
        for pair in zip(one, other, strict=True)
    ]
    row: Row = {}
    row[name], *row[f"{name}_interval"] = median_interval([a / b for a, b in pairs])
    if name == "over":
        row["minus"], *row["minus_interval"] = median_interval([a - b for a, b in pairs])
    return row


def document(
    plan: Mapping[str, Any], results: Sequence[Mapping[str, Any]], reference: str
) -> dict[str, Any]:
    """What was measured, and what is needed to judge it; ready for JSON."""
    first = results[0]
    return codec_bench.document([]) | {
        "kind": "iso", "mpi": first["mpi"], "hosts": first["hosts"], "plan": dict(plan),
        "reference": reference, "launches": len(results), "rows": summary(results, reference),
    }  # fmt: skip
