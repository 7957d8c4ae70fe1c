"""Measure messages from GPU to GPU of one host into bench/results/p2p-peer-h200.json: python
bench/p2p_peer.py [--seconds S].

Jobs of two ranks measure every codec beside raw messages, a copy between the GPUs and NCCL, the
default `auto` beside `none` and NCCL, and raw messages by way of the host; further jobs both
directions at once, and, where there are more than two GPUs, all pairs of them. `auto` goes by a
profile that is made first. Last come the timelines of single messages. bench/report.py makes
docs/performance.md of the results.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import message_timeline
import numpy as np
from messages import DATA, SWEEP, TARGET, has_air, print_rows, write_data

from mpress import _core, cuda_bench, tune
from mpress.p2p import data, jobs, memory

HERE = Path(__file__).resolve().parent
SPECS = ("zfp:4", "szp:rel=0.001", "mpc")
TOLERANCE = 0.001  # of the range of the data, for the bound that a program knows beforehand
REFERENCES = ("none", "peer-copy", "nccl")
AUTO = ("none", "nccl", "auto")
_NOT_MESSAGES = 55  # seconds: data, the profile, the start of ranks
_REPEAT = 61

Case = dict[str, Any]


@dataclass
class Measured:
    """One job of ranks: `kind` and `link` are those of jobs.run, `label` is what its rows have."""

    label: str
    kind: str
    cases: list[Case]
    benchmark: str = "latency"
    ranks: int = 2
    link: str = "peer"
    window: int = 1


def absolute_spec(name: str, nbytes: int) -> str:
    """szp with the bound that TOLERANCE is for the field `name`; szp:rel finds it by itself, in a
    pass of its own over every message."""
    xp: Any = np
    if memory.devices():
        import cupy as xp
    values = data.make(name, nbytes, "f32", xp)
    return f"szp:abs={TOLERANCE * float(xp.ptp(xp.asarray(values))):.3g}"


def forced_cases(sizes: Sequence[int], absolute: dict[str, str]) -> list[Case]:
    def case(name: str, nbytes: int) -> Case:
        paths = [*REFERENCES, *SPECS, absolute[name]]
        return {"data": name, "bytes": nbytes, "paths": paths}

    wave = [case("wave", nbytes) for nbytes in sizes]
    turb = [case("turb", nbytes) for nbytes in large(sizes)]
    # What is decoded on the host as well, to be compared, takes long.
    return [{**case, "weight": 3, "check": case["bytes"] < 2 * TARGET} for case in wave + turb]


def large(sizes: Sequence[int]) -> list[int]:
    """Those that goals are of."""
    return [nbytes for nbytes in sizes if nbytes in (TARGET, SWEEP[-1])] or [sizes[-1]]


def all_jobs(
    names: Sequence[str], sizes: Sequence[int], most_ranks: int, absolute: dict[str, str]
) -> list[Measured]:
    found = [
        Measured("forced", "forced", forced_cases(sizes, absolute)),
        Measured(
            "auto", "auto",
            [{"data": d, "bytes": n, "paths": AUTO} for d in names for n in sizes],
        ),
        Measured(
            "staged", "forced", [{"data": "wave", "bytes": n, "paths": ["none"]} for n in sizes],
            link="mpi",
        ),
    ]  # fmt: skip
    for ranks in sorted({2, most_ranks}):
        both: dict[str, Any] = {"benchmark": "bibandwidth", "ranks": ranks, "window": 4}
        forced = [case for case in forced_cases(large(sizes), absolute) if case["data"] == "wave"]
        autos = [
            {"data": d, "bytes": n, "paths": AUTO} for d in ("wave", "turb") for n in large(sizes)
        ]
        found += [Measured("forced", "forced", forced, **both)]
        found += [Measured("auto", "auto", autos, **both)]
    return found


def make_profile(seconds: float, mpiexec: str | None, program: Sequence[str]) -> tune.Profile:
    """Of the codecs on the first GPU and of messages from GPU to GPU."""
    profile = tune.Profile(_core.hardware(), tune.today())
    if cuda_bench.available():
        for name in tune.SPECS:
            profile.codecs[name, "device"] = tune.device_codec(name)
    link = tune.measure_own_link("peer", seconds=seconds, mpiexec=mpiexec, program=program)
    if link is None:
        raise SystemExit("p2p_peer: messages between these GPUs do not go from GPU to GPU")
    profile.add(link)
    return profile


def measure(
    out: Path,
    *,
    seconds: float,
    sizes: Sequence[int],
    names: Sequence[str],
    air: Path | None = None,
    mpiexec: str | None = None,
    most_ranks: int = 2,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> dict[str, Any]:
    """All jobs; writes `out` after each. `program` is the worker (jobs.run)."""
    begin = time.monotonic()
    document: dict[str, Any] = {}
    absolute = {name: absolute_spec(name, sizes[-1]) for name in ("wave", "turb")}
    wanted = all_jobs(names, sizes, most_ranks, absolute)
    weights = sum(case.get("weight", 1) for job in wanted for case in job.cases)
    unit = max(seconds - _NOT_MESSAGES, 0) / weights
    with tempfile.TemporaryDirectory() as folder:
        files = write_data(Path(folder), names, air)
        profile = make_profile(min(unit, 0.3), mpiexec, program)
        path = Path(folder) / "peer.profile"
        path.write_text(profile.text())
        print(f"data, profile: {time.monotonic() - begin:.0f} s", flush=True)
        for job in wanted:
            plan = {
                "benchmark": job.benchmark, "ranks": job.ranks, "window": job.window,
                "from": "device", "to": "device", "warmup": 6, "repeat": _REPEAT, "files": files,
                "cases": [
                    {**case, "seconds": unit * case.get("weight", 1)} for case in job.cases
                ],
            }  # fmt: skip
            result = jobs.run(
                plan, job.kind, link=job.link, mpiexec=mpiexec, program=program,
                environment={"MPRESS_PROFILE": str(path)},
            )  # fmt: skip
            if not document:
                document = jobs.document(plan, result, "mpi") | {"kind": "p2p-peer"}
                document |= {"profile": profile.text(), "most_ranks": most_ranks}
            rows = jobs.summary(result, job.benchmark, job.label, REFERENCES)
            beside = {"benchmark": job.benchmark, "ranks": job.ranks, "link": job.link}
            document["rows"] += [row | beside for row in rows]
            out.write_text(json.dumps(document, indent=1) + "\n")
            print(f"{job.benchmark}, {job.ranks} ranks, {job.label}: "
                  f"{time.monotonic() - begin:.0f} s", flush=True)  # fmt: skip
            print_rows(rows)
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "p2p-peer-h200.json")
    parser.add_argument("--mpiexec", help="launcher, with its own options")
    parser.add_argument("--air", type=Path, help="air temperatures: .f32 or .npy")
    parser.add_argument("--most", type=int, default=SWEEP[-1], help="bytes of a message")
    parser.add_argument("--seconds", type=float, default=120, help="of all, about")
    options = parser.parse_args()
    if memory.devices() < 2:
        raise SystemExit("p2p_peer: it takes two GPUs")
    names = [name for name in DATA if name != "air" or options.air or has_air()]
    if "air" not in names:
        print("without air temperatures: install esmvaltool-sample-data and netCDF4, or give --air")
    document = measure(
        options.json, seconds=options.seconds, air=options.air, names=names,
        sizes=[nbytes for nbytes in sorted({*SWEEP, TARGET}) if nbytes <= options.most],
        mpiexec=options.mpiexec, most_ranks=memory.devices(),
    )  # fmt: skip
    absolute = absolute_spec("wave", message_timeline.NBYTES)
    document["timelines"] = message_timeline.timelines(
        ("none", "zfp:4", absolute, "szp:rel=0.001"), options.mpiexec
    )
    options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
