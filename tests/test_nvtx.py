"""Ranges of the CUDA twins' calls, as a profiler gets them. Needs no GPU."""

from pathlib import Path

import pytest
from execution import execute

from mpress import _core

pytestmark = pytest.mark.skipif(not _core.build_info()["cuda"], reason="built without CUDA")


def test_a_profiler_sees_every_call(build_dir: Path) -> None:
    folder = build_dir / "tests"
    tool = folder / "libnvtx_tool.so"
    assert tool.exists(), "not built: cmake --build build --target mpress_tests"
    done = execute([folder / "nvtx_calls"], env={"NVTX_INJECTION64_PATH": str(tool)})
    assert done.status == 0, done.output
    assert done.stdout.splitlines() == [
        "mpress: encode none f64, 3 segments, 24000 bytes",
        "end",
        "mpress: decode none f32, 28 bytes",
        "end",
        "mpress: add none f32, 0 segments, 0 bytes",
        "end",
        "mpress: encode szp:abs=0.001 f32, 0 segments, 0 bytes",
        "end",
    ]


def test_without_a_profiler_calls_are_silent(build_dir: Path) -> None:
    done = execute([build_dir / "tests" / "nvtx_calls"])
    assert (done.status, done.output) == (0, "")
