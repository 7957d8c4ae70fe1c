"""Gives the fuzz targets the inputs that fuzzing kept: those that reach all their code, and past
findings. The targets are built as plain programs; `make fuzz` is what looks for new inputs."""

from pathlib import Path

import pytest
from conftest import ROOT, execute

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
CODECS = ("mpc", "zfp", "szp")
TARGETS = ["frame", *(f"{kind}_{codec}" for kind in ("decode", "roundtrip") for codec in CODECS)]


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(target: str, build_dir: Path) -> None:
    program = build_dir / "tests" / "fuzz" / target
    assert program.exists(), "not built: cmake --build build --target mpress_tests"
    inputs = sorted((CORPUS / target).iterdir())
    assert inputs
    done = execute([program, CORPUS / target], timeout=300)
    assert done.status == 0, f"the last input was the finding:\n{done.output[-2000:]}"
    assert len(done.stdout.splitlines()) == len(inputs)
