"""In the place of jobs.run: what ranks would write whose calls take what a function says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpress.p2p import jobs

RANKS = 4
COUNTED = {"raw_bytes": 100, "wire_bytes": 25, "sent": 10, "chunked": 0, "loopback_bytes": 0}


def run_of(
    microseconds: Callable[[str, int, str, str], float], fails: tuple[str, str], broken: str
) -> Callable[..., dict[str, Any]]:
    """`microseconds(path, nbytes, link, transport)`; the job of that kind and link fails, and what
    comes by a path is not as it should be."""

    def run(plan, kind, *, link, transport, timeline=None, **_):
        if (kind, link) == fails:
            raise jobs.JobError("a GPU\nwas lost")
        if timeline is not None:
            timeline.write_text('{"traceEvents": []}')
        of_link = {"peer": 10 * (link == "auto"), "by_host": 10 * (link == "host")}
        rows = [
            {
                "op": case["op"], "data": case["data"], "bytes": case["bytes"], "path": path,
                "seconds": [1e-6 * microseconds(path, case["bytes"], link, transport)] * 5,
                "window": 1, "iterations": 1, "calls": 10,
                "check": {"kept": path != broken, "promise": "bound", "max_error": 1e-4,
                          "bound": 1e-3},
                "most": dict.fromkeys((*jobs.TIMES, *jobs.PARTS), 1e-4), **COUNTED, **of_link,
            }
            for case in plan["cases"]
            for path in case["paths"]
        ]  # fmt: skip
        known = {"mpi": "an MPI", "gpu_aware": False, "ranks": RANKS, "peer": "same-host",
                 "sees_loopback": False}  # fmt: skip
        return {**known, "rows": rows, "left_out": []}

    return run
