"""mpress simulate --op: what a collective call would take, by algorithm and number of ranks."""

import json
import math
from pathlib import Path
from typing import Any

from rich.table import Table

from mpress import _core, codec_curves, collective_model, tune
from mpress.cli import simulate_beside
from mpress.cli.console import make_console, make_table, print_table, size_text
from mpress.cli.errors import UserError, checked_bytes, checked_spec, load_plots
from mpress.collective_model import Call, Codec, Network, Row

_RANKS = [2, 4, 8, 16, 64, 256, 1024, 4096]
_BITS = {"f32": 32, "f64": 64}
_HEADINGS = {"raw": "raw ms", "compressed": "compressed ms", "hops": "a codec a hop ms"}


def simulate(
    op: str, ranks: list[int] | None, latency: float | None, options: dict[str, Any],
    json_file: Path | None, plot: Path | None,
) -> None:  # fmt: skip
    """Prices the schedules of a call. `options` are those of the command line, by name."""
    if op not in collective_model.OPS:
        raise UserError(f"--op {op!r}: expected one of {', '.join(collective_model.OPS)}")
    beside = options["--beside"]
    measured = None if beside is None else simulate_beside.load(beside, op)
    if measured is None:
        for option in ("--bytes", "--link"):
            if options[option] is None:
                raise UserError(f"--op {op}: expected {option}")
    elif options["--link"] is None and options["--hosts-of"] not in (None, 1):
        raise UserError("--hosts-of: expected --link, which is fitted to raw rows without it")
    call = _call(op, options)
    is_fitted = options["--link"] is None
    if is_fitted:
        assert measured is not None
        if latency is not None:
            raise UserError("--latency: expected --link, too; both are fitted to raw rows else")
        network = simulate_beside.fit(measured, call)
    else:
        network = _network(1e-5 if latency is None else latency, options)
    codec, whose = _codec(options, call.bits, measured)
    document: dict[str, Any] = {
        "format": 1, "kind": "collective-projection", "projection": True, "op": op,
        "bytes": call.nbytes, "type": options["--type"] or "f32", "spec": codec.spec,
        "ratio": codec.ratio, "codecs_of": whose, "filled": call.filled,
        "chunk": int(codec.chunk) if math.isfinite(codec.chunk) else 0,
        "network": {
            "fitted": is_fitted, "rate": network.rate, "latency": network.latency,
            "ranks_a_host": network.members,
            "rate_within": network.rate_within, "latency_within": network.latency_within,
        },
        "assumptions": _assumptions(op, codec),
    }  # fmt: skip
    console = make_console()
    for line in _heading(document):
        console.print(line)
    if measured is not None:
        document["beside"] = simulate_beside.compare(measured, call, network, codec)
        print_table(console, simulate_beside.table(document["beside"]))
    if call.nbytes > 0:
        rows: list[Row] = []
        for count in ranks or _RANKS:
            rows += collective_model.predict(call, network, codec, count)
        document |= {"rows": rows, "fastest": collective_model.fastest(rows)}
        print_table(console, _table(rows))
        print_table(console, _fastest_table(document["fastest"]))
    if json_file is not None:
        json_file.write_text(json.dumps(document, indent=1) + "\n")
    if plot is not None and call.nbytes > 0:
        load_plots().draw_collectives(document, plot)


def _call(op: str, options: dict[str, Any]) -> Call:
    element_type = options["--type"] or "f32"
    if element_type not in _BITS:
        raise UserError(f"--type {element_type!r}: expected f32 or f64")
    filled = 1.0 if options["--filled"] is None else options["--filled"]
    if not 0 <= filled <= 1:
        raise UserError(f"--filled {filled:g}: expected a share, from 0 to 1")
    nbytes = 0
    if options["--bytes"] is not None:
        nbytes = checked_bytes("--bytes", options["--bytes"])
        if nbytes == 0:
            raise UserError("--bytes 0: expected 1 or more")
    return Call(op, nbytes, _BITS[element_type], filled)


def _network(latency: float, options: dict[str, Any]) -> Network:
    members = 1 if options["--hosts-of"] is None else options["--hosts-of"]
    if members < 1:
        raise UserError(f"--hosts-of {members}: expected 1 or more ranks on a host")
    if members == 1:
        for option in ("--link-within", "--latency-within"):
            if options[option] is not None:
                raise UserError(f"{option}: expected --hosts-of with 2 or more ranks on a host")
    within = options["--latency-within"]
    for option, value in (("--latency", latency), ("--latency-within", within)):
        if value is not None and not math.isfinite(value):
            raise UserError(f"{option} {value:g}: expected seconds, 0 or more")
    return Network(
        _rate("--link", options["--link"]), latency,
        _rate("--link-within", options["--link-within"] or "1600Gbit"),
        1e-5 if within is None else within, members,
    )  # fmt: skip


def _rate(option: str, text: str) -> float:
    try:
        return _core.parse_rate(text)
    except ValueError as error:
        raise UserError(f"{option} {error}") from None


