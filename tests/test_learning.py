"""Links that no profile tells of: measured in MPI_Init, and from the program's messages. The link
is paced, and nobody is told its rate; what an unpaced one is like depends on the machine."""

from __future__ import annotations

import os
import re
import sys

import pytest

from mpress import trace
from mpress.cli import launch

SLOW = {"MPRESS_LEARN": "all", "MPRESS_LINK_RATE": "1Gbit"}


@pytest.fixture
def exchanged(mpi_program, mpress_run):
    """Runs the exchanges; the rows of what was sent."""

    def run(*arguments, ranks=2, env=SLOW, options=("--codec", "mpc")):
        done = mpress_run(
            ranks, mpi_program("exchanges"), [str(a) for a in arguments], env=env, options=options
        )
        assert done.status == 0, done.output
        assert done.stdout.endswith("ok\n"), done.output
        totals = done.report["totals"]
        assert totals["errors"] == 0
        assert totals["compressed_messages"] == totals["decoded_messages"]
        assert all(rank["finished"] for rank in done.report["ranks"])
        done.sent = [row for row in done.report["rows"] if row["direction"] == "send"]
        return done

    return run


def count(done, **wanted) -> int:
    return sum(row["messages"] for row in done.sent if all(row[k] == v for k, v in wanted.items()))


@pytest.mark.parametrize("way", ["isend", "sendrecv", "oneway"])
def test_a_slow_link_is_found(way, exchanged):
    senders = 1 if way == "oneway" else 2

    def rate() -> float:
        done = exchanged(1 << 20, 20, way)
        # One message of each sender verifies what was measured at the start; it may take some more
        # where that is not clear.
        assert count(done, codec="mpc") >= 12 * senders
        assert 1 <= count(done, reason="sent raw to time the link") <= 8 * senders
        source, learned = done.report["profile"].split("; same-host ")
        assert source == "measured by this run"
        return float(learned.removesuffix(" GB/s"))

    # Of a message that a receiver saw late half may have come before, on a loaded machine: never
    # more. One that is seen in time tells no more than the link has.
    def is_exact() -> bool:
        told = rate()
        assert 0 < told <= 2 * 0.126
        return told <= 0.126

    assert any(is_exact() for _ in range(10))


def test_without_a_launcher_of_ours(tmp_path, mpi_program, mpirun):
    """As where a launcher starts programs with LD_PRELOAD alone."""
    env = {**SLOW, "LD_PRELOAD": str(launch.required_preload_library()), "MPRESS_CODEC": "mpc"}
    env |= {"MPRESS_RECORD": str(tmp_path), "MPRESS_JOB": "0123456789abcdef" * 2}
    done = mpirun(2, mpi_program("exchanges"), [1 << 20, 20, "isend"], env)
    assert done.status == 0 and done.stdout.endswith("ok\n"), done.output
    report = trace.merge(tmp_path)
    assert report["profile"].startswith("measured by this run; same-host ")
    assert report["totals"]["errors"] == 0
    assert report["totals"]["compressed_messages"] >= 24


def test_receivers_that_are_late(exchanged):
    """What has come before anybody looks tells nothing of the link."""
    done = exchanged(1 << 20, 30, "late")
    assert count(done, codec="mpc") >= 15


def test_senders_in_a_barrier(exchanged):
    """What leaves while its sender waits there tells of the link. On a loaded machine a run may
    take too long to tell; where no message ever does, five go raw, and no more is asked."""

    def raw() -> int:
        done = exchanged(1 << 20, 8, "barrier")
        return count(done, reason="sent raw to time the link")

    assert any(raw() < 5 for _ in range(10))


def test_exchanges_that_stay_raw(exchanged):
    """No rank looks at receives."""
    for way in ("isend", "sendrecv", "oneway"):
        done = exchanged(1 << 20, 3, way, env={}, options=("--codec", "none"))
        assert done.report["totals"]["compressed_messages"] == 0


