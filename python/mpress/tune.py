"""What messages and codecs cost on this machine, and the profile that tells it to the policy.

docs/tuning.md describes the file; src/policy/profile.cpp reads it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from mpress import _core, cuda_bench, fields, links, measure
from mpress.p2p import jobs

FIRST_LINE = "mpress profile 1"
SPECS = {"mpc": "mpc", "zfp": "zfp:8", "szp": "szp:rel=1e-3"}
"""What each codec is measured with, on turbulence: neither the fastest data nor the slowest."""
LINK_SIZES = [4 << 10 << 2 * k for k in range(8)]  # 4 KiB to 64 MiB
PEER_SIZES = [16 << 10 << 2 * k for k in range(8)]  # 16 KiB to 256 MiB
CODEC_SIZES = [64 << 10 << 2 * k for k in range(6)]  # 64 KiB to 64 MiB
HOST_CODEC_SIZES = CODEC_SIZES[:4]
CHUNKS = [512 << 10, 1 << 20, 2 << 20, 4 << 20]
CHUNKED_SIZES = [4 << 20, 16 << 20, 32 << 20]
"""Long messages have longer chunks (src/mpi/messages/pipelined_send.cpp), so that at any one
size two of CHUNKS come to the same."""
DEFAULT_CHUNK = _core.parse_bytes(
    next(default for name, _, default in _core.knobs() if name == "MPRESS_CHUNK")
)
CHUNK_GAIN = 0.03
"""How much less time another chunk must take to replace the default."""
CROWD = 4
"""Ranks of which each has several partners."""
CROWDED_BYTES = 1 << 20
"""Of a block to each of them."""
CROWDING = 0.05
"""How much longer blocks must take all at once than one after another for a profile to say so."""

Curve = dict[int, float]
"""Seconds by bytes."""

ChunkTimes = dict[tuple[str, int], Curve]
"""By spec and bytes of a message: seconds by the bytes of a chunk."""


class ProfileError(ValueError):
    """A file is no profile; the message says where and why."""


@dataclass
class Link:
    """Raw messages between two ranks, in memory of one kind. Those from GPU to GPU (`linked`), and
    by host memory that both GPUs have pinned (`pinned`), tell nothing of MPI. `chunk`: the best
    bytes of a chunk; 0: not measured. `crowding`: how much longer a rank's messages take to several
    others at once than one after another; 0: not measured."""

    peer: str
    place: str
    mpi: str
    transport: str
    message: Curve
    chunk: int = 0
    crowding: float = 0.0

    @property
    def key(self) -> tuple[str, ...]:
        return (self.peer, self.place, self.mpi, self.transport)


@dataclass
class Profile:
    """`codecs[name, place]` is (encode, decode)."""

    hardware: str
    date: str = ""
    codecs: dict[tuple[str, str], tuple[Curve, Curve]] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)

    def add(self, link: Link) -> None:
        """In place of what was known of this link."""
        others = [known for known in self.links if known.key != link.key]
        self.links = sorted([*others, link], key=lambda link: link.key)

    def text(self) -> str:
        lines = [FIRST_LINE, f"hardware = {self.hardware}", f"date = {self.date}"]
        for (name, place), (encode, decode) in sorted(self.codecs.items()):
            lines += ["", f"[codec {name}, {place}]"]
            lines += [f"encode = {_points(encode)}", f"decode = {_points(decode)}"]
        for link in self.links:
            lines += ["", f"[link {link.peer}, {link.place}]"]
            lines += [f"mpi = {link.mpi}"] if link.mpi else []
            lines += [f"transport = {link.transport}"] if link.transport else []
            lines += [f"message = {_points(link.message)}"]
            lines += [f"chunk = {link.chunk}"] if link.chunk else []
            lines += [f"crowding = {link.crowding:.3g}"] if link.crowding else []
        return "\n".join(lines) + "\n"


def parse(text: str) -> Profile:
    """The profile of a file's text. Raises ProfileError."""
    try:
        found = _core.read_profile(text)
    except ValueError as error:
        raise ProfileError(str(error)) from None
    profile = Profile(found["hardware"], found["date"], found["codecs"])
    for link in found["links"]:
        profile.add(Link(*link))
    return profile


