"""What reports tell of errors, beside those that tests/mpi/errors_told finds."""

from __future__ import annotations

import re

import pytest
from execution import BIN, execute
from test_same_bits import several_hosts as several_hosts  # a fixture

EXTENDED = pytest.mark.extended
FORCED = ("--force", "--threshold", "0", "--measure-error")
REDUCTIONS = ("MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block")


@pytest.fixture
def told(mpi_program, mpress_run):
    """told(codec, arguments, ranks, env): by operation, what the report tells, the error found, and
    what rounding of sums may add; and the range of what ranks bring."""

    def run(codec, arguments, ranks=3, env=None, options=FORCED):
        program = mpi_program("errors_told")
        done = mpress_run(ranks, program, arguments.split(), ("--codec", codec, *options), env=env)
        assert done.status == 0, done.output
        errors: dict[str, tuple[float, float]] = {}
        for line in done.stdout.splitlines():
            name, error, rounding = line.split()
            known = errors.get(name, (0.0, 0.0))
            errors[name] = (max(known[0], float(error)), float(rounding))
        rows = {row["operation"]: row for row in done.report["accuracy"]}
        spread = errors.pop("range")[0]
        return {name: (rows.get(name), *errors[name]) for name in errors}, spread

    return run


def within(delivered: float, asked: float) -> bool:
    """A bound is not above what was asked for, nor by much below."""
    return 0.9 * asked <= delivered <= asked * (1 + 1e-15)


@pytest.mark.parametrize(
    ("codec", "arguments"),
    [
        ("szp:abs=1e-3", "noise f32 sum"),
        ("szp:rel=1e-5", "not_finite f64 sum"),
        pytest.param("szp:rel=1e-4", "smooth f32 sum", marks=EXTENDED),
        pytest.param("szp:rel=1e-4", "smooth f64 max", marks=EXTENDED),
        pytest.param("szp:abs=1e-9", "noise f64 sum", marks=EXTENDED),
    ],
)
def test_bounds_of_szp(codec, arguments, told):
    calls, spread = told(codec, arguments)
    asked = float(codec.partition("=")[2]) * (spread if "rel" in codec else 1)
    for name, (row, error, _) in calls.items():
        assert 0 < error <= row["error_bound"], name
        assert row["measured_error"] is None
        if name in REDUCTIONS or "abs" in codec:
            assert within(row["error_bound"], asked), name
        else:  # relative to what one rank sends
            assert row["error_bound"] <= asked * (1 + 1e-15), name
        assert row["codec"] == (None if name in REDUCTIONS else "szp")


def test_bounds_of_szp_on_several_hosts(told, several_hosts):
    """Where sums of a host's ranks are rounded, too, if elements are no quanta."""
    calls, _ = told("szp:abs=1e-4", "not_finite f32 sum", 4, several_hosts)
    for name in REDUCTIONS:
        row, error, _ = calls[name]
        assert row["algorithm"] == "by-host" and 0 < error <= row["error_bound"], name
        assert within(row["error_bound"], 1e-4), name


@pytest.mark.parametrize("codec", ["auto", "szp:abs=1e-12", pytest.param("none", marks=EXTENDED)])
def test_nothing_lost(codec, told):
    """Also where szp cannot keep its bound, and reductions are lossless."""
    calls, _ = told(codec, "noise f32 sum")
    served = REDUCTIONS if codec != "none" else ()
    for name in served:
        row, error, rounding = calls[name]
        assert row["error_bound"] == 0 and row["measured_error"] is None, name
        assert error <= rounding


@pytest.mark.parametrize(
    "arguments",
    [
        "smooth f32 sum",
        *(
            pytest.param(x, marks=EXTENDED)
            for x in ("smooth f64 sum", "not_finite f32 sum", "smooth f32 max")
        ),
    ],
)
def test_errors_of_zfp(arguments, told):
    check_measured(told("zfp:16", arguments)[0], arguments)


def test_errors_of_zfp_on_devices(told, simulated_gpu):
    calls, _ = told("zfp:12", "smooth f32 sum device", env=simulated_gpu)
    check_measured(calls, "smooth")


def test_errors_of_zfp_on_several_hosts(told, several_hosts):
    calls, _ = told("zfp:12", "smooth f32 sum", 4, several_hosts)
    assert calls["MPI_Allreduce"][0]["algorithm"] == "by-host"
    check_measured(calls, "smooth")


def check_measured(calls, arguments):
    for name, (row, error, rounding) in calls.items():
        assert row["error_bound"] is None, name
        assert 0 < error <= row["measured_error"] + rounding, name
        if "smooth" in arguments:
            assert row["measured_error"] <= 8 * error, name
        if name not in REDUCTIONS:
            assert row["measured_error"] == error, name


def test_of_relative_bounds_on_devices(told, simulated_gpu):
    """Of reductions all ranks know the range; of messages, the device alone that encodes them."""
    env = {**simulated_gpu, "MPRESS_LINK": "peer"}
    calls, spread = told("szp:rel=1e-4", "smooth f32 sum device", env=env)
    for name in REDUCTIONS:
        row, error, _ = calls[name]
        assert error <= row["error_bound"] and within(row["error_bound"], 1e-4 * spread), name


def test_nothing_is_measured_unless_asked_for(told):
    calls, _ = told("zfp:16", "smooth f32 sum", options=("--force", "--threshold", "0"))
    for row, error, _ in calls.values():
        assert row["error_bound"] is None and row["measured_error"] is None and error > 0


def test_the_printed_table(told, tmp_path):
    for codec, bound, measured in (
        ("szp:abs=1e-3", r"0\.001|0\.0009\d\d\d?", "-"),
        ("zfp:16", "none: fixed rate", r"\d\S+"),
        ("auto", "lossless", "-"),
    ):
        told(codec, "smooth f32 sum")
        printed = execute([BIN / "mpress", "report", tmp_path / "report.json"]).stdout
        [table] = re.findall(r"absolute errors(.*?)└", printed, re.DOTALL)
        assert max(len(line) for line in table.splitlines()) <= 100
        line = rf"│ MPI_Allreduce +│ +two-shot │ +- │ +({bound}) │ +({measured}) │"
        assert re.search(line, table), table
