"""docs/dev/results-gaps.md: messages of types with gaps between GPUs."""

from typing import Any

from report_p2p import size
from tables import GENERATED, table

Row = dict[str, Any]

HEAD = """\
# Results: types with gaps between GPUs

{generated}
Messages of vectors of doubles, uncompressed, from the memory of a GPU to that of another of the
same host, and back; each run is followed by a gap as long. Microseconds one way, medians of jobs by
turns. `python bench/gaps.py` measures this.

- *run*: the bytes that lie together; *none*: a message without gaps.
- *alone*: by an MPI that takes memory of GPUs itself, without mpress; where it is missing, the time
  of such a job was over.
- *over one without gaps*: what the message takes over one without gaps, both with mpress.
"""


def section(document: Row) -> str:
    parts = [HEAD.format(generated=GENERATED)]
    for run in sorted(document["runs"], key=lambda run: run["name"]):
        parts.append(
            f"## {run['name']}, {run['gpu']}\n\n{run['date']}, commit {run['commit'][:7]}.\n"
        )
        plain = {row["bytes"]: row["mpress"] for row in run["rows"] if row["run"] == 0}
        has_alone = any("alone" in row for row in run["rows"])
        names = ("bytes", "run", "mpress", *(("alone", "alone / mpress") if has_alone else ()),
                 "over one without gaps")  # fmt: skip
        lines = []
        for row in run["rows"]:
            line = [size(row["bytes"]), size(row["run"]) if row["run"] else "none",
                    f"{row['mpress']:.1f}"]  # fmt: skip
            if has_alone:
                alone = row.get("alone")
                line += [f"{alone:.1f}", f"{alone / row['mpress']:.2f}"] if alone else ["", ""]
            lines.append([*line, f"{row['mpress'] / plain[row['bytes']]:.2f}"])
        parts.append(table(names, lines))
    return "\n".join(parts)