def _points(curve: Curve) -> str:
    return " ".join(f"{nbytes}:{seconds:.4g}" for nbytes, seconds in sorted(curve.items()))


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def host_codec(name: str, sizes: Iterable[int] = HOST_CODEC_SIZES) -> tuple[Curve, Curve]:
    """What encoding and decoding take on a core of the host."""
    encode, decode = {}, {}
    for nbytes in sizes:
        array = _turbulence(nbytes)
        calls = measure.timed_calls(array, SPECS[name], np.empty_like(array))
        for curve, call in zip((encode, decode), calls, strict=True):
            repeat = max(3, min(50, (8 << 20) // nbytes))
            curve[nbytes] = _median_seconds(call, repeat)
    return encode, decode


def device_codec(name: str, sizes: Iterable[int] = CODEC_SIZES) -> tuple[Curve, Curve]:
    """The same on the first GPU, until the host sees that it is done."""
    encode, decode = {}, {}
    for nbytes in sizes:
        times = cuda_bench.seconds(_turbulence(nbytes), SPECS[name], 25)
        encode[nbytes], decode[nbytes] = times["encode_to_host"], times["decode_to_host"]
    return encode, decode


def _plain_environment(link: str) -> dict[str, str | None]:
    """Nothing of mpress's is set but the link, and what says which GPUs there are; the profile may
    be the file to be written."""
    kept = ("MPRESS_GPU", "MPRESS_GPU_AWARE")
    ours = [name for name in os.environ if name.startswith("MPRESS_") and name not in kept]
    return dict.fromkeys(ours) | {
        "MPRESS_PROFILE": "off",
        "MPRESS_LEARN": "off",
        "MPRESS_LINK": link,
    }


def measure_link(
    place: str,
    *,
    transport: str = "mpi",
    mpiexec: str | None = None,
    sizes: Sequence[int] = LINK_SIZES,
    seconds: float = 0.3,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> tuple[Link, dict[str, Any]]:
    """Raw messages between two ranks; also what the ranks tell of themselves (jobs.run). Raises
    jobs.JobError, also where the ranks run on different hardware."""
    result = _measured(_raw(sizes), place, "mpi", transport, mpiexec, seconds, program)
    curve = {row["bytes"]: statistics.median(row["seconds"]) for row in result["rows"]}
    settings = result["transport_settings"]
    if place == "device" and result["gpu_aware"]:
        settings = f"{settings} gpu-aware".strip()
    return Link(result["peer"], place, result["mpi"], settings, curve), result


def measure_own_link(
    name: str,
    *,
    transport: str = "mpi",
    mpiexec: str | None = None,
    sizes: Sequence[int] = PEER_SIZES,
    seconds: float = 0.3,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> Link | None:
    """Raw messages between GPUs by a link of mpress's own; None where two ranks' messages do not go
    that way. Raises jobs.JobError, as measure_link."""
    result = _measured(_raw(sizes), "device", name, transport, mpiexec, seconds, program)
    curve = {
        row["bytes"]: row["seconds"]
        for row in jobs.summary(result, "latency", "forced")
        if jobs.link_seen([row], name)["seen"] == name
    }
    return Link(links.BY_NAME[name].profile, "device", "", "", curve) if curve else None


def measure_chunks(
    *,
    transport: str = "mpi",
    mpiexec: str | None = None,
    sizes: Sequence[int] = CHUNKED_SIZES,
    seconds: float = 0.3,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> ChunkTimes:
    """Messages in device memory that go by MPI, raw and with `auto`'s codec, in chunks of several
    sizes by turns; nothing of those that never go in chunks. Raises jobs.JobError, as
    measure_link."""
    paths = [f"{spec}{jobs.CHUNKED}{chunk}" for spec in ("none", SPECS["mpc"]) for chunk in CHUNKS]
    cases = [
        {"data": "turb", "bytes": nbytes, "paths": paths, "warmup": 2, "check": False}
        for nbytes in sizes
    ]
    result = _measured(
        cases, "device", "mpi", transport, mpiexec, seconds, program,
        {"MPRESS_CHUNK": str(min(CHUNKS))},  # the fewest bytes that the paths may ask for
    )  # fmt: skip
    times: ChunkTimes = {}
    chunked = set()
    for row in result["rows"]:
        spec, chunk = row["path"].split(jobs.CHUNKED)
        message = spec, row["bytes"]
        times.setdefault(message, {})[int(chunk)] = statistics.median(row["seconds"])
        if row["chunked"]:
            chunked.add(message)
    return {message: times[message] for message in times if message in chunked}


def over_default(times: ChunkTimes) -> Curve:
    """By the bytes of a chunk: time over that with the default ones, the geometric mean of all
    messages."""
    return {
        chunk: statistics.geometric_mean(by[chunk] / by[DEFAULT_CHUNK] for by in times.values())
        for chunk in CHUNKS
    }


def best_chunk(times: ChunkTimes) -> int:
    """What a profile should say; 0 where nothing was measured."""
    if not times:
        return 0
    over = over_default(times)
    best = min(CHUNKS, key=over.__getitem__)
    return best if over[best] < 1 - CHUNK_GAIN else DEFAULT_CHUNK


def measure_crowding(
    place: str,
    ranks: int,
    *,
    link: str = "mpi",
    transport: str = "mpi",
    mpiexec: str | None = None,
    seconds: float = 0.3,
    program: Sequence[str] = ("-m", "mpress.p2p.worker"),
) -> float:
    """Raw blocks from each rank to each, all at once, over the same in rounds of one partner each;
    1 where that is about as fast. Raises jobs.JobError, as measure_link."""
    at_once, by_turns = (f"{form}{jobs.FORM}none" for form in jobs.FORMS)
    case = {"data": "turb", "bytes": CROWDED_BYTES, "paths": [at_once, by_turns], "check": False}
    result = _measured([case], place, link, transport, mpiexec, seconds, program,
                       benchmark="alltoall", ranks=ranks)  # fmt: skip
    seconds_of = {row["path"]: statistics.median(row["seconds"]) for row in result["rows"]}
    crowding = seconds_of[at_once] / seconds_of[by_turns]
    return crowding if crowding > 1 + CROWDING else 1.0


def _raw(sizes: Iterable[int]) -> list[dict[str, Any]]:
    """A plan's cases (jobs.run)."""
    return [{"data": "turb", "bytes": n, "paths": ["none"], "check": False} for n in sizes]


def _measured(
    cases: list[dict[str, Any]],
    place: str,
    link: str,
    transport: str,
    mpiexec: str | None,
    seconds: float,
    program: Sequence[str],
    settings: Mapping[str, str] | None = None,
    *,
    benchmark: str = "latency",
    ranks: int = 2,
) -> dict[str, Any]:
    """What the ranks measured (jobs.run), with some settings in their environment."""
    with tempfile.TemporaryDirectory(prefix="mpress-tune-") as folder:
        values = Path(folder) / "turb.npy"
        np.save(values, _turbulence(1 << 20))
        plan = {
            "benchmark": benchmark, "ranks": ranks, "from": place, "to": place, "window": 1,
            "warmup": 10, "repeat": 25, "seconds": seconds, "files": {"turb": str(values)},
            "cases": cases,
        }  # fmt: skip
        result = jobs.run(
            plan, "forced", transport=transport, mpiexec=mpiexec, program=program,
            environment=_plain_environment(link) | (settings or {}),
        )  # fmt: skip
    hardware = {_core.hardware(), *result["hardware"]}
    if len(hardware) > 1:
        raise jobs.JobError(
            "this process and the ranks run on different hardware, and a profile is of one: "
            + " and ".join(sorted(hardware))
        )
    return result


def break_even(profile: Profile, link: Link, name: str, ratio: float, chunk: int) -> int | None:
    """The smallest power of two in bytes from which on the policy compresses, up to 256 MiB; or
    None. `chunk`: the bytes of one where the profile does not tell."""
    text = profile.text()
    found = None
    for exponent in range(28, 11, -1):
        times = _core.predict(text, link.mpi, link.transport, link.peer, link.place, SPECS[name],
                              float(1 << exponent), ratio, chunk)  # fmt: skip
        if times is None or times[1] >= times[0]:
            break
        found = 1 << exponent
    return found


def _turbulence(nbytes: int) -> np.ndarray:
    edge = int(np.ceil(np.cbrt(min(nbytes, 4 << 20) / 4)))
    return np.resize(fields.make("turb", (edge, edge, edge), "f32").reshape(-1), nbytes // 4)


def _median_seconds(call: Any, repeat: int) -> float:
    call()
    return statistics.median(measure.best_seconds(call, 1) for _ in range(repeat))
