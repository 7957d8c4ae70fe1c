"""mpress report: what a run's messages did."""

import shlex
from collections import defaultdict
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpress import trace
from mpress.cli.console import make_console, make_table, print_facts, print_table
from mpress.cli.errors import UserError, checked_picture, load_plots, read_json
from mpress.cli.ways import WAYS

# What is printed of a report.
_KEYS = ("left_raw", "mpi", "ranks", "run_seconds", "settings", "simulated_link")
_TOTALS = ("compressed_messages", "decode_seconds", "encode_seconds", "errors", "messages", "ratio",
           "raw_bytes", "wait_seconds", "wire_bytes")  # fmt: skip


def report(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="Written by `mpress run`.")],
    by_peer: Annotated[
        bool, typer.Option("--peers", help="A line a pair of ranks instead of a sum over them.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw report.png and report.svg there.")
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw a PNG picture.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw an SVG picture.")] = None,
) -> None:
    """Print tables of what was compressed, what it cost and why the rest was left alone."""
    document = _load(file)
    pictures = []
    for option, path in (("--png", png), ("--svg", svg)):
        if path is not None:
            checked_picture(option, path)
            pictures.append(path)
    if plot is not None:
        try:
            plot.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--plot {plot}: cannot be made: {error.strerror}") from None
        for name in ("report.png", "report.svg"):
            checked_picture("--plot", plot / name)
            pictures.append(plot / name)
    console = make_console()
    _print_summary(console, document)
    collective = [row for row in document["rows"] if row.get("algorithm")]
    others = [row for row in document["rows"] if not row.get("algorithm")]
    if others:
        print_table(console, _operations(others, by_peer))
    if collective:
        print_table(console, _collectives(collective))
    if document.get("left_to_mpi"):
        print_table(console, _left_to_mpi(document["left_to_mpi"]))
    if document.get("accuracy"):
        print_table(console, _accuracy(document["accuracy"]))
    if document["left_raw"]:
        print_table(console, _sums("messages left raw", document["left_raw"]))
    if document.get("ways"):
        print_table(console, _ways(document["ways"]))
    if document.get("detours"):
        title = "messages in memory of GPUs that took a longer way"
        print_table(console, _sums(title, document["detours"]))
    if document.get("said"):
        console.print("ranks said", style="italic")
        for line in document["said"]:
            console.print(f"  rank {line['rank']}: {line['text']}")
    if pictures:
        load_plots().draw_report(document, pictures)
        for path in pictures:
            console.print(f"drew {path}")


def _load(file: Path) -> dict[str, Any]:
    document = read_json(f"FILE.json: {file}", file)
    if not isinstance(document, dict) or "totals" not in document or "rows" not in document:
        raise UserError(f"FILE.json: {file} is not a report of `mpress run`")
    if document.get("format") != trace.REPORT_FORMAT:
        raise UserError(
            f"FILE.json: {file} has report format {document.get('format')}, "
            f"expected {trace.REPORT_FORMAT}"
        )
    lacking = [name for name in _KEYS if name not in document]
    lacking += [f"totals.{name}" for name in _TOTALS if name not in document["totals"]]
    if lacking:
        raise UserError(f"FILE.json: {file} is not a whole report: it lacks {', '.join(lacking)}")
    return document


def _print_summary(console: Console, document: dict[str, Any]) -> None:
    totals = document["totals"]
    ranks = document["ranks"]
    facts: dict[str, str | Text] = {}
    if document.get("command"):
        facts["program"] = shlex.join(document["command"])
    facts["MPI"] = document["mpi"] or "-"
    facts["settings"] = document["settings"] or "-"
    if document.get("profile"):
        facts["costs from"] = document["profile"]
    hosts = {rank["host"] for rank in ranks}
    facts["ranks"] = f"{len(ranks)} on {len(hosts)} host{'s' if len(hosts) != 1 else ''}"
    if document["run_seconds"] is not None:
        facts["run time"] = f"{document['run_seconds']:.3f} s"
    if document.get("exit_status"):
        facts["exit status"] = Text(f"{document['exit_status']}", "red")
    unfinished = [str(rank["rank"]) for rank in ranks if not rank["finished"]]
    if unfinished:
        facts["not finalized"] = Text(f"ranks {', '.join(unfinished)}", "red")
    if document["simulated_link"]:
        facts["link"] = "simulated (paced)"
    facts["messages sent"] = (
        f"{totals['messages']}, of which {totals['compressed_messages']} compressed"
    )
    facts["bytes"] = (
        f"{_megabytes(totals['raw_bytes'])} MB raw, {_megabytes(totals['wire_bytes'])} MB on the "
        f"wire, ratio {totals['ratio']:.2f}"
    )
    facts["seconds, all ranks"] = (
        f"{totals['encode_seconds']:.3f} encoding, {totals['decode_seconds']:.3f} decoding, "
        f"{totals['wait_seconds']:.3f} waiting"
    )
    if totals["errors"]:
        facts["corrupt frames"] = Text(f"{totals['errors']}", "red")
    if document.get("unreadable_records"):
        facts["not counted"] = Text("; ".join(document["unreadable_records"]), "red")
    print_facts(console, "run", facts)


