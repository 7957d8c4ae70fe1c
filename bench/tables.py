"""Tables in Markdown."""

from collections.abc import Iterable


def table(headings: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table whose first column is text, and the others numbers."""
    headings = list(headings)
    text = ["| " + " | ".join(headings) + " |", "|---" + "|---:" * (len(headings) - 1) + "|"]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(text) + "\n"
