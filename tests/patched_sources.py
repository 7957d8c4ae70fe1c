"""A copy of the sources with something of the tests' own, and the patch that makes it known."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copy_sources(tree: Path, patch: Path, own: Iterable[tuple[Path, str]]) -> None:
    """To `tree`, which is made; `own`: files, and the folder that each goes to."""
    for name in ("cmake", "include", "src", "tests"):
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "CMakeLists.txt", tree)
    for source, folder in own:
        (tree / folder).mkdir(exist_ok=True)
        shutil.copy(source, tree / folder)
    subprocess.run(["git", "apply", patch], cwd=tree, check=True)


def check_touched(tree: Path, patch: Path, touched: tuple[str, ...]) -> None:
    """The patch touches these files and no other, each with the dummy's name."""
    assert tuple(re.findall(r"^\+\+\+ b/(.*)$", patch.read_text(), re.MULTILINE)) == touched
    for name in touched:
        assert "dummy" in (tree / name).read_text()
