"""The command line: what it prints, what it refuses, what `run` passes on."""

import json
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import netCDF4
import numpy as np
import pytest
from execution import BIN, execute

MPRESS = BIN / "mpress"


def mpress(*args, env=None, cwd=None):
    return execute([MPRESS, *args], env=env, cwd=cwd)


@pytest.fixture
def field(tmp_path: Path) -> Path:
    path = tmp_path / "field.npy"
    values = np.sin(np.arange(6000) * 0.01).astype(np.float32).reshape(20, 300)
    values[3, 4] = np.nan
    np.save(path, values)
    return path


def refused(done, *culprits: str) -> None:
    """One sentence on stderr, exit status 2, nothing else."""
    assert done.status == 2, done.output
    assert done.stderr.startswith("mpress: ") and done.stderr.count("\n") == 1, done.stderr
    for culprit in culprits:
        assert culprit in done.stderr
    assert done.stdout == ""


def test_inspect_default_specs(field):
    done = mpress("inspect", field, "--repeat", "1")
    assert done.status == 0, done.output
    for spec in ("mpc", "zfp:8", "zfp:16", "szp:rel=1e-3", "szp:rel=1e-4"):
        assert spec in done.stdout
    assert "20 x 300 float32" in done.stdout
    assert "exact" in done.stdout and "NO" not in done.stdout


def test_inspect_raw_files(tmp_path):
    values = np.linspace(0, 1, 5000)
    values.astype("<f4").tofile(tmp_path / "a.f32")
    values.astype("<f8").tofile(tmp_path / "b.f64")
    done = mpress("inspect", "a.f32", "b.f64", "--codec", "mpc", cwd=tmp_path)
    assert done.status == 0, done.output
    assert "5000 float32" in done.stdout and "5000 float64" in done.stdout


def test_inspect_netcdf_keeps_stored_values(tmp_path):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        dataset.createDimension("n", 4096)
        ta = dataset.createVariable("ta", "f4", ("n",), fill_value=1e20)
        ta[:] = np.ma.masked_less(np.arange(4096), 100)
        packed = dataset.createVariable("packed", "i2", ("n",))
        packed.scale_factor = 0.1
        packed[:] = 1.0
        dataset.createVariable("time", "f8", ())[...] = 3
    done = mpress("inspect", path, "--codec", "szp:rel=1e-3", "--repeat", "1")
    assert done.status == 0, done.output
    assert "a.nc:ta: 4096 float32" in done.stdout
    assert "1e+17" in done.stdout  # the fill value is data: it makes the range
    assert "packed left out: int16" in done.stdout
    assert "time left out: 1 elements" in done.stdout
    done = mpress("inspect", path, "--variable", "time", "--codec", "mpc")
    assert done.status == 0 and "a.nc:time: scalar float64" in done.stdout
    refused(mpress("inspect", path, "--variable", "tas"), "tas", "ta, packed, time")


def test_inspect_refuses(tmp_path, field):
    np.save(tmp_path / "whole.npy", np.arange(3))
    (tmp_path / "odd.f64").write_bytes(b"12345")
    (tmp_path / "text.npy").write_text("hello")
    (tmp_path / "bad.nc").write_text("hello")
    refused(mpress("inspect", tmp_path / "none.npy"), "none.npy")
    refused(mpress("inspect", tmp_path / "whole.npy"), "int64")
    refused(mpress("inspect", tmp_path / "odd.f64"), "5 bytes")
    refused(mpress("inspect", tmp_path / "text.npy"), "text.npy")
    (tmp_path / "empty.npy").write_bytes(b"")
    refused(mpress("inspect", tmp_path / "empty.npy"), "empty.npy: not a numpy file")
    refused(mpress("inspect", tmp_path / "bad.nc"), "bad.nc")
    refused(mpress("inspect", field.rename(tmp_path / "field.csv")), ".npy, .f32, .f64 or .nc")
    refused(mpress("inspect"), "FILE")


@pytest.mark.parametrize("spec", ["gzip", "zfp:40", "szp:abs=-1"])
def test_inspect_names_the_bad_spec(field, spec):
    refused(mpress("inspect", field, "--codec", spec), "--codec", spec)


def test_bench_codec(tmp_path):
    file = tmp_path / "result.json"
    done = mpress("bench", "codec", "--field", "rand", "--size", "256K", "--type", "f32,f64",
                  "--spec", "zfp:8", "--spec", "mpc", "--repeat", "1", "--json", file)  # fmt: skip
    assert done.status == 0, done.output
    document = json.loads(file.read_text())
    rows = {(row["type"], row["spec"]): row for row in document["rows"]}
    assert set(rows) == {(t, s) for t in ("f32", "f64") for s in ("zfp:8", "mpc")}
    assert rows["f32", "mpc"]["identical"] and rows["f32", "mpc"]["keeps_promise"]
    assert rows["f64", "zfp:8"]["ratio"] == pytest.approx(8, rel=0.01)
    assert rows["f64", "zfp:8"]["libzfp_encode_rate"] > 0
    assert document["cpu"] and document["date"] and document["versions"]["zfpy"]


