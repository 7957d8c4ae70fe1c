"""Reductions that mpress serves: tests/mpi/reductions, against sums in higher precision."""

import pytest
from test_same_bits import several_hosts as several_hosts  # a fixture

EXTENDED = pytest.mark.extended
FORCED = ("--force", "--threshold", "0")
SERVED = {"MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"}
CODECS = {
    "none": "exact",
    "mpc": "exact",
    "zfp:16": "loose",
    "szp:abs=1e-3": "abs=1e-3",
    "szp:rel=1e-4": "rel=1e-4",
    "szp:rel=1e-6,mode=dense": "rel=1e-6",
}


def served(done) -> set[str]:
    """The operations whose pieces were sent as messages."""
    assert done.status == 0, done.output
    assert done.stdout == "ok\n"
    assert done.report["totals"]["errors"] == 0
    rows = done.report["rows"]
    return {row["operation"] for row in rows if row["direction"] == "send"} & SERVED


def check_served(done, mpi, names=SERVED):
    """All, but where what does not block is MPI's: then programs of few calls may have some of a
    kind that none of them serves."""
    found = served(done)
    assert (found and found <= names) if mpi.name == "abi" else found == names


USUAL = ("mpc", "szp:rel=1e-4")  # a relative bound becomes an absolute one


@pytest.mark.parametrize(
    "codec", [name if name in USUAL else pytest.param(name, marks=EXTENDED) for name in CODECS]
)
@pytest.mark.parametrize(
    "ranks", [pytest.param(2, marks=EXTENDED), 3, pytest.param(5, marks=EXTENDED)]
)
def test_results(ranks, codec, mpi_program, mpress_run):
    arguments = [str(ranks), "75", CODECS[codec]]
    done = mpress_run(ranks, mpi_program("reductions"), arguments, ("--codec", codec, *FORCED))
    assert served(done) == SERVED
    assert (done.report["totals"]["compressed_messages"] > 50) == (codec != "none")
    algorithms = {row["algorithm"] for row in done.report["rows"] if row["operation"] in SERVED}
    assert algorithms == {"two-shot"}


@pytest.mark.parametrize(
    "link", ["auto", *(pytest.param(x, marks=EXTENDED) for x in ("mpi", "host"))]
)
@pytest.mark.parametrize("codec", ["none", "mpc", "szp:rel=1e-4"])
@pytest.mark.parametrize("ranks", [3, pytest.param(4, marks=EXTENDED)])
def test_on_devices(ranks, codec, link, mpi, mpi_program, mpress_run, simulated_gpu):
    """And on both hosts and devices, each rank as it likes: with the same bits."""
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    arguments = [str(10 * ranks), "60", CODECS[codec], "device"]
    options = ("--codec", codec) if codec == "none" else ("--codec", codec, *FORCED)
    done = mpress_run(ranks, mpi_program("reductions"), arguments, options, env=env)
    check_served(done, mpi)
    totals = done.report["totals"]
    assert (totals["peer_messages"] > 0) == (link == "auto")
    assert (totals["host_messages"] > 0) == (link == "host")


@pytest.mark.parametrize("takes_devices", [False, pytest.param(True, marks=EXTENDED)])
@pytest.mark.parametrize(
    "link", ["auto", "mpi", *(pytest.param(x, marks=EXTENDED) for x in ("peer", "host"))]
)
def test_a_long_first_call(link, takes_devices, mpi_program, mpress_run, simulated_gpu):
    """Its blocks go by MPI, whose chunks a device gets by way of the host, or in its own memory."""
    env = {**simulated_gpu, "MPRESS_LINK": link}
    if takes_devices:
        env["SIMULATED_GPU_OPEN"] = "1"
    program = mpi_program("reductions_long")
    done = mpress_run(2, program, ["1e-3"], ("--codec", "szp:abs=1e-3", *FORCED), env=env)
    assert served(done) == {"MPI_Allreduce"}
    assert done.report["totals"]["compressed_messages"] > 0


