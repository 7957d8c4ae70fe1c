"""apps/turbulence: right beside the theory of short times, alike on any number of ranks?"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[1] / "apps" / "turbulence" / "turbulence.py"
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
    """Mean dissipation by Taylor and Green, Proc. R. Soc. A 158 (1937): a series in time."""
    reynolds = 100
    told, _ = turbulence(2, "--reynolds", reynolds, "--until", 0.5, "--step", 1 / 32)
    t, r = np.array(told["times"]), reynolds
    series = 1 - 6 * t / r + (5 / 48 + 18 / r**2) * t**2 - (5 / 3 + 36 / r**2) * t**3 / r
    np.testing.assert_allclose(told["dissipation"], 0.75 / r * series, rtol=4e-3)
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
