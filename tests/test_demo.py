"""The demo of apps/wave, on a small grid: does it run through, and do its checks catch errors?"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

WAVE = Path(__file__).parents[1] / "apps" / "wave"


@pytest.fixture
def demo(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(WAVE))
    spec = importlib.util.spec_from_file_location("wave_demo", WAVE / "demo.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "wave_demo", module)
    spec.loader.exec_module(module)
    return module


def test_demo_runs_through(demo, mpi, monkeypatch, tmp_path, capsys):
    for name, value in mpi.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(demo, "CELLS", (64, 40, 40))
    monkeypatch.setattr(demo, "STEPS", 300)
    monkeypatch.setattr(demo, "SNAPSHOT_EVERY", 100)
    monkeypatch.setattr(demo, "SHOWN", range(100, 301, 100))
    monkeypatch.setattr(demo, "ROUNDS", 1)
    monkeypatch.setattr(demo, "PACED_ROUNDS", 1)
    # Its fields come in a package that the tests do not need otherwise.
    monkeypatch.setattr(demo, "inspect_fields", lambda: None)
    demo.demonstrate(tmp_path)
    printed = capsys.readouterr().out
    for expected in ("same bits", demo.LOSSY, "SIMULATED", "When does it pay?", "break even"):
        assert expected in printed
    for picture in ("wave-field.png", "wave-error.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "mpc-000300.f32").read_bytes() == (tmp_path / "off-000300.f32").read_bytes()


def runs(demo, tmp_path, lossless_error=0.0, lossy_error=0.0, compressed=1):
    field = np.linspace(-100, 100, 64, dtype=np.float32)
    errors = {"off": 0.0, demo.LOSSLESS: lossless_error, demo.LOSSY: lossy_error}
    result = []
    for number, (codec, error) in enumerate(errors.items()):
        path = tmp_path / f"{number}.f32"
        (field + np.float32(error)).tofile(path)
        report = {"totals": {"compressed_messages": compressed}}
        result.append(demo.Run(codec, 1.0, 1e-3, {"000001": path}, report))
    return result


def test_checks_pass_within_tolerance(demo, tmp_path):
    demo.check(runs(demo, tmp_path, lossy_error=0.9 * demo.TOLERANCE * 100))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"lossless_error": 1e-5}, "mpc changed"),
        ({"lossy_error": 0.5}, "changed the result by 0.005"),
        ({"lossy_error": float("nan")}, "changed the result by nan"),
        ({"compressed": 0}, "no message was compressed"),
    ],
)
def test_checks_catch(demo, tmp_path, fault, message):
    with pytest.raises(demo.DemoError, match=message):
        demo.check(runs(demo, tmp_path, **fault))
