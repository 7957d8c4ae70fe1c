"""Messages from and to device memory, on simulated GPUs: the CPU cannot touch their memory, so
whatever MPI or mpress does there by mistake ends the program."""

from __future__ import annotations

import pytest

SETTINGS = {
    "as they are": ((), {}),
    "as they are, in chunks": (("--codec", "none"), {"MPRESS_CHUNK": "4K"}),
    "as they are, in one piece": (("--codec", "none"), {"MPRESS_CHUNK": "0"}),
    "encoded": (("--codec", "mpc", "--force", "--threshold", "0"), {}),
    "encoded, in chunks": (
        ("--codec", "mpc", "--force", "--threshold", "0"),
        {"MPRESS_CHUNK": "4K"},
    ),
    "encoded, with little memory": (
        ("--codec", "mpc", "--force"),
        {"MPRESS_CHUNK": "64K", "MPRESS_POOL_LIMIT": "100K"},
    ),
    "switched off": ((), {"MPRESS_DISABLE_P2P": "1"}),
    "linked": ((), {"MPRESS_LINK": "peer"}),
    "linked, encoded, in chunks": (
        ("--codec", "mpc", "--force", "--threshold", "0"),
        {"MPRESS_LINK": "peer", "MPRESS_CHUNK": "4K", "MPRESS_POOL_LIMIT": "1M"},
    ),
}
# Messages go from GPU to GPU where they can; most settings are about the way by the host.
BY_HOST = {"MPRESS_LINK": "mpi"}
EXTENDED = pytest.mark.extended
SETTINGS_OF_ALL = ("as they are", "encoded, in chunks", "linked, encoded, in chunks")


def totals(done):
    return done.report["totals"]


# Extended: settings of which the edges below show as much.
@pytest.mark.parametrize(
    "setting",
    [pytest.param(name, marks=() if name in SETTINGS_OF_ALL else EXTENDED) for name in SETTINGS],
)
@pytest.mark.parametrize(
    ("ranks", "args"),
    [
        pytest.param(1, ["large"], marks=EXTENDED),
        pytest.param(2, ["large"], marks=EXTENDED),
        (3, []),
    ],
)
def test_device_messages(ranks, args, setting, mpi_program, mpress_run, simulated_gpu):
    options, env = SETTINGS[setting]
    env = {**BY_HOST, **env, **simulated_gpu, "SIMULATED_GPU_SEED": str(ranks)}
    done = mpress_run(ranks, mpi_program("device_messages"), args, options=options, env=env)
    assert done.status == 0, done.stderr
    assert "ok" in done.stdout
    assert totals(done)["errors"] == 0
    if "--force" in options:
        assert totals(done)["compressed_messages"] > 0
    elif setting not in ("as they are", "linked"):  # where the policy decides
        assert totals(done)["compressed_messages"] == 0
    if "in chunks" in setting:
        assert totals(done)["chunked_messages"] > 0
    linked = "linked" in setting and ranks > 1
    assert (totals(done)["peer_messages"] > 0) == linked
    if "in one piece" in setting or "little memory" in setting:
        assert totals(done)["chunked_messages"] == 0


def test_few_connections_are_told(mpi_program, mpress_run, simulated_gpu):
    """Where streams of the program's may keep a message from leaving."""
    for connections, program, times in (("1", "device_met", 1), ("8", "device_messages", 0)):
        env = {**simulated_gpu, "CUDA_DEVICE_MAX_CONNECTIONS": connections}
        done = mpress_run(2, mpi_program(program), env=env)
        assert done.status == 0, done.stderr
        assert done.stderr.count("may wait for what the program's streams hold") == times


