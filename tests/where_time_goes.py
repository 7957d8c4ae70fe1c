"""Where the suite's time goes: after many tests, a table of files and of the slowest tests.

CPU time is that of the test and of all processes that it started and waited for: other load on the
machine changes it less than wall time, if not little, as ranks that wait for each other spin.
`--times FILE` keeps both times of every test as JSON.
"""

from __future__ import annotations

import json
import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import served_cli

_FEW = 200  # tests of a run that has no table
_SLOWEST = 25


def _cpu_seconds() -> float:
    """Of this process, and of all that it and its server have waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return served_cli.cpu_seconds() + sum(one.ru_utime + one.ru_stime for one in used)


class Times:
    """Measures where tests run, and adds up where they are reported (both may be one process)."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.before = _cpu_seconds()
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = _cpu_seconds()
        report.cpu_seconds = now - self.before  # reports travel with what they are given
        self.before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("@")[0]  # as xdist appends groups
        self.wall[name] += report.duration
        self.cpu[name] += getattr(report, "cpu_seconds", 0.0)  # none where the process was killed

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.file:
            times = {name: [self.wall[name], self.cpu[name]] for name in sorted(self.wall)}
            Path(self.file).write_text(json.dumps(times, indent=0))
        if len(self.wall) <= _FEW:
            return
        files: dict[str, list[str]] = defaultdict(list)
        for name in self.wall:
            files[os.path.basename(name.split("::")[0])].append(name)

        def line(wall: float, cpu: float, what: str) -> None:
            terminalreporter.write_line(f"{wall:8.1f} s {cpu:8.1f} s CPU  {what}")

        terminalreporter.section("where the time goes")
        line(sum(self.wall.values()), sum(self.cpu.values()), f"all {len(self.wall)} tests")
        rows = [
            (sum(map(self.wall.get, names)), sum(map(self.cpu.get, names)), file, len(names))
            for file, names in files.items()
        ]
        for wall, cpu, file, count in sorted(rows, reverse=True):
            line(wall, cpu, f"{file}: {count}")
        terminalreporter.section(f"the slowest {_SLOWEST} tests")
        for name in sorted(self.wall, key=self.wall.__getitem__, reverse=True)[:_SLOWEST]:
            line(self.wall[name], self.cpu[name], name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="keep what every test took, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Times(config.getoption("--times")))
