"""The timeline of `mpress run --trace`: every message once a side, chunks in their order, whatever
becomes of the ranks; and what ranks leave, merged whatever state it is in."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest
from execution import BIN, execute

from mpress import timeline
from mpress.cli import launch
from mpress.trace import RecordError

FORCED = ("--codec", "mpc", "--force", "--threshold", "0")


@pytest.fixture
def traced(tmp_path, mpress_run):
    """traced(n, program, ...): as mpress_run, and the timeline, None where there is none."""

    def run(*args, options=(), **others):
        file = tmp_path / "trace.json"
        done = mpress_run(*args, options=(*options, "--trace", file), **others)
        assert not list(tmp_path.glob("*.ranks")), "ranks' files are left"
        return done, json.loads(file.read_text()) if file.exists() else None

    return run


def events(trace, kind):
    return [event for event in trace["traceEvents"] if event.get("cat") == kind] if trace else []


def spans(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def check_lanes(trace):
    """Events of a lane nest, or one ends before the other begins."""
    lanes = defaultdict(list)
    for event in spans(trace):
        assert event["ts"] >= 0 and event["dur"] >= 0
        lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert set(lanes) == named
    for lane in lanes.values():
        enclosing = []
        for begin, end in sorted(lane, key=lambda span: (span[0], -span[1])):
            while enclosing and enclosing[-1] <= begin + 1e-3:
                enclosing.pop()
            assert not enclosing or end <= enclosing[-1] + 1e-3
            enclosing.append(end)


def check_messages(trace, report):
    """Each message is there once, on either side, as the report counts it."""
    for kind, direction in [("send", "send"), ("receive", "receive")]:
        shown, counted = Counter(), Counter()
        for event in (e for e in spans(trace) if e["cat"] == kind):
            arguments = event["args"]
            key = (event["pid"], event["name"].split()[0], arguments["peer"], arguments["codec"])
            if kind == "send":
                key += (arguments["left_raw"],)
            shown[key] += 1
            shown[(*key, "raw")] += arguments["raw_bytes"]
            shown[(*key, "wire")] += arguments["wire_bytes"]
        for row in (r for r in report["rows"] if r["direction"] == direction):
            key = (row["rank"], row["operation"], row["peer"], row["codec"])
            if kind == "send":
                key += (row["reason"],)
            counted[key] += row["messages"]
            counted[(*key, "raw")] += row["raw_bytes"]
            counted[(*key, "wire")] += row["wire_bytes"]
        assert +shown == +counted
        assert shown


def check_chunks(trace, before_wire, after_wire):
    """A chunk passes its stages in order: encoded (or copied) before MPI has it, decoded after it
    came. Returns how many chunks did all of it."""
    stages = defaultdict(dict)
    for event in spans(trace):
        arguments = event["args"]
        if "chunk" not in arguments:
            continue
        sends = event["cat"] in ("encode", "copy out", "wire")
        pair = (event["pid"], arguments["peer"])
        key = (pair if sends else pair[::-1], arguments["message"], arguments["chunk"])
        assert event["cat"] not in stages[key]
        stages[key][event["cat"]] = (event["ts"], event["ts"] + event["dur"])
    whole = 0
    for of_chunk in stages.values():
        order = [of_chunk[stage] for stage in before_wire if stage in of_chunk]
        if "wire" not in of_chunk:
            continue
        assert order, "a chunk leaves that nobody made"
        for (_, end), (begin, _) in zip(order, [*order[1:], of_chunk["wire"]], strict=True):
            assert end <= begin + 1e-3
        assert of_chunk["wire"][0] <= of_chunk["arrive"][1]
        for stage in after_wire:
            if stage in of_chunk:
                assert of_chunk["arrive"][1] <= of_chunk[stage][0] + 1e-3
                whole += 1
    return whole


@pytest.mark.parametrize("chunk", ["0", "64K"])
def test_messages_of_the_host(chunk, traced, mpi_program):
    done, trace = traced(2, mpi_program("p2p"), options=FORCED, env={"MPRESS_CHUNK": chunk})
    assert done.status == 0, done.stderr
    assert "not kept" not in done.stderr
    check_lanes(trace)
    check_messages(trace, done.report)
    assert all(rank["lost"] == 0 for rank in trace["otherData"]["ranks"])
    assert {event["name"] for event in events(trace, "wait")} >= {"MPI_Recv", "MPI_Waitall"}
    assert events(trace, "encode") and events(trace, "decode")
    if chunk == "0":
        assert not events(trace, "wire")
        return
    assert check_chunks(trace, ["encode"], ["decode"]) > 0
    begun = {flow["id"]: flow for flow in trace["traceEvents"] if flow["ph"] == "s"}
    ended = {flow["id"]: flow for flow in trace["traceEvents"] if flow["ph"] == "f"}
    assert begun.keys() == ended.keys()
    assert {flow["cat"] for flow in begun.values()} == {"message", "chunk"}
    assert len(begun) == len(events(trace, "wire")) + done.report["totals"]["chunked_messages"]


@pytest.mark.parametrize(("codec", "chunk"), [("mpc", "0"), ("none", "16K"), ("mpc", "16K")])
def test_messages_of_devices(codec, chunk, traced, mpi_program, simulated_gpu):
    options = ("--codec", codec) if codec == "none" else FORCED
    env = {**simulated_gpu, "MPRESS_CHUNK": chunk, "MPRESS_TRACE": "1M"}
    done, trace = traced(2, mpi_program("device_messages"), options=options, env=env)
    assert done.status == 0, done.stderr
    check_lanes(trace)
    check_messages(trace, done.report)
    assert events(trace, "wait for device")
    if chunk == "0":
        return
    made = ["encode", "copy out"] if codec == "mpc" else ["copy out"]
    taken = ["decode", "copy in"]
    assert check_chunks(trace, made, taken) > 0
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert any("given - seen done" in name and name.startswith("device") for name in names)


def test_threads_have_lanes_of_their_own(traced, mpi_program):
    done, trace = traced(2, mpi_program("threads"), options=FORCED, env={"MPRESS_CHUNK": "64K"})
    assert done.status == 0, done.stderr
    check_lanes(trace)
    check_messages(trace, done.report)
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {"thread 0", "thread 1"} <= names


def test_an_aborted_rank_leaves_its_events(traced, mpi_program):
    done, trace = traced(2, mpi_program("one_message"), ["abort"], options=FORCED)
    assert done.status != 0
    assert trace["otherData"]["exit_status"] == done.status
    [sent] = events(trace, "send")
    [received] = events(trace, "receive")
    assert (sent["pid"], received["pid"]) == (0, 1)
    assert received["args"]["raw_bytes"] == sent["args"]["raw_bytes"] == 160000
    assert received["args"]["wire_bytes"] == sent["args"]["wire_bytes"] < 160000


def test_the_latest_events_are_kept(traced, mpi_program):
    env = {"MPRESS_CHUNK": "64K", "MPRESS_TRACE": "50"}
    done, trace = traced(2, mpi_program("p2p"), options=FORCED, env=env)
    assert done.status == 0, done.stderr
    check_lanes(trace)
    ranks = trace["otherData"]["ranks"]
    assert [rank["events"] for rank in ranks] == [50, 50]
    lost = sum(rank["lost"] for rank in ranks)
    assert lost > 0
    assert f"the {lost} oldest events were not kept" in done.stderr


def test_nothing_is_kept_unasked(tmp_path, mpi, mpi_program):
    environment = {
        "LD_PRELOAD": str(launch.required_preload_library()),
        "MPRESS_JOB": "0" * 32,
        "MPRESS_RECORD": str(tmp_path),
    }
    for events_kept, names in [("0", {"rank"}), ("10", {"rank", "timeline"})]:
        settings = {**environment, "MPRESS_TRACE": events_kept}
        command = launch.rank_command(
            [str(mpi_program("one_message"))], settings, 2, [str(mpi.mpiexec)]
        )
        done = execute(command, mpi.env)
        assert done.status == 0, done.stderr
        assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == names


def test_settings_that_cannot_be(tmp_path, mpi_program, mpi):
    program = mpi_program("one_message")
    preload = {"LD_PRELOAD": str(launch.required_preload_library())}
    run = [BIN / "mpress", "run", "--trace", tmp_path / "none" / "t.json", "--", program]
    assert "--trace" in execute(run).stderr
    for value, expected in [("many", "MPRESS_TRACE='many'"), ("10", "MPRESS_RECORD")]:
        command = launch.rank_command(
            [str(program)], {**preload, "MPRESS_TRACE": value}, 1, [str(mpi.mpiexec)]
        )
        done = execute(command, mpi.env)
        assert done.status != 0
        assert expected in done.stderr


def kept(rank, slots, *, capacity=4, noted=None, host="host", opened=0, wall=0):
    header = timeline._HEADER.pack(
        b"mpressT1", timeline._HEADER.size, timeline._SLOT.size, capacity,
        len(slots) if noted is None else noted, opened, wall, rank, 100 + rank, host.encode(),
    )  # fmt: skip
    return header + b"".join(timeline._SLOT.pack(*slot) for slot in slots)


def slot(number, begin, end, kind, *, message=timeline.NO_NUMBER, peer=1, chunk=timeline.NO_NUMBER):
    return (number, begin, end, 1000, 100, message, chunk, peer, -1, 0, kind, 1, 1, 0)


def test_what_is_torn_or_overwritten_is_lost(tmp_path):
    # Of seven events, four are kept; one of these was being written, one is of the round before.
    path = tmp_path / "timeline-0.100.rec"
    slots = [slot(5, 50, 51, 1), slot(0, 60, 61, 1), slot(3, 30, 31, 1), slot(4, 40, 41, 1)]
    path.write_bytes(kept(0, slots, noted=7))
    kept_events, lost = timeline.read_events(path)
    assert [event.begin for event in kept_events] == [40, 50]
    assert lost == 5
    path.write_bytes(kept(0, [slot(1, 0, 1, 99)]))
    with pytest.raises(RecordError):
        timeline.read_events(path)
    (tmp_path / "timeline-1.101.rec").write_bytes(b"mpressT1")
    assert timeline.write(tmp_path, tmp_path / "trace.json", {}) == 0
    other = json.loads((tmp_path / "trace.json").read_text())["otherData"]
    assert other["ranks"] == [] and len(other["unreadable_timelines"]) == 2


def test_hosts_are_aligned_by_their_wall_clocks(tmp_path):
    sent = slot(1, 1_000, 3_000, 1, message=7, peer=1)
    received = slot(1, 900_500, 903_500, 2, message=7, peer=0)
    (tmp_path / "timeline-0.100.rec").write_bytes(kept(0, [sent], host="a", opened=0, wall=10**18))
    (tmp_path / "timeline-1.101.rec").write_bytes(
        kept(1, [received], host="b", opened=900_000, wall=10**18)
    )
    timeline.write(tmp_path, tmp_path / "trace.json", {})
    trace = json.loads((tmp_path / "trace.json").read_text())
    [sent], [received] = events(trace, "send"), events(trace, "receive")
    assert (sent["ts"], sent["dur"]) == (1.0, 2.0)
    assert (received["ts"], received["dur"]) == (0.5, 3.0)
    assert "wall clocks" in trace["otherData"]["clock"]
    flows = [event for event in trace["traceEvents"] if event["ph"] in "sf"]
    assert [(flow["pid"], flow["ts"]) for flow in flows] == [(0, 1.0), (1, 3.499)]