@pytest.mark.parametrize(
    ("codec", "ranks", "count", "link", "is_shared"),
    [
        ("none", 3, 1500003, "peer", False),
        ("none", 3, 1500003, "host", False),  # in two laps
        ("szp:abs=1e-3", 3, 300000, "peer", False),
        ("szp:abs=1e-3", 3, 300000, "host", False),
        ("szp:abs=1e-3", 2, 300000, "peer", True),
        pytest.param("szp:rel=1e-4", 5, 900000, "host", False, marks=EXTENDED),
        pytest.param("szp:rel=1e-4", 5, 4500000, "peer", False, marks=EXTENDED),
        pytest.param("none", 2, 4500000, "peer", True, marks=EXTENDED),
        # In windows.
        pytest.param("none", 2, 36000000, "peer", False, marks=EXTENDED),
        pytest.param("none", 3, 36000000, "peer", False, marks=EXTENDED),
        pytest.param("szp:abs=1e-3", 2, 36000000, "peer", False, marks=EXTENDED),
        pytest.param("szp:rel=1e-4", 2, 72000000, "peer", False, marks=EXTENDED),
    ],
)
def test_sums_row_by_row(
    codec, ranks, count, link, is_shared, mpi_program, mpress_run, simulated_gpu
):
    """Where each rank has a device to itself, one kernel a rank stores what the others read in
    their memory, or in the host's."""
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    env["SIMULATED_GPU_SHARED"] = str(int(is_shared))
    options = ("--codec", codec) if codec == "none" else ("--codec", codec, *FORCED)
    arguments = ["2e-3" if "rel" in codec else "1e-3", str(count)]
    done = mpress_run(ranks, mpi_program("reductions_long"), arguments, options, env=env)
    assert served(done) == {"MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter_block"}
    rows = [row for row in done.report["rows"] if row["algorithm"] == "one-kernel"]
    by_kernels = {row["operation"] for row in rows if row["direction"] == "send"}
    if is_shared:
        assert not by_kernels
    else:
        assert by_kernels & SERVED == served(done)
        assert ("MPI_Bcast" in by_kernels) == (codec == "none" and link == "peer")
        assert {row["way"] for row in rows if row["raw_bytes"]} == {link}
    assert {row["codec"] for row in rows if row["raw_bytes"]} <= {codec.split(":")[0]}
    assert all(row["wire_bytes"] > 0 for row in rows if row["raw_bytes"])


@pytest.mark.parametrize(
    ("ranks", "link", "is_shared", "takes_devices"),
    [
        pytest.param(2, "peer", False, False, marks=EXTENDED),
        pytest.param(2, "host", False, False, marks=EXTENDED),
        pytest.param(2, "peer", True, True, marks=EXTENDED),
        (4, "peer", False, True),
        (4, "host", False, False),
        (4, "peer", True, False),
        pytest.param(4, "host", True, True, marks=EXTENDED),
        pytest.param(7, "peer", False, False, marks=EXTENDED),
        pytest.param(7, "host", False, True, marks=EXTENDED),
        pytest.param(7, "peer", True, True, marks=EXTENDED),
    ],
)
def test_without_messages(
    ranks, link, is_shared, takes_devices, mpi_program, mpress_run, simulated_gpu
):
    """Where devices reach memory together, each reads there what the others bring: by one kernel,
    or, where ranks share a device and reach its memory, by several that wait for no other."""
    env = {**simulated_gpu, "MPRESS_LINK": link, "SIMULATED_GPU_LEAKS": "shared"}
    env["SIMULATED_GPU_SHARED"] = str(int(is_shared))
    if takes_devices:
        env |= {"SIMULATED_GPU_OPEN": "1", "MPRESS_GPU_AWARE": "1"}
    arguments = [str(10 * ranks), "40", "held"]
    program = mpi_program("reductions_linked")
    done = mpress_run(ranks, program, arguments, ("--codec", "none"), env=env)
    assert served(done) == SERVED
    rows = [row for row in done.report["rows"] if row["operation"] in SERVED]
    algorithms = {row["algorithm"] for row in rows}
    if not is_shared:
        ways = {row["way"] for row in rows if row["algorithm"] == "one-kernel" and row["raw_bytes"]}
        assert ways == {link}
    else:
        assert "one-kernel" not in algorithms
        if link == "peer":
            assert "one-shot" in algorithms and (ranks == 2 or "two-shot" in algorithms)


@pytest.mark.parametrize("ranks", [3, pytest.param(2, marks=EXTENDED)])
@pytest.mark.parametrize("link", ["peer", pytest.param("host", marks=EXTENDED)])
def test_sums_that_begin_before_the_range_is_known(
    ranks, link, mpi, mpi_program, mpress_run, simulated_gpu
):
    """Within a relative bound, by the grid of the last one; where that does not serve, again."""
    env = {**simulated_gpu, "MPRESS_LINK": link}
    program = mpi_program("reductions_expected")
    done = mpress_run(ranks, program, [], ("--codec", "szp:rel=1e-3", *FORCED), env=env)
    assert served(done) == {"MPI_Allreduce"}
    assert {row["algorithm"] for row in done.report["rows"]} >= {"one-kernel"}