@pytest.fixture
def takes_devices(simulated_gpu):
    """The environment of an MPI that takes memory of devices itself."""
    return {**simulated_gpu, "SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}


@pytest.mark.parametrize("options", [("--codec", "none"), ("--force",)])
def test_the_first_message_has_kernels_loaded(options, mpi_program, mpress_run, takes_devices):
    """Also where MPI gets it: a later one may need them while a kernel waits for it."""
    done = mpress_run(2, mpi_program("device_met"), options=options, env=takes_devices)
    assert done.status == 0 and "ok" in done.stdout, done.output


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(
            name,
            marks=() if name.endswith("encoded, in chunks") else EXTENDED,
        )
        for name in SETTINGS
    ],
)
def test_an_mpi_that_takes_devices(setting, mpi_program, mpress_run, takes_devices):
    """What is not encoded goes to MPI as it is, what is by the peer link, and frames find their way
    all the same."""
    options, env = SETTINGS[setting]
    for program, ranks in (("device_messages", 3), ("device_edges", 2), ("device_strewn", 2)):
        done = mpress_run(
            ranks, mpi_program(program), options=options, env={**env, **takes_devices}
        )
        assert done.status == 0, done.stderr
        assert "ok" in done.stdout
        chunked = totals(done)["chunked_messages"]
        assert chunked == 0 or "--force" in options, program
        linked = "linked" in setting or (program == "device_messages" and "--force" in options)
        if program != "device_strewn":  # which receives on the host
            assert (totals(done)["peer_messages"] > 0) == linked


@pytest.mark.parametrize("setting", [pytest.param("encoded", marks=EXTENDED), "encoded, in chunks"])
def test_messages_by_an_mpi_that_takes_devices(setting, mpi_program, mpress_run, takes_devices):
    """Without the peer link: MPI gets payloads in memory of the devices."""
    options, env = SETTINGS[setting]
    env = {**BY_HOST, **env, **takes_devices}
    for program, ranks in (("device_messages", 3), ("device_edges", 2), ("device_strewn", 2)):
        done = mpress_run(ranks, mpi_program(program), options=options, env=env)
        assert done.status == 0, done.stderr
        assert "ok" in done.stdout
        assert totals(done)["errors"] == totals(done)["peer_messages"] == 0
        if program == "device_messages":  # the others' are short
            assert totals(done)["chunked_messages"] > 0


@pytest.mark.parametrize("settings", ["takes devices", "touches none", "not aware"])
def test_types_with_gaps(settings, mpi, mpi_program, mpress_run, simulated_gpu, takes_devices):
    """An MPI that takes memory of devices gets none with gaps: it would copy run by run. What it
    gets is on the device, or, for a thread that sends payloads, in memory of the host."""
    if settings == "touches none" and mpi.name == "abi":
        return  # it has no such thread (test_progress_thread.py)
    env = {
        "takes devices": takes_devices,
        "touches none": {
            **simulated_gpu, "MPRESS_GPU_AWARE": "1", "MPRESS_PROGRESS": "thread",
            "MPRESS_LINK": "mpi",
        },
        "not aware": simulated_gpu,
    }[settings]  # fmt: skip
    for options in (["--codec", "none"], ["--codec", "mpc", "--force", "--threshold", "0"]):
        arguments = ["alone"] if settings == "touches none" else []
        done = mpress_run(3, mpi_program("device_gaps"), arguments, options=options, env=env)
        assert done.status == 0, done.stderr
        assert "ok" in done.stdout
        assert totals(done)["errors"] == 0


def test_slow_host_messages_tell_nothing_of_an_mpi_that_takes_devices(
    mpi_program, mpress_run, takes_devices
):
    """Within a host it may be as fast as the GPUs are linked: without a profile they are its."""
    learns = {"MPRESS_LEARN": "all", "MPRESS_LINK_RATE": "1Gbit"}
    done = mpress_run(
        2, mpi_program("device_messages"), ["large"], options=("--codec", "mpc"),
        env={**BY_HOST, **takes_devices, **learns},
    )  # fmt: skip
    assert done.status == 0, done.stderr
    sent = [row for row in done.report["rows"] if row["direction"] == "send"]
    assert {row["codec"] for row in sent if row["memory"] == "device"} == {"none"}
    assert totals(done)["compressed_messages"] > 0  # of the host


