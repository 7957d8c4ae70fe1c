"""MPICH's own tests, plain and with all that mpress can compress compressed: do they end alike?

    apt-get source --download-only mpich        # takes a deb-src line
    python bench/programs/mpich_tests.py mpich_*.orig.tar.* --json FILE

Builds them with mpicc of this environment and runs what the lists of their folders name: tests of
calls that mpress serves or watches, and not those of one-sided calls, tools and Fortran. One that
does not end well without mpress is not run with it; one that fails with it has a second chance, as
some are slow where ranks outnumber cores. Tells, by folder, how many ended well and how many
messages were compressed; most tests send integers, which are not.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from programs.builds import BIN, ENVIRONMENT, FORCED, execute, launched, unpack
from tables import table

from mpress.codec_bench import cpu_name, git_commit

FOLDERS = ("attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "io", "part",
           "pt2pt", "spawn", "topo", "threads/coll", "threads/comm", "threads/init",
           "threads/pt2pt")  # fmt: skip
CONFIGURE = ("CC=mpicc", "--disable-cxx", "--disable-fortran", "--enable-threads=multiple",
             "--disable-checkerrors", "--without-cuda")  # fmt: skip
MOST_MEMORY_GB = 4.0
HEADINGS = ["folder", "tests", "end well", "with mpress, too", "compressed messages"]


@dataclass(frozen=True)
class Test:
    """A line of a folder's list."""

    folder: str
    name: str
    ranks: int
    arguments: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()  # NAME=VALUE
    needs_success: bool = True  # else how it ends is no part of it
    must_fail: bool = False

    def __str__(self) -> str:
        return " ".join((f"{self.folder}/{self.name}", str(self.ranks), *self.arguments,
                         *self.variables))  # fmt: skip


@dataclass
class Ending:
    is_well: bool
    text: str
    compressed: int = 0


@dataclass
class Folder:
    name: str
    tests: int
    plain: int
    compressed: int = 0
    failed: list[dict[str, str]] = field(default_factory=list)

    def line(self) -> list[str]:
        """Of the table that is printed, and of docs/dev/results-programs.md."""
        return [self.name, str(self.tests), str(self.plain),
                f"{self.plain - len(self.failed)} of {self.plain}",
                str(self.compressed)]  # fmt: skip


def total(folders: list[Folder]) -> Folder:
    return Folder(
        "all",
        sum(folder.tests for folder in folders),
        sum(folder.plain for folder in folders),
        sum(folder.compressed for folder in folders),
        [one for folder in folders for one in folder.failed],
    )


def listed(root: Path, folder: str) -> Iterator[Test]:
    """See `runtests` of MPICH for what lines may say."""
    seen = set()
    for line in (root / folder / "testlist").read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2 or not words[1].isdigit():
            continue
        said: dict[str, list[str]] = {}
        for word in words[2:]:
            key, _, value = word.partition("=")
            said.setdefault(key, []).append(value)
        if any(float(value) > MOST_MEMORY_GB for value in said.get("mem", ())):
            continue
        result = said.get("resultTest", [""])[0]
        test = Test(folder, words[0], int(words[1]), tuple(said.get("arg", ())),
                    tuple(said.get("env", ())), not result, result == "TestStatus")  # fmt: skip
        if test not in seen:
            seen.add(test)
            yield test


def built(source: Path, root: Path) -> Path:
    """Where the tests are, unpacked and configured."""
    tests = root / "test" / "mpi"
    if not (tests / "config.status").exists():
        unpack(source, root, lambda part: part in ("test", "confdb"))
        execute(["./configure", *CONFIGURE], tests)
        for part in ("util", "dtpools"):
            execute(["make", "-j", str(os.cpu_count()), "-C", part], tests)
    return tests


def compiled(root: Path, folder: str, tests: list[Test]) -> None:
    """What does not compile is missing then, and does not end well."""
    names = sorted({test.name for test in tests if not (root / folder / test.name).exists()})
    if names:
        subprocess.run(["make", "-k", "-j", str(os.cpu_count()), *names], cwd=root / folder,
                       env=ENVIRONMENT, capture_output=True)  # fmt: skip


def run(root: Path, test: Test, limit: float, *, served: bool) -> Ending:
    program = root / test.folder / test.name
    if not program.exists():
        return Ending(False, "does not compile")
    variables = dict(pair.split("=", 1) for pair in test.variables)
    ended = launched([str(program), *test.arguments], test.ranks, FORCED if served else None,
                     program.parent, limit, variables=variables)  # fmt: skip
    if ended.code is None:
        return Ending(False, f"not within {limit:.0f} s: {ended.text[-500:]}")
    if test.must_fail:
        is_well = ended.code != 0
    else:
        is_well = not test.needs_success or (ended.code == 0 and "No Errors" in ended.text)
    return Ending(is_well, ended.text[-1000:], ended.compressed)


def measured(root: Path, name: str, options: argparse.Namespace) -> Folder:
    tests = list(listed(root, name))
    compiled(root, name, tests)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as jobs:

        def each(which: list[Test], *, served: bool) -> list[Ending]:
            return list(jobs.map(lambda test: run(root, test, options.limit, served=served), which))

        plain = each(tests, served=False)
        well = [test for test, ending in zip(tests, plain, strict=True) if ending.is_well]
        endings = dict(zip(well, each(well, served=True), strict=True))
    for test in [test for test, ending in endings.items() if not ending.is_well]:
        endings[test] = run(root, test, options.limit, served=True)
    failed = [{"test": str(test), "output": ending.text}
              for test, ending in endings.items() if not ending.is_well]  # fmt: skip
    compressed = sum(ending.compressed for ending in endings.values())
    return Folder(name, len(tests), len(well), compressed, failed)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="MPICH's source, as a tar file")
    parser.add_argument("--build", type=Path, default=Path("build/mpich-tests"),
                        help="where they are built; default build/mpich-tests")  # fmt: skip
    parser.add_argument("--folders", nargs="+", default=FOLDERS, metavar="FOLDER")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="default 60")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time; default 2")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    root = built(options.source, options.build.resolve())
    version = subprocess.run([BIN / "mpichversion"], capture_output=True, text=True).stdout
    document: dict[str, Any] = {
        "format": 1, "kind": "program-mpich-tests", "date": time.strftime("%Y-%m-%d"),
        "commit": git_commit(), "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)), "source": options.source.name,
        "mpi": version.splitlines()[0].split(":")[-1].strip() if version else "unknown",
        "rows": [],
    }  # fmt: skip
    folders = []
    for name in options.folders:
        folders.append(measured(root, name, options))
        print(f"{name}: {folders[-1].line()[3]} with mpress, too", flush=True)
        for one in folders[-1].failed:
            print(f"with mpress: {one['test']}\n{one['output']}", file=sys.stderr)
    print("\n" + table(HEADINGS, [one.line() for one in (*folders, total(folders))]))
    document["rows"] = [vars(folder) for folder in folders]
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if any(folder.failed for folder in folders) else 0


if __name__ == "__main__":
    sys.exit(main())
