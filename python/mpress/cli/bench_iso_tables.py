"""What `mpress bench iso` prints."""

from typing import Any

from rich.table import Table
from rich.text import Text

from mpress.cli.console import NO, make_console, make_table, print_table, size_text

Row = dict[str, Any]


def show(document: dict[str, Any]) -> None:
    """Prints a heading and a table."""
    console, plan = make_console(), document["plan"]
    console.print(f"{document['mpi']}, {where_of(document)}; {what_of(plan)}")
    print_table(console, _table(document))


def where_of(document: dict[str, Any]) -> str:
    """The ranks and their grid."""
    plan = document["plan"]
    grid = "x".join(map(str, plan["grid"])) if plan["grid"] else f"{plan['dimensions']}-D"
    count = plan["dimensions"] if plan["periodic"] is None else plan["periodic"]
    borders = {0: "mesh", plan["dimensions"]: "torus"}.get(count, f"grid, periodic in {count}")
    hosts = f" on {document['hosts']} hosts" if document["hosts"] > 1 else ""
    return f"{plan['ranks']} ranks{hosts}, {grid} {borders}"


def what_of(plan: dict[str, Any]) -> str:
    """The neighbourhood, or the stencil."""
    if plan["stage"] == "stencil":
        cells = " x ".join([str(plan["extent"])] * plan["dimensions"])
        parts = ["exchange", *(["stencil"] if plan["update"] else [])]
        parts = ["creation", *parts] if plan["setup"] else parts
        return f"{plan['points']} points, {cells} doubles, depth {plan['depth']}: " + (
            " and ".join(parts)
        )
    minus = f" minus radius {plan['inner']}" if plan["inner"] > 0 else ""
    with_self = ", itself too" if plan["inner"] < 0 else ""
    shape = {"moore": "Moore", "von-neumann": "von Neumann"}[plan["shape"]]
    skipped = f", without the first {plan['skip']}" if plan["skip"] else ""
    return f"{shape} radius {plan['radius']}{minus}{with_self}, order {plan['order']}{skipped}"


def _table(document: dict[str, Any]) -> Table:
    rows, reference = document["rows"], document["reference"]
    is_creation = document["plan"]["stage"] == "creation"
    columns = ["mean", "95 %", f"over {reference}"]
    if not is_creation:
        columns += ["over best", "rounds", "blocks", "bytes", "ratio", "arrived"]
    launches = document["launches"]
    title = f"microseconds, the slowest rank; means of {launches} launches"
    table = make_table(title, "method" if is_creation else "size  method", columns)
    last = None
    for row in rows:
        size = "" if row["bytes"] == last else size_text(row["bytes"])
        name = row["method"] if row["spec"] in (None, "none") else f"{row['method']} {row['spec']}"
        name += f", {row['algorithm']}" if name.endswith("auto") and not is_creation else ""
        cells: list[str | Text] = [
            _microseconds(row["seconds"]),
            "-" if row["interval"] is None else " ".join(map(_microseconds, row["interval"])),
            _ratio(row, "over"),
        ]
        if not is_creation:
            best = f"{_ratio(row, 'over_best')} {row['best']}" if "best" in row else "-"
            ratio = row["ratio"] if row["spec"] not in (None, "none") else None
            cells += [
                best, str(row["rounds"]), str(row["blocks"]), str(row["sent_bytes"]),
                "-" if ratio is None else f"{ratio:.2f}", _arrived(row),
            ]  # fmt: skip
        table.add_row(name if is_creation else f"{size:<5} {name}", *cells)
        last = row["bytes"]
    return table


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.{2 if seconds < 1e-4 else 1 if seconds < 1e-2 else 0}f}"


def _ratio(row: Row, name: str) -> str:
    if name not in row:
        return "-"
    return "{:.3f} ({:.3f} to {:.3f})".format(row[name], *row[f"{name}_interval"])


def _arrived(row: Row) -> str | Text:
    if not row["correct"]:
        return NO
    return "exact" if row["max_error"] == 0 else f"{row['max_error']:.2g}"
