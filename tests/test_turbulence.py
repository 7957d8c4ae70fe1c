"""apps/turbulence: right beside the theory of short times, alike on any number of ranks?"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[1] / "apps" / "turbulence" / "turbulence.py"
sys.path.insert(0, str(PROGRAM.parent))

from published import DNS_1600, early_dissipation, model_spectrum  # noqa: E402

POINTS = 32


def results(prefix, ranks):
    slabs = [np.load(f"{prefix}-velocity-{rank}.npy") for rank in range(ranks)]
    return json.loads(Path(f"{prefix}.json").read_text()), np.concatenate(slabs, axis=1)


@pytest.fixture
def turbulence(mpirun, mpi4py_env, tmp_path):
    """Runs the program without mpress: turbulence(ranks, "--option", value, ...) is what it tells,
    and the velocity at the end."""

    def run(ranks, *options):
        words = [PROGRAM, "--points", POINTS, "--output", tmp_path / "run", *options]
        done = mpirun(ranks, sys.executable, [str(word) for word in words], env=mpi4py_env)
        assert done.status == 0, done.output
        return results(tmp_path / "run", ranks)

    return run


def vortex():
    at = 2 * np.pi / POINTS * np.arange(POINTS)
    x, y, z = np.meshgrid(at, at, at, indexing="ij")
    u, v = np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z)
    return np.stack([u, v, np.zeros_like(u)])


def test_short_times(turbulence):
    reynolds = 100
    told, _ = turbulence(2, "--reynolds", reynolds, "--until", 0.5, "--step", 1 / 32)
    t = np.array(told["times"])
    np.testing.assert_allclose(told["dissipation"], early_dissipation(t, reynolds), rtol=4e-3)
    assert told["energy"][0] == pytest.approx(1 / 8, rel=1e-6)
    lost = (
        np.trapezoid(told["dissipation"], t)
        if hasattr(np, "trapezoid")
        else np.trapz(told["dissipation"], t)
    )
    assert told["energy"][0] - told["energy"][-1] == pytest.approx(lost, rel=1e-3)
    assert max(told["divergence"]) < 1e-6
    assert sum(told["spectrum"]) == pytest.approx(told["energy"][-1], rel=1e-5)
    assert len(told["step_seconds"]) == len(told["transpose_seconds"]) == len(t) - 1


def test_any_number_of_ranks(turbulence):
    options = ("--until", 1, "--step", 1 / 16)
    _, alone = turbulence(1, *options)
    assert np.abs(alone - vortex()).max() > 0.1  # it has moved on
    for ranks in (2, 4):
        _, velocity = turbulence(ranks, *options)
        np.testing.assert_allclose(velocity, alone, atol=5e-6)


def test_ranks_that_do_not_divide(mpirun, mpi4py_env):
    done = mpirun(3, sys.executable, [str(PROGRAM), "--points", "32"], env=mpi4py_env)
    assert done.status != 0 and "3 ranks do not divide it" in done.output


def test_the_model_of_spectra_has_the_energy_and_the_dissipation():
    """At high Reynolds numbers, for which its constants are."""
    k = np.geomspace(1e-3, 1e6, 50000)
    spectrum = model_spectrum(k, 0.09, 0.013, 1e-5)
    assert np.trapezoid(spectrum, k) == pytest.approx(0.09, rel=0.03)
    assert np.trapezoid(2e-5 * k**2 * spectrum, k) == pytest.approx(0.013, rel=0.01)


def test_beside_the_published_and_beside_none(
    served_programs, mpi, mpi4py_env, monkeypatch, tmp_path, capsys
):
    """The demo, of a small size: at early times few points resolve the flow."""
    for name, value in {**mpi.env, **mpi4py_env}.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("turbulence_demo", PROGRAM.parent / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "turbulence_demo", demo)
    spec.loader.exec_module(demo)
    served_programs(demo)
    words = ["--points", "24", "--until", "2", "--codecs", "mpc", "zfp:24", "szp:rel=1e-6"]
    runs = {}
    monkeypatch.setattr(demo, "draw", lambda path, plain, others: runs.update(
        {one.codec: one for one in (plain, *others)}))  # fmt: skip
    words += ["--output", str(tmp_path), "--mpiexec", str(mpi.mpiexec)]
    monkeypatch.setattr(sys, "argv", ["demo.py", *words])
    demo.main()
    assert "beside the published solution" in capsys.readouterr().out
    plain = runs["none"]
    assert demo.beside_model(plain).row_count == 3  # wave numbers 2 to 3, 4 to 7, and 8
    for time in (0, 1, 2):
        for name, published in zip(("energy", "dissipation"), DNS_1600[time], strict=True):
            assert plain.at(name, time) == pytest.approx(published, rel=5e-3)
    assert demo.largest(plain, runs["mpc"]) == 0
    assert 0 < demo.largest(plain, runs["zfp:24"]) <= 1e-5
    assert 0 < demo.largest(plain, runs["szp:rel=1e-6"]) <= 1e-4
