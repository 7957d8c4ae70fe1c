"""The demos, of small sizes: do they run through, and do their checks catch errors?"""

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


def test_demo_runs_through(demo, served_programs, mpi, mpi4py_env, monkeypatch, tmp_path, capsys):
    served_programs(demo)
    for name, value in (mpi.env | mpi4py_env).items():
        monkeypatch.setenv(name, value)
    # As many ranks as a small machine has cores: more would wait for each other most of the time.
    monkeypatch.setattr(demo, "RANKS", 2)
    monkeypatch.setattr(demo, "SPLIT", (2, 1, 1))
    monkeypatch.setattr(demo, "CELLS", (48, 40, 40))
    monkeypatch.setattr(demo, "STEPS", 240)
    monkeypatch.setattr(demo, "SNAPSHOT_EVERY", 80)
    monkeypatch.setattr(demo, "SHOWN", range(80, 241, 80))
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
    assert (tmp_path / "mpc-000240.f32").read_bytes() == (tmp_path / "off-000240.f32").read_bytes()


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


@pytest.fixture
def three(monkeypatch):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("three_demo", WAVE.parent / "demo.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "three_demo", module)
    spec.loader.exec_module(module)
    return module


def test_three_programs(three, served_programs, tmp_path, capsys):
    """By the MPI of .venv/bin, which is the demo's, whichever is tested."""
    served_programs(three)
    small = [
        three.wave(tmp_path, (48, 40, 40), 60),
        three.turbulence(16, 100, 0.5),
        three.stacking(tmp_path, "256K", 2, 4),
    ]
    for program in small:
        plain, default, lossy = three.demonstrate(program, tmp_path)
        assert default.result.tobytes() == plain.result.tobytes()
        assert 0 < three.largest_error(plain, lossy) <= program.tolerance
        assert (tmp_path / f"{program.name}.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    # How much is gained depends on what else the machine has to do.
    assert printed.count("SIMULATED") == printed.count(" within a bound (") == 3


@pytest.mark.parametrize(
    ("changed", "lossy_error", "compressed", "message"),
    [
        (1e-9, 0, 1, "auto changed the result"),
        (0, 0.5, 1, "changed the result by 0.5"),
        (0, float("nan"), 1, "changed the result by nan"),
        (0, 0, 0, "nothing was compressed"),
    ],
)
def test_their_checks_catch(three, changed, lossy_error, compressed, message):
    program = three.turbulence(16, 100, 0.5)
    exact = np.ones(4)
    report = {"totals": {"compressed_messages": compressed}}
    results = {"none": exact, "auto": exact + changed, program.lossy: exact + lossy_error}
    runs = [three.Run(codec, 1.0, result, report) for codec, result in results.items()]
    with pytest.raises(three.DemoError, match=message):
        three.check(program, runs)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.5, "1.6 times as fast"), (4.1, "as fast"), (5.0, "SLOWER, 1.25 times as long")],
)
def test_what_is_slower_is_said_to_be(three, seconds, words):
    plain, other = (three.Run("none", taken, None, {}) for taken in (4.0, seconds))
    assert three.gain(plain, other) == words
