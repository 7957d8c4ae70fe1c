"""What commands print: lines that nothing breaks, so that paths can be copied, and tables."""

import sys
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_ENDLESS = 1 << 16  # columns

NO = Text("NO", style="red")
"""In a table: a promise that was not kept."""


def make_console() -> Console:
    """Standard output. What is printed there stays as it is: rich neither wraps it nor looks for
    markup in it."""
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def make_table(title: str, first: str, headings: Iterable[str]) -> Table:
    """A table whose rows are named by the first column and hold numbers in the others."""
    table = Table(title=Text(title))
    table.add_column(first, style="bold", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def print_table(console: Console, table: Table) -> None:
    """Prints a table, its title and its caption as lines of their own. Where it is too wide for a
    terminal, its headings wrap between words, and nothing else."""
    if table.title:
        console.print(table.title, style="italic")
    caption, table.title, table.caption = table.caption, None, None
    endless = console.options.update(max_width=_ENDLESS)
    for column in table.columns:
        widths = [Measurement.get(console, endless, cell).maximum for cell in column.cells]
        column.min_width = max([Measurement.get(console, endless, column.header).minimum, *widths])
    needed = Measurement.get(console, endless, table)
    room = console.width if sys.stdout.isatty() else _ENDLESS
    table.width = max(needed.minimum, min(room, needed.maximum))
    console.print(table, soft_wrap=False, crop=False)
    if caption:
        console.print(caption, style="dim italic")


def print_facts(console: Console, title: str, facts: Mapping[str, str | Text]) -> None:
    """Prints named values, a line each."""
    width = max(map(len, facts), default=0)
    console.print(title, style="italic")
    for name, value in facts.items():
        console.print(Text.assemble("  ", (name.ljust(width), "bold"), "  ", value))


def size_text(nbytes: int) -> str:
    """64K, 32M, or bytes where these are not whole."""
    for unit, text in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if nbytes % unit == 0:
            return f"{nbytes // unit}{text}"
    return str(nbytes)
