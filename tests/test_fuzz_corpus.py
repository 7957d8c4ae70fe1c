"""Gives the fuzz targets the inputs that fuzzing kept: those that reach all their code, and past
findings. The targets are built as plain programs; `make fuzz` is what looks for new inputs."""

import sys
from pathlib import Path

import pytest
from execution import ROOT, execute

sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
import archive

CODECS = ("mpc", "zfp", "szp")
TARGETS = ["frame", *(f"{kind}_{codec}" for kind in ("decode", "roundtrip") for codec in CODECS)]


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(target: str, build_dir: Path, tmp_path: Path) -> None:
    program = build_dir / "tests" / "fuzz" / target
    assert program.exists(), "not built: cmake --build build --target mpress_tests"
    folders = archive.folders(target, tmp_path)
    inputs = [path for folder in folders for path in folder.iterdir()]
    assert len(inputs) > 80
    done = execute([program, *folders])
    assert done.status == 0, f"the last input was the finding:\n{done.output[-2000:]}"
    assert len(done.stdout.splitlines()) == len(inputs)
