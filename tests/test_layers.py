"""Files of src include what src/layers.ini lets them, and the check finds those that do not."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402

TABLE = """
[low]
holds = low
may include =
[high]
holds = high, low/odd.hpp
may include = low/*
"""


def test_layers():
    assert check_layers.check(ROOT / "src") == []


@pytest.fixture
def tree(tmp_path):
    def make(files: dict[str, str], table: str = TABLE) -> list[str]:
        (tmp_path / "layers.ini").write_text(table)
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check_layers.check(tmp_path)

    return make


def test_violations(tree):
    files = {
        "low/a.hpp": '#include "high/b.hpp"\n',
        "low/deep/c.hpp": '#include "low/a.hpp"\n#include "absent.hpp"\n',
        "low/odd.hpp": '#include "low/deep/c.hpp"\n',
        "high/b.hpp": '  # include "low/a.hpp"\n#include <vector>\n',
    }
    upward = "low/a.hpp includes high/b.hpp, which low may not: layers.ini"
    too_deep = "low/odd.hpp includes low/deep/c.hpp, which high may not: layers.ini"
    assert tree(files) == [upward, too_deep]


def test_order_and_strangers(tree):
    table = TABLE.replace("may include =\n", "may include = high\n")
    assert tree({}, table=table) == ["low may include high, which does not stand before it"]
    assert tree({"lost/a.cpp": ""}) == ["lost/a.cpp belongs to no layer"]
