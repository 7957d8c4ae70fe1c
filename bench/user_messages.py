"""The topics of docs/performance.md about messages."""

from machines import gpu_of, one_each
from report_p2p import name_of, one, rows_of, size
from report_peer import part, spelled, staged_row, title
from tables import table
from user_values import Cell, Row, Topic, commits, extremes, mpi, over

MB = 1 << 20
TARGET = 32 * MB
CODECS = ("szp:abs", "szp:rel=0.001", "zfp:4", "mpc")
LINKED_SIZES = (64 << 10, 1 * MB, 4 * MB, 16 * MB, 32 * MB, 256 * MB)

LINKED = """\
## Will my messages between GPUs of one host get faster?

Yes: messages go from GPU to GPU by default, and raw ones were faster than NCCL's send and receive
in {wins} cases. The default codec, `auto`, left messages raw in {auto} cases: lossless compression
hardly pays on such a link. A lossy codec that you choose gains from {from_size} on. The table has
the time of a message over NCCL's; data are `wave` where `turb` is not named, codecs forced.
"""
LINKED_AFTER = """\
A forced codec beats a raw message from these sizes on: {pays}. At {largest} they shrink `wave` by
{ratios}. {gpu}, {ranks} GPUs of one host, a rank each; {cpu}; {mpi}; {date}, commit {commit}.
"""
LINKED_SOURCE = """\
"One copy" is the driver's, from one GPU to the other: what the link can do. "Way by host": MPI
carries it, as in a topic below. [All rows](dev/results-gpu-to-gpu.md).
"""
BY_MPI = """\
## What if MPI has to carry messages of GPU memory?

That is so between hosts, and between GPUs that do not reach each other. The MPIs here know no GPUs:
mpress copies through pinned host memory. Messages of {target}, `wave`, codecs forced: first the
time over that of mpress's raw messages, then the time of raw messages over that of their peers.
"""
BY_MPI_AFTER = """\
"Copies and MPI": the program copies to pageable memory, sends that, and copies it back. "MPI
alone": the same bytes between host buffers. NCCL takes the GPUs' own link where MPI takes shared
memory, and sockets where MPI takes TCP. Where GPUs have a link of their own, mpress takes it too
(the first topic).

The default, `auto`, takes no error: its time over that of raw messages at {auto_size}. The next
topic has its worst cases of all sizes.
"""
BY_MPI_SOURCE = """\
`air`: air temperatures of climate models; `rand`: Gaussian noise; `bits`: random bits;
`compressed`: what zlib wrote. {gpu}, two GPUs of one host; {cpu}. {sources}.
[All rows](dev/results-device-messages.md).
"""
IDLE = """\
## What does mpress cost when it does nothing?

The nanoseconds that it adds to a call whose message stays raw, and the time of that call over MPI's
own. With one rank the process sends to itself, which costs MPI next to nothing. "Most" is over all
sizes up to {largest}, both thread levels, and programs with and without a GPU.
"""
IDLE_AFTER = """\
{cpu}, {cores} cores; {mpi}; {date}, commit {commit}. [All rows](dev/results-raw-calls.md).

For large messages `auto` decides whether a codec pays, and tries one now and then. Its time over
that of raw messages, the worst case of each path, and over NCCL's where that was beside it:
"""


def seconds_over(mine: Row | None, peer: Row | None) -> float | None:
    return mine["seconds"] / peer["seconds"] if mine and peer else None


def kinds(document: Row) -> list[tuple[str, int]]:
    """The benchmarks between GPUs, with their numbers of ranks."""
    return [("latency", 2), *(("bibandwidth", n) for n in sorted({2, document["most_ranks"]}))]


def linked(document: Row) -> Topic:
    """Of each model of GPU one run; all are on the developers' page."""
    raw, coded, told, parts_of = [], [], [], []
    runs = one_each(document["runs"])
    for run in runs:
        lines, own_raw, own_coded = against_nccl(run)
        raw += own_raw
        coded += own_coded
        parts_of += [part(run, *kind) for kind in kinds(run)]
        names = [f"`{codec}`" for codec in CODECS[1:]]
        told += [
            table(("time over NCCL's", "raw", "`szp:abs`", *names, "raw over one copy",
                   "raw over way by host"), lines),
            linked_after(run),
        ]  # fmt: skip
    text = "\n".join([
        LINKED.format(
            auto=auto_said(parts_of), from_size=lossy_from(runs),
            wins=f"{sum(cell.over < 1 for cell in raw)} of {len(raw)}",
        ),
        *told, LINKED_SOURCE,
    ])  # fmt: skip
    return Topic(text, [
        extremes("GPU to GPU, raw message over NCCL", raw),
        extremes("GPU to GPU, forced codec over NCCL", coded),
    ])  # fmt: skip