@pytest.mark.parametrize("bound", [pytest.param("1e-2", marks=EXTENDED), "1e-4"])
def test_sums_in_quanta_have_the_same_bits(bound, mpi, mpi_program, mpress_run, simulated_gpu):
    """Whatever the order of the ranks, chunks, links, and where buffers lie; and what hosts add up
    first, but for elements that are no quanta, of which the tighter bound has some."""
    ways = [("0", {}), ("1", {"MPRESS_CHUNK": "16K"}), ("2 mixed", simulated_gpu),
            ("3 device", simulated_gpu)]  # fmt: skip
    if bound == "1e-2" and mpi.name != "openmpi":
        ways.append(("1", HOSTS["odd-even"]))
    if mpi.name == "abi":
        pytest.skip("what does not block is MPI's there, and has other bits than what blocks")
    program = mpi_program("reductions_alike")
    options = ("--codec", f"szp:abs={bound}", *FORCED)
    printed = set()
    for arguments, env in ways:
        done = mpress_run(4, program, arguments.split(), options, env=env)
        assert done.status == 0, done.output
        assert done.report["totals"]["compressed_messages"] > 50
        printed.add(done.stdout)
    assert len(printed) == 1


HOSTS = {
    "odd-even": {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"},
    "three": {"MPIR_CVAR_NUM_CLIQUES": "3"},
}


USUAL_ON_HOSTS = {("szp:rel=1e-4", "odd-even"), ("none", "three")}


@pytest.mark.parametrize(
    ("codec", "hosts"),
    [
        pytest.param(codec, hosts, marks=() if (codec, hosts) in USUAL_ON_HOSTS else EXTENDED)
        for codec in ("none", "mpc", "szp:rel=1e-4")
        for hosts in HOSTS
    ],
)
@pytest.mark.parametrize("ranks", [5, *(pytest.param(n, marks=EXTENDED) for n in (4, 8))])
def test_on_several_hosts(
    ranks, codec, hosts, several_hosts, mpi, mpi_program, mpress_run, simulated_gpu
):  # fmt: skip
    """What a host's ranks bring is combined there first; also on hosts of different sizes."""
    env = {**HOSTS[hosts], **simulated_gpu, "MPRESS_CHUNK": "32K"}
    arguments = [str(20 + ranks), "40", CODECS[codec], "device"]
    options = ("--codec", codec) if codec == "none" else ("--codec", codec, *FORCED)
    done = mpress_run(ranks, mpi_program("reductions"), arguments, options, env=env)
    if codec == "none":
        assert served(done)  # of raw ones those that are long and that devices have brought before
    else:
        check_served(done, mpi)
    algorithms = {row["algorithm"] for row in done.report["rows"] if row["operation"] in SERVED}
    assert "by-host" in algorithms


def test_what_is_brought_in_place_in_short_chunks(mpi_program, mpress_run, simulated_gpu):
    """No header of the results comes to where a host still reads what its rank brings."""
    env = {**HOSTS["odd-even"], **simulated_gpu, "MPRESS_CHUNK": "4K", "MPRESS_LINK": "peer"}
    arguments = ["4", "20", "rel=1e-4", "device"]
    options = ("--codec", "szp:rel=1e-4", "--force", "--threshold", "0")
    done = mpress_run(3, mpi_program("reductions"), arguments, options, env=env)
    assert done.status == 0, done.output


@pytest.mark.parametrize("form", ["", pytest.param("immediate", marks=EXTENDED)])
@pytest.mark.parametrize("codec", ["none", "szp:rel=1e-4"])
@pytest.mark.parametrize("ranks", [3, *(pytest.param(n, marks=EXTENDED) for n in (1, 4))])
def test_a_device_that_fails_on_several_hosts(
    ranks, codec, form, several_hosts, mpi_program, mpress_run, simulated_gpu
):
    options = ("--codec", codec) if codec == "none" else ("--codec", codec, *FORCED)
    program = mpi_program("reductions_failing")
    arguments = [form, "2", "1000000", str(ranks)]
    env = {**simulated_gpu, **several_hosts}
    done = mpress_run(4, program, arguments, options, env=env)
    assert done.status == 0 and "ok" in done.stdout, done.output


FAILING = [(150000, 1, "auto"), (150000, 1, "host"), (150000, 3, "auto"), (150000, 3, "host"),
           (1000000, 3, "auto")]  # fmt: skip
"""Elements, a bit for each rank whose device fails, and the link."""
USUAL_FAILURES = [
    ("none", "", *FAILING[0]),
    ("none", "immediate", *FAILING[1]),
    ("none", "", *FAILING[4]),
    ("szp:rel=1e-4", "immediate", *FAILING[0]),
    ("szp:rel=1e-4", "", *FAILING[1]),
    ("szp:rel=1e-4", "immediate", *FAILING[4]),
]


@pytest.mark.parametrize(
    "pieces", [1, *(pytest.param(n, marks=EXTENDED) for n in (0, *range(2, 9)))]
)
@pytest.mark.parametrize(
    ("codec", "form", "count", "ranks", "link"),
    [
        pytest.param(*one, marks=() if one in USUAL_FAILURES else EXTENDED)
        for one in (
            (codec, form, *way)
            for codec in ("none", "szp:rel=1e-4")
            for form in ("", "immediate", "persistent")
            for way in FAILING
        )
    ],
)
def test_a_device_that_fails(
    codec, form, pieces, count, ranks, link, mpi, mpi_program, mpress_run, simulated_gpu
):
    if form in ("immediate", "persistent") and mpi.name == "abi":
        pytest.skip("MPI serves such calls, and the other ranks wait")
    options = ("--codec", codec) if codec == "none" else ("--codec", codec, *FORCED)
    program = mpi_program("reductions_failing")
    arguments = [form, str(pieces), str(count), str(ranks)]
    env = {**simulated_gpu, "MPRESS_LINK": link}
    done = mpress_run(3, program, arguments, options, env=env)
    assert done.status == 0 and "ok" in done.stdout, done.output


@pytest.mark.parametrize(
    ("codec", "pieces", "calls"),
    [
        ("szp:rel=1e-4", 0, []),
        *(("szp:abs=1e-1", pieces, [calls])
          for pieces, calls in ((0, 2), (0, 4), (1, 2), (1, 4), (2, 2), (3, 4))),
    ],
)  # fmt: skip
def test_a_device_that_fails_before_a_sum_is_made_again(
    codec, pieces, calls, mpi_program, mpress_run, simulated_gpu
):
    """Members who look for the range after all do so together, or not at all."""
    arguments = ["", str(pieces), "150000", "1", *map(str, calls)]
    options = ("--codec", codec, *FORCED)
    program = mpi_program("reductions_failing")
    done = mpress_run(3, program, arguments, options, env=simulated_gpu)
    assert done.status == 0 and "ok" in done.stdout, done.output


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=EXTENDED)])
def test_in_the_progress_thread(seed, mpi, mpi_program, mpress_run):
    env = {"MPRESS_PROGRESS": "thread"}
    arguments = [str(30 + seed), "50", "rel=1e-4"]
    options = ("--codec", "szp:rel=1e-4", *FORCED)
    done = mpress_run(3, mpi_program("reductions"), arguments, options, env=env)
    if mpi.name != "abi":
        assert served(done) == SERVED


