"""mpress run: start a program, or an MPI job of it, with compressed messages."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from mpress import _core, trace
from mpress.cli import launch, mpis
from mpress.cli.errors import UserError, checked_bytes, checked_output, checked_spec

_EVENTS = "256K"  # that a rank keeps for its timeline
_GRACE_SECONDS = 10  # for the launcher to notice that a rank has died

# Where launchers name the job; the same as in src/mpi/job/job_start.cpp.
_JOB_NAMES = ("PMIX_NAMESPACE", "PMI_JOBID", "FLUX_JOB_ID", "PALS_APID", "SLURM_STEP_ID")


def run(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="What each rank executes.")
    ],
    codec: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="none, auto, mpc[:dim=N], zfp:RATE, szp:abs=E, szp:rel=E (,mode=fast|dense). "
            "Without it MPRESS_CODEC holds, else auto, which is lossless.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compress even where it does not pay.")
    ] = False,
    threshold: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Smallest message to consider: 65536, 64K, 1M, 0."),
    ] = None,
    measure_error: Annotated[
        bool,
        typer.Option(
            "--measure-error", help="Measure what codecs without a bound lose, for the report."
        ),
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write what happened to this file.")
    ] = None,
    trace_file: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE.json",
            help="Write a timeline of messages and chunks, for Perfetto or chrome://tracing.",
        ),
    ] = None,
    link_rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Simulate a link of this rate: 1Gbit, 100Mbit."),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("-n", metavar="N", min=1, help="Ranks; without it, no launcher is used."),
    ] = None,
    mpiexec: Annotated[
        str | None, typer.Option(metavar="CMD", help="The launcher, with its own options.")
    ] = None,
) -> None:
    """Run an MPI program with its messages compressed.

    The exit status is the program's.
    """
    library = launch.required_preload_library()
    executable = launch.find_program(program[0])
    launcher = launch.find_mpiexec(mpiexec, program) if ranks is not None else []
    environment = {"LD_PRELOAD": _preload(library), "MPRESS_JOB": os.urandom(16).hex()}
    if codec is not None:
        environment["MPRESS_CODEC"] = checked_spec("--codec", codec)
    if force:
        environment["MPRESS_FORCE"] = "1"
    if measure_error:
        environment["MPRESS_MEASURE_ERROR"] = "1"
    if threshold is not None:
        environment["MPRESS_THRESHOLD"] = str(checked_bytes("--threshold", threshold))
    if link_rate is not None:
        environment["MPRESS_LINK_RATE"] = _bytes_a_second(link_rate)
    if report is not None:
        checked_output("--report", report)
        environment["MPRESS_REPORT"] = str(report.absolute())
    if trace_file is not None:
        checked_output("--trace", trace_file)
        chosen = os.environ.get("MPRESS_TRACE", "")
        if report is not None and report.absolute() == trace_file.absolute():
            raise UserError(f"--trace {trace_file}: expected another file than that of --report")
        environment["MPRESS_TRACE"] = _EVENTS if chosen in ("", "0") else chosen

    if ranks is None and _is_rank():
        _become(executable, program, environment, {"--report": report, "--trace": trace_file})
    with _record_directory({"--report": report, "--trace": trace_file}) as records:
        environment["MPRESS_RECORD"] = str(records)
        status = _execute(launch.rank_command(program, environment, ranks, launcher), records)
        if ranks is not None and ranks > 1:
            _check_ranks(records, ranks, launcher[0])
        if status == 0 and (ranks is not None or report is not None):
            _check_records(records, program)
        if report is not None:
            _write_report(report, records, program, ranks, status)
        if trace_file is not None:
            _write_timeline(trace_file, records, program, status)
    raise typer.Exit(status)


def _preload(library: Path) -> str:
    """Tools that are preloaded already come first, so that they see the program's own calls; but
    an MPI that is must not come before mpress."""
    preloads = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    place = next((i for i, path in enumerate(preloads) if _is_mpi(path)), len(preloads))
    return ":".join([*preloads[:place], str(library), *preloads[place:]])


def _is_mpi(path: str) -> bool:
    try:
        return mpis.library(Path(path)) is not None
    except (OSError, ValueError):
        return False


def _is_rank() -> bool:
    """Whether a launcher has started this very process as a rank: `mpiexec ... mpress run ...`."""
    return any(name in os.environ for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"))


def _become(
    executable: str,
    program: list[str],
    environment: dict[str, str],
    outputs: dict[str, Path | None],
) -> NoReturn:
    """Turns this rank into the program. Ranks must find the same job without each other's help."""
    for option, path in outputs.items():
        if path is not None:
            raise UserError(f"{option}: for a job of one file, write `mpress run -n N -- PROGRAM`")
    if "MPRESS_JOB" in os.environ or any(name in os.environ for name in _JOB_NAMES):
        del environment["MPRESS_JOB"]  # the one that is set, or the launcher's, is every rank's
    else:
        raise UserError(
            "the launcher does not tell its ranks what job they are: write `mpress run -n N -- "
            "PROGRAM`, or set MPRESS_JOB to the same 32 hexadecimal digits for all ranks"
        )
    try:
        os.execve(executable, program, {**os.environ, **environment})
    except OSError as error:
        raise UserError(f"PROGRAM {program[0]!r} cannot be started: {error.strerror}") from None