@pytest.mark.parametrize("link", ["mpi", "auto"])
def test_encoded_and_raw_messages_by_turns(link, mpi_program, mpress_run, takes_devices):
    """Where headers come they are expected, on the host; what comes in their place is right."""
    env = {**takes_devices, "MPRESS_LINK": link}
    done = mpress_run(2, mpi_program("device_by_turns"), options=("--force",), env=env)
    assert done.status == 0, done.stderr
    assert "ok" in done.stdout
    found = totals(done)
    assert found["errors"] == 0
    assert 0 < found["compressed_messages"] < found["messages"]


@pytest.mark.parametrize("codec", ["zfp:16", "szp:abs=1e-3"])
def test_codecs_under_an_mpi_that_takes_devices(codec, mpi_program, mpress_run, takes_devices):
    done = mpress_run(
        4,
        mpi_program("device_lossy"),
        options=("--codec", codec, "--force"),
        env={**takes_devices, "MPRESS_CHUNK": "64K"},
    )
    assert done.status == 0, done.stderr
    assert totals(done)["compressed_messages"] == totals(done)["messages"] > 0


# Extended: codecs on the peer link, where test_every_codec_travels sends them too.
@pytest.mark.parametrize(
    ("link", "codec", "chunk"),
    [
        *(pytest.param(link, "mpc", "64K", marks=EXTENDED) for link in ("mpi", "auto")),
        ("mpi", "mpc", "1M"),
        ("mpi", "zfp:16", "64K"),
        ("mpi", "szp:abs=1e-3", "64K"),
        pytest.param("mpi", "szp:rel=1e-4,mode=dense", "64K", marks=EXTENDED),
        ("auto", "mpc", "1M"),
        pytest.param("auto", "zfp:16", "64K", marks=EXTENDED),
        ("auto", "szp:abs=1e-3", "64K"),
        pytest.param("auto", "szp:rel=1e-4,mode=dense", "64K", marks=EXTENDED),
    ],
)
def test_payloads_stay_on_devices(link, codec, chunk, mpi_program, mpress_run, takes_devices):
    """Headers alone are copied to the host."""
    env = {**takes_devices, "MPRESS_CHUNK": chunk, "MPRESS_LINK": link}
    env["SIMULATED_GPU_STAGING"] = "1024"
    options = ("--codec", codec, "--force")
    for args in ((), ("noisy",)) if codec == "mpc" else ((),):
        done = mpress_run(2, mpi_program("device_pair"), args, options=options, env=env)
        assert done.status == 0, done.output
        assert "ok" in done.stdout
        found = totals(done)
        assert found["errors"] == 0
        assert found["compressed_messages"] == found["messages"] == 32
        by_mpi = found["chunked_messages"]
        assert found["peer_messages"] == 32 - by_mpi
        assert by_mpi == 32 if link == "mpi" else 0 < by_mpi < 8  # until the two have connected


def test_raw_messages_are_left_to_mpi(mpi_program, mpress_run, takes_devices):
    """They are not copied to the host, also where receives under way share a buffer, and frames may
    come there."""
    for options in (("--codec", "none"), (), ("--codec", "none", "--force")):
        env = {**takes_devices, "SIMULATED_GPU_STAGING": "0", "MPRESS_PROFILE": "off"}
        done = mpress_run(2, mpi_program("device_pair"), ["shared"], options=options, env=env)
        assert done.status == 0, done.output
        assert totals(done)["peer_messages"] == totals(done)["chunked_messages"] == 0


@pytest.mark.parametrize("program", ["device_collectives", "device_calls"])
def test_what_mpis_that_take_devices_do_on_hosts(program, mpi_program, mpress_run, simulated_gpu):
    """Reductions that do not block and some others get host memory under such MPIs too: here MPI
    ends the process where it touches a device's."""
    env = {**simulated_gpu, "MPRESS_GPU_AWARE": "1", "MPRESS_LINK": "mpi"}
    done = mpress_run(3, mpi_program(program), ["alone"], options=("--codec", "none"), env=env)
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"


