"""mpress simulate --op --beside: the model beside what `mpress bench` measured."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from mpress import _core, collective_model
from mpress.cli.console import make_table, size_text
from mpress.cli.errors import UserError, read_json
from mpress.collective_model import Call, Codec, Network, Row
from mpress.p2p.jobs import FORM

_DOCUMENT = "was not written by mpress bench"


def load(file: Path, op: str) -> dict[str, Any]:
    """A document of `mpress bench OP --json`, or those rows of one of bench/collectives.py."""
    document = read_json(f"--beside {file}:", file)
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise UserError(f"--beside {file}: {_DOCUMENT}")
    if document.get("kind") == "collectives":
        own = [row for row in document["rows"] if row["op"] == op]
        document = document | {"rows": own, "benchmark": op if own else "other calls"}
    if document.get("benchmark") != op:
        raise UserError(
            f"--beside {file}: expected one of mpress bench {op}, not of "
            f"{document.get('benchmark', 'something else')}"
        )
    if not isinstance(document.get("ranks"), int) or document["ranks"] < 2:
        raise UserError(f"--beside {file}: {_DOCUMENT}")
    return document


def compare(
    measured: dict[str, Any], call: Call, network: Network, codec: Codec
) -> list[Row]:  # fmt: skip
    """A row for each measured path that the model has: raw messages, and those of the same codec,
    with the ratio that was seen. What mpress chose is beside the fastest algorithm that it has."""
    found = []
    wanted = _core.describe(codec.spec)["text"]
    for row in measured["rows"]:
        if row.get("job", "forced") != "forced":
            continue
        form, _, spec = row["path"].rpartition(FORM)
        if spec not in ("none", wanted):
            continue
        way = "raw" if spec == "none" else ("hops" if form else "compressed")
        own = replace(call, nbytes=row["bytes"])
        seen = row.get("ratio") or 1.0
        # The ratio that was seen has the finer grid in it already.
        used = replace(codec, ratio=max(1.0, seen))
        if way == "compressed":
            own = replace(own, filled=0.0)
        rows = [
            one for one in collective_model.predict(own, network, used, measured["ranks"])
            if one["way"] == way and _is_of(form, one["algorithm"], call.op)
        ]  # fmt: skip
        if form and way == "hops" and not rows:  # nothing is forwarded: one hop
            rows = [
                one for one in collective_model.predict(own, network, used, measured["ranks"])
                if one["way"] == "compressed" and one["algorithm"] == form
            ]  # fmt: skip
        if not rows:
            continue
        best = min(rows, key=lambda one: one["seconds"])
        found.append({
            "path": row["path"], "data": row.get("data", ""), "bytes": row["bytes"],
            "ranks": measured["ranks"], "algorithm": best["algorithm"], "ratio": seen,
            "measured_seconds": row["seconds"], "model_seconds": best["seconds"],
        })  # fmt: skip
    if not found:
        raise UserError(f"--beside: the file has no forced rows of none, nor of {wanted}")
    return found


def _is_of(form: str, algorithm: str, op: str) -> bool:
    if form:
        return algorithm == form
    return op not in collective_model.REDUCTIONS or algorithm == "two-shot"


def table(rows: list[Row]) -> Table:
    made = make_table("the model beside what was measured", "ranks  bytes  path",
                      ("ratio", "measured ms", "model ms", "model over measured"))  # fmt: skip
    for row in rows:
        over = row["model_seconds"] / row["measured_seconds"]
        made.add_row(
            f"{row['ranks']:<5}  {size_text(row['bytes']):<5}  {row['path']} ({row['algorithm']})",
            f"{row['ratio']:.2f}", f"{1e3 * row['measured_seconds']:.4g}",
            f"{1e3 * row['model_seconds']:.4g}", f"{over:.2f}",
        )  # fmt: skip
    ratios = [abs(math.log(row["model_seconds"] / row["measured_seconds"])) for row in rows]
    near = sum(one <= math.log(1.2) for one in ratios)
    made.caption = f"{near} of {len(rows)} within 20 %"
    return made
