"""The command line of mpress in forks of one process that has loaded it: loading takes longer than
most programs of the tests run.

python served_cli.py SOCKET serves whoever has the other end: a request is a command as JSON, with
the ends of pipes for its output; the answers are its process, then its status and the CPU time that
it took, with all that it waited for.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from typing import Any

_MAX_REQUEST = 128 << 10
_cpu_seconds = 0.0


class ServedCommand:
    """Of subprocess.Popen what `execute` in execution.py uses, for `mpress ARGUMENTS`."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], cwd: Path | None) -> None:
        self.arguments = arguments
        self.returncode: int | None = None
        server, _ = _server()
        folder = os.fspath(cwd or Path.cwd())
        request = {"arguments": arguments, "env": dict(env), "folder": folder}
        pipes = [os.pipe() for _ in range(2)]
        socket.send_fds(server, [json.dumps(request).encode()], [end for _, end in pipes])
        for _, end in pipes:
            os.close(end)
        self.pid = int(server.recv(32))
        self._pool = futures.ThreadPoolExecutor(3)
        self._results = [self._pool.submit(_read, end) for end, _ in pipes]
        self._results.append(self._pool.submit(server.recv, 32))

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        if futures.wait(self._results, timeout).not_done:
            raise subprocess.TimeoutExpired(self.arguments, timeout)
        stdout, stderr, ended = (result.result() for result in self._results)
        self._pool.shutdown()
        self.returncode = _status_of(ended)
        return stdout, stderr


class ServedProcess:
    """Of subprocess.Popen what bench/wave_scaling.py uses, for `python -m mpress ARGUMENTS`: what
    is printed is one stream, which is read while the command runs."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], **_: Any) -> None:
        assert list(command[:3]) == [sys.executable, "-m", "mpress"]
        self._server, _ = _server()
        arguments = ["mpress", *command[3:]]
        request = {"arguments": arguments, "env": dict(env), "folder": os.fspath(Path.cwd())}
        out, end = os.pipe()
        socket.send_fds(self._server, [json.dumps(request).encode()], [end, end])
        os.close(end)
        self.pid = int(self._server.recv(32))
        self.stdout = open(out)  # noqa: SIM115 - until the end, in wait()

    def wait(self) -> int:
        self.stdout.close()
        return _status_of(self._server.recv(32))


def _status_of(ended: bytes) -> int:
    """Of a command that has ended; counts the time that it took."""
    status, seconds = ended.split()
    global _cpu_seconds
    _cpu_seconds += float(seconds)
    return int(status)


def cpu_seconds() -> float:
    """Of all served commands that have ended."""
    return _cpu_seconds


def _read(end: int) -> str:
    with open(end) as file:
        return file.read()


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return ours, process


def _become(arguments: list[str], env: dict[str, str], folder: str, output: list[int]) -> None:
    """Ends as a program does, but takes nothing apart: there is more than most commands need."""
    os.setsid()
    for number, end in enumerate(output, start=1):
        os.dup2(end, number)
        os.close(end)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = arguments
    from mpress import cli

    try:
        cli.main()
    except SystemExit as end:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
        os._exit(end.code or 0)


def _warm_up(command: Any) -> None:
    """Typer loads and makes more with the first arguments that it looks at."""
    with suppress(Exception):
        command.make_context(command.name, [], resilient_parsing=True)
    for one in getattr(command, "commands", {}).values():
        _warm_up(one)


def serve(connection: socket.socket) -> None:
    import typer  # here, as who is served need not load it

    from mpress import cli

    # Typer makes all commands anew for each command line: that would take longer than most of them.
    command = typer.main.get_command(cli.application())
    _warm_up(command)
    cli.application = lambda _: command
    gc.collect()
    gc.freeze()  # forks look for garbage among what is theirs
    while True:
        request, output, *_ = socket.recv_fds(connection, _MAX_REQUEST, 2)
        if not request:
            return
        process = os.fork()
        if process == 0:
            connection.close()
            _become(**json.loads(request), output=output)
            return
        for end in output:
            os.close(end)
        connection.send(b"%d" % process)
        _, status, used = os.wait4(process, 0)
        seconds = used.ru_utime + used.ru_stime
        connection.send(b"%d %f" % (os.waitstatus_to_exitcode(status), seconds))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