@pytest.mark.parametrize(
    "family",
    ["REDUCE", *(pytest.param(x, marks=EXTENDED) for x in ("ALLREDUCE", "REDUCE_SCATTER"))],
)
def test_kill_switches(family, mpi, mpi_program, mpress_run):
    env = {f"MPRESS_DISABLE_{family}": "1"}
    options = ("--codec", "mpc", *FORCED)
    done = mpress_run(2, mpi_program("reductions"), ["7", "60", "exact", "plain"], options, env=env)
    left = {name for name in SERVED if name.upper().removesuffix("_BLOCK") == f"MPI_{family}"}
    check_served(done, mpi, SERVED - left)


def test_where_nothing_pays(mpi_program, mpress_run):
    done = mpress_run(3, mpi_program("reductions"), ["8", "60", "exact", "plain"])
    assert served(done) == set()


def test_by_mpi_alone(mpi_program, mpirun):
    """The program is right without mpress."""
    done = mpirun(3, mpi_program("reductions"), ["9", "60", "exact", "plain"])
    assert done.status == 0 and done.stdout == "ok\n", done.output


def test_short_sums_on_many_communicators(mpi_program, mpress_run, simulated_gpu):
    """Where there may be devices, too, they take no communicators of MPI's."""
    program = mpi_program("many_communicators")
    done = mpress_run(2, program, [], ("--codec", "none"), env=simulated_gpu)
    assert done.status == 0 and done.stdout == "ok\n", done.output
