"""apps/wave on its own, without mpress: is it a correct solver, alike on any number of ranks?"""

import subprocess
from pathlib import Path

import numpy as np
import pytest

SOURCES = sorted((Path(__file__).parents[1] / "apps" / "wave").glob("*.c"))


@pytest.fixture(scope="session")
def wave_program(tmp_path_factory, mpi):
    program = tmp_path_factory.mktemp("wave") / "wave"
    command = [mpi.mpicc, "-std=c11", "-O2", "-ffp-contract=off", "-o", program, *SOURCES]
    subprocess.run([*command, "-lm"], check=True)
    return program


@pytest.fixture
def wave(wave_program, mpirun, tmp_path, monkeypatch):
    """Runs the program in tmp_path: wave(ranks, "--option", value, ...)."""
    monkeypatch.chdir(tmp_path)

    def run(ranks, *options):
        return mpirun(ranks, wave_program, [str(option) for option in options])

    return run


def field(path, shape):
    return np.fromfile(path, np.float32).reshape(shape)


def ricker(time, frequency):
    argument = (np.pi * (frequency * time - 1.5)) ** 2
    return (1 - 2 * argument) * np.exp(-argument)


def test_snapshots_do_not_depend_on_the_ranks(wave, tmp_path):
    options = ["--grid", "37x41x30", "--sponge", 6, "--steps", 40, "--snapshot-every", 25]
    cases = {"1": [], "2": [], "3": [], "4": [], "4s": ["--split", "1x2x2"], "5": []}
    for case, extra in cases.items():
        result = wave(case[0], *options, "--output", f"ranks{case}", *extra)
        assert result.status == 0, result.stderr
    for step in ("velocity", "000025", "000040"):
        expected = (tmp_path / f"ranks1-{step}.f32").read_bytes()
        assert len(expected) == 4 * 37 * 41 * 30
        assert any(expected)
        for case in cases:
            assert (tmp_path / f"ranks{case}-{step}.f32").read_bytes() == expected, (case, step)


def test_point_source_matches_the_exact_solution(wave, tmp_path):
    n, spacing, speed, frequency, time_step, steps = 72, 5.0, 2000.0, 30.0, 2e-4, 440
    np.full((2, 2, 2), speed, "<f4").tofile(tmp_path / "model")
    result = wave(
        2, "--grid", f"{n}x{n}x{n}", "--spacing", spacing, "--dt", time_step, "--steps", steps,
        "--frequency", frequency, "--sponge", 0, "--source", f"{n // 2},{n // 2},{n // 2}",
        "--amplitude", 1000, "--model", "model", "--model-dims", "2x2x2", "--output", "out",
    )  # fmt: skip
    assert result.status == 0, result.stderr
    pressure = field(tmp_path / f"out-{steps:06d}.f32", (n, n, n))
    distance = spacing * np.arange(10, n // 2)
    exact = 1000 / distance * ricker(steps * time_step - distance / speed, frequency)
    peak = np.abs(exact).max()
    assert peak > 5
    for line in (
        pressure[n // 2 + 10 :, n // 2, n // 2],
        pressure[n // 2, n // 2 + 10 :, n // 2],
        pressure[n // 2, n // 2, n // 2 + 10 :],
    ):
        np.testing.assert_allclose(line, exact, atol=0.02 * peak)


def test_sponge_absorbs_what_reaches_the_boundary(wave, tmp_path):
    np.full((2, 2, 2), 2000.0, "<f4").tofile(tmp_path / "model")
    energy = {}
    for sponge in (0, 20):
        result = wave(
            2, "--grid", "64x64x64", "--steps", 400, "--sponge", sponge, "--source", "32,32,32",
            "--model", "model", "--model-dims", "2x2x2", "--output", "out",
        )  # fmt: skip
        assert result.status == 0, result.stderr
        pressure = field(tmp_path / "out-000400.f32", (64, 64, 64))
        energy[sponge] = float(np.sum(pressure.astype(np.float64) ** 2))
    assert energy[20] < 0.002 * energy[0]


def test_a_section_is_extruded_and_resampled(wave, tmp_path):
    section = np.linspace(1.5, 4.5, 21 * 16, dtype="<f4").reshape(21, 16)
    section.tofile(tmp_path / "section")
    options = ["--model", "section", "--model-dims", "21x16", "--model-scale", 1000, "--sponge", 2]
    for grid, rows in (("21x12x16", slice(None)), ("41x12x16", slice(None, None, 2))):
        result = wave(3, "--grid", grid, "--steps", 1, "--output", "out", *options)
        assert result.status == 0, result.stderr
        shape = tuple(int(n) for n in grid.split("x"))
        velocity = field(tmp_path / "out-velocity.f32", shape)
        assert (velocity == velocity[:, :1, :]).all()
        np.testing.assert_allclose(velocity[rows, 0], 1000 * section, rtol=1e-6)


def test_builtin_model_has_water_and_salt(wave, tmp_path):
    result = wave(1, "--grid", "40x40x40", "--steps", 1, "--output", "out")
    assert result.status == 0, result.stderr
    velocity = field(tmp_path / "out-velocity.f32", (40, 40, 40))
    assert (velocity[:, :, 0] == 1500).all()
    assert velocity[16, 20, 24] == velocity.max() == 4480


def test_the_last_line_tells_speed_and_waiting(wave):
    result = wave(2, "--grid", "40x40x40", "--steps", 5)
    assert result.status == 0, result.stderr
    last = result.stdout.splitlines()[-1]
    assert "5 steps in" in last and "steps/s" in last and "waiting for halos" in last


def test_help(wave):
    result = wave(2, "--help")
    assert result.status == 0
    assert result.stdout.count("usage: wave") == 1


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        (["--grid", "64x64"], "--grid: '64x64'"),
        (["--grid", "64x64x0"], "--grid: '64x64x0'"),
        (["--steps"], "--steps needs a value"),
        (["--steps", "-3"], "--steps: '-3'"),
        (["--spacing", "nan"], "--spacing: 'nan'"),
        (["--bogus", "1"], "unknown option '--bogus'"),
        (["--dt", "0.1"], "a time step of 0.1 s is unstable"),
        (["--split", "3x1x1"], "--split 3x1x1 does not suit 2 ranks"),
        (["--grid", "40x40x7", "--sponge", "1", "--split", "1x1x2"], "7 cells along z are too few"),
        (["--source", "0,0,500"], "z = 500 lies outside"),
        (["--sponge", "64"], "a sponge of 64 cells"),
        (["--model", "short"], "--model needs --model-dims"),
        (["--model-dims", "3x4"], "--model-dims without --model"),
        (["--model", "missing", "--model-dims", "3x4"], "cannot open model 'missing'"),
        (["--model", "short", "--model-dims", "3x4"], "'short' holds less than the 48 bytes"),
        (["--model", "short", "--model-dims", "3x2"], "'short' holds more than the 24 bytes"),
        (["--model", "short", "--model-dims", "5x2"], "velocities from 1.5 to 1.5 m/s"),
        (["--output", "missing/out"], "cannot write 'missing/out-velocity.f32'"),
    ],
)
def test_wrong_input_is_named_once(wave, tmp_path, options, culprit):
    np.full(10, 1.5, "<f4").tofile(tmp_path / "short")
    result = wave(2, *options)
    assert result.status != 0
    complaints = [line for line in result.stderr.splitlines() if line.startswith("wave: ")]
    assert len(complaints) == 1
    assert culprit in complaints[0]