def _check_ranks(records: Path, ranks: int, launcher: str) -> None:
    """Says so where each rank took itself for a job of one: another MPI's launcher does that."""
    seen = trace.read_records(records)[0]
    if len(seen) == ranks and all(record.size == 1 for record in seen):
        print(
            f"mpress: {launcher} started {ranks} programs that each ran alone: it is not the "
            f"launcher of their MPI ({seen[0].mpi}); name that with --mpiexec",
            file=sys.stderr,
        )


def _check_records(records: Path, program: list[str]) -> None:
    """Says so where mpress was loaded for nothing.

    Not for a job that failed: it may never have started, and its launcher has said why.
    """
    if os.environ.get("MPRESS_DISABLE", "0") == "1" or any(records.glob("rank-*.rec")):
        return
    print(
        f"mpress: {program[0]} left no statistics: none of its MPI calls came by mpress (it makes "
        "none, or looks them up in the MPI library itself: docs/semantics.md), or its ranks run "
        f"where {records} is not visible",
        file=sys.stderr,
    )


def _bytes_a_second(text: str) -> str:
    try:
        return format(_core.parse_rate(text), ".17g")
    except ValueError as error:
        raise UserError(f"--link-rate {error}") from None


@contextmanager
def _record_directory(outputs: dict[str, Path | None]) -> Iterator[Path]:
    """Where ranks keep their records: beside the first of the files that are asked for, which all
    hosts of a job should see."""
    asked_for = [(option, file) for option, file in outputs.items() if file is not None]
    if not asked_for:
        with tempfile.TemporaryDirectory(prefix="mpress-", ignore_cleanup_errors=True) as path:
            yield Path(path)
        return
    option, file = asked_for[0]
    path = file.absolute().with_name(file.name + ".ranks")
    _remove_records(path)
    try:
        path.mkdir()
    except OSError as error:
        raise UserError(f"{option} {file}: {path} cannot be made: {error.strerror}") from None
    yield path
    _remove_records(path)


def _remove_records(path: Path) -> None:
    """Removes the records of a run, and the directory unless the user keeps something there."""
    for record in [*path.glob("rank-*.rec"), *path.glob("timeline-*.rec")]:
        record.unlink(missing_ok=True)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()


def _execute(command: list[str], records: Path) -> int:
    """The exit status of the launcher.

    A launcher may wait forever for ranks that wait for one that has aborted. So whoever has been
    dead for a while without reaching MPI_Finalize ends the job.
    """
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        raise UserError(f"{command[0]} cannot be started: {error.strerror}") from None
    previous = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        dead_since: float | None = None
        while True:
            try:
                status = process.wait(timeout=1)
                break
            except KeyboardInterrupt:
                continue  # the terminal sent it to the program too, which decides
            except subprocess.TimeoutExpired:
                dead = trace.dead_ranks(records)
                dead_since = (dead_since or time.monotonic()) if dead else None
                if dead_since is None or time.monotonic() - dead_since < _GRACE_SECONDS:
                    continue
                print(
                    f"mpress: rank {dead[0]} ended without MPI_Finalize and the launcher still "
                    f"waits after {_GRACE_SECONDS} s: ending the job",
                    file=sys.stderr,
                )
                status = _end(process)
                break
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 128 - status if status < 0 else status


def _end(process: subprocess.Popen[bytes]) -> int:
    """Ends a launcher that hangs; the status tells of a failure whatever it says."""
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return process.returncode or 1


def _write_report(
    report: Path, records: Path, program: list[str], ranks: int | None, status: int
) -> None:
    try:
        merged: dict[str, Any] = trace.merge(records)
    except (OSError, ValueError) as error:
        print(f"mpress: --report {report} was not written: {error}", file=sys.stderr)
        return
    merged["command"] = program
    merged["ranks_asked_for"] = ranks
    merged["exit_status"] = status
    merged["date"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    merged["version"] = _core.build_info()["version"]
    try:
        report.write_text(json.dumps(merged, indent=1) + "\n")
    except OSError as error:
        print(f"mpress: --report {report} was not written: {error.strerror}", file=sys.stderr)


def _write_timeline(file: Path, records: Path, program: list[str], status: int) -> None:
    from mpress import timeline

    about = {
        "command": program,
        "exit_status": status,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "version": _core.build_info()["version"],
    }
    try:
        lost = timeline.write(records, file, about)
    except (OSError, ValueError) as error:
        print(f"mpress: --trace {file} was not written: {error}", file=sys.stderr)
        return
    if lost > 0:
        print(
            f"mpress: --trace {file}: the {lost} oldest events were not kept; MPRESS_TRACE sets "
            "how many each rank keeps",
            file=sys.stderr,
        )
