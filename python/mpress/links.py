"""The links between GPUs, as ``src/link/list.hpp`` lists them: fastest first."""

from __future__ import annotations

from typing import NamedTuple

from mpress import _core


class Link(NamedTuple):
    name: str
    """In MPRESS_LINK, and of a way in reports."""
    profile: str
    """Of a peer in profiles."""
    way: int
    """In records."""
    text: str
    note: str
    phrase: str
    """Where its messages go: "messages ..."."""


ALL = tuple(Link(*row) for row in _core.links())
BY_NAME = {link.name: link for link in ALL}
BY_PROFILE = {link.profile: link for link in ALL}
