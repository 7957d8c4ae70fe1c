"""The topics of docs/performance.md about links between GPUs: the host link, and MPIs that take
memory of GPUs."""

import machines
import report_aware as aware
import report_host_link as host_link
from report_p2p import size
from tables import table
from user_values import Cell, Row, Topic, commits, extremes, over

HOST = """\
## What if GPUs of one host do not reach each other?

So it is on most workstations and many virtual machines. Messages then go by memory of the host that
both GPUs have pinned, by default. Raw ones are compared with mpress's copies around MPI's messages,
compressed ones with raw ones by the same way; `wave`, codecs forced. The last column has the
bandwidth of raw messages over that of the bus.
"""
OF_HOST = """\
{gpu}, {gpus} GPUs of one host, {date}, commit {commit}; the bus carries {one_way:.1f} GB/s one way,
{both:.1f} GB/s each way at once:
"""
AFTER_HOST = """\
[All rows](dev/results-host-link.md).
"""
AWARE = """\
## What if the MPI itself takes memory of GPUs?

Messages that are compressed stay on the GPUs until the other GPU, or the MPI, has them; what is
left raw goes to the MPI, or by mpress's own link where `mpress tune` found that to be faster. First
what mpress costs where it leaves messages raw, then what codecs gain when they are forced: times
over those of the MPI alone, between two GPUs of one host.
"""
AFTER_AWARE = """\
"By MPI": the MPI carries the payloads (`MPRESS_LINK=mpi`), as it does between hosts. {sources}.
[All rows](dev/results-cuda-aware.md).
"""


def without_reach(document: Row) -> Topic:
    texts, raw, coded = [HOST], [], []
    for run in document["runs"]:
        lines = []
        for both, title in host_link.WAYS.items():
            for nbytes in host_link.sizes(run):
                message = f"{title}, {size(nbytes)}"
                case = f"{machines.gpu_of(run)}, {message}"
                mine = host_link.over(run, "none", nbytes, both, "none", "mpi")
                found = {
                    codec: host_link.over(run, codec, nbytes, both, "none", "host")
                    for codec in host_link.CODECS[1:]
                }
                part = host_link.share(run, nbytes, both)
                if mine is not None:
                    raw.append(Cell(mine, case))
                coded += [
                    Cell(v, f"`{codec}`, {case}") for codec, v in found.items() if v is not None
                ]  # fmt: skip
                lines.append([message, over(mine), *map(over, found.values()),
                              "-" if part is None else f"{part:.0%}"])  # fmt: skip
        facts = {key: run[key] for key in ("gpu", "gpus", "date")}
        names = [f"`{codec}` over raw" for codec in host_link.CODECS[1:]]
        texts += [
            OF_HOST.format(
                **facts, commit=commits({"runs": [run]}), one_way=host_link.ceiling(run, False),
                both=host_link.ceiling(run, True),
            ),
            table(("time", "raw over copies by MPI", *names, "raw of the bus"), lines),
        ]  # fmt: skip
    return Topic("\n".join([*texts, AFTER_HOST]), [
        extremes("GPUs that do not reach each other, raw message over copies by MPI", raw),
        extremes("GPUs that do not reach each other, forced codec over raw", coded),
    ])  # fmt: skip


def under_aware(document: Row) -> Topic:
    runs = aware.aware_runs(document)
    raws: dict[str, list[str]] = {}
    codeds, raw, coded = [], [], []
    shapes = [(shape, nbytes) for shape in aware.SHAPES for nbytes in sorted(
        {n for run in runs for n in aware.sizes(run, "plain", shape)}
    )]  # fmt: skip
    for run in runs:
        name = aware.name_of(run)
        for shape, nbytes in shapes:
            message = f"{aware.SHAPES[shape]}, {size(nbytes)}"
            values = [aware.raw_over(run, path, shape, nbytes) for path in aware.RAW]
            raw += [
                Cell(v, f"`{path}`, {name}, {message}")
                for path, v in zip(aware.RAW, values, strict=True) if v is not None
            ]  # fmt: skip
            raws.setdefault(message, [message]).extend(map(over, values))
        ways = [(spec, way) for spec in aware.SPECS for way in ("peer", "mpi")]
        for nbytes in aware.sizes(run, "plain, long"):
            values = [aware.coded_over(run, spec, way, nbytes) for spec, way in ways]
            case = f"{name}, {size(nbytes)}"
            coded += [
                Cell(v, f"`{spec}`{', by MPI' if way == 'mpi' else ''}, {case}")
                for (spec, way), v in zip(ways, values, strict=True) if v is not None
            ]  # fmt: skip
            codeds.append([case, *map(over, values)])
    sources = "; ".join(
        f"{aware.name_of(run)}: {aware.gpus_of(run)}, {run['date']}, commit "
        f"{commits({'runs': [run]})}" + (f" ({run['note']})" if "note" in run else "")
        for run in document["runs"]
    )
    headings = [f"`{path}`, {aware.name_of(run)}" for run in runs for path in aware.RAW]
    names = [f"`{spec}`{by}" for spec in aware.SPECS for by in ("", ", by MPI")]
    text = "\n".join([
        AWARE,
        table(("raw, over the MPI alone", *headings), raws.values()),
        table(("forced, over the MPI alone", *names), codeds),
        AFTER_AWARE.format(sources=sources),
    ])  # fmt: skip
    return Topic(text, [
        extremes("MPI that takes GPU memory, raw message over the MPI alone", raw),
        extremes("MPI that takes GPU memory, forced codec over the MPI alone", coded),
    ])  # fmt: skip
