"""Reductions whose bits do not depend on the order of the ranks (MPRESS_REPRODUCIBLE, the info key
mpress_reproducible): tests/mpi/reductions_reproducible.c prints a hash of what comes out."""

import pytest

EXTENDED = pytest.mark.extended
FORCED = ("--force", "--threshold", "0")
NAMES = {"MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"}


@pytest.fixture
def reproduced(mpi_program, mpress_run):
    """reproduced(codec, ranks=3, key=True, env={}, options=(), device=False): its report, and what
    it printed."""

    def run(codec, ranks=3, key=True, env=None, options=(), device=False):
        bound = codec.removeprefix("szp:") if codec.startswith("szp:abs") else "exact"
        arguments = ["1", bound, "key" if key else "none", *(["device"] if device else [])]
        done = mpress_run(
            ranks,
            mpi_program("reductions_reproducible"),
            arguments,
            ("--codec", codec, *options),
            env=env or {},
        )
        assert done.status == 0, done.output
        assert done.report["totals"]["errors"] == 0
        return done

    return run


def served(done) -> set[str]:
    rows = done.report["rows"]
    return {row["operation"] for row in rows if row["direction"] == "send"} & NAMES


WAYS = {
    "chunks": {"options": FORCED, "env": {"MPRESS_CHUNK": "4K"}},
    "thread": {"key": False, "env": {"MPRESS_REPRODUCIBLE": "1", "MPRESS_PROGRESS": "thread"}},
    "hosts": {"env": {"MPIR_CVAR_NUM_CLIQUES": "2"}},
    "devices": {"device": True},
    "devices, forced": {"device": True, "options": FORCED},
    "devices, by MPI": {"device": True, "options": FORCED, "env": {"MPRESS_LINK": "mpi"}},
}
USUAL = {"none": ("thread", "hosts", "devices"), "szp:abs=1e-3": ("chunks", "devices, forced")}


@pytest.mark.parametrize(
    ("codec", "ways"),
    [
        *((codec, ways) for codec, ways in USUAL.items()),
        *(pytest.param(codec, tuple(WAYS), marks=EXTENDED) for codec in USUAL),
    ],
)
def test_the_same_bits(codec, ways, mpi, reproduced, simulated_gpu):
    """Whatever the calls, forms, orders of the ranks, hosts, chunks, links and memory."""
    if mpi.name == "abi":
        pytest.skip("calls that do not block are MPI's there: test_calls_that_do_not_block")
    first = reproduced(codec)
    assert served(first) == NAMES
    assert first.stdout.endswith(" same\n")
    for name in ways:
        if name == "hosts" and mpi.name == "openmpi":
            continue  # only MPICH takes parts of a host for hosts
        way = WAYS[name]
        env = {**(simulated_gpu if "device" in way else {}), **way.get("env", {})}
        assert reproduced(codec, **{**way, "env": env}).stdout == first.stdout, name


@pytest.mark.parametrize("codec", ["mpc", "zfp:16"])
def test_without_loss(codec, mpi, reproduced):
    """What is lossless is exact, whatever was asked for that has a loss without a bound."""
    if mpi.name == "abi":
        pytest.skip("calls that do not block are MPI's there: test_calls_that_do_not_block")
    done = reproduced(codec, options=FORCED)
    env = {"MPRESS_REPRODUCIBLE": "1"}
    assert done.stdout == reproduced("none", key=False, env=env).stdout


def test_calls_that_do_not_block(mpi, mpi_program, mpress_run):
    """The standard ABI has neither MPI's progress hook nor a way for a progress thread to look."""
    program = mpi_program("reductions_reproducible")
    done = mpress_run(3, program, ["1", "exact", "key"], ("--codec", "none"))
    said = (
        "rank 0: the bits of a reduction may depend on the order of the ranks, as MPI serves it: it"
    )
    is_said = f"{said} does not block, and there is no progress thread" in done.output
    assert is_said == (mpi.name == "abi")


def test_only_where_asked_for(reproduced):
    """The program tells the difference."""
    assert reproduced("mpc", key=False, options=FORCED).stdout.endswith(" others\n")


def test_what_is_switched_off(mpi, mpi_program, mpress_run):
    env = {"MPRESS_REPRODUCIBLE": "1", "MPRESS_DISABLE_ALLREDUCE": "1"}
    options = ("--codec", "none")
    arguments = ["3", "20", "exact", "plain"]
    done = mpress_run(2, mpi_program("reductions"), arguments, options, env=env)
    assert done.status == 0, done.output
    not_blocking = {"MPI_Reduce_scatter"} if mpi.name == "abi" else set()  # in that program
    assert served(done) == NAMES - {"MPI_Allreduce"} - not_blocking


def test_what_cannot_be_had_is_said_once(mpi_program, mpress_run):
    env = {"MPRESS_REPRODUCIBLE": "1", "MPRESS_CHUNK": "0"}
    done = mpress_run(2, mpi_program("reductions"), ["3", "20", "exact", "plain"], env=env)
    assert served(done) == set()
    assert done.output.count("rank 0: the bits of a reduction may depend on the order") == 1
    assert "without chunks" in done.output
