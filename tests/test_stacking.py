"""apps/stacking: is the program, without mpress, right beside numpy? Does its demo run through, and
do its checks catch errors?"""

import importlib.util
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

STACKING = Path(__file__).parents[1] / "apps" / "stacking"
SHAPE, IMAGES, SHOTS, NOISE = (40, 64), 3, 5, 0.1
# As much of CuPy as the program uses, on the host; says which GPUs were used.
CUPY = """
import os
from numpy import *
from numpy import random
class cuda:
    class runtime:
        getDeviceCount = staticmethod(lambda: 2)
    class Device:
        def __init__(self, number):
            self.number = number
        def use(self):
            open(os.path.join(os.path.dirname(__file__), f"gpu-{self.number}"), "w").close()
    class get_current_stream:
        def synchronize(self):
            pass
"""


@pytest.fixture
def stacking(mpirun, mpi4py_env, tmp_path):
    """Runs the program without mpress: stacking(ranks, field, "--option", value, ...) is the last
    image's stack, and what the program tells."""

    def run(ranks, field, *options, env=None):
        np.save(tmp_path / "field.npy", field)
        arguments = ["--field", tmp_path / "field.npy", "--output", tmp_path / "stack", *options]
        words = [str(word) for word in (STACKING / "stacking.py", *arguments)]
        done = mpirun(ranks, sys.executable, words, env={**mpi4py_env, **(env or {})})
        assert done.status == 0, done.output
        return np.load(tmp_path / "stack.npy"), json.loads((tmp_path / "stack.json").read_text())

    return run


def noisy_stack(field):
    """The last image's, of the shots that the program's documentation promises."""
    image = field[(IMAGES - 1) % len(field)]
    image = (image - image.min()) / np.ptp(image)
    generators = (np.random.default_rng([IMAGES - 1, shot]) for shot in range(SHOTS))
    shots = (image + NOISE * one.standard_normal(SHAPE, dtype=np.float32) for one in generators)
    return sum(shots) / SHOTS


@pytest.mark.parametrize("ranks", [1, 3])
def test_by_mpi_alone(ranks, stacking, tmp_path):
    field = np.random.default_rng(1).uniform(250, 300, (2, *SHAPE))
    options = ("--image", "40x64", "--images", IMAGES, "--shots", SHOTS, "--noise", NOISE)
    stack, told = stacking(ranks, field, *options, "--parts")
    assert stack.dtype == np.float32
    np.testing.assert_allclose(stack, noisy_stack(field), atol=2e-6)
    parts = [np.load(tmp_path / f"stack-part-{rank}.npy") for rank in range(ranks)]
    np.testing.assert_allclose(stack, sum(parts), atol=1e-6)
    assert len(told["allreduce_seconds"]) == IMAGES and min(told["allreduce_seconds"]) > 0
    assert [len(digests) for digests in told["digests"]] == [ranks] * IMAGES
    assert all(len(set(digests)) == 1 for digests in told["digests"])


def test_images_larger_than_the_field(stacking):
    def wave(rows, columns):
        down, across = np.linspace(0, 3, rows)[:, None], np.linspace(0, 5, columns)
        values = np.sin(down) * np.cos(across)
        return (values - values.min()) / np.ptp(values)

    stack, told = stacking(1, wave(31, 41), "--image", "64K", "--shots", 1, "--noise", 0)
    assert told["shape"] == [128, 128] and told["bytes"] == 64 << 10
    np.testing.assert_allclose(stack, wave(128, 128), atol=5e-3)


def test_arrays_of_cupy(stacking, tmp_path):
    """What stands in for CuPy is numpy: the ranks take its GPUs in turn, the bits are the same."""
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(CUPY)
    field = np.random.default_rng(2).uniform(size=(20, 30))
    on_host, _ = stacking(2, field, "--image", "16K")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    env = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    on_device, told = stacking(2, field, "--image", "16K", "--device", env=env)
    assert told["device"] and on_device.tobytes() == on_host.tobytes()
    assert {path.name for path in (tmp_path / "cupy").glob("gpu-*")} == {"gpu-0", "gpu-1"}


