"""bench/wave_scaling.py on the host, on small grids: what it writes, and what becomes of it."""

import importlib.util
import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from execution import BIN, ROOT, execute
from served_cli import ServedProcess

pytestmark = pytest.mark.xdist_group("wave_scaling")  # of one run of the benchmark
BENCH = ROOT / "bench"
UNTAUGHT = {"MPRESS_PROFILE": "off", "MPRESS_LEARN": "off"}


@pytest.fixture(scope="module")
def written(bench, patched, mpi, mpi4py_env, tmp_path_factory) -> dict:
    file = tmp_path_factory.mktemp("scaling") / "wave.json"
    for name, value in {**UNTAUGHT, **mpi.env, **mpi4py_env}.items():
        patched.setenv(name, value)
    driver = bench("wave_scaling")
    # `mpress run` is served: to load it takes longer than the program.
    stand_in = types.SimpleNamespace(**vars(subprocess) | {"Popen": ServedProcess})
    patched.setattr(driver, "subprocess", stand_in)
    options = [
        "--device", "cpu", "--mpicc", mpi.mpicc, "--mpiexec", mpi.mpiexec, "--ranks", "1,2",
        "--box", "40x40x36", "--accuracy-box", "40x40x36", "--steps", "250", "--untimed", "130",
        "--repeat", "1", "--transports", "mpi", "--shot-spacing", "20", "--json", file,
    ]  # fmt: skip
    patched.setattr(sys, "argv", ["wave_scaling.py", *map(str, options)])
    driver.main()
    return json.loads(file.read_text())


def load_report(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location("report_wave", BENCH / "report_wave.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_codecs_and_their_errors(written):
    mpc, zfp, szp = written["accuracy"]["rows"]
    assert mpc["spec"] == "mpc" and mpc["max_error"] == 0
    assert zfp["spec"] == "zfp:8" and 0 < zfp["rms_error"] <= zfp["max_error"]
    assert szp["spec"] == f"szp:abs={written['accuracy']['bound']:g}"
    # The bound was chosen so.
    assert zfp["rms_error"] / 3 < szp["rms_error"] < 3 * zfp["rms_error"]


def test_rows(written):
    rows = {(row["ranks"], row["spec"]): row for row in written["rows"]}
    specs = ["none", *(row["spec"] for row in written["accuracy"]["rows"])]
    assert list(rows) == [(1, "none"), *((2, spec) for spec in specs)]
    for (ranks, spec), row in rows.items():
        assert row["step_seconds"] > 0 and row["flops"] > 0
        if ranks == 2:
            # A face of 4 layers a rank and step.
            assert row["raw_bytes"] == pytest.approx(4 * 4 * 40 * 36)
            assert (row["wire_bytes"] < 0.9 * row["raw_bytes"]) == (spec != "none"), spec


def test_sections_are_drawn(written, monkeypatch, tmp_path):
    report = load_report(monkeypatch)
    velocity = report.unpack(written["accuracy"]["sections"]["velocity"])
    assert velocity.shape == (36, 80)
    assert velocity[0] == pytest.approx(np.full(80, 1500), rel=0.02)
    picture = Path(tmp_path) / "sections.png"
    report.draw_sections(written["accuracy"], picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_steps_are_projected(written, tmp_path):
    for row in written["rows"]:  # whatever the machine does meanwhile: messages dominate
        row["step_seconds"] = 1e-4 if row["ranks"] == 1 else 3e-3
    file = tmp_path / "wave.json"
    file.write_text(json.dumps(written))
    done = execute([BIN / "mpress", "simulate", "--app", "wave", "--from", file, "--ranks", "8"])
    assert done.status == 0, done.output
    assert "8x1x1" in done.stdout
