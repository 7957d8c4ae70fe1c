"""The part of docs/dev/results-codecs.md about one core of the host."""

from collections.abc import Callable, Iterable
from typing import Any

from tables import GENERATED, table

Row = dict[str, Any]

HEAD = """\
# Results: codecs

{generated}
## One core

{cpu}, {isa}; {date}, commit {commit}; {compiler}, {versions}. `make bench` measures this.

Speeds are GB of the field (10^9 bytes) a second, the best of the repetitions, into memory that
exists already. memcpy copies the field in the same run, by turns with the codecs. libzfp is
zfpy's, serial, on the same elements in one dimension. "kept?" tells whether the bound held for
every element, or every bit came back; zfp promises neither.

The fields (`mpress.fields`): `wave`, pressure of a 3-D acoustic wave, a quarter of the domain
filled; `turb`, isotropic turbulence; `rand`, Gaussian noise, the hardest case.

What one core should reach, and the worst case measured:
"""


def gigabytes(row: Row, name: str) -> float:
    return row[name] / 1e9


def factor(row: Row, direction: str) -> float:
    return row[f"{direction}_rate"] / row[f"libzfp_{direction}_rate"]


def measurements(rows: list[Row]) -> str:
    """A table for each field and element type."""
    parts = []
    for field, kind in dict.fromkeys((row["field"], row["type"]) for row in rows):
        own = [row for row in rows if (row["field"], row["type"]) == (field, kind)]
        ceiling = max(gigabytes(row, "memcpy_rate") for row in own)
        shape = " x ".join(str(n) for n in own[0]["shape"])
        parts.append(f"### {field}, {kind}, {shape}: memcpy {ceiling:.1f} GB/s\n")
        parts.append(table(
            ("codec", "ratio", "encode", "decode", "of memcpy", "over libzfp", "max error",
             "PSNR dB", "kept?"),
            (line(row, ceiling) for row in own),
        ))  # fmt: skip
    return "\n".join(parts)


def line(row: Row, ceiling: float) -> Iterable[str]:
    encode, decode = gigabytes(row, "encode_rate"), gigabytes(row, "decode_rate")
    yield f"`{row['spec']}`"
    yield f"{row['ratio']:.2f}"
    yield f"{encode:.2f}"
    yield f"{decode:.2f}"
    yield f"{encode / ceiling:.0%} / {decode / ceiling:.0%}"
    if "libzfp_encode_rate" in row:
        yield f"{factor(row, 'encode'):.1f}x / {factor(row, 'decode'):.1f}x"
    else:
        yield "-"
    yield "0" if row["identical"] else f"{row['max_error']:.3g}"
    yield "exact" if row["identical"] else "-" if row["psnr"] is None else f"{row['psnr']:.1f}"
    yield {True: "yes", False: "**no**", None: "-"}[row["keeps_promise"]]


def goal(
    name: str, rows: list[Row], value: Callable[[Row], float], least: float, unit: str
) -> list[str] | None:
    """The worst of the rows against what is wanted."""
    if not rows:
        return None
    worst = min(rows, key=value)
    reached = value(worst)
    where = f"`{worst['spec']}` on {worst['field']} {worst['type']}"
    verdict = "reached" if reached >= least else "**missed**"
    return [name, f"{least:g}{unit}", f"{reached:.2f}{unit}", where, verdict]


def slower(row: Row) -> float:
    return min(gigabytes(row, "encode_rate"), gigabytes(row, "decode_rate"))


def goals(rows: list[Row]) -> str:
    def of(prefix: str, *fields: str, spec: str = "", kind: str = "") -> list[Row]:
        return [
            row
            for row in rows
            if row["spec"].startswith(prefix)
            and (not fields or row["field"] in fields)
            and (not spec or row["spec"] == spec)
            and (not kind or row["type"] == kind)
        ]

    def at_one(field: str, spec: str) -> list[Row]:
        return of("szp", field, spec=spec, kind="f32")

    def ratio(row: Row) -> float:
        return row["ratio"]

    zfp = [row for row in of("zfp:") if "libzfp_encode_rate" in row]
    fast, dense = "szp:rel=1e-3", "szp:rel=1e-3,mode=dense"
    lines = [
        goal("zfp: encode, over libzfp", zfp, lambda r: factor(r, "encode"), 3, "x"),
        goal("zfp: decode, over libzfp", zfp, lambda r: factor(r, "decode"), 3, "x"),
        goal("szp: both ways, smooth data, GB/s", of("szp:", "wave", "turb"), slower, 2, ""),
        goal("mpc: both ways, GB/s", of("mpc"), slower, 1.5, ""),
        goal("szp fast 1e-3: ratio, wave f32", at_one("wave", fast), ratio, 22, ""),
        goal("szp fast 1e-3: ratio, turb f32", at_one("turb", fast), ratio, 5.7, ""),
        goal("szp fast 1e-3: ratio, rand f32", at_one("rand", fast), ratio, 3.7, ""),
        goal("szp dense 1e-3: ratio, wave f32", at_one("wave", dense), ratio, 24, ""),
        goal("szp dense 1e-3: ratio, turb f32", at_one("turb", dense), ratio, 6.0, ""),
        goal("mpc: ratio, wave f32", of("mpc", "wave", kind="f32"), ratio, 1.9, ""),
        goal("mpc: ratio, turb f32", of("mpc", "turb", kind="f32"), ratio, 1.22, ""),
    ]  # fmt: skip
    return table(("goal", "wanted", "worst seen", "where", ""), [one for one in lines if one])


def section(document: Row) -> str:
    rows = document["rows"]
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    facts = {key: document[key] for key in ("cpu", "isa", "date", "commit", "compiler")}
    head = HEAD.format(**facts, versions=versions, generated=GENERATED)
    return "\n".join([head, goals(rows), measurements(rows)])