@pytest.mark.parametrize(
    "program", ["p2p", "truncate", "derived", "requests", "probe", "lifetimes"]
)
def test_what_mpi_promises(program, mpi_program, mpress_run):
    done = mpress_run(2, mpi_program(program), env=SLOW, options=("--codec", "mpc"))
    assert done.status == 0, done.output


def test_short_messages_on_a_slow_link(exchanged):
    # So slow that what the system makes a codec wait for takes less than a message.
    done = exchanged(16 << 10, 20, env={**SLOW, "MPRESS_LINK_RATE": "10Mbit"})
    assert count(done, codec="mpc") == 40
    done = exchanged(16 << 10, 20, options=("--codec", "mpc", "--threshold", "64K"))
    assert count(done, reason="below the threshold") == 40


def test_what_is_not_asked_for(exchanged):
    # MPRESS_LINK_RATE tells. A busy machine may make a codec slow, after two looks a rank.
    looks = 2 * 2
    for learn in ("off", "auto"):
        done = exchanged(1 << 20, 8, env={**SLOW, "MPRESS_LEARN": learn})
        raw = count(done, reason="would not pay at the ratio seen")
        assert count(done, codec="mpc") == 16 - raw >= looks
    done = exchanged(1 << 20, 8, env={"MPRESS_LEARN": "off"})
    assert count(done, reason="costs never measured") == 16
    done = exchanged(1 << 20, 8, options=("--codec", "mpc", "--force"))
    assert count(done, codec="mpc") == 16
    done = exchanged(1 << 20, 8, options=("--codec", "none"))
    assert count(done, reason="switched off") == 16


def test_in_earnest(exchanged):
    """Whatever this machine's links are like at the moment, messages are right."""
    for codec in ("mpc", "auto"):
        exchanged(1 << 20, 30, env={"MPRESS_LEARN": "auto"}, options=("--codec", codec))
        exchanged(3 << 20, 10, "sendrecv", env={"MPRESS_LEARN": "auto"}, options=("--codec", codec))


def test_wrong_settings_are_refused(mpi_program, mpress_run):
    done = mpress_run(1, mpi_program("exchanges"), ["64", "1"], env={"MPRESS_LEARN": "yes"})
    assert done.status != 0
    assert "MPRESS_LEARN='yes': expected auto, off or all" in done.output


def test_what_is_kept(exchanged, tmp_path):
    """The next run begins with what this one has learned, if that still holds."""
    env = {"MPRESS_LEARN": "auto", "MPRESS_PROFILE": "", "XDG_CACHE_HOME": str(tmp_path)}
    exchanged(1 << 20, 4, env=env)
    [kept] = (tmp_path / "mpress").glob("*.learned")
    first, line = kept.read_text().splitlines()
    assert first == "mpress learned 1"
    same, other, linked = (float(word) for word in line.split()[:3])
    assert same > 1e6 and other == 0 and linked == 0
    exchanged(1 << 20, 4, env=env)
    assert len(kept.read_text().splitlines()) == 2
    # Nonsense, another program's settings, and a rate that does not hold any more.
    kept.write_text(f"{first}\n-1 x\n1 1 1 another MPI\n1000 0 0 {line.split(' ', 3)[3]}\n\0\n")
    exchanged(1 << 20, 4, env=env)
    [rate] = [
        text.split()[0]
        for text in kept.read_text().splitlines()
        if text.endswith(line.split(" ", 3)[3])
    ]
    assert float(rate) > 1e6


TO_THE_NEXT = """
import sys
import cupy, numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
x = numpy.sin(numpy.arange(int(sys.argv[1]) // 4, dtype=numpy.float32) * 1e-3)
array = cupy.asarray(x if world.rank == 0 else 0 * x)
for _ in range(12):
    if world.rank == 0:
        world.Send(array, 1)
    else:
        world.Recv(array, 0)
    world.Barrier()
assert numpy.abs(array.get() - x).max() <= 2.1e-3
"""


