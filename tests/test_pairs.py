"""Collective calls of which each rank knows its own pairs alone, on memory of the host:
tests/mpi/pairs. The long pairs travel as blocks, MPI moves the rest."""

import pytest
from test_same_bits import several_hosts as several_hosts  # fixtures
from test_tune import profiled as profiled

FORCED = ("--codec", "mpc", "--force")
PAIRWISE = {"MPI_Alltoallv", "MPI_Alltoallw", "MPI_Gatherv", "MPI_Scatterv"}
LEAST = 65536  # the default threshold
EXTENDED = pytest.mark.extended
NO_GPU = {"MPRESS_GPU": "off"}


def blocks_sent(done, codec: str | None = None) -> dict[str, int]:
    """By call; of these calls alone."""
    assert done.status == 0, done.output
    assert done.report["totals"]["errors"] == 0
    found: dict[str, int] = {}
    for row in done.report["rows"]:
        if row["direction"] != "send" or row["operation"] not in PAIRWISE:
            continue
        if codec in (None, row["codec"]):
            found[row["operation"]] = found.get(row["operation"], 0) + row["messages"]
    return found


def long_pairs(done) -> list[int]:
    """Of blocking, non-blocking and persistent calls, as the program drew them; and of blocking
    ones between odd ranks and even ones."""
    return [int(number) for number in done.stdout.split()]


def arguments(seed: int, rounds: int, least=LEAST, forms="blocking", bound=0.0) -> list[str]:
    return [str(seed), str(rounds), str(least), forms, str(bound)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, pytest.param(7, marks=EXTENDED)])
def test_long_pairs_alone_are_blocks(ranks, mpi_program, mpress_run):
    """As many blocks as the program has long pairs, all of them compressed."""
    done = mpress_run(ranks, mpi_program("pairs"), arguments(ranks, 60), FORCED, env=NO_GPU)
    sent = blocks_sent(done)
    assert sum(sent.values()) == long_pairs(done)[0] == sum(blocks_sent(done, "mpc").values())
    assert set(sent) == (PAIRWISE if ranks > 1 else set())


@pytest.mark.parametrize("threshold", [0, 4096])
def test_threshold(threshold, mpi_program, mpress_run):
    """Of pairs that no frame could be shorter than, MPI moves what there is."""
    least = max(threshold, 168)
    options = (*FORCED, "--threshold", str(threshold))
    done = mpress_run(3, mpi_program("pairs"), arguments(5, 60, least), options, env=NO_GPU)
    assert sum(blocks_sent(done).values()) == long_pairs(done)[0] > 0


@pytest.mark.parametrize("codec", ["szp:abs=1e-4", "szp:rel=1e-6"])
def test_within_bounds(codec, mpi_program, mpress_run):
    """What a rank has for itself, and short pairs, are exact: the program's bound is for others."""
    options = ("--codec", codec, "--force")
    args = arguments(6, 60, bound=1e-4)
    done = mpress_run(3, mpi_program("pairs"), args, options, env=NO_GPU)
    assert sum(blocks_sent(done, "szp").values()) == long_pairs(done)[0] > 0


@pytest.mark.parametrize("ranks", [4, pytest.param(7, marks=EXTENDED)])
@pytest.mark.parametrize("within", [True, False])
def test_on_two_hosts(within, ranks, several_hosts, profiled, mpi_program, mpress_run):
    """Where compressing pays between hosts alone, MPI moves the pairs within them."""
    fast = "4096:1e-6 67108864:1e-4"
    text = profiled.text() if within else profiled.text(same_host=fast)
    profiled.path.write_text(text)
    env = {**NO_GPU, **several_hosts, "MPRESS_PROFILE": str(profiled.path)}
    options = ("--codec", "mpc", "--threshold", str(LEAST))
    done = mpress_run(ranks, mpi_program("pairs"), arguments(7, 60), options, env=env)
    everything, *_, between = long_pairs(done)
    assert sum(blocks_sent(done).values()) == (everything if within else between) > 0


def test_chunks(mpi_program, mpress_run):
    """Data that follow their headers are handed over before MPI's own call."""
    env = {**NO_GPU, "MPRESS_CHUNK": "64K"}
    done = mpress_run(3, mpi_program("pairs"), arguments(8, 60), FORCED, env=env)
    assert sum(blocks_sent(done).values()) == long_pairs(done)[0] > 0


