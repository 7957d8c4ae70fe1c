"""What the policy goes by: profiles, who makes them, and what holds where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from execution import BIN, Finished, execute

from mpress import _core, cuda_bench, tune
from mpress.cli.tune import _known, measured_own_links, tune_machine
from mpress.p2p import jobs

pytestmark = pytest.mark.usefixtures("served_jobs")
SLOW = "4096:0.01 67108864:100"  # nearly any codec pays


@dataclass
class Profiled:
    """Runs one message of 160 KB, which mpc makes much smaller, with a profile of some text."""

    mpi: str
    transport: str
    run: Callable[..., Any]
    path: Path

    def text(
        self, *, hardware: str | None = None, message: str = SLOW, same_host: str | None = None
    ) -> str:
        lines = ["mpress profile 1", f"hardware = {hardware or _core.hardware()}",
                 "date = 2026-01-02", "[codec mpc, host]", "encode = 65536:1e-5 1048576:1.6e-4",
                 "decode = 65536:1e-5 1048576:1.6e-4"]  # fmt: skip
        for peer in ("same-host", "other-host"):
            times = same_host or message if peer == "same-host" else message
            lines += [f"[link {peer}, host]", f"mpi = {self.mpi}", f"message = {times}"]
            lines += [f"transport = {self.transport}"] if self.transport else []
        return "\n".join(lines)

    def __call__(self, text: str | None, **env: str) -> Finished:
        if text is not None:
            self.path.write_text(text)
        return self.run(env={"MPRESS_PROFILE": str(self.path)} | env)


@pytest.fixture
def profiled(mpi, mpi_program, mpress_run, tmp_path) -> Profiled:
    done = mpress_run(1, mpi_program("library_name"))
    assert done.status == 0, done.output
    name = _core.mpi_name(done.stdout)
    ask = f"from mpress import _core; print(_core.transport_settings({name!r}))"
    transport = execute([sys.executable, "-c", ask], mpi.env).stdout.strip()
    run = partial(mpress_run, 2, mpi_program("one_message"), options=("--codec", "mpc"))
    return Profiled(name, transport, run, tmp_path / "test.profile")


def reasons(done) -> list[str]:
    return list(done.report["left_raw"])


def test_a_profile_decides(profiled, tmp_path):
    folder = tmp_path / ("deep" * 60) / ("deeper" * 40)
    folder.mkdir(parents=True)
    profiled.path = folder / "test.profile"
    done = profiled(profiled.text())
    assert done.status == 0, done.stderr
    assert done.report["totals"]["compressed_messages"] == 1
    assert done.report["profile"] == f"{profiled.path}, 2026-01-02"
    done = profiled(profiled.text(message="4096:1e-6 67108864:1e-4"))
    assert reasons(done) == ["would not pay at any ratio"]
    assert done.stderr == ""


def test_another_transport_is_told_apart(profiled):
    other = {"FI_PROVIDER": "^psm2"}  # which changes nothing here
    done = profiled(profiled.text(), **other)
    assert done.status == 0, done.stderr
    assert reasons(done) == ["costs never measured"]
    assert f"the profile has no messages of {profiled.mpi} with FI_PROVIDER=^psm2" in done.stderr
    profiled.transport = f"FI_PROVIDER=^psm2 {profiled.transport}".strip()
    done = profiled(profiled.text(), **other)
    assert done.report["totals"]["compressed_messages"] == 1
    # What chooses another MPI's transport tells nothing.
    assert "I_MPI_FABRICS" not in profiled(profiled.text(), **other, I_MPI_FABRICS="shm").stderr


def test_a_profile_of_other_hardware_is_not_used(profiled):
    done = profiled(profiled.text(hardware="an abacus"))
    assert done.status == 0
    assert reasons(done) == ["costs never measured"]
    assert "made on other hardware (an abacus, here: " in done.stderr


def test_without_a_profile_one_line_says_so(profiled, tmp_path):
    done = profiled(None, MPRESS_PROFILE="", XDG_CACHE_HOME=str(tmp_path))
    assert done.status == 0
    assert reasons(done) == ["costs never measured"]
    assert done.stderr.count("no profile of this machine") == 1
    done = profiled(None, MPRESS_PROFILE="off")
    assert done.stderr == ""


def test_the_default_is_in_the_cache_directory(profiled, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = Path(_core.default_profile_path())
    assert path.parent == tmp_path / "mpress" and path.suffix == ".profile"
    path.parent.mkdir()
    path.write_text(profiled.text())
    done = profiled(None, MPRESS_PROFILE="", XDG_CACHE_HOME=str(tmp_path))
    assert done.report["totals"]["compressed_messages"] == 1


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (None, "No such file"),
        ("something else", "line 1: expected 'mpress profile 1'"),
        ("mpress profile 1\n[link near, host]", "line 2: expected [codec NAME, PLACE]"),
        ("mpress profile 1\n[codec mpc, host]\nencode = 2:1 1:1", "line 3: expected BYTES:SECONDS"),
        (
            "mpress profile 1\n[link same-host, device]\nchunk = 1M",
            "line 3: expected BYTES, a mult",
        ),
        (
            "mpress profile 1\n[link other-host, host]\ncrowding = 0.9",
            "line 3: expected a number of at least 1",
        ),
        ("", "line 1: expected 'mpress profile 1'"),
    ],
)
def test_a_named_profile_that_cannot_be_read(profiled, text, wrong):
    done = profiled(text)
    assert done.status != 0
    assert "MPRESS_PROFILE" in done.stderr and wrong in done.stderr


def test_text_and_back():
    profile = tune.Profile("a; b", "2026-01-02")
    profile.codecs["mpc", "host"] = {1024: 1e-6, 4096: 3e-6}, {1024: 2e-6}
    profile.add(tune.Link("same-host", "device", "MPICH 5.0.2", "A=b C=d", {1024: 1e-5}, 2 << 20))
    profile.add(tune.Link("same-host", "device", "MPICH 5.0.2", "", {1024: 2e-5}))
    profile.add(tune.Link("same-host", "device", "MPICH 5.0.2", "", {1024: 3e-5}))
    profile.add(tune.Link("linked", "device", "", "", {1024: 4e-5}, crowding=1.25))
    again = tune.parse(profile.text())
    assert again == profile and len(again.links) == 3
    with pytest.raises(tune.ProfileError, match="line 3"):
        tune.parse("mpress profile 1\n\n[what]\n")


def test_break_even_is_the_model_s():
    profile = tune.Profile(_core.hardware())
    codec = {1 << 10: 1e-6, 1 << 28: 1e-6 * (1 << 18)}  # about 1 GB/s
    profile.codecs["mpc", "host"] = codec, codec
    link = tune.Link("same-host", "host", "M", "", {1 << 10: 1e-5, 1 << 28: 1.0})
    profile.add(link)
    # 0.27 GB/s: compressing pays at 8, not at 1.2.
    assert tune.break_even(profile, link, "mpc", 1.2, 1 << 20) is None
    assert tune.break_even(profile, link, "mpc", 8.0, 1 << 20) is not None
    assert tune.break_even(profile, link, "szp", 8.0, 1 << 20) is None  # never measured


def test_break_even_between_linked_gpus():
    profile = tune.Profile(_core.hardware())
    encode, decode = (
        {n: start + n / 1.4e12 for n in (1 << 16, 1 << 26)} for start in (12e-6, 10e-6)
    )
    profile.codecs["mpc", "device"] = encode, decode
    link = tune.Link("linked", "device", "", "", {n: 15e-6 + n / 370e9 for n in (1 << 14, 1 << 28)})
    profile.add(link)
    assert tune.break_even(profile, link, "mpc", 1.1, 1 << 20) is None
    assert 32 << 20 <= tune.break_even(profile, link, "mpc", 2.6, 1 << 20) <= 256 << 20


def test_tune_says_where_gpus_are_not_linked(monkeypatch, capsys):
    profile = tune.Profile(_core.hardware())
    monkeypatch.setattr(tune, "measure_own_link", lambda _, **__: None)
    assert measured_own_links(profile, "mpi", None, 0) == [] and profile.links == []
    assert capsys.readouterr().err.count("\n") == 1
    link = tune.Link("linked", "device", "", "", {1024: 1e-5})
    monkeypatch.setattr(tune, "measure_own_link", lambda _, **__: link)
    assert measured_own_links(profile, "mpi", None, 0) == [link] == profile.links
    assert capsys.readouterr().err == ""


def test_messages_by_own_links_are_measured(mpi, mpi4py_env, simulated_gpu, monkeypatch):
    for name, value in {**mpi.env, **mpi4py_env, **simulated_gpu}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MPRESS_LINK", "mpi")  # settings of ours have no say
    program = [str(Path(__file__).with_name("simulated_messages.py"))]
    sizes = [64 << 10, 1 << 20]
    how = {"sizes": sizes, "seconds": 0, "mpiexec": str(mpi.mpiexec), "program": program}
    link = tune.measure_own_link("peer", **how)
    assert link.key == ("linked", "device", "", "") and set(link.message) == set(sizes)
    staged, _ = tune.measure_link("device", **how)
    assert staged.key == ("same-host", "device", staged.mpi, staged.transport) and staged.mpi
    monkeypatch.setenv("SIMULATED_GPU_PEERS", "0")
    assert tune.measure_own_link("peer", **how) is None
    pinned = tune.measure_own_link("host", **how)
    assert pinned.key == ("pinned", "device", "", "") and set(pinned.message) == set(sizes)


@pytest.fixture
def on_simulated_gpus(mpi, mpi4py_env, simulated_gpu, monkeypatch):
    """What `tune` measures, it measures there, and of few sizes."""
    for name, value in {**mpi.env, **mpi4py_env, **simulated_gpu}.items():
        monkeypatch.setenv(name, value)
    program = [str(Path(__file__).with_name("simulated_messages.py"))]
    few = {"sizes": [4 << 20], "seconds": 0, "mpiexec": str(mpi.mpiexec), "program": program}
    for name in ("measure_link", "measure_own_link", "measure_chunks"):
        monkeypatch.setattr(tune, name, partial(getattr(tune, name), **few))


def test_chunks_are_measured_where_messages_are_cut(on_simulated_gpus, monkeypatch):
    monkeypatch.setenv("MPRESS_CHUNK", "0")  # settings of ours have no say
    times = tune.measure_chunks()
    assert set(times) == {("none", 4 << 20), ("mpc", 4 << 20)}
    assert all(list(by) == tune.CHUNKS for by in times.values())
    monkeypatch.setenv("SIMULATED_GPU_OPEN", "1")
    monkeypatch.setenv("MPRESS_GPU_AWARE", "1")  # raw ones are MPI's own business
    assert set(tune.measure_chunks()) == {("mpc", 4 << 20)}


def test_crowded_links(monkeypatch):
    """Real ranks, and what is made of times."""
    assert tune.measure_crowding("host", tune.CROWD, seconds=0.02) >= 1

    def measured(by_turns: float, at_once: float) -> float:
        rows = [{"path": "pairwise/none", "seconds": [by_turns]},
                {"path": "scattered/none", "seconds": [at_once]}]  # fmt: skip
        monkeypatch.setattr(tune, "_measured", lambda *_, **__: {"rows": rows})
        return tune.measure_crowding("host", tune.CROWD)

    assert measured(1.0, 1.5) == 1.5
    assert measured(1.0, 1.04) == 1 and measured(1.0, 0.5) == 1


def test_a_chunk_must_be_clearly_better():
    def times(*over_1m: float) -> tune.ChunkTimes:
        by = dict(zip(tune.CHUNKS, (over_1m[0], 1.0, *over_1m[1:]), strict=True))
        return {("none", 4 << 20): by, ("mpc", 32 << 20): {n: t / 10 for n, t in by.items()}}

    assert tune.best_chunk(times(0.98, 0.99, 1.2)) == 1 << 20
    assert tune.best_chunk(times(0.96, 0.94, 0.95)) == 2 << 20
    assert tune.best_chunk(times(0.90, 0.94, 0.95)) == 512 << 10
    assert tune.best_chunk({}) == 0
    # All messages count: what one wins another may lose.
    mixed = times(1.1, 1.0, 0.8)
    mixed["mpc", 32 << 20][4 << 20] *= 1.6
    assert tune.best_chunk(mixed) == 1 << 20


@pytest.mark.extended
def test_tune_writes_the_best_chunk(on_simulated_gpus, mpi, monkeypatch, tmp_path, capsys):
    path = tmp_path / "own.profile"
    monkeypatch.setattr(cuda_bench, "available", lambda: True)
    for name in ("host_codec", "device_codec"):
        monkeypatch.setattr(tune, name, lambda _: ({1 << 20: 1e-3}, {1 << 20: 1e-3}))
    monkeypatch.setattr(tune, "best_chunk", lambda times: 2 << 20 if times else 0)
    tune_machine(output=path, mpiexec=str(mpi.mpiexec))
    links = {(link.peer, link.place): link.chunk for link in tune.parse(path.read_text()).links}
    assert links.pop(("same-host", "device")) == 2 << 20
    assert set(links.values()) == {0} and ("same-host", "host") in links
    said = capsys.readouterr()
    assert "by the size of a chunk" in said.out and "the profile says 2M" in said.out

    def fails(**_):
        raise jobs.JobError("a rank fell over")

    monkeypatch.setattr(tune, "measure_chunks", fails)
    tune_machine(output=path, mpiexec=str(mpi.mpiexec))
    assert "chunks in device memory were not measured: a rank fell over" in capsys.readouterr().err
    assert {link.chunk for link in tune.parse(path.read_text()).links} == {0}


FAST = "4096:1e-6 67108864:1e-4"  # no codec pays


@pytest.fixture
def judged(mpi, mpi4py_env, simulated_gpu, tmp_path):
    """judged(links, nbytes, link, **environment): rows of `none` and `auto` with a profile of these
    links of device memory, by name."""

    def run(links, nbytes, link="auto", **environment):
        profile = tmp_path / "test.profile"
        lines = ["mpress profile 1", f"hardware = {_core.hardware()}"]
        for name, text in links.items():
            lines += [f"[link {name}, device]", *text.split("; ")]
        profile.write_text("\n".join(lines))
        np.save(tmp_path / "x.npy", np.ones(1 << 18, np.float32))
        plan = {
            "benchmark": "latency", "from": "device", "to": "device", "warmup": 8, "repeat": 1,
            "seconds": 0, "window": 1, "files": {"x": str(tmp_path / "x.npy")},
            "cases": [{"data": "x", "bytes": nbytes, "paths": ["none", "auto"]}],
        }  # fmt: skip
        environment = {**simulated_gpu, "MPRESS_PROFILE": str(profile), **environment}
        result = jobs.run(
            plan, "auto", link=link, mpiexec=str(mpi.mpiexec),
            environment={**mpi.env, **mpi4py_env, **environment},
            program=[str(Path(__file__).with_name("simulated_messages.py"))],
        )  # fmt: skip
        rows = jobs.summary(result, "latency", "auto")
        assert all(row["check"]["kept"] for row in rows)
        return rows

    return run


@pytest.mark.parametrize(
    ("nbytes", "time", "pays", "said"),
    [  # by way of the host, the first would not pay, the others would
        (64 << 10, SLOW, True, ""),
        (1 << 20, FAST, False, ""),
        (1 << 20, None, False, "messages from GPU to GPU are judged by the first long one"),
        (8 << 20, None, True, "messages from GPU to GPU are judged by the first long one"),
    ],
)
def test_messages_from_gpu_to_gpu_are_judged_by_their_own_costs(
    judged, capfd, nbytes, time, pays, said
):
    _, auto = judged({"linked": f"message = {time}"} if time else {}, nbytes, "peer")
    assert auto["peer"] == 1
    assert (auto["ratio"] > 8) == pays
    err = capfd.readouterr().err
    assert said in err and err.count("\n") == bool(said)


@pytest.mark.parametrize(
    ("time", "pays", "said"),
    [
        (SLOW, True, ""),
        (FAST, False, ""),
        (None, False, "messages between GPUs by host memory are judged by assumed costs"),
    ],
)
def test_messages_by_host_memory_are_judged_by_their_own_costs(judged, capfd, time, pays, said):
    links = {"pinned": f"message = {time}"} if time else {}
    _, auto = judged(links, 1 << 20, "host")
    assert auto["by_host"] == 1
    assert (auto["ratio"] > 8) == pays
    err = capfd.readouterr().err
    assert said in err and err.count("\n") == bool(said)


@pytest.mark.parametrize("nbytes", [64 << 10, 1 << 20])
def test_raw_messages_are_whose_way_is_faster(profiled, judged, nbytes):
    """Under an MPI that takes memory of GPUs; by size."""
    transport = f"{profiled.transport} gpu-aware".lstrip()
    by_mpi = f"mpi = {profiled.mpi}; transport = {transport}; message = "
    links = {
        "same-host": by_mpi + "65536:1e-6 1048576:9e-5",
        "linked": "message = 65536:2e-6 1048576:2e-5",
    }
    aware = {"SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
    none, auto = judged(links, nbytes, **aware)
    assert none["peer"] == auto["peer"] == (nbytes == 1 << 20)
    # Where the profile does not tell what MPI takes, raw messages are MPI's.
    none, _ = judged({"linked": links["linked"]}, nbytes, **aware)
    assert none["peer"] == 0


@pytest.fixture
def run_tune(mpi, mpi4py_env):
    def run(*arguments, **env: str) -> Finished:
        command = [BIN / "mpress", "tune", "--seconds", "0", "--mpiexec", mpi.mpiexec, *arguments]
        return execute(command, {**mpi.env, **mpi4py_env, **env})

    return run


def test_tune_measures_and_keeps_what_it_did_not(run_tune, monkeypatch, tmp_path):
    path = tmp_path / "deep" / "own.profile"
    # Settings of ours have no say in what is measured.
    done = run_tune(MPRESS_PROFILE=str(path), MPRESS_LINK_RATE="1kbit", MPRESS_CODEC="zfp:8")
    assert done.status == 0, done.stderr
    profile = tune.parse(path.read_text())
    assert profile.hardware == _core.hardware()
    assert {name for name, place in profile.codecs if place == "host"} == set(tune.SPECS)
    [link] = [link for link in profile.links if link.place == "host"]
    assert link.peer == "same-host" and set(link.message) == set(tune.LINK_SIZES)
    assert "compressed messages are faster" in done.stdout
    # What it knows of others stays, unless it is of other hardware.
    other = tune.Link("other-host", "host", "M", "", {1024: 1.0})
    profile.add(other)
    path.write_text(profile.text())
    monkeypatch.setattr(tune, "host_codec", lambda name: profile.codecs[name, "host"])
    monkeypatch.setattr(tune, "measure_link", lambda *_, **__: (link, {}))
    monkeypatch.setattr(cuda_bench, "available", lambda: False)
    tune_machine(output=path)
    assert other in tune.parse(path.read_text()).links
    profile.hardware = "an abacus"
    path.write_text(profile.text())
    assert _known(path).links == [] and _known(path).hardware == _core.hardware()


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("--transport", "pigeon"), "expected mpi, shm or tcp"),
        (("--output", "/proc/nothing/here"), "cannot be written"),
    ],
)
def test_tune_says_what_is_wrong(run_tune, arguments, wrong):
    done = run_tune(*arguments)
    assert done.status == 2 and wrong in done.stderr


def test_what_profiles_tell_of_mpis():
    assert _core.mpi_name("MPICH Version:      5.0.2\nMPICH Release") == "MPICH 5.0.2"
    assert _core.mpi_name("Open MPI v4.1.6, package: x") == "Open MPI v4.1.6"