@pytest.fixture
def demo(monkeypatch):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("stacking_demo", STACKING / "demo.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "stacking_demo", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "GENERATED", (32, 32, 32))
    return module


@pytest.fixture
def demonstrate(demo, served_programs, mpi, mpi4py_env, monkeypatch, tmp_path):
    """Runs the demo with small images: demonstrate("--option", ...) are the rows of its table."""

    served_programs(demo)

    def run(*options):
        for name, value in {**mpi.env, **mpi4py_env}.items():
            monkeypatch.setenv(name, value)
        small = ["--field", "turb", "--images", "2", "--shots", "3", "--output", str(tmp_path)]
        words = [*small, "--mpiexec", str(mpi.mpiexec), *options]
        demo.demonstrate(demo.parse_options(words))
        return json.loads((tmp_path / "results.json").read_text())

    return run


def test_demo_runs_through(demo, demonstrate, tmp_path, capsys):
    plain, exact, lossy, _ = demonstrate("--image", "256x128")
    printed = capsys.readouterr().out
    for expected in ("2 stacks of 3 shots", *demo.CODECS, "same bits", "pays below about"):
        assert expected in printed
    assert (tmp_path / "stack.png").read_bytes().startswith(b"\x89PNG")
    assert plain["psnr"] is exact["psnr"] is None
    assert 80 < lossy["psnr"] < 90 and lossy["ratio"] > 2


@pytest.mark.cuda
def test_demo_on_gpus(demonstrate):
    pytest.importorskip("cupy")
    _, raw, exact, lossy, _ = demonstrate("--image", "4M", "--device")
    assert raw["ratio"] == pytest.approx(1, abs=1e-3) and exact["ratio"] > 1
    assert 80 < lossy["psnr"] < 90


PARTS = np.random.default_rng(3).uniform(size=(3, 20, 30)).astype(np.float32)


def runs(demo, codec=None, error=0.0, ranks=3, alike=True, compressed=1):
    """Those of the demo, of which that with `codec` is at fault."""
    exact = PARTS[0] + PARTS[1] + PARTS[2]
    result = []
    for way in demo.ways_to_run(device=False):
        stack, digests, totals = exact.copy(), ["a"] * 3, {"compressed_messages": 1}
        if way.codec == codec:
            stack[7, 7] += error
            digests = ["a"] * (ranks - 1) + ["a" if alike else "b"]
            totals = {"compressed_messages": compressed}
        result.append(demo.Run(way, [1e-3], [["a"] * 3, digests], stack, {"totals": totals}))
    return result


def test_checks_pass_within_the_bound(demo):
    demo.check(runs(demo, demo.LOSSY, error=0.99 * demo.BOUND), PARTS)
    demo.check(runs(demo, demo.FIXED_RATE, error=0.01), PARTS)


@pytest.mark.parametrize(
    ("codec", "fault", "message"),
    [
        (None, {"error": 1e-5}, "plain: the stack is wrong by 1"),
        ("mpc", {"error": 1e-6}, "mpc: the stack is not the sum in the order of the ranks"),
        ("szp:abs=2e-4", {"error": 2.1e-4}, "the stack is wrong by 0.00021, the bound is 0.0002"),
        ("szp:abs=2e-4", {"error": float("nan")}, "the stack is wrong by nan"),
        ("szp:abs=2e-4", {"alike": False}, "the ranks got different stacks of image 1"),
        ("zfp:16", {"alike": False}, "zfp:16: the ranks got different stacks"),
        ("mpc", {"ranks": 2}, "mpc: the ranks got different stacks"),
        ("mpc", {"compressed": 0}, "mpc: nothing was sent compressed"),
    ],
)
def test_checks_catch(demo, codec, fault, message):
    with pytest.raises(demo.DemoError, match=message):
        demo.check(runs(demo, codec, **fault), PARTS)


def test_checks_catch_other_shots(demo, tmp_path):
    options = demo.parse_options(["--output", str(tmp_path)])
    for name, part in (("plain", PARTS[0]), ("mpc", PARTS[1])):
        np.save(tmp_path / f"{name}-part-0.npy", part)
    with pytest.raises(demo.DemoError, match="rank 0 took other shots"):
        demo.read_parts(tmp_path, options)


def test_a_run_that_fails(demo, demonstrate, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["demo.py", "--output", str(tmp_path), "--field", "no.npy"])
    with pytest.raises(SystemExit, match=r"no\.npy"):
        demo.main()
    with pytest.raises(demo.DemoError, match=r"ended with [1-9]"):
        demonstrate("--image", "0")
