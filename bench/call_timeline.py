"""Where the time of a reduction goes, by what `mpress run --trace` shows of it.

typical() picks a call of a path out of a trace. parts() cuts it: on each rank a part lasts from the
end of the part before it to its own last event. So parts make up the whole call, and what overlaps
counts for what ends later.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]

PARTS = ("range", "exchange", "encode", "contributions", "sum", "sums of others", "decode")
"""The range of a rank's own data is found; all tell each other theirs; what others sum is encoded
(or copied out); what this rank sums has come; it is summed, and encoded, and given to its readers;
what others have summed has come; it is decoded (or copied in), and the call returns."""

_MOST_CALLS = 15
_OPENING = 4  # calls until links are open: they may go other ways than those that follow
_CHUNKED = ("encode", "decode", "copy", "arrive", "wire")
_MPI = {"allreduce": "MPI_Allreduce", "reduce": "MPI_Reduce",
        "reduce_scatter": "MPI_Reduce_scatter_block"}  # fmt: skip


def typical(events: Sequence[Row], case: Row, path: str, ranks: int) -> list[Row]:
    """The call of `path`, among the last ones, with the median time: {"rank", "what", "message",
    "begin", "end", "pieces", "bytes"}, in microseconds after rank 0's call began; chunks of a
    message are one. Empty where calls of that codec, but for the first, have no messages."""
    name, codec = _MPI[case["op"]], path.partition(":")[0]
    of_ranks: dict[int, list[Row]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            of_ranks[event["pid"]].append(event)
    # All make the same calls; what was not kept is the oldest.
    waits = [[e for e in of_ranks[rank] if e["name"] == name] for rank in range(ranks)]
    least = case["bytes"] // ranks // 2
    calls = []
    for number in range(1, 1 + min(map(len, waits))):
        windows = [every[-number] for every in waits]
        if _codec_of(_within(of_ranks[0], windows[0]), name, least) == codec:
            calls.append(windows)
    calls = calls[:-_OPENING][:_MOST_CALLS]
    if not calls:
        return []
    calls = sorted(calls, key=lambda one: max(window["dur"] for window in one))
    windows = calls[len(calls) // 2]
    start = windows[0]["ts"]
    return [
        one
        for rank, window in enumerate(windows)
        for one in _joined(_within(of_ranks[rank], window), rank, start)
    ]


def _joined(events: Sequence[Row], rank: int, start: float) -> list[Row]:
    """Chunks of a message as one, in the order in which they begin."""
    groups: dict[tuple[str, int | None], list[Row]] = defaultdict(list)
    for event in events:
        what = event["name"]
        if what.startswith(_CHUNKED):
            what = what.rstrip("0123456789 ")
        groups[what, event["args"].get("message")].append(event)
    found = [
        {
            "rank": rank, "what": what, "message": message,
            "begin": round(min(e["ts"] for e in some) - start, 1),
            "end": round(max(e["ts"] + e["dur"] for e in some) - start, 1),
            "pieces": len(some), "bytes": sum(e["args"].get("raw_bytes", 0) for e in some),
        }
        for (what, message), some in groups.items()
    ]  # fmt: skip
    return sorted(found, key=_begin)


def _within(events: Sequence[Row], window: Row) -> list[Row]:
    end = window["ts"] + window["dur"]
    return [e for e in events if window["ts"] <= e["ts"] and e["ts"] + e["dur"] <= end]


def _codec_of(events: Sequence[Row], name: str, least: int) -> str | None:
    """Of the longest message that is sent, of at least so many bytes."""
    sent = [e["args"] for e in events if e["name"].startswith(f"{name} to ")]
    longest = max(sent, key=lambda one: one["raw_bytes"], default=None)
    return longest["codec"] if longest and longest["raw_bytes"] >= least else None


def parts(timeline: Row, ranks: int) -> dict[str, float]:
    """Microseconds of PARTS, and of the call: of the rank for which it takes longest. Parts that it
    does not have are left out."""
    found = [
        _parts([e for e in timeline["events"] if e["rank"] == rank], timeline, ranks)
        for rank in range(ranks)
    ]
    return max(found, key=lambda one: one["call"])


def _parts(events: Sequence[Row], timeline: Row, ranks: int) -> dict[str, float]:
    name, nbytes = _MPI[timeline["op"]], timeline["bytes"]
    call = next(e for e in events if e["what"] == name)
    least, others = nbytes // ranks // 2, ranks - 1
    told, sends, receives = (
        [e for e in events
         if e["what"].startswith(f"{name} {way} ") and (e["bytes"] >= least) == is_long]
        for way, is_long in (("to", False), ("to", True), ("from", True))
    )  # fmt: skip
    # What others sum comes first, then this rank's own sum.
    made = [e for e in events if e["what"] in ("encode", "copy out")]
    first = list(dict.fromkeys(e["message"] for e in made))[:others]
    came = [[e["message"] for e in some] for some in (receives[:others], receives[others:])]
    ends = {
        "range": [e["begin"] for e in told],
        "exchange": [made[0]["begin"]] if told and made else [],
        "encode": [e["end"] for e in made if e["message"] in first],
        "contributions": _ends(events, "arrive", came[0]),
        "sum": _ends(events, "encode", [e["message"] for e in made if e["message"] not in first])
        + [e["end"] for e in sends[others:]],
        "sums of others": _ends(events, "arrive", came[1]),
        "decode": [call["end"]],
    }
    at, found = call["begin"], {"call": call["end"] - call["begin"]}
    for part in PARTS:
        if ends[part]:
            found[part] = max(max(ends[part]) - at, 0)
            at = max(at, max(ends[part]))
    return found


def _begin(event: Row) -> float:
    return event["begin"]


def _ends(events: Sequence[Row], what: str, messages: Sequence[int]) -> list[float]:
    return [e["end"] for e in events if e["what"] == what and e["message"] in messages]