def against_nccl(document: Row) -> tuple[list[list[str]], list[Cell], list[Cell]]:
    """Lines of the table, and its cells of raw messages and of forced codecs."""
    lines, raw, coded = [], [], []
    for name in kinds(document):
        run = part(document, *name)
        for data in ("wave", "turb"):
            sizes = LINKED_SIZES if data == "wave" else LINKED_SIZES[-2:]
            for nbytes in sizes:
                none = one(run, "none", data, nbytes)
                if none is None:
                    continue
                case = f"{title(*name)}, {size(nbytes)}" + (", turb" if data == "turb" else "")
                of = f"{gpu_of(document)}, {case}"
                found = [spelled(run, path, data, nbytes) for path in CODECS]
                raw.append(Cell(none["over_nccl"], of))
                coded += [Cell(r["over_nccl"], f"`{r['path']}`, {of}") for r in found if r]
                lines.append([
                    case, over(none["over_nccl"]), *(over(r and r["over_nccl"]) for r in found),
                    over(none["over_peer-copy"]),
                    over(seconds_over(none, staged_row(run, nbytes) if data == "wave" else None)),
                ])  # fmt: skip
    return lines, raw, coded


def linked_after(document: Row) -> str:
    run, largest = part(document, *kinds(document)[0]), LINKED_SIZES[-1]
    ratios = ", ".join(f"{row['ratio']:.2f} (`{row['path']}`)" for path in CODECS
                       if (row := spelled(run, path, "wave", largest)))  # fmt: skip
    pays = ", ".join(
        f"`{path}` {'never' if least is None else size(least)}"
        for path, least in pays_of(document).items()
    )
    facts = {key: document[key] for key in ("gpu", "cpu", "date")}
    return LINKED_AFTER.format(
        **facts, pays=pays, ratios=ratios, largest=size(largest), mpi=mpi(document),
        ranks=document["most_ranks"], commit=commits(document),
    )  # fmt: skip


def pays_of(document: Row) -> dict[str, int | None]:
    """From where on each codec pays, one way."""
    run = part(document, *kinds(document)[0])
    found = [spelled(run, path, "wave", LINKED_SIZES[-1]) for path in CODECS]
    return {row["path"]: pays_from(run, row["path"]) for row in found if row}


def lossy_from(runs: list[Row]) -> str:
    """From where on every lossy codec pays."""
    found = [least for run in runs for path, least in pays_of(run).items() if path != "mpc"]
    return "no measured size" if None in found else size(max(found))


def pays_from(run: Row, path: str) -> int | None:
    """The least size from which on a codec was faster than a raw message, whatever the size."""
    least = None
    for nbytes in sorted({row["bytes"] for row in rows_of(run, "forced", "wave")}, reverse=True):
        row = one(run, path, "wave", nbytes)
        if row is None or row["over_none"] >= 1:
            break
        least = nbytes
    return least


def auto_said(runs: list[Row]) -> str:
    rows = [row for run in runs for row in rows_of(run, "auto") if row["path"] == "auto"]
    raw = sum(row["ratio"] < 1.01 for row in rows)  # a raw message has a header as well
    return f"{raw} of {len(rows)}"


def by_mpi(document: Row) -> Topic:
    lines, raw, coded = [], [], []
    for run in document["runs"]:
        case = f"{run['mpi']}, {name_of(run)}"
        none, nccl = one(run, "none"), one(run, "nccl")
        found = [one(run, path) for path in CODECS[1:]]
        szp = found[0]
        coded += [Cell(row["over_none"], f"`{row['path']}`, {case}") for row in found]
        peers = [seconds_over(none, one(run, path)) for path in ("plain", "host", "nccl")]
        raw.append(Cell(peers[-1], case))
        lines.append([
            case, *(over(row["over_none"]) for row in found), *map(over, peers),
            over(seconds_over(szp, nccl)),
        ])  # fmt: skip
    first = document["runs"][0]
    nbytes = 64 * MB
    runs_of = {run["mpi"]: [r for r in document["runs"] if r["mpi"] == run["mpi"]]
               for run in document["runs"]}  # fmt: skip
    sources = "; ".join(
        f"{name}: {', '.join(sorted({run['date'] for run in runs}))}, {told(runs)}"
        for name, runs in runs_of.items()
    )
    text = "\n".join([
        BY_MPI.format(target=size(TARGET)),
        table((size(TARGET), *(f"`{path}`" for path in CODECS[1:]), "raw over copies and MPI",
               "raw over MPI alone", "raw over NCCL", f"`{CODECS[1]}` over NCCL"), lines),
        BY_MPI_AFTER.format(auto_size=size(nbytes)),
        autos(document["runs"], nbytes),
        BY_MPI_SOURCE.format(gpu=first["gpu"], cpu=first["cpu"], sources=sources),
    ])  # fmt: skip
    return Topic(text, [
        extremes("GPU memory by MPI, forced codec over raw", coded),
        extremes("GPU memory by MPI, raw message over NCCL", raw),
    ])  # fmt: skip