@pytest.mark.parametrize("family", ["ALLTOALL", "GATHER", "SCATTER"])
def test_kill_switches(family, mpi_program, mpress_run):
    env = {**NO_GPU, f"MPRESS_DISABLE_{family}": "1"}
    done = mpress_run(2, mpi_program("pairs"), arguments(9, 40), FORCED, env=env)
    left = {name for name in PAIRWISE if name.rstrip("vw") == f"MPI_{family.capitalize()}"}
    assert set(blocks_sent(done)) == PAIRWISE - left


def test_where_it_does_not_pay(mpi_program, mpress_run):
    """All of it is MPI's."""
    done = mpress_run(3, mpi_program("pairs"), arguments(10, 30), env=NO_GPU)
    assert blocks_sent(done) == {}


def expect_blocks_of_all_forms(done, mpi) -> None:
    blocking, immediate, persistent, _ = long_pairs(done)
    assert min(blocking, immediate, persistent) > 0
    expected = blocking if mpi.name == "abi" else blocking + immediate + persistent
    assert sum(blocks_sent(done).values()) == expected


@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=EXTENDED)])
def test_all_forms_mixed(seed, mpi, mpi_program, mpress_run):
    """Where MPI does not let mpress in while it waits, it has those that are not blocking."""
    args = arguments(seed, 60, forms="mixed")
    done = mpress_run(3, mpi_program("pairs"), args, FORCED, env=NO_GPU)
    expect_blocks_of_all_forms(done, mpi)


def test_in_the_progress_thread(mpi, mpi_program, mpress_run):
    if mpi.name == "abi":
        pytest.skip("no way to look at requests from several threads")
    env = {**NO_GPU, "MPRESS_PROGRESS": "thread"}
    args = arguments(13, 20, forms="mixed")
    done = mpress_run(3, mpi_program("pairs"), args, FORCED, env=env)
    assert blocks_sent(done)


def test_beside_devices(mpi_program, mpress_run, simulated_gpu):
    """Before members tell each other where buffers lie, long pairs go as blocks all the same."""
    done = mpress_run(3, mpi_program("pairs"), arguments(14, 30), FORCED, env=simulated_gpu)
    assert sum(blocks_sent(done).values()) == long_pairs(done)[0] > 0


@pytest.mark.parametrize("seed", [16, pytest.param(17, marks=EXTENDED)])
def test_all_forms_beside_devices(seed, mpi, mpi_program, mpress_run, simulated_gpu):
    """Of non-blocking calls MPI's part is on the private communicator, in its turn."""
    args = arguments(seed, 60, forms="mixed")
    done = mpress_run(3, mpi_program("pairs"), args, FORCED, env=simulated_gpu)
    expect_blocks_of_all_forms(done, mpi)


@pytest.mark.parametrize("ranks", [1, 3])
def test_by_mpi_alone(ranks, mpi_program, mpirun):
    """The program is right without mpress."""
    done = mpirun(ranks, mpi_program("pairs"), arguments(15, 30, forms="mixed"))
    assert done.status == 0, done.output


@pytest.fixture
def run_persistent(mpi_program, mpress_run):
    """run_persistent(part): blocks that were sent, and long pairs that were started."""

    def run(part: str, ranks=3, **variables: str) -> tuple[int, int]:
        env = {**NO_GPU, **variables}
        done = mpress_run(ranks, mpi_program("persistent_pairs"), [part], FORCED, env=env)
        return sum(blocks_sent(done, "mpc").values()), int(done.stdout)

    return run


@pytest.mark.parametrize("ranks", [2, 4, pytest.param(5, marks=EXTENDED)])
def test_persistent_calls(ranks, mpi, run_persistent):
    """Started anew with other data and in other orders, together with messages, and completed by
    any call; on communicators that the program has freed."""
    blocks, started = run_persistent("all", ranks)
    assert blocks == (0 if mpi.name == "abi" else started) and started > 0


def test_persistent_calls_that_are_freed(mpi, run_persistent):
    """While they are active: what they bring comes."""
    if mpi.name == "abi":
        pytest.skip("leaves them to MPI")
    blocks, started = run_persistent("freed")
    assert blocks == started > 0


def test_persistent_calls_of_threads(mpi, run_persistent):
    if mpi.name == "abi":
        pytest.skip("no way to look at requests from several threads")
    blocks, started = run_persistent("threads", MPRESS_PROGRESS="thread")
    assert blocks == started > 0


def test_persistent_calls_by_mpi_alone(mpi_program, mpirun):
    done = mpirun(4, mpi_program("persistent_pairs"), ["all"])
    assert done.status == 0, done.output
