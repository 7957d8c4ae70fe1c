"""What this host has sent to itself by its network stack: whether its ranks took TCP."""

from __future__ import annotations

import socket
from pathlib import Path


def sent_bytes() -> int:
    """Bytes that this host has sent to itself through its network stack; -1 where it hides that."""
    try:
        lines = Path("/proc/self/net/dev").read_text().splitlines()
        return next(int(line.split()[9]) for line in lines if line.strip().startswith("lo:"))
    except (OSError, StopIteration, IndexError, ValueError):
        return -1


def is_seen() -> bool:
    """Whether sent_bytes() counts: sandboxes show a counter that stands still."""
    nbytes = 1 << 14
    before = sent_bytes()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sender,
        server.accept()[0] as receiver,
    ):
        sender.sendall(bytes(nbytes))
        left = nbytes
        while left > 0:
            left -= len(receiver.recv(left))
    return sent_bytes() - before >= nbytes
