"""apps/wave on its own, without mpress: is it a correct solver, alike on any number of ranks? And
with its halos in memory of GPUs."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_programs import simulated_gpu_library, yielding
from execution import execute

pytestmark = pytest.mark.xdist_group("wave_app")  # programs are compiled once
ROOT = Path(__file__).parents[1]
WAVE = ROOT / "apps" / "wave"
SOURCES = sorted(WAVE.glob("*.c"))
NVCC = shutil.which("nvcc")


def load_program():
    """apps/wave/program.py"""
    spec = importlib.util.spec_from_file_location("wave_program", WAVE / "program.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["wave_program"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def wave_program(tmp_path_factory, mpi, build_dir):
    program = tmp_path_factory.mktemp("wave") / "wave"
    command = [mpi.mpicc, "-std=c11", "-O2", "-ffp-contract=off", "-o", program, *SOURCES]
    subprocess.run([*command, yielding(build_dir), "-lm"], check=True)
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
    n, spacing, speed, frequency, time_step, steps = 60, 5.0, 2000.0, 35.0, 2e-4, 365
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


def test_several_shots_are_the_sum_of_single_ones(wave, tmp_path):
    """The equation is linear, and shots lie where the grid is divided evenly."""
    options = ["--grid", "48x40x30", "--sponge", 4, "--steps", 60]
    cases = {"both": ["--shots", "2x1", "--source", "0,0,9"]}
    cases |= {f"at{x}": ["--source", f"{x},20,9"] for x in (12, 36)}
    for case, extra in cases.items():
        result = wave(3, *options, *extra, "--output", case)
        assert result.status == 0, result.stderr
    both, *single = (field(tmp_path / f"{case}-000060.f32", (48, 40, 30)) for case in cases)
    assert np.abs(single[0]).max() > 0 and np.abs(single[1]).max() > 0
    np.testing.assert_allclose(both, single[0] + single[1], atol=1e-5 * np.abs(both).max())


def test_sponge_absorbs_what_reaches_the_boundary(wave, tmp_path):
    np.full((2, 2, 2), 2000.0, "<f4").tofile(tmp_path / "model")
    energy = {}
    for sponge in (0, 16):
        result = wave(
            2, "--grid", "48x48x48", "--steps", 300, "--sponge", sponge, "--source", "24,24,24",
            "--model", "model", "--model-dims", "2x2x2", "--output", "out",
        )  # fmt: skip
        assert result.status == 0, result.stderr
        pressure = field(tmp_path / "out-000300.f32", (48, 48, 48))
        energy[sponge] = float(np.sum(pressure.astype(np.float64) ** 2))
    assert energy[16] < 0.002 * energy[0]


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


def test_the_last_line_tells_of_the_timed_steps(wave):
    result = wave(2, "--grid", "40x40x40", "--steps", 9, "--untimed", 4)
    assert result.status == 0, result.stderr
    times = load_program().times(result.stdout)
    assert times.steps == 5
    assert times.time_step > 0
    assert times.step_seconds == pytest.approx(times.seconds / 5, abs=1e-3)
    assert times.flops == pytest.approx(36 * 40**3 / times.step_seconds, rel=0.05, abs=1e7)
    assert 0 <= times.waited_share <= 1


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
        (["--steps", "5", "--untimed", "5"], "--untimed 5 leaves none of 5 steps"),
        (["--shots", "2"], "--shots: '2'"),
        (["--device", "gpu"], "--device: 'gpu'"),
        (["--device", "cuda"], "--device cuda: this program was built without CUDA"),
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


@pytest.fixture(scope="session")
def device_program(tmp_path_factory, mpi, build_dir):
    """The program with packed faces in memory of simulated GPUs."""
    program = tmp_path_factory.mktemp("wave-device") / "wave"
    library = simulated_gpu_library(build_dir)
    command = [mpi.mpicc, "-std=c11", "-O2", "-ffp-contract=off", "-DWAVE_CUDA", "-o", program]
    command += ["-I", WAVE, "-I", ROOT / "tests" / "simulated_gpu", *SOURCES]
    command += [ROOT / "tests" / "wave_simulated_gpu.c", library, f"-Wl,-rpath,{library.parent}"]
    done = execute([*command, yielding(build_dir), "-lm"])
    assert done.status == 0, done.output
    return program


def test_halos_in_device_memory(wave, device_program, mpress_run, simulated_gpu, tmp_path):
    common = ["--grid", "50x44x40", "--sponge", "4", "--steps", "12"]
    result = wave(2, *common, "--output", "host")
    assert result.status == 0, result.stderr
    expected = (tmp_path / "host-000012.f32").read_bytes()
    assert any(expected)
    for split, codec in (("4x1x1", "none"), ("2x2x1", "mpc"), ("1x2x2", "none"), ("1x2x2", "mpc")):
        output = tmp_path / f"{split}-{codec}"
        arguments = [*common, "--split", split, "--device", "cuda", "--output", str(output)]
        done = mpress_run(
            4, device_program, arguments, ("--codec", codec, "--force", "--threshold", "0"),
            env=simulated_gpu,
        )  # fmt: skip
        assert done.status == 0, done.stderr
        totals = done.report["totals"]
        assert totals["errors"] == 0
        assert (totals["compressed_messages"] > 0) == (codec == "mpc")
        assert Path(f"{output}-000012.f32").read_bytes() == expected, (split, codec)


def test_a_rank_without_a_gpu_ends_the_job(device_program, mpirun, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_NONE": "1"}
    result = mpirun(2, device_program, ["--device", "cuda"], env=env)
    assert result.status != 0
    assert result.stderr.count("--device cuda: no GPU was found") == 1


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_the_cuda_solver_compiles(mpi, mpirun, tmp_path):
    program = tmp_path / "wave"
    load_program().build(program, mpi.mpicc, nvcc=NVCC, architecture="sm_90")
    result = mpirun(1, program, ["--grid", "40x40x40", "--steps", "2"])
    assert result.status == 0, result.output


@pytest.mark.cuda
@pytest.mark.parametrize("split", ["4x1x1", "2x2x1", "1x2x2"])
def test_gpus_compute_what_the_host_computes(split, mpi, tmp_path):
    """Bit for bit: both round alike."""
    assert NVCC is not None
    program = tmp_path / "wave"
    load_program().build(program, mpi.mpicc, nvcc=NVCC)
    options = ["--grid", "150x140x130", "--steps", "120", "--snapshot-every", "40"]
    options += ["--shots", "3x2", "--sponge", "10", "--split", split]
    run = [sys.executable, "-m", "mpress", "run", "-n", "4", "--mpiexec", mpi.mpiexec]
    for device, codec in (("cpu", "none"), ("cuda", "none"), ("cuda", "mpc")):
        name = tmp_path / f"{device}-{codec}"
        own = ["--codec", codec, "--force", "--threshold", "0", "--", program, "--device", device]
        done = execute([*run, *own, "--output", name, *options], mpi.env)
        assert done.status == 0, done.output
    for step in (40, 80, 120):
        expected = (tmp_path / f"cpu-none-{step:06d}.f32").read_bytes()
        assert any(expected)
        for name in ("cuda-none", "cuda-mpc"):
            assert (tmp_path / f"{name}-{step:06d}.f32").read_bytes() == expected, name
