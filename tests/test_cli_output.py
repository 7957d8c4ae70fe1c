"""What commands print can be copied: nothing breaks, shortens or rewrites it, however long a path
is and whatever is in a name. On terminals too: where these break a line, it was written whole."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from execution import BIN, execute

import mpress
from mpress.cli import console

MPRESS = BIN / "mpress"


@pytest.fixture
def deep(tmp_path) -> Path:
    """A folder whose path is long, and holds what looks like markup."""
    path = tmp_path.joinpath("d" * 200, "[red]two words[/red] :smile:", "e" * 200)
    path.mkdir(parents=True)
    return path


@pytest.fixture
def field(deep) -> Path:
    path = deep / ("[bold]" + "field" * 40 + ".f32")
    np.linspace(0, 1, 2048, dtype="<f4").tofile(path)
    return path


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def plain(text: str) -> str:
    """Text without a terminal's escapes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def on_terminal(command: list, env: dict[str, str] | None = None, columns: int = 80) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as screen:
        sized = ["sh", "-c", f'stty cols {columns} -opost && exec "$0" "$@"', *map(str, command)]
        process = subprocess.Popen(
            sized, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **(env or {})},
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        text = b""
        while True:
            try:
                part = screen.read(65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
    assert process.wait() == 0, text
    return plain(text.decode())


def deep_installation(folder: Path) -> Path:
    """A copy of the installed package, with links to its libraries."""
    installed, copy = Path(mpress.__file__).parent, folder / "site" / "mpress"
    shutil.copytree(installed, copy, ignore=shutil.ignore_patterns("lib", "__pycache__"))
    (copy / "lib").mkdir()
    for library in (installed / "lib").iterdir():
        (copy / "lib" / library.name).symlink_to(library)
    return copy


@pytest.mark.parametrize("terminal", [False, True])
def test_info_of_an_installation_with_a_long_path(tmp_path, deep, terminal):
    package = deep_installation(tmp_path / ("d" * 200) / ("e" * 200))
    env = {"PYTHONPATH": str(package.parent), "MPRESS_PROFILE": str(deep / "own.profile")}
    command = [sys.executable, "-m", "mpress", "info"]
    if terminal:
        text = on_terminal(command, env)
    else:
        done = execute(command, env)
        assert done.status == 0, done.output
        text = done.stdout
    assert f"preload library           {package}/lib/libmpress_preload.so" in lines(text)
    for library in (package / "lib").glob("*.so"):
        assert str(library) in text
    assert f"MPRESS_PROFILE  {deep}/own.profile" in lines(text)
    if not terminal:
        for name, meaning, default in mpress._core.knobs():
            pattern = rf"{name} +{re.escape(default)} +{re.escape(meaning)}"
            assert any(re.fullmatch(pattern, line) for line in lines(text)), name


@pytest.fixture
def document(deep) -> dict:
    """A report with long names in it."""
    operation = {"operation": "MPI_Send", "direction": "send", "rank": 0, "peer": 1,
                 "codec": "szp", "messages": 1, "raw_bytes": 1e15, "wire_bytes": 1e3,
                 "encode_seconds": 1e5, "decode_seconds": 0, "wait_seconds": 0}  # fmt: skip
    totals = {"messages": 1, "compressed_messages": 1, "raw_bytes": 1, "wire_bytes": 1, "ratio": 1,
              "encode_seconds": 0, "decode_seconds": 0, "wait_seconds": 0, "errors": 0}  # fmt: skip
    return {
        "format": 1, "mpi": "MPICH " + "x" * 200, "settings": "codec=mpc " + "y" * 300,
        "profile": f"{deep}/own.profile, 2026-01-02", "unreadable_records": [],
        "simulated_link": False, "run_seconds": None, "totals": totals, "left_raw": {},
        "ranks": [], "rows": [operation], "command": [f"{deep}/program", "a b"], "exit_status": 3,
    }  # fmt: skip


@pytest.mark.parametrize("terminal", [False, True])
def test_report(deep, document, terminal):
    file = deep / "report.json"
    document["unreadable_records"] = [f"{deep}/rank-0.1.rec: not an mpress record"]
    file.write_text(json.dumps(document))
    command = [MPRESS, "report", file, "--svg", deep / "picture.svg"]
    text = on_terminal(command) if terminal else execute(command).stdout
    facts = {name.strip(): value for name, _, value in
             (line.partition("  ") for line in lines(text))}  # fmt: skip
    assert facts["program"].strip() == f"'{deep}/program' 'a b'"
    assert facts["costs from"].strip() == document["profile"]
    assert facts["MPI"].strip() == document["mpi"]
    assert facts["settings"].strip() == document["settings"]
    assert f"drew {deep}/picture.svg" in lines(text)
    assert document["unreadable_records"][0] in text
    # Numbers are whole, however narrow the terminal.
    assert "1000000000.0" in text and "1000000000000.00" in text and "100000.000" in text


def test_inspect_and_what_it_leaves_out(field):
    done = execute([MPRESS, "inspect", field, "--codec", "mpc", "--repeat", "1"])
    assert done.status == 0, done.output
    assert lines(done.stdout)[0] == f"{field.name}: 2048 float32, 0.01 MB"
    text = on_terminal([MPRESS, "inspect", field, "--codec", "mpc", "--repeat", "1"], columns=40)
    assert lines(text)[0] == f"{field.name}: 2048 float32, 0.01 MB"


def test_messages_of_a_file(field):
    done = execute([MPRESS, "bench", "latency", "--file", field, "--sizes", "4K", "--spec", "mpc",
                    "--repeat", "1", "--seconds", "0", "--warmup", "1"])  # fmt: skip
    assert done.status == 0, done.output
    assert f"latency, one way: {field.name}; times in microseconds" in lines(done.stdout)


def test_errors_name_whole_paths(deep, field):
    wrong = deep / "not there" / "file"
    (deep / "text.json").write_text("hello")
    for command in (
        ["inspect", wrong],
        ["inspect", deep / "text.json"],
        ["report", wrong],
        ["report", deep / "text.json"],
        ["run", "--report", wrong, "--", "true"],
        ["run", "--", wrong],
        ["run", "-n", "2", "--mpiexec", f"'{wrong}'", "--", "true"],
        ["bench", "codec", "--json", wrong],
        ["bench", "latency", "--plot", wrong],
        ["bench", "latency", "--file", wrong],
        ["tune", "--output", deep / "text.json"],
        ["simulate", "--app", "wave", "--from", wrong],
    ):
        path = next(word for word in command[1:] if str(deep) in str(word))
        done = execute([MPRESS, *command])
        assert done.status == 2, done.output
        assert str(path).strip("'") in done.stderr and done.stderr.count("\n") == 1


def test_pictures_of_a_report_need_a_folder(deep, document, tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(document))
    done = execute([MPRESS, "report", tmp_path / "report.json", "--png", deep / "no" / "a.png"])
    assert done.status == 2 and f"--png {deep}/no/a.png" in done.stderr


@pytest.mark.parametrize("width", [20, 60, 200])
def test_tables_break_no_word(width, capsys, monkeypatch):
    """Headings wrap between words, as far as the terminal asks for it."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    table = console.make_table("a title of several words " * 20, "first column",
                               ("one two three four", "incomprehensibilities"))  # fmt: skip
    table.add_row("a name of words", "1.5", "123456789.123 to 1234567.1")
    target = console.make_console()
    target.width = width
    console.print_table(target, table)
    printed = plain(capsys.readouterr().out)
    assert printed.startswith("a title of several words " * 20 + "\n")
    for word in ("123456789.123 to 1234567.1", "a name of words", "incomprehensibilities"):
        assert word in printed
    assert ("one two three four" in printed) == (width >= 60)
