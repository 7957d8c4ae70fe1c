"""Where commands print, and how wide."""

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

_WIDTH_OF_FILES = 120


def make_console() -> Console:
    """A console on standard output: as wide as the terminal, or fixed in pipes and files."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_OF_FILES)


def make_table(title: str, first: str, headings: Iterable[str]) -> Table:
    """A table whose rows are named by the first column and hold numbers in the others; headings
    wrap, numbers do not shrink."""
    table = Table(title=title, title_justify="left")
    table.add_column(first, style="bold", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", min_width=5)
    return table


def size_text(nbytes: int) -> str:
    """64K, 32M, or bytes where these are not whole."""
    for unit, text in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if nbytes % unit == 0:
            return f"{nbytes // unit}{text}"
    return str(nbytes)