def _operations(rows: list[dict[str, Any]], by_peer: bool) -> Table:
    sums: dict[tuple, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    counted = ("messages", "raw_bytes", "wire_bytes", "encode_seconds", "decode_seconds",
               "wait_seconds")  # fmt: skip
    for row in rows:
        pair = (row["rank"], row["peer"]) if by_peer else ()
        key = (row["operation"], *pair, row["codec"])
        for name in counted:
            sums[key][name] += row[name]
    table = make_table(
        "operations",
        "operation",
        (*(("rank", "peer") if by_peer else ()), "codec", "messages", "raw MB", "wire MB", "ratio",
         "encode s", "decode s", "wait s"),
    )  # fmt: skip
    for key in sorted(sums, key=str):
        row = sums[key]
        table.add_row(
            *("any" if part is None else str(part) for part in key),
            f"{row['messages']:.0f}",
            *_bytes_and_codec(row),
            f"{row['wait_seconds']:.3f}",
        )
    return table


def _collectives(rows: list[dict[str, Any]]) -> Table:
    """Calls that mpress served: what became of their blocks, as received, by algorithm, codec and
    way."""
    calls: dict[tuple[str, str], dict[str, float]] = {}
    blocks: dict[tuple[str, str, str, str], dict[str, float]] = {}
    counted = ("messages", "raw_bytes", "wire_bytes", "encode_seconds", "decode_seconds")
    for row in rows:
        served = (row["operation"], row["algorithm"])
        called = calls.setdefault(served, {"messages": 0, "wait_seconds": 0})
        if row["direction"] == "complete":
            for name in called:
                called[name] += row[name]
            continue
        key = (*served, row["codec"], WAYS[row["way"]])
        sums = blocks.setdefault(key, dict.fromkeys(counted, 0))
        came = row["direction"] == "receive"
        for name in counted:
            sums[name] += row[name] if came or name.endswith("seconds") else 0
    table = make_table(
        "collective calls",
        "operation",
        ("algorithm", "calls", "seconds", "codec", "way", "blocks", "raw MB", "wire MB", "ratio",
         "encode s", "decode s"),
    )  # fmt: skip
    for served in sorted(calls):
        lines = sorted(
            key for key, sums in blocks.items() if key[:2] == served and any(sums.values())
        )
        for i, key in enumerate(lines or [(*served, "-", "-")]):
            sums = blocks.get(key, dict.fromkeys(counted, 0))
            called = calls[served]
            table.add_row(
                *(served if i == 0 else ("", "")),
                f"{called['messages']:.0f}" if i == 0 else "",
                f"{called['wait_seconds']:.3f}" if i == 0 else "",
                *key[2:],
                f"{sums['messages']:.0f}",
                *_bytes_and_codec(sums),
            )
    return table


def _left_to_mpi(rows: list[dict[str, Any]]) -> Table:
    table = make_table("collective calls that MPI served", "operation", ("calls", "reason"))
    for row in rows:
        table.add_row(row["operation"], str(row["calls"]), row["reason"])
    return table


def _accuracy(rows: list[dict[str, Any]]) -> Table:
    table = make_table("absolute errors", "operation", ("algorithm", "codec", "bound", "measured"))
    for row in rows:
        bound = row["error_bound"]
        if bound is not None:
            text = _rounded_up(bound) if bound else "lossless"
        else:
            text = "left to GPUs" if row["codec"] == "szp" else "none: fixed rate"
        measured = row["measured_error"]
        table.add_row(
            row["operation"], row["algorithm"] or "-", row["codec"] or "-", text,
            "-" if measured is None else _rounded_up(measured),
        )  # fmt: skip
    return table


def _rounded_up(error: float) -> str:
    """Four digits, rounded up."""
    digits = Context(prec=4, rounding=ROUND_CEILING).create_decimal(repr(error))
    return f"{float(digits):.4g}"


def _bytes_and_codec(sums: dict[str, float]) -> list[str]:
    """Cells of what became of some messages."""
    return [
        _megabytes(sums["raw_bytes"]),
        _megabytes(sums["wire_bytes"]),
        f"{sums['raw_bytes'] / sums['wire_bytes']:.2f}" if sums["wire_bytes"] else "-",
        f"{sums['encode_seconds']:.3f}",
        f"{sums['decode_seconds']:.3f}",
    ]


def _ways(ways: list[dict[str, Any]]) -> Table:
    """A rate is that of one message at a time: many that are under way together share a link."""
    table = make_table(
        "ways of messages, as received", "way", ("from", "memory", "data", "messages", "MB", "GB/s")
    )
    for row in ways:
        table.add_row(
            WAYS[row["way"]],
            row["peer"],
            "GPU" if row["memory"] == "device" else "host",
            "compressed" if row["compressed"] else "raw",
            str(row["messages"]),
            _megabytes(row["raw_bytes"]),
            f"{row['raw_bytes'] / row['seconds'] / 1e9:.2f}" if row["seconds"] else "-",
        )
    return table


def _sums(title: str, sums: dict[str, dict[str, int]]) -> Table:
    table = make_table(title, "reason", ("messages", "MB"))
    for reason, row in sorted(sums.items(), key=lambda item: -item[1]["bytes"]):
        table.add_row(reason, str(row["messages"]), _megabytes(row["bytes"]))
    return table


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.3f}" if count < 1e8 else f"{count / 1e6:.1f}"
