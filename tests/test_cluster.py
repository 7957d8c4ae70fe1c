"""bench/cluster.py: clusters of network namespaces, planned anywhere, and made where root may."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from execution import ROOT, execute

# Each driver removes what others left, and one test leaves something.
pytestmark = pytest.mark.xdist_group("cluster")

BIN = Path(sys.executable).parent
DRIVER = ROOT / "bench" / "cluster.py"


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("cluster")


@pytest.fixture
def netns(cluster):
    """pyroute2's, where namespaces can be made."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    pyroute2 = pytest.importorskip("pyroute2")
    probe = f"mpress-{os.getpid()}-0"
    try:
        pyroute2.netns.create(probe)
        pyroute2.netns.remove(probe)
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    return pyroute2.netns


def test_names_and_addresses(cluster):
    plan = cluster.checked_plan(3, "2.5gbit", None)
    assert plan.rate == 2_500_000_000 and plan.latency == 0
    assert len(set(plan.namespaces)) == 4
    assert all(name.startswith(f"mpress-{os.getpid()}-") for name in plan.namespaces)
    assert [plan.address(host) for host in range(3)] == ["10.77.0.1", "10.77.0.2", "10.77.0.3"]
    assert cluster.checked_plan(2, "10mbit", "1ms").burst == 64 << 10
    assert cluster.parse_latency("50us") == pytest.approx(50e-6)
    assert cluster.size_of("alltoall", "16M", 4) == str(4 << 20)
    assert cluster.size_of("bcast", "16M", 4) == str(16 << 20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hosts", "1"], "--hosts 1: expected 2 to 200"),
        (["--rate", "fast"], "--rate 'fast': expected a rate"),
        (["--rate", "0gbit"], "--rate '0gbit': expected a rate"),
        (["--latency", "5"], "--latency '5': expected a time"),
    ],
)
def test_wrong_options(options, message):
    done = execute([sys.executable, DRIVER, "run", *options, "--", "true"])
    assert done.status == 1 and message in done.stderr