@pytest.mark.parametrize("args, culprit", [
    (("--field", "sea"), "sea"), (("--size", "10"), "10"), (("--size", "1X"), "1X"),
    (("--type", "f16"), "f16"), (("--spec", "zfp"), "--spec"),
    (("--type", "f64", "--spec", "zfp:2.25"), "zfp:2.25"), (("--json", "/no/x.json"), "/no/x.json"),
])  # fmt: skip
def test_bench_codec_refuses(args, culprit):
    refused(mpress("bench", "codec", *args), culprit)


def test_info_lists_every_knob():
    done = mpress("info", env={"MPRESS_THRESHOLD": "123K"})
    assert done.status == 0, done.output
    for name in ("MPRESS_CODEC", "MPRESS_FORCE", "MPRESS_DISABLE_P2P", "mpress_threshold"):
        assert name in done.stdout
    assert "123K" in done.stdout and "libmpress_preload.so" in done.stdout
    assert "messages on GPUs" in done.stdout


@pytest.mark.parametrize("command", [["info"], ["run", "--", "true"]])
def test_unknown_variables_are_errors(command):
    refused(mpress(*command, env={"MPRESS_TRESHOLD": "1"}), "MPRESS_TRESHOLD", "MPRESS_THRESHOLD?")
    refused(mpress(*command, env={"MPRESS_CODEC": "zip"}), "MPRESS_CODEC", "zip")


@pytest.mark.parametrize("args, culprit", [
    (("--codec", "zip"), "--codec"), (("--threshold", "-1"), "--threshold"),
    (("--threshold", "1T"), "1T"), (("--link-rate", "fast"), "--link-rate"),
    (("--link-rate", "0Gbit"), "0Gbit"), (("-n", "0"), "-n"), (("-n", "two"), "-n"),
    (("--report", "/no/where/r.json"), "--report"), (("--report", "/tmp"), "directory"),
    (("-n", "2", "--mpiexec", "no-such-mpiexec"), "--mpiexec"), (("--frce",), "--frce"),
    (("--report", "r.json", "--trace", "r.json"), "--trace r.json"),
])  # fmt: skip
def test_run_refuses(args, culprit):
    refused(mpress("run", *args, "--", "true"), culprit)


@pytest.mark.parametrize("args, culprit", [
    (("--seconds", "nan"), "--seconds nan"), (("--seconds", "-1"), "--seconds -1"),
    (("--sizes", "1M-"), "--sizes 1M-"), (("--sizes", "64K-1K"), "the smaller size first"),
    (("--sizes", "1K,,2K"), "--sizes 1K,,2K"), (("--mpiexec", ""), "mpress: --mpiexec ''"),
    (("--plot", "curves.bmp"), ".pdf, .png or .svg"),
    (("--type", "f64", "--spec", "zfp:2.25"), "--spec"),
])  # fmt: skip
def test_bench_latency_refuses(args, culprit):
    """Before anything is measured, and once."""
    refused(mpress("bench", "latency", *args), culprit)


def test_tune_refuses():
    refused(mpress("tune", "--seconds", "inf"), "--seconds inf")


def test_version():
    assert mpress("--version").stdout == f"{version('mpress')}\n"


def test_run_needs_a_program():
    refused(mpress("run", "-n", "2"), "PROGRAM")
    refused(mpress("run", "--", "no-such-program"), "no-such-program")


def printing_environment() -> list[str]:
    """Prints what matters of the environment, as one short write: lines of ranks stay whole."""
    code = (
        "import json, os; wanted = ('MPRESS_', 'LD_PRELOAD'); "
        "line = json.dumps({k: v for k, v in os.environ.items() if k.startswith(wanted)}); "
        "os.write(1, (line + '\\n').encode())"
    )
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("ranks", [None, 2])
def test_run_sets_up_the_ranks(ranks, tmp_path):
    options = [] if ranks is None else ["-n", str(ranks)]
    done = mpress("run", *options, "--codec", "szp:abs=1e-3", "--force", "--threshold", "8K",
                  "--link-rate", "1Gbit", "--measure-error", "--report", "r.json", "--",
                  *printing_environment(), cwd=tmp_path)  # fmt: skip
    assert done.status == 0, done.output
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(seen) == (ranks or 1)
    assert len({env["MPRESS_JOB"] for env in seen}) == 1
    for env in seen:
        assert env["LD_PRELOAD"].endswith("libmpress_preload.so")
        assert env["MPRESS_CODEC"] == "szp:abs=0.001" and env["MPRESS_FORCE"] == "1"
        assert env["MPRESS_THRESHOLD"] == "8192"
        assert float(env["MPRESS_LINK_RATE"]) == 1.25e8
        assert env["MPRESS_MEASURE_ERROR"] == "1"
        assert env["MPRESS_REPORT"] == str(tmp_path / "r.json")
        assert len(env["MPRESS_JOB"]) == 32 and int(env["MPRESS_JOB"], 16)
    assert not (tmp_path / "r.json.ranks").exists()


