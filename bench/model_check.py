"""What `mpress simulate` predicts beside what is measured, on 2 to 8 hosts.

    python bench/model_check.py --json bench/results/model-check.json

The hosts are those of bench/cluster.py (it says what it needs). Their links are slow enough for
ranks to share the cores of one machine: calls then take what their bytes do, not what processes do
that wait for a core. UCX answers requests to send behind what it sends itself, so by default an
exchange may take one direction after the other; here it does not. bench/report_model.py puts the
model beside the times.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster import MTU, Cluster, ClusterError, bench, checked_plan

from mpress import _core, codec_bench, tune
from mpress.p2p.jobs import FORM

FORMS = {
    "bcast": (), "allgather": (), "alltoall": ("pairwise", "scattered"),
    "scatter": (), "gather": (), "reduce": (),
    "allreduce": ("two-shot", "ring", "doubling"), "reduce_scatter": ("two-shot", "ring"),
}  # fmt: skip
OWN = {
    "bcast": "chain",
    "scatter": "linear",
    "gather": "linear",
    "allgather": "ring",
    "alltoall": "scattered",
}  # of mpress's own calls
SPECS = ("none", "zfp:16", "szp:rel=1e-5")


def measure(
    cluster: Cluster, ranks: int, options: argparse.Namespace, *more: str
) -> dict[str, Any]:
    algorithms = ",".join(f"{op}={algorithm}" for op, algorithm in OWN.items())
    settings = {"UCX_RNDV_SCHEME": "am", "MPRESS_ALGORITHM": algorithms}
    return bench(cluster, ranks, options, *more, "--field", "turb", **settings)


def measured(cluster: Cluster, op: str, options: argparse.Namespace) -> dict[str, Any]:
    more = ["-n", str(cluster.plan.hosts), "--sizes", options.bytes]
    for option, values in (("--spec", SPECS), ("--beside", FORMS[op])):
        for value in values:
            more += [option, value]
    found = measure(cluster, cluster.plan.hosts, options, op, *more)
    for row in found["rows"]:
        if FORM not in row["path"]:
            row["algorithm"] = OWN.get(op, "two-shot")
    return found


def link_times(cluster: Cluster, options: argparse.Namespace) -> dict[str, float]:
    """Bytes a second, and seconds, of single messages between two hosts."""
    short, long = 1 << 10, 4 << 20
    rows = measure(cluster, 2, options, "latency", "--sizes", f"{short},{long}", "--spec", "none")
    taken = {row["bytes"]: row["seconds"] for row in rows["rows"] if row["path"] == "none"}
    return {"rate": (long - short) / (taken[long] - taken[short]), "latency": taken[short]}


def codec_times() -> dict[str, Any]:
    """Of one core of this machine: of encoding and of decoding, by bytes."""
    names = dict.fromkeys(_core.describe(spec)["codec"] for spec in SPECS if spec != "none")
    return {name: [sorted(curve.items()) for curve in tune.host_codec(name)] for name in names}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="2,4,8", help="numbers of them; default 2,4,8")
    parser.add_argument("--rate", default="200mbit", help="of a host, each way; default 200mbit")
    parser.add_argument("--bytes", default="1M,4M",
                        help="as in mpress bench; default 1M,4M")  # fmt: skip
    parser.add_argument("--ops", nargs="*", choices=FORMS, default=tuple(FORMS))
    parser.add_argument("--repeat", type=int, default=5, help="samples; default 5")
    parser.add_argument("--seconds", type=float, default=60, help="a call; default 60")
    parser.add_argument("--json", type=Path, metavar="FILE", required=True)
    options = parser.parse_args()
    document = codec_bench.document([]) | {
        "kind": "model-check", "cores": len(os.sched_getaffinity(0)), "bytes": options.bytes,
        "codecs": codec_times(), "runs": [],
    }  # fmt: skip
    try:
        for hosts in map(int, options.hosts.split(",")):
            # What the links let through at once is not to count beside what calls move.
            plan = replace(checked_plan(hosts, options.rate, None), at_once=2 * MTU)
            with Cluster(plan) as cluster:
                if "link" not in document:
                    document["link"] = link_times(cluster, options)
                for op in options.ops:
                    begin = time.monotonic()
                    found = measured(cluster, op, options)
                    document |= {"rate": plan.rate, "mpi": found["mpi"]}
                    names = ("benchmark", "ranks", "rows")
                    document["runs"].append({name: found[name] for name in names})
                    options.json.write_text(json.dumps(document, indent=1) + "\n")
                    print(f"{hosts} hosts, {op}: {time.monotonic() - begin:.0f} s", flush=True)
    except (ClusterError, ValueError) as error:
        print(f"model_check: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
