"""mpress tune: measures this machine for the policy."""

import os
import string
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from mpress import _core, cuda_bench, links, tune
from mpress.cli.console import make_console, make_table, print_table, size_text
from mpress.cli.errors import UserError, checked_seconds, checked_transport
from mpress.p2p import jobs

_RATIOS = (1.2, 1.5, 2.0, 4.0, 8.0, 32.0)


def tune_machine(
    transport: Annotated[
        list[str] | None,
        typer.Option(metavar="mpi|shm|tcp", help="Of the host's MPI; mpi: its choice. Repeatable."),
    ] = None,
    mpiexec: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="The launcher, with its own options, such as two hosts."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The profile; default: MPRESS_PROFILE.")
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="S", help="For each size of message.")] = 0.3,
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--ranks",
            metavar="N",
            min=2,
            help="Of the exchange of all with all, which collective calls are judged by; fewer "
            "than 4: it is left out. Default: 4, where the host has as many cores; 2 with "
            "--mpiexec.",
        ),
    ] = None,
) -> None:
    """Measure messages between two ranks and the codecs; write the profile that the policy reads.

    What a profile of this hardware already tells of other MPIs, transports and hosts is kept.
    """
    checked_seconds("--seconds", seconds)
    transports = [checked_transport(name) for name in transport or ["mpi"]]
    path = _path(output)
    profile = _known(path)
    console = make_console()
    on_gpus = cuda_bench.available() and os.environ.get("MPRESS_GPU", "cuda") != "off"
    _make_room(path)
    for name in tune.SPECS:
        profile.codecs[name, "host"] = tune.host_codec(name)
        if on_gpus:
            profile.codecs[name, "device"] = tune.device_codec(name)
    if ranks is None:
        ranks = tune.CROWD if mpiexec is None and (os.cpu_count() or 1) >= tune.CROWD else 2
    links = []
    chunks: dict[tuple[str, ...], tune.ChunkTimes] = {}
    for name in transports:
        for place in ("host", "device") if on_gpus else ("host",):
            try:
                link, _ = tune.measure_link(place, transport=name, mpiexec=mpiexec, seconds=seconds)
            except jobs.JobError as error:
                if place == "host":
                    raise UserError(str(error)) from None
                print(f"mpress: messages in device memory were not measured: {error}",
                      file=sys.stderr)  # fmt: skip
                continue
            if place == "device":
                chunks[link.key] = measured_chunks(link, name, mpiexec, seconds)
            add_crowding(link, ranks, name, mpiexec, seconds)
            profile.add(link)
            links.append(link)
    if on_gpus:
        links += measured_own_links(profile, transports[0], mpiexec, seconds, ranks)
    profile.date = tune.today()
    _print(console, profile, links, chunks)
    try:
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(profile.text())
        partial.replace(path)
    except OSError as error:
        raise UserError(f"the profile {path} cannot be written: {error.strerror}") from None
    console.print(f"wrote {path}")


def measured_chunks(
    link: tune.Link, transport: str, mpiexec: str | None, seconds: float
) -> tune.ChunkTimes:
    """Notes the best chunk of a link's messages; returns what its choice is made by."""
    try:
        times = tune.measure_chunks(transport=transport, mpiexec=mpiexec, seconds=seconds)
    except jobs.JobError as error:
        print(f"mpress: chunks in device memory were not measured: {error}", file=sys.stderr)
        return {}
    link.chunk = tune.best_chunk(times)
    return times


def add_crowding(
    link: tune.Link,
    ranks: int,
    transport: str,
    mpiexec: str | None,
    seconds: float,
    own: str = "mpi",
) -> None:
    """Notes what a link's messages take when all ranks exchange at once, where there are enough.
    `own`: MPRESS_LINK of one of mpress's own."""
    if ranks < tune.CROWD:
        return
    try:
        link.crowding = tune.measure_crowding(
            link.place, ranks, link=own, transport=transport, mpiexec=mpiexec, seconds=seconds
        )
    except jobs.JobError as error:
        print(f"mpress: an exchange of {ranks} ranks was not measured: {error}", file=sys.stderr)


def measured_own_links(
    profile: tune.Profile, transport: str, mpiexec: str | None, seconds: float, ranks: int = 2
) -> list[tune.Link]:
    """Adds what messages between GPUs take by the first of mpress's links that they can take; where
    there is none, says so."""
    for name in links.BY_NAME:
        try:
            link = tune.measure_own_link(
                name, transport=transport, mpiexec=mpiexec, seconds=seconds
            )
        except jobs.JobError as error:
            print(f"mpress: messages between GPUs were not measured: {error}", file=sys.stderr)
            return []
        if link is not None:
            add_crowding(link, ranks, transport, mpiexec, seconds, name)
            profile.add(link)
            return [link]
    print("mpress: messages between the GPUs of these two ranks go by MPI alone", file=sys.stderr)
    return []


