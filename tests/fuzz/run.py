"""Run every fuzz target for a while on its kept corpus; exit status 1 where one found something.

A finding is left in FOLDER/findings/; inputs that reach new code in FOLDER/corpus/TARGET. With
--keep, the smallest inputs that reach all of it replace those of the archive (archive.py); past
findings, in tests/fuzz/regressions, stay.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import archive

ENVIRONMENT = os.environ | {"UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}


def fuzz(program: Path, seconds: int, folder: Path) -> bool:
    grown = folder / "corpus" / program.name
    findings = folder / "findings"
    grown.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    command = [
        program,
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-timeout=20",
        "-print_final_stats=1",
        f"-artifact_prefix={findings}/{program.name}-",
        grown,
        *kept(program, folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    runs = re.findall(r"number_of_executed_units: (\d+)", done.stderr)
    found = "nothing found" if done.returncode == 0 else "FOUND SOMETHING"
    print(f"{program.name}: {(runs or '?')[-1]} runs, {(covered or '?')[-1]} edges, {found}")
    sys.stdout.flush()
    if done.returncode != 0:
        print(done.stderr[-6000:], file=sys.stderr)
    return done.returncode == 0


def kept(program: Path, folder: Path) -> list[Path]:
    """The folders with the kept inputs of a target, as the repository has them."""
    shutil.rmtree(folder / "kept" / program.name, ignore_errors=True)
    return archive.folders(program.name, folder / "kept")


def smallest(program: Path, folder: Path) -> list[bytes]:
    """The fewest inputs that reach what all do, past findings apart."""
    chosen = folder / "smallest"
    shutil.rmtree(chosen, ignore_errors=True)
    chosen.mkdir()
    # Without counters one input an edge suffices, not one for each number of passes over it.
    options = ["-merge=1", "-use_counters=0", "-max_len=4096"]
    subprocess.run(
        [program, *options, chosen, *kept(program, folder), folder / "corpus" / program.name],
        check=True,
        env=ENVIRONMENT,
        capture_output=True,
    )
    named = archive.REGRESSIONS / program.name
    past = {path.read_bytes() for path in named.iterdir()} if named.is_dir() else set()
    inputs = [path.read_bytes() for path in chosen.iterdir()]
    print(f"{program.name}: {len(inputs)} inputs kept")
    return [content for content in inputs if content not in past]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the targets were built")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", action="store_true", help="keep what was learnt")
    options = parser.parse_args()
    programs = [
        path
        for path in sorted(options.folder.iterdir())
        if path.is_file() and os.access(path, os.X_OK)
    ]
    if not programs:
        sys.exit(f"{options.folder} holds no fuzz target: build mpress_fuzz")
    clean = [fuzz(program, options.seconds, options.folder) for program in programs]
    if options.keep:
        new = {program.name: smallest(program, options.folder) for program in programs}
        archive.write(archive.read() | new)
    sys.exit(0 if all(clean) else 1)


if __name__ == "__main__":
    main()