def told(runs: list[Row]) -> str:
    """The commits of both tables: rows of `auto` were measured apart where they name theirs."""
    forced = commits({"runs": [run | {"rows": []} for run in runs]})
    apart = commits({"runs": [row | {"rows": []} for run in runs for row in auto_rows(run)
                              if "commit" in row]})  # fmt: skip
    return f"commit {forced}" + (f" (`auto`: {apart})" if apart else "")


def auto_rows(run: Row) -> list[Row]:
    return [row for row in rows_of(run, "auto") if row["path"] == "auto"]


def autos(runs: list[Row], nbytes: int) -> str:
    names = dict.fromkeys(row["data"] for run in runs for row in auto_rows(run))
    lines = []
    for data in names:
        own = [next(r for r in auto_rows(run) if (r["data"], r["bytes"]) == (data, nbytes))
               for run in runs]  # fmt: skip
        lines.append([data, *(over(row["over_none"]) for row in own)])
    return table(("`auto` over raw", *(f"{run['mpi']}, {name_of(run)}" for run in runs)), lines)


def idle(document: Row, p2p: Row, peer: Row) -> Topic:
    rows = document["rows"]
    lines = []
    for ranks, pattern in dict.fromkeys((row["ranks"], row["pattern"]) for row in rows):
        own = [row for row in rows if (row["ranks"], row["pattern"]) == (ranks, pattern)]
        usual = {r["bytes"]: r for r in own if r["threads"] == "single" and not r["cuda"]}
        cells = []
        for nbytes in (8, 8192):
            row = usual.get(nbytes)
            cells += [f"{row['added_ns']:.0f}" if row else "-",
                      over(row and 1 + row["added_ns"] / row["plain_ns"])]  # fmt: skip
        most = max(own, key=lambda row: row["added_ns"])
        lines.append([f"{pattern} ({ranks} rank{'s' * (ranks > 1)})", *cells,
                      f"{most['added_ns']:.0f}"])  # fmt: skip
    ordered = sorted(rows, key=lambda row: row["added_ns"])
    glance = ["What a raw call costs more", *(
        f"{row['added_ns']:.0f} ns ({row['pattern']}, {row['bytes']} bytes)"
        for row in (ordered[0], ordered[-1])
    )]  # fmt: skip
    facts = {key: document[key] for key in ("cpu", "cores", "date")}
    costs = auto_costs(p2p, peer)
    text = "\n".join([
        IDLE.format(largest=size(max(row["bytes"] for row in rows))),
        table(("call", "8 bytes: ns added", "over MPI's", "8 KB: ns added", "over MPI's",
               "most ns added"), lines),
        IDLE_AFTER.format(**facts, mpi=mpi(document), commit=commits(document)),
        table(("path", "cases", "worst", "95 % interval", "of", "worst over NCCL"), costs),
    ])  # fmt: skip
    autos_found = [
        Cell(row["over_none"], f"{row['data']}, {size(row['bytes'])}, {name}")
        for name, run in auto_runs(p2p, peer)
        for row in auto_rows(run)
    ]
    return Topic(text, [glance, extremes("The default, `auto`, over raw messages", autos_found)])


def auto_runs(p2p: Row, peer: Row) -> list[tuple[str, Row]]:
    runs = [(f"{run['mpi']}, {name_of(run)}", run) for run in p2p["runs"]]
    return runs + [
        (f"GPU to GPU, {run['most_ranks']} x {gpu_of(run)}, {title(*kind)}", part(run, *kind))
        for run in peer["runs"] for kind in kinds(run)
    ]  # fmt: skip


def auto_costs(p2p: Row, peer: Row) -> list[list[str]]:
    lines = []
    for name, run in auto_runs(p2p, peer):
        rows = auto_rows(run)
        worst = max(rows, key=lambda row: row["over_none"])
        low, high = worst["over_none_interval"]
        lines.append([
            name, str(len(rows)), over(worst["over_none"]), f"{low:.2f} to {high:.2f}",
            f"{worst['data']}, {size(worst['bytes'])}",
            over(max((row["over_nccl"] for row in rows if "over_nccl" in row), default=None)),
        ])  # fmt: skip
    return lines
