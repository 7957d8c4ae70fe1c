"""mpress simulate --op --beside: the model beside what `mpress bench` measured."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from mpress import _core, collective_model
from mpress.cli.console import make_table, size_text
from mpress.cli.errors import UserError, read_json
from mpress.collective_model import Call, Codec, Network, Row
from mpress.p2p.jobs import FORM

_DOCUMENT = "was not written by mpress bench"


def load(file: Path, op: str) -> dict[str, Any]:
    """A document of `mpress bench OP --json`, or those rows of one of bench/collectives.py or
    bench/reductions.py."""
    document = read_json(f"--beside {file}:", file)
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise UserError(f"--beside {file}: {_DOCUMENT}")
    if document.get("kind") in ("collectives", "reductions"):
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


def fit(measured: dict[str, Any], call: Call) -> Network:
    """With the latency and the rate by which raw rows take what was measured: the least sum of what
    the model is off by, over what was measured, so that a row that it does not tell changes
    little."""
    codec = Codec("mpc", 1.0, {0: 0.0}, {0: 0.0})
    latency, rate = 1e-5, 1e9
    weights: np.ndarray | float = 1.0
    for _ in range(20):  # the fastest algorithms follow from what is fitted, and the weights
        rows = _rows(measured, call, Network(rate, latency), codec, "none")
        if not rows:
            raise UserError("--beside: the file has no forced rows of none: expected --link")
        taken = np.array([row["measured_seconds"] for row in rows])
        parts = np.array([[row["latency_seconds"] / latency, row["link_seconds"] * rate]
                          for row in rows]) / taken[:, None]  # fmt: skip
        wanted = weights * np.ones(len(rows))
        weighted = parts * wanted[:, None]
        found = np.linalg.lstsq(weighted, wanted, rcond=None)[0]
        if found[0] <= 0 or found[1] <= 0:  # all of it is the one, or the other
            alone = weighted.T @ wanted / np.sum(weighted**2, axis=0)
            found = np.array([1e-12, alone[1]]) if found[0] <= 0 else np.array([alone[0], 1e-18])
        latency, rate = float(found[0]), float(1 / found[1])
        weights = 1 / np.sqrt(np.maximum(0.01, np.abs(parts @ found - 1)))
    latency = latency if latency > 1e-9 else 0.0
    return Network(rate, latency, rate, latency)


def compare(measured: dict[str, Any], call: Call, network: Network, codec: Codec) -> list[Row]:
    """A row for each measured path that the model has: raw messages, and those of the same codec,
    with the ratio that was seen. What mpress chose is beside the fastest algorithm that it has."""
    wanted = _core.describe(codec.spec)["text"]
    found = _rows(measured, call, network, codec, "none", wanted)
    if not found:
        raise UserError(f"--beside: the file has no forced rows of none, nor of {wanted}")
    return found


def _rows(
    measured: dict[str, Any], call: Call, network: Network, codec: Codec, *specs: str
) -> list[Row]:
    found = []
    for row in measured["rows"]:
        form, _, spec = row["path"].rpartition(FORM)
        if row.get("job", "forced") != "forced" or spec not in specs:
            continue
        seen = row.get("ratio") or 1.0
        # That has the finer grid in it already.
        own = replace(call, nbytes=row["bytes"], filled=0.0)
        used = replace(codec, ratio=max(1.0, seen))
        predicted = collective_model.predict(own, network, used, measured["ranks"])
        rows = {(one["algorithm"], one["way"]): one for one in predicted}
        # A codec in each message: in every hop, or once where a form forwards nothing.
        way = "raw" if spec == "none" else "compressed"
        if way == "compressed" and (form, "hops") in rows:
            way = "hops"
        best = min(
            (one for (algorithm, its), one in rows.items()
             if its == way and _is_of(form or row.get("algorithm", ""), algorithm, call.op)),
            key=lambda one: one["seconds"], default=None,
        )  # fmt: skip
        if best is None:
            continue
        found.append({
            "path": row["path"], "data": row.get("data", ""), "bytes": row["bytes"],
            "ranks": measured["ranks"], "ratio": seen, "measured_seconds": row["seconds"],
            "model_seconds": best["seconds"],
            **{name: best[name] for name in ("algorithm", "latency_seconds", "link_seconds",
                                             "encode_seconds", "decode_seconds")},
        })  # fmt: skip
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