def test_nobody_but_root(cluster, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(cluster.ClusterError, match="take root"):
        cluster.Cluster(cluster.checked_plan(2, "1gbit", None)).__enter__()


def test_hosts_are_set_up_and_removed(cluster, netns):
    plan = cluster.checked_plan(2, "100mbit", None)
    with cluster.Cluster(plan):
        assert set(plan.namespaces) <= set(netns.listnetns())
        for host in range(2):
            inside = ["ip", "netns", "exec", plan.namespace(host)]
            shaped = execute([*inside, "tc", "qdisc", "show", "dev", "eth0"]).stdout
            assert "tbf" in shaped and "rate 100Mbit" in shaped
            assert plan.address(host) in execute([*inside, "ip", "addr"]).stdout
    assert not set(plan.namespaces) & set(netns.listnetns())


def test_latency_is_there_or_refused(cluster, netns):
    plan = cluster.checked_plan(2, "100mbit", "2ms")
    try:
        with cluster.Cluster(plan):
            command = ["ip", "netns", "exec", plan.namespace(0), "tc", "qdisc"]
            assert "netem" in execute(command).stdout
    except cluster.ClusterError as error:
        assert "--latency: this kernel has no netem" in str(error)
    assert not set(plan.namespaces) & set(netns.listnetns())


PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
alone = world.Split_type(MPI.COMM_TYPE_SHARED).size
assert world.size == 4 and alone == 2
neighbour = world.Split_type(MPI.COMM_TYPE_SHARED).allgather(world.rank)
assert neighbour == ([0, 1] if world.rank < 2 else [2, 3]), neighbour
if world.rank == 0: print("two hosts")
"""


@pytest.fixture
def patient(mpi, mpi4py_env) -> dict[str, str]:
    """What makes ranks sleep that wait, as elsewhere. These have networks between them."""
    return {name: value for name, value in (mpi.env | mpi4py_env).items() if name != "UCX_TLS"}


def test_a_program_runs_across_hosts(netns, mpi, patient, tmp_path):
    if mpi.name != "default":
        pytest.skip("started by the launcher of .venv")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for options in ([], ["--codec", "mpc", "--force"]):
        command = [sys.executable, DRIVER, "run", "--hosts", "2", "--rate", "1gbit", "-n", "4"]
        command += [*options, "--"]
        done = execute([*command, sys.executable, program], patient)
        assert done.status == 0 and "two hosts" in done.stdout, done.output


ALLTOALL = """
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
ours = np.linspace(world.rank, world.rank + 1, world.size << 16, dtype=np.float32)
theirs = np.empty_like(ours)
world.Alltoall(ours, theirs)
assert (np.abs(theirs[:: 1 << 16] - np.arange(world.size) - world.rank / world.size) < 1e-3).all()
"""


def test_jobs_that_compress_all_measure_links(netns, mpi, patient, tmp_path):
    """256 KB a pair are long on such links, and short on those that are assumed."""
    if mpi.name != "default":
        pytest.skip("started by the launcher of .venv")
    program, report = tmp_path / "program.py", tmp_path / "report.json"
    program.write_text(ALLTOALL)
    command = [sys.executable, DRIVER, "run", "--hosts", "4", "--rate", "200mbit"]
    command += ["--codec", "zfp:24", "--force", "--report", report, "--", sys.executable, program]
    done = execute(command, {**patient, "MPRESS_LEARN": "auto"})
    assert done.status == 0, done.output
    rows = json.loads(report.read_text())["rows"]
    taken = {row["algorithm"] for row in rows if row["operation"] == "MPI_Alltoall"}
    assert "pairwise" in taken and "scattered" not in taken


def test_what_a_killed_driver_left_is_removed(netns):
    command = [sys.executable, str(DRIVER), "run", "--hosts", "2", "--", "sleep", "100"]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    owned = f"mpress-{driver.pid}-"

    def names():
        return [name for name in netns.listnetns() if name.startswith(owned)]

    deadline = time.monotonic() + 20
    while len(names()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert len(names()) == 3
    done = execute([sys.executable, DRIVER, "clean"])
    assert done.status == 0 and not names(), done.output
    assert not list(Path(tempfile.gettempdir()).glob(f"mpress-cluster-{driver.pid}-*"))


@pytest.mark.parametrize(
    ("before", "after", "count"), [("20gbit", "100mbit", 60), ("100mbit", "20gbit", 280)]
)
def test_a_link_that_changes_is_learned_again(
    before, after, count, cluster, netns, patient, tmp_path
):
    """While the program runs, which is told of neither rate. Of messages that are encoded, as they
    are on a slow link, few are timed."""
    report = tmp_path / "report.json"
    program = [ROOT / "bench" / "programs" / "exchange.py", "wave", 1 << 20, count]
    with cluster.Cluster(cluster.checked_plan(2, before, None)) as hosts:
        command = [BIN / "mpress", "run", "-n", 2, "--codec", "mpc", "--report", report,
                   "--mpiexec", shlex.join(hosts.mpiexec(2)), "--", sys.executable, *program,
                   tmp_path / "seconds.json", tmp_path]  # fmt: skip
        settings = {**patient, "XDG_CACHE_HOME": str(tmp_path), "MPRESS_PROFILE": ""}
        driver = subprocess.Popen([str(word) for word in command],
                                  env=cluster.environment() | settings)  # fmt: skip
        while not (tmp_path / "waits").exists():
            assert driver.poll() is None
            time.sleep(0.02)
        hosts.set_rate(after)
        (tmp_path / "go").touch()
        assert driver.wait(timeout=100) == 0
    told = json.loads(report.read_text())
    rate = float(re.search(r"other-host ([0-9.]+) GB/s", told["profile"])[1])
    encoded = sum(
        row["messages"]
        for row in told["rows"]
        if row["direction"] == "send" and row["rank"] == 0 and row["codec"] == "mpc"
    )
    if after == "100mbit":
        assert rate <= 0.02 and encoded >= count // 4
    else:  # how fast a link without a limit is depends on the machine
        assert rate >= 0.05


@pytest.mark.parametrize("name", ["cluster", "exchange", "turbulence"])
def test_the_page_is_that_of_the_results(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    report = importlib.import_module(f"report_{name}")
    runs = report.read()
    assert runs and report.PAGE.read_text() == report.page(runs), f"python bench/report_{name}.py"


def test_the_page_of_the_model_is_that_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    report = importlib.import_module("report_model")
    document = json.loads(report.RESULT.read_text())
    assert report.PAGE.read_text() == report.page(document), "python bench/report_model.py"
    digest = importlib.import_module("result_pictures").digest(document)
    assert digest.encode() in report.PICTURE.read_bytes(), "python bench/report_model.py"


def test_the_page_of_programs_is_that_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    report = importlib.import_module("report_programs")
    runs, tests, osus, codes = parts = list(map(report.read, report.PARTS))
    assert all(parts)
    assert report.PAGE.read_text() == report.page(*parts), "python bench/report_programs.py"
    assert not any(folder["failed"] for run in tests for folder in run["rows"])
    for row in (row for run in osus for row in run["rows"]):
        endings = {mode: one["ending"] for mode, one in row["runs"].items()}
        assert endings.pop("plain") != "well" or set(endings.values()) == {"well"}
    packages = importlib.import_module("programs.packages")
    assert all(packages.row_of(row).is_right for run in codes for row in run["rows"])
    for row in (row for run in runs for network in run["networks"] for row in network["rows"]):
        assert row["same_thermo"] and row["same_end"]


def test_lists_of_the_mpich_tests(monkeypatch, tmp_path):
    """What their lines say, and each once."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    programs = importlib.import_module("programs.mpich_tests")
    (tmp_path / "coll").mkdir()
    (tmp_path / "coll" / "testlist").write_text(
        "# a comment\nallred 4 arg=-count=10 env=A=b=c  # more\nallred 4 arg=-count=10 env=A=b=c\n"
        "large 2 mem=6.5\nfails 1 resultTest=TestStatus\nends 3 resultTest=TestErrFatal\n\n"
    )
    allred, fails, ends = programs.listed(tmp_path, "coll")
    assert (allred.ranks, allred.arguments, allred.variables) == (4, ("-count=10",), ("A=b=c",))
    assert allred.needs_success and not allred.must_fail
    assert fails.must_fail and not ends.needs_success and not ends.must_fail


def test_launchers_of_both_families(cluster):
    """Who starts what on which hosts, without starting any."""
    made = cluster.Cluster(cluster.checked_plan(2, "1gbit", None))
    try:
        mpich, open_mpi = made.mpiexec(4), made.mpirun(4)
        assert mpich[mpich.index("-hosts") + 1] == "10.77.0.1:2,10.77.0.2:2"
        assert open_mpi[open_mpi.index("--host") + 1] == "10.77.0.1:2,10.77.0.2:2"
        agent = mpich[mpich.index("-launcher-exec") + 1]
        assert open_mpi[open_mpi.index("plm_rsh_agent") + 1] == agent and os.access(agent, os.X_OK)
    finally:
        made._remove_agent()
