"""The topic of docs/performance.md about codecs."""

from report_cuda import find
from report_host import factor
from report_p2p import size
from tables import table
from user_values import Cell, Row, Topic, commits, extremes, over

SPECS = ("mpc", "szp:rel=1e-3", "szp:rel=1e-4", "zfp:8", "zfp:16")
FIELDS = ("wave", "turb", "rand")
PROMISES = {"mpc": "every bit", "szp": "error within the bound", "zfp": "size; no bound"}
# (ours, nvCOMP's that does the same)
NVCOMP = (
    ("mpc", "bitcomp"),
    ("mpc", "ANS"),
    ("szp:rel=1e-3", "bitcomp lossy 1e-3"),
)

TEXT = """\
## Which codec?

- No bit may change: `mpc`, which is what `auto` takes.
- An error is allowed: `szp`, which keeps your bound for every finite element.
- The size must be known beforehand, or other tools shall read the data: `zfp`, which keeps no
  bound.

Ratios of f32 fields, and GB of elements a second, of the slowest field:
"""
PEERS = """\
`wave` is smooth and a quarter full, `turb` is turbulence, `rand` Gaussian noise. On the GPU,
`szp:rel` was timed with its range known; finding it adds {range_us:.0f} us to encoding {megabytes}
MB.

Beside nvCOMP on the GPU, f32: bytes, time to encode and time to decode, over nvCOMP's. Bitcomp
lossy keeps the same bound, with the largest step that is a power of two.
"""
LIBZFP = """\
Beside libzfp, whose stream `zfp` writes, on one core: time over libzfp's, the worst of all fields,
f32 and f64.
"""
SHORT = """\
A GPU takes some microseconds for a call of any size. Time on the device for fields of turbulence,
encode / decode, over nvCOMP's:
"""
SHORT_SIZES = (64 << 10, 1 << 20, 16 << 20, 256 << 20)
SOURCE = """\
One core: {cpu}, {isa}, {compiler}; {host_date}, commit {host_commit}. GPU: {gpu}, CUDA runtime
{runtime}; {date}, commit {commit}; fields of {megabytes} MB. [All rows, f64, and short calls on
GPUs](dev/results-codecs.md).
"""


def slowest(rows: list[Row]) -> str:
    return " / ".join(
        number(min(row[f"{way}_rate"] for row in rows) / 1e9) for way in ("encode", "decode")
    )


def number(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def topic(host: Row, cuda: Row) -> Topic:
    lines = []
    for spec in SPECS:
        own = [find(host["rows"], spec, field, "f32") for field in FIELDS]
        gpu = [find(cuda["rows"], spec, field, "f32") for field in FIELDS]
        lines.append([
            f"`{spec}`", PROMISES[spec.partition(":")[0]],
            " / ".join(f"{row['ratio']:.2f}" for row in own), slowest(own), slowest(gpu),
        ])  # fmt: skip
    beside, cells = nvcomp(cuda)
    short, short_cells = sweep(cuda)
    zfp, zfp_cells = libzfp(host)
    first = cuda["rows"][0]
    text = "\n".join([
        TEXT,
        table(("codec", "keeps", "ratio: wave / turb / rand", "one core: encode / decode",
               "GPU: encode / decode"), lines, words=2),
        PEERS.format(megabytes=first["bytes"] // 10**6, range_us=1e6 * max(
            row.get("range_seconds", 0) for row in cuda["rows"] if row["type"] == "f32"
        )),
        table(("bytes, encode, decode over nvCOMP's", *FIELDS), beside),
        SHORT,
        table(("time over nvCOMP's", *map(size, SHORT_SIZES)), short),
        LIBZFP, table(("time over libzfp's", "encode", "decode"), zfp),
        SOURCE.format(
            cpu=host["cpu"], isa=host["isa"], compiler=host["compiler"], host_date=host["date"],
            host_commit=commits(host), gpu=cuda["gpu"], runtime=cuda["runtime"], date=cuda["date"],
            commit=commits(cuda), megabytes=first["bytes"] // 10**6,
        ),
    ])  # fmt: skip
    return Topic(text, [
        extremes("Codec on a GPU over nvCOMP's, bytes or time", cells + short_cells),
        extremes("`zfp` on a core over libzfp, time", zfp_cells),
    ])  # fmt: skip


def nvcomp(document: Row) -> tuple[list[list[str]], list[Cell]]:
    lines, cells = [], []
    for spec, name in NVCOMP:
        line = [f"`{spec}` over {name}"]
        for field in FIELDS:
            own = find(document["rows"], spec, field, "f32")
            peer = next(
                row
                for row in document["peers"]
                if (row["codec"], row["field"], row["type"]) == (name, field, "f32")
            )
            shares = [peer[key] / own[key] for key in ("ratio", "encode_rate", "decode_rate")]
            line.append(", ".join(map(over, shares)))
            cells += [
                Cell(share, f"{what}, `{spec}` over {name}, {field}")
                for share, what in zip(shares, ("bytes", "encode", "decode"), strict=True)
            ]
        lines.append(line)
    return lines, cells


def sweep(document: Row) -> tuple[list[list[str]], list[Cell]]:
    """Times by size; ANS was not measured so."""
    found = {(row["codec"], row["bytes"]): row for row in document["sweep"]}
    lines, cells = [], []
    for spec, name in NVCOMP:
        if (f"nvCOMP {name}", SHORT_SIZES[0]) not in found:
            continue
        line = [f"`{spec}` over {name}"]
        for nbytes in SHORT_SIZES:
            own, peer = found[spec, nbytes], found[f"nvCOMP {name}", nbytes]
            shares = [own[way] / peer[way] for way in ("encode", "decode")]
            line.append(" / ".join(map(over, shares)))
            cells += [
                Cell(share, f"{way}, `{spec}` over {name}, {size(nbytes)}")
                for share, way in zip(shares, ("encode", "decode"), strict=True)
            ]
        lines.append(line)
    return lines, cells


def libzfp(document: Row) -> tuple[list[list[str]], list[Cell]]:
    lines, cells = [], []
    rows = [row for row in document["rows"] if "libzfp_encode_rate" in row]
    for spec in dict.fromkeys(row["spec"] for row in rows):
        own = [row for row in rows if row["spec"] == spec]
        worst = [max(1 / factor(row, way) for row in own) for way in ("encode", "decode")]
        lines.append([f"`{spec}`", *map(over, worst)])
        cells += [
            Cell(1 / factor(row, way), f"{way}, `{spec}`, {row['field']} {row['type']}")
            for row in own
            for way in ("encode", "decode")
        ]
    return lines, cells
