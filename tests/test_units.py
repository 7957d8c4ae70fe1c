"""Runs the C++ unit tests: programs that report by their exit status."""

from pathlib import Path

import pytest
from execution import ROOT, execute

TESTS = ROOT / "tests"
NAMES = sorted(
    str(path.relative_to(TESTS).with_suffix(""))
    for folder in ("codec", "unit")
    for path in (TESTS / folder).glob("*_test.cpp")
)


@pytest.mark.parametrize("name", NAMES)
def test_unit(name: str, build_dir: Path) -> None:
    program = build_dir / "tests" / name
    assert program.exists(), "not built: cmake --build build --target mpress_tests"
    done = execute([program])
    assert done.status == 0, done.output