def test_collectives_of_an_mpi_that_takes_devices(mpi_program, mpress_run, takes_devices):
    for program in ("device_collectives", "device_calls"):
        done = mpress_run(3, mpi_program(program), env=takes_devices)
        assert done.status == 0, done.output
        assert done.stdout == "ok\n"


@pytest.mark.parametrize("setting", SETTINGS)
def test_edges(setting, mpi_program, mpress_run, simulated_gpu):
    options, env = SETTINGS[setting]
    env = {**BY_HOST, **env, **simulated_gpu}
    done = mpress_run(2, mpi_program("device_edges"), options=options, env=env)
    assert done.status == 0, done.stderr
    assert "ok" in done.stdout
    assert (totals(done)["peer_messages"] > 0) == ("linked" in setting)


@pytest.mark.parametrize("chunk", ["4K", "64K", "0"])
def test_data_with_gaps_on_the_host(chunk, mpi_program, mpress_run, simulated_gpu):
    env = {**BY_HOST, **simulated_gpu, "MPRESS_CHUNK": chunk}
    done = mpress_run(2, mpi_program("device_strewn"), options=("--codec", "none"), env=env)
    assert done.status == 0, done.stderr
    assert "ok" in done.stdout
    assert (totals(done)["chunked_messages"] > 0) == (chunk != "0")


ENCODED = ("--codec", "mpc", "--force")


@pytest.mark.parametrize(
    ("lacking", "link", "options"),
    [
        # All pairs of two of the three.
        ("device memory", "mpi", ENCODED), ("device memory", "peer", ()),
        ("some of both", "mpi", ()), ("some of both", "peer", ENCODED),
        ("pinned memory", "mpi", ENCODED), ("pinned memory", "peer", ()),
        ("devices", "mpi", ()), ("devices", "peer", ENCODED),
        *(pytest.param(*one, marks=EXTENDED) for one in (
            ("device memory", "mpi", ()), ("device memory", "peer", ENCODED),
            ("some of both", "mpi", ENCODED), ("some of both", "peer", ()),
            ("pinned memory", "mpi", ()), ("pinned memory", "peer", ENCODED),
            ("devices", "mpi", ENCODED), ("devices", "peer", ()),
        )),
    ],
)  # fmt: skip
def test_what_devices_lack(link, options, lacking, mpi_program, mpress_run, simulated_gpu):
    env = {**simulated_gpu, "SIMULATED_GPU_LEAKS": "shared", "MPRESS_LINK": link}
    done = mpress_run(2, mpi_program("device_limits"), [lacking], options=options, env=env)
    assert done.status == 0, done.stderr
    assert "ok" in done.stdout
    if lacking == "device memory" and "--force" in options:
        assert done.report["left_raw"]["no memory"]["messages"] > 0
    if lacking == "devices":
        assert "device 0 refuses to work" in done.stderr
    if lacking == "pinned memory":
        assert (totals(done)["peer_messages"] > 0) == (link == "peer")


@pytest.mark.parametrize("codec", ["zfp:16", "szp:abs=1e-3", "szp:rel=1e-4,mode=dense"])
@pytest.mark.parametrize("link", ["mpi", "peer"])
def test_every_codec_travels(link, codec, mpi_program, mpress_run, simulated_gpu):
    """Lossy ones change the data: the messages of half the ranks lie on the host, of the other half
    on devices, and both sides must agree with each other within the bound."""
    done = mpress_run(
        4,
        mpi_program("device_lossy"),
        options=("--codec", codec, "--force"),
        env={**simulated_gpu, "MPRESS_CHUNK": "64K", "MPRESS_LINK": link},
    )
    assert done.status == 0, done.stderr
    assert "ok" in done.stdout
    assert totals(done)["compressed_messages"] == totals(done)["messages"] > 0
    assert (totals(done)["peer_messages"] > 0) == (link == "peer")