def test_run_without_options_leaves_settings_alone():
    done = mpress("run", "--", *printing_environment(), env={"MPRESS_CODEC": "zfp:8"})
    env = json.loads(done.stdout)
    assert env["MPRESS_CODEC"] == "zfp:8" and "MPRESS_FORCE" not in env
    assert not os.path.exists(env["MPRESS_RECORD"])


def test_run_keeps_other_preloads():
    libc = "libm.so.6"
    done = mpress("run", "--", *printing_environment(), env={"LD_PRELOAD": libc})
    theirs, ours = json.loads(done.stdout)["LD_PRELOAD"].split(":")
    assert ours.endswith("libmpress_preload.so") and theirs == libc


@pytest.mark.parametrize("script, status", [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)])
def test_run_returns_the_programs_status(script, status):
    assert mpress("run", "--", "sh", "-c", script).status == status


def test_run_through_the_launcher_returns_its_status(tmp_path):
    done = mpress("run", "-n", "2", "--report", "r.json", "--", "sh", "-c", "exit 3", cwd=tmp_path)
    assert done.status == 3
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["exit_status"] == 3 and report["ranks"] == []
    assert done.stderr == ""


def test_options_behind_the_program_are_its_own():
    done = mpress("run", "echo", "-n", "--codec")
    assert done.status == 0 and done.stdout == "--codec"


def test_another_launcher(tmp_path):
    launcher = tmp_path / "launch"
    launcher.write_text('#!/bin/sh\necho launched $1 $2 $3\nshift 3\nexec "$@"\n')
    launcher.chmod(0o755)
    done = mpress("run", "-n", "3", "--mpiexec", f"{launcher} --fast", "--", "echo", "program")
    assert done.stdout == "launched --fast -n 3\nprogram\n"


@pytest.fixture
def report(mpress_run, mpi_program, tmp_path) -> Path:
    done = mpress_run(2, mpi_program("p2p"), options=["--codec", "mpc", "--force"])
    assert done.status == 0, done.output
    return Path(shutil.copy(tmp_path / "report.json", tmp_path / "kept.json"))


def test_report_tables(report):
    done = mpress("report", report)
    assert done.status == 0, done.output
    totals = json.loads(report.read_text())["totals"]
    assert totals["compressed_messages"] > 0
    assert (
        f"{totals['messages']}, of which {totals['compressed_messages']} compressed" in done.stdout
    )
    assert "MPI_Isend" in done.stdout and "mpc" in done.stdout
    assert "below the threshold" in done.stdout
    assert "peer" in mpress("report", report, "--peers").stdout


def test_report_pictures(report, tmp_path):
    done = mpress("report", report, "--plot", tmp_path / "plots", "--png", tmp_path / "a.png")
    assert done.status == 0, done.output
    assert (tmp_path / "plots" / "report.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "plots" / "report.svg").read_text()


def test_report_refuses(tmp_path, report):
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "other.json").write_text("{}")
    refused(mpress("report", tmp_path / "none.json"), "none.json")
    refused(mpress("report", tmp_path / "text.json"), "text.json")
    refused(mpress("report", tmp_path / "other.json"), "not a report")
    document = json.loads(report.read_text()) | {"format": 99}
    (tmp_path / "newer.json").write_text(json.dumps(document))
    refused(mpress("report", tmp_path / "newer.json"), "99")
    del document["ranks"], document["totals"]["errors"]
    (tmp_path / "part.json").write_text(json.dumps(document | {"format": 1}))
    refused(mpress("report", tmp_path / "part.json"), "lacks ranks, totals.errors")
    refused(mpress("report", report, "--png", tmp_path / "a.bmp"), "--png", ".pdf, .png or .svg")
    refused(mpress("report", report, "--plot", report), "--plot", "cannot be made")


@pytest.mark.parametrize("args, culprit", [(["--bogus"], "--bogus"), (["rnu"], "rnu")])
def test_unknown_commands_and_options(args, culprit):
    refused(mpress(*args), culprit)
