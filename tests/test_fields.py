"""The generated test fields have the statistics that their documentation promises."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mpress import fields


def plain_ratio(field, bound):
    """Ratio of the fixed-length code that the fields are calibrated with; bound / range."""
    values = field.astype(np.float64).ravel()
    quantised = np.rint(values / (2 * bound * np.ptp(values))).astype(np.int64).reshape(-1, 32)
    residuals = np.diff(quantised, axis=1, prepend=0)
    largest = np.abs(residuals).max(axis=1)
    width = np.ceil(np.log2(largest + 1))
    return field.nbytes / np.sum(1 + np.where(largest > 0, 4 + 4 * width, 0))


@pytest.mark.parametrize("name", fields.NAMES)
@pytest.mark.parametrize(("dtype", "real"), [("f32", np.float32), ("f64", np.float64)])
def test_shape_type_and_determinism(name, dtype, real):
    field = fields.make(name, (24, 20, 33), dtype, cache=False)
    assert field.shape == (24, 20, 33) and field.dtype == real
    assert field.flags.c_contiguous and np.isfinite(field).all()
    assert field.tobytes() == fields.make(name, (24, 20, 33), dtype, cache=False).tobytes()


def test_seeds_differ():
    for name in ("turb", "rand"):
        one = fields.make(name, (16, 16, 16), seed=5)
        assert (one != fields.make(name, (16, 16, 16), seed=6)).any()


def test_turbulence_has_the_kolmogorov_spectrum():
    field = fields.make("turb", (96, 96, 96), "f64")
    assert abs(field.mean()) < 1e-12 and field.std() == pytest.approx(1)
    power = np.abs(np.fft.fftn(field)) ** 2
    k = np.fft.fftfreq(96) * 96
    radius = np.sqrt(k[:, None, None] ** 2 + k[None, :, None] ** 2 + k[None, None, :] ** 2)
    shells = np.arange(4, 22)
    energy = [power[(radius >= n - 0.5) & (radius < n + 0.5)].sum() for n in shells]
    slope = np.polyfit(np.log(shells), np.log(energy), 1)[0]
    assert slope == pytest.approx(-5 / 3, abs=0.08)
    assert power[radius > 24.5].max() < 1e-12 * power.max()


def test_wave_is_empty_ahead_of_its_front():
    early = fields.make("wave_sparse", (96, 96, 96), cache=False)
    late = fields.make("wave", (96, 96, 96), cache=False)
    assert np.count_nonzero(early) < np.count_nonzero(late) < late.size
    assert plain_ratio(early, 1e-3) > 50 > plain_ratio(late, 1e-3) > 10


def test_noise_has_the_documented_ratio():
    assert plain_ratio(fields.make("rand", (128, 128, 128)), 1e-3) == pytest.approx(3.56, abs=0.01)


def test_cached_wave_is_the_computed_one(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shape = (24, 300, 200)
    computed = fields.make("wave", shape, cache=False)
    assert fields.make("wave", shape).tobytes() == computed.tobytes()
    (file,) = (tmp_path / "mpress").glob("wave-*.npy")
    assert fields.make("wave", shape).tobytes() == computed.tobytes()
    file.write_bytes(file.read_bytes()[:1000])
    assert fields.make("wave", shape).tobytes() == computed.tobytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("waves", (8, 8, 8)), "unknown field 'waves'"),
        (("rand", (8, 8, 8), "f16"), "unknown element type 'f16'"),
        (("turb", (8, 8)), "three extents"),
        (("wave", (8, 4, 8)), "at least 8"),
        (("rand", (8, 0)), "positive"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        fields.make(*arguments)


def test_command_line(tmp_path):
    program = Path(__file__).parents[1] / "bench" / "fields.py"
    out = tmp_path / "turb.f32"
    subprocess.run([sys.executable, program, "turb", "16x8x8", out], check=True)
    assert out.read_bytes() == fields.make("turb", (16, 8, 8)).tobytes()
    wrong = subprocess.run(
        [sys.executable, program, "turb", "16x8", out], capture_output=True, text=True
    )
    assert wrong.returncode == 1
    assert wrong.stderr.strip() == "fields: turb needs three extents, got (16, 8)"