def _codec(
    options: dict[str, Any], bits: int, measured: dict[str, Any] | None
) -> tuple[Codec, str]:
    """The codec, and whose times it has."""
    spec = checked_spec("--spec", options["--spec"] or "szp:rel=1e-3")
    facts = _core.describe(spec)
    if facts["codec"] in ("none", "auto"):
        raise UserError(f"--spec {spec}: expected mpc, zfp or szp")
    ratio = options["--ratio"]
    if facts["codec"] == "zfp":
        if ratio is not None:
            raise UserError(f"--ratio {ratio:g}: {spec} has the ratio of its rate")
        ratio = bits / _core.effective_rate(facts["value"], "f32" if bits == 32 else "f64")
    elif ratio is None and (measured is None or options["--bytes"] is not None):
        raise UserError(f"--spec {spec}: expected --ratio, which its data decide")
    ratio = 1.0 if ratio is None else ratio
    if not (math.isfinite(ratio) and ratio >= 1):
        raise UserError(f"--ratio {ratio:g}: expected 1 or more")
    curves, whose, overlaps = _curves(options, facts["codec"], spec)
    chunk = math.inf
    if options["--chunk"] is not None:
        if not overlaps:
            raise UserError("--chunk: nothing overlaps in memory of the host, which --profile has")
        chunk = checked_bytes("--chunk", options["--chunk"]) or math.inf
    elif overlaps:
        chunk = 4 << 20
    return Codec(spec, ratio, *curves, chunk), whose


def _curves(
    options: dict[str, Any], name: str, spec: str
) -> tuple[tuple[tune.Curve, tune.Curve], str, bool]:
    """Encoding and decoding; whose; do they overlap with the link?"""
    gpu, file = options["--gpu"], options["--profile"]
    if file is None:
        gpu = (gpu or "h200").lower()
        if gpu not in codec_curves.GPUS:
            raise UserError(f"--gpu {gpu!r}: expected one of {', '.join(codec_curves.GPUS)}")
        return codec_curves.of_gpu(gpu, spec), gpu, True
    if gpu is not None:
        raise UserError("--gpu and --profile: expected one of them")
    try:
        profile = tune.parse(file.read_text())
    except OSError as error:
        raise UserError(f"--profile {file}: cannot be read: {error.strerror}") from None
    except (tune.ProfileError, UnicodeDecodeError) as error:
        raise UserError(f"--profile {file}: {error}") from None
    for place in ("device", "host"):
        if (name, place) in profile.codecs:
            whose = f"{profile.hardware}, {place}"
            return profile.codecs[name, place], whose, place == "device"
    raise UserError(f"--profile {file}: knows no times of {name}")


def _assumptions(op: str, codec: Codec) -> list[str]:
    lines = [
        "a round takes the latency, and a tenth more for each further partner, and its bytes at "
        "the link's rate; ranks go round by round, and no link is shared but that of a host",
        "compressed: encoded once, by origins, decoded once, by who wants it; a codec a hop: in "
        "every round. Encoder, link and decoder each work on another chunk: the slowest counts in "
        "full, the others for one chunk"
        if math.isfinite(codec.chunk)
        else "compressed: encoded once, by origins, decoded once, by who wants it; a codec a hop: "
        "in every round. In one piece: nothing overlaps",
    ]
    if op in collective_model.REDUCTIONS:
        lines.append("additions take no time beside decoding")
        if codec.adds_quanta:
            lines.append(
                "two shots keep the bound on the result: on the grid of N contributions values "
                f"take log2 N bits more, those of sums {collective_model.SUM_BITS:g} log2 N; with "
                "a codec a hop the ratio stays, and nothing bounds the error"
            )
    return lines


def _heading(document: dict[str, Any]) -> list[str]:
    network = document["network"]
    fitted = " (fitted to raw rows)" if network["fitted"] else ""
    size, ratio = "as measured", "as seen"
    if document["bytes"]:
        size, ratio = size_text(document["bytes"]), f"{document['ratio']:.3g}"
    lines = [
        f"PREDICTION by a model, nothing was measured: {document['op']}, {size} bytes of "
        f"{document['type']}; {network['rate'] / 1e9:.4g} GB/s a host, "
        f"{network['latency'] * 1e6:.4g} us a round{fitted}; {document['spec']}, ratio "
        f"{ratio}, times of {document['codecs_of']}, chunks of "
        f"{size_text(document['chunk']) if document['chunk'] else 'all'}"
    ]
    if network["ranks_a_host"] > 1:
        lines.append(
            f"{network['ranks_a_host']} ranks a host: {network['rate_within'] / 1e9:.4g} GB/s a "
            f"rank, {network['latency_within'] * 1e6:g} us a round within it"
        )
    return lines + [f"- {line}" for line in document["assumptions"]]


def _table(rows: list[Row]) -> Table:
    ways = [way for way in collective_model.WAYS if any(row["way"] == way for row in rows)]
    table = make_table(
        "predicted, by algorithm", "ranks  algorithm",
        (*(_HEADINGS[way] for way in ways), "rounds", "ratio"),
    )  # fmt: skip
    keys = dict.fromkeys((row["ranks"], row["algorithm"]) for row in rows)
    for ranks, algorithm in keys:
        own = {r["way"]: r for r in rows if (r["ranks"], r["algorithm"]) == (ranks, algorithm)}
        shown = own.get("compressed", own.get("hops", own["raw"]))
        table.add_row(
            f"{ranks:<5}  {algorithm}",
            *(_milliseconds(own[way]["seconds"]) if way in own else "-" for way in ways),
            str(shown["rounds"]), f"{shown['ratio']:.2f}",
        )  # fmt: skip
    return table


def _fastest_table(rows: list[Row]) -> Table:
    table = make_table(
        "predicted, the fastest", "ranks",
        ("raw", "raw ms", "with a codec", "its ms", "raw over it"),
    )  # fmt: skip
    for row in rows:
        way = row["compressed"] + (", a codec a hop" if row["way"] == "hops" else "")
        table.add_row(
            str(row["ranks"]), row["raw"], _milliseconds(row["raw_seconds"]), way,
            _milliseconds(row["compressed_seconds"]), f"{row['speedup']:.2f}",
        )  # fmt: skip
    return table


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4g}" if seconds < 1e3 else f"{1e3 * seconds:.0f}"