def _make_room(path: Path) -> None:
    """Finds out before anything is measured whether the profile can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(f"the profile {path} cannot be written: {error.strerror}") from None


def _path(output: Path | None) -> Path:
    if output is not None:
        return output
    named = os.environ.get("MPRESS_PROFILE", "")
    text = named if named not in ("", "off") else _core.default_profile_path()
    if not text:
        raise UserError("there is no home directory for the profile: give --output FILE")
    return Path(text)


def _known(path: Path) -> tune.Profile:
    """What the file tells so far, if it is of this hardware."""
    fresh = tune.Profile(_core.hardware())
    try:
        known = tune.parse(path.read_text())
    except FileNotFoundError:
        return fresh
    except OSError as error:
        raise UserError(f"the profile {path} cannot be read: {error.strerror}") from None
    except (tune.ProfileError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a profile of mpress: {error}") from None
    return known if known.hardware == fresh.hardware else fresh


def _print(
    console: Console,
    profile: tune.Profile,
    links: list[tune.Link],
    chunks: dict[tuple[str, ...], tune.ChunkTimes],
) -> None:
    console.print(profile.hardware)
    for place in ("host", "device"):
        if any(where == place for _, where in profile.codecs):
            print_table(console, _codecs(profile, place))
    for letter, link in zip(_letters(links), links, strict=True):
        console.print(f"{letter}: {_name(link)}")
    print_table(console, _messages(links))
    for letter, link in zip(_letters(links), links, strict=True):
        if link.crowding:
            console.print(
                f"{letter}: blocks of {size_text(tune.CROWDED_BYTES)} to all others at once take "
                f"{link.crowding:.2f} of what they take one after another"
            )
    for letter, link in zip(_letters(links), links, strict=True):
        if chunks.get(link.key):
            print_table(console, _chunks(letter, link, chunks[link.key]))
    print_table(console, _break_even(profile, links))


def _codecs(profile: tune.Profile, place: str) -> Table:
    names = [name for name in tune.SPECS if (name, place) in profile.codecs]
    table = make_table(
        f"codecs on the {place}, microseconds to encode and to decode",
        "size",
        [tune.SPECS[name] for name in names],
    )
    for nbytes in sorted({n for name in names for n in profile.codecs[name, place][0]}):
        cells = []
        for name in names:
            times = [curve.get(nbytes) for curve in profile.codecs[name, place]]
            cells.append(" ".join("-" if t is None else f"{t * 1e6:8.1f}" for t in times))
        table.add_row(size_text(nbytes), *cells)
    return table


def _messages(links: list[tune.Link]) -> Table:
    table = make_table("raw messages, microseconds and GB/s", "size", _letters(links))
    for nbytes in sorted({nbytes for link in links for nbytes in link.message}):
        times = [link.message.get(nbytes) for link in links]
        cells = ["-" if t is None else f"{t * 1e6:.1f} {nbytes / t / 1e9:6.2f}" for t in times]
        table.add_row(size_text(nbytes), *cells)
    return table


def _chunks(letter: str, link: tune.Link, times: tune.ChunkTimes) -> Table:
    default = size_text(tune.DEFAULT_CHUNK)
    table = make_table(
        f"{letter} by the size of a chunk, over {default}",
        "codec, size",
        [size_text(chunk) for chunk in tune.CHUNKS],
    )
    for (spec, nbytes), by in times.items():
        cells = [f"{by[chunk] / by[tune.DEFAULT_CHUNK]:.3f}" for chunk in tune.CHUNKS]
        table.add_row(f"{spec}, {size_text(nbytes)}", *cells)
    over = tune.over_default(times)
    table.add_row("mean", *(f"{over[chunk]:.3f}" for chunk in tune.CHUNKS))
    table.caption = f"the profile says {size_text(link.chunk)}" + (
        f": no other takes {tune.CHUNK_GAIN:.0%} less" if link.chunk == tune.DEFAULT_CHUNK else ""
    )
    return table


def _break_even(profile: tune.Profile, links: list[tune.Link]) -> Table:
    table = make_table(
        "compressed messages are faster from this size on, up to 256M",
        "messages, codec",
        [f"ratio {ratio:g}" for ratio in _RATIOS],
    )
    for letter, link in zip(_letters(links), links, strict=True):
        for name in tune.SPECS:
            sizes = [
                tune.break_even(profile, link, name, ratio, tune.DEFAULT_CHUNK) for ratio in _RATIOS
            ]
            cells = ["never" if size is None else size_text(size) for size in sizes]
            table.add_row(f"{letter}, {name}", *cells)
    return table


def _letters(links: list[tune.Link]) -> list[str]:
    return list(string.ascii_uppercase[: len(links)])


def _name(link: tune.Link) -> str:
    if link.peer in links.BY_PROFILE:
        return f"device memory, {links.BY_PROFILE[link.peer].phrase}"
    settings = f", {link.transport}" if link.transport else ""
    return f"{link.place} memory, {link.peer}, {link.mpi}{settings}"
