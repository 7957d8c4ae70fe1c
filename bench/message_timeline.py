"""What happens when in one message between two GPUs: `mpress run --trace` of messages of 256 MB.

timelines() runs this file as the program, two ranks with a GPU each, once for each codec, and takes
the message whose time is the median.
"""

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NBYTES = 256 << 20
_MESSAGES = 15
_WARMUP = 6


def timelines(specs: Sequence[str], mpiexec: str | None = None) -> list[dict[str, Any]]:
    """For each spec, `none` included: {"path", "data", "bytes", "events"}."""
    found = []
    for spec in specs:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            launcher = ["--mpiexec", mpiexec] if mpiexec else []
            command = [
                sys.executable, "-m", "mpress", "run", "-n", "2", *launcher, "--codec", spec,
                "--force", "--trace", str(trace), "--", sys.executable, __file__,
            ]  # fmt: skip
            subprocess.run(command, check=True)
            events = typical_message(json.loads(trace.read_text())["traceEvents"])
        found.append({"path": spec, "data": "wave", "bytes": NBYTES, "events": events})
    return found


def typical_message(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the message from rank 0 to rank 1 with the median time: {"rank", "what", "begin",
    "end"}, in microseconds after the call of MPI_Send, in the order of their ends."""
    messages = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and "message" in event["args"]:
            messages[event["args"]["message"]].append(event)

    def times(message: Sequence[dict[str, Any]]) -> tuple[float, float] | None:
        begins = [e["ts"] for e in message if e["name"] == "MPI_Send to 1"]
        ends = [e["ts"] + e["dur"] for e in message if e["name"] == "MPI_Recv from 0"]
        return (begins[0], ends[0]) if begins and ends else None

    spans = [(span, number) for number, message in messages.items() if (span := times(message))]
    last = sorted(spans)[-_MESSAGES:]  # by when they began
    timed = sorted((end - begin, begin, number) for (begin, end), number in last)
    _, begin, number = timed[len(timed) // 2]
    return sorted(
        (
            {
                "rank": event["pid"], "what": event["name"],
                "begin": round(event["ts"] - begin, 1),
                "end": round(event["ts"] + event["dur"] - begin, 1),
            }
            for event in messages[number]
        ),
        key=lambda event: (event["end"], event["begin"]),
    )  # fmt: skip


def main() -> None:
    import cupy
    from mpi4py import MPI

    from mpress.p2p import data, memory

    comm = MPI.COMM_WORLD
    memory.use_device(comm.rank % memory.devices())
    send, receive = memory.CudaBuffer(NBYTES), memory.CudaBuffer(NBYTES)
    send.write(cupy.asnumpy(data.make("wave", NBYTES, "f32", cupy)))
    outgoing, incoming = (
        [MPI.memory.fromaddress(buffer.address, NBYTES), NBYTES // 4, MPI.FLOAT]
        for buffer in (send, receive)
    )
    for _ in range(_WARMUP + _MESSAGES):
        comm.Barrier()
        if comm.rank == 0:
            comm.Send(outgoing, 1)
        else:
            comm.Recv(incoming, 0)


if __name__ == "__main__":
    main()