@pytest.mark.parametrize(
    ("nbytes", "learn", "pays"),
    [(8 << 20, "auto", True), (2 << 20, "auto", False), (8 << 20, "off", False)],
)
def test_a_link_between_devices_is_measured(
    nbytes, learn, pays, mpi, simulated_cupy, mpress_run, tmp_path
):
    """By the receiver of the first long message; the sender, which gets none, hears of it."""
    program = tmp_path / "program.py"
    program.write_text(TO_THE_NEXT)
    env = {**simulated_cupy, "MPRESS_LINK": "peer", "MPRESS_LEARN": learn}
    # Of several threads not every MPI tells what has become of requests.
    env["MPI4PY_RC_THREAD_LEVEL"] = "funneled"
    options = ("--codec", "szp:rel=1e-3", "--mpiexec", os.fspath(mpi.mpiexec))
    done = mpress_run(
        2, sys.executable, ["-m", "mpi4py", program, nbytes], env=env, options=options
    )
    assert done.status == 0, done.output
    sent = [row for row in done.report["rows"] if row["direction"] == "send"]
    # Before the two have opened what they share, messages go by MPI, and are compressed.
    encoded = sum(row["messages"] for row in sent if row["codec"] == "szp")
    assert encoded >= 6 if pays else encoded <= 3
    assert bool(re.search(r"; linked [0-9.e+]+ GB/s", done.report["profile"])) == pays
    unknown = sum(row["messages"] for row in sent if row["reason"] == "costs never measured")
    assert (1 if pays else 6) <= unknown <= (5 if pays else 12)


COLLECTIVES_ALONE = """
import sys
import cupy, numpy
from mpi4py import MPI
world = MPI.COMM_WORLD
call, data, nbytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = numpy.sin(numpy.arange(nbytes // 4, dtype=numpy.float32) * 1e-3)
if data == "noise":
    bits = numpy.random.default_rng(1).integers(0, 0x7F000000, x.size, dtype=numpy.uint32)
    x = bits.view(numpy.float32)
sum_of_all = x * sum(range(1, world.size + 1))
array = cupy.asarray(x * (world.rank + 1))
result = cupy.asarray(numpy.zeros_like(x))
for _ in range(12):
    if call == "bcast":
        world.Bcast(array, 0)
    else:
        world.Allreduce(array, result)
wanted = x if call == "bcast" else sum_of_all
got = (array if call == "bcast" else result).get()
bound = 0 if data == "noise" else 1.01e-3 * (wanted.max() - wanted.min())
assert numpy.abs(got - wanted).max() <= bound
"""


@pytest.mark.parametrize(
    ("call", "data", "codec"),
    [
        ("allreduce", "wave", "szp:rel=1e-3"),
        ("bcast", "wave", "szp:rel=1e-3"),
        ("bcast", "noise", "mpc"),
    ],
)
def test_collective_calls_teach_what_links_carry(
    call, data, codec, mpi, simulated_cupy, mpress_run, tmp_path
):
    """A program without messages: its first long calls go by kernels, and time the link. What does
    not become smaller goes by kernels again. On a loaded machine the link may be timed late."""
    program = tmp_path / "program.py"
    program.write_text(COLLECTIVES_ALONE)
    env = {**simulated_cupy, "MPRESS_LINK": "peer", "MPRESS_LEARN": "auto"}
    env["MPI4PY_RC_THREAD_LEVEL"] = "funneled"
    options = ("--codec", codec, "--mpiexec", os.fspath(mpi.mpiexec))
    arguments = ["-m", "mpi4py", program, call, data, 16 << 20]
    learned = r"; linked [0-9.e+]+ GB/s, learned by (a message|a collective call|another rank)"

    def is_learned() -> bool:
        done = mpress_run(2, sys.executable, arguments, env=env, options=options)
        assert done.status == 0, done.output
        rows = [row for row in done.report["rows"] if row["direction"] == "send"]
        encoded = sum(row["raw_bytes"] for row in rows if row["codec"] == codec.split(":")[0])
        # Of the first calls, some go by blocks.
        pays = encoded > 0.45 * sum(row["raw_bytes"] for row in rows)
        return bool(re.search(learned, done.report["profile"])) and pays == (data == "wave")

    assert any(is_learned() for _ in range(5))
