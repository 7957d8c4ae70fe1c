"""Real ranks that use teams, agreements and MPI's progress hook directly (tests/ranks)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from execution import Finished, execute
from mpis import Mpi

LIBRARIES = {
    "libmpi.so.12": "ranks_mpich",
    "libmpi.so.40": "ranks_openmpi",
    "libmpi_abi.so.1": "ranks_abi",
}

Run = Callable[..., Finished]


@pytest.fixture
def program(mpi: Mpi, build_dir: Path) -> list[str]:
    """The program for the MPI of the tests, and where that is."""
    folder = mpi.mpicc.parent.parent / "lib"
    names = ["libmpi_abi.so.1"] if mpi.name == "abi" else ["libmpi.so.12", "libmpi.so.40"]
    library = next((folder / name for name in names if (folder / name).exists()), None)
    if library is None:
        pytest.skip(f"{folder} has no MPI that the ranks are built for")
    path = build_dir / "tests" / LIBRARIES[library.name]
    assert path.exists(), "not built: cmake --build build --target mpress_tests"
    return [str(path), str(library)]


@pytest.fixture
def ranks(program: list[str], mpirun: Run) -> Run:
    """ranks(n, test, ranks_a_host=0, env=None): one of tests/ranks on n ranks, or several with
    commas between them."""

    def run(n: int, test: str, ranks_a_host: int = 0, **options: object) -> Finished:
        return mpirun(n, program[0], [program[1], test, str(ranks_a_host)], **options)

    return run


def check(done: Finished, n: int) -> None:
    assert done.status == 0, done.output
    assert done.stdout.count("is content") == n, done.output


# One host; pretended hosts of one, two and three ranks, so that all, or some, go by MPI.
@pytest.mark.parametrize(("n", "ranks_a_host"), [(2, 0), (3, 1), (4, 2), (7, 3)])
def test_members_agree(ranks: Run, n: int, ranks_a_host: int) -> None:
    check(ranks(n, "agree,agree_at_once,gather,orders", ranks_a_host), n)


@pytest.mark.parametrize("ranks_a_host", [0, 2])
@pytest.mark.parametrize("tests", ["freed,refused,mismatch", "threads"])
def test_teams(ranks: Run, tests: str, ranks_a_host: int) -> None:
    check(ranks(4, tests, ranks_a_host), 4)


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("ranks_a_host", [0, 1])
def test_operations_get_on_while_mpi_blocks(ranks: Run, ranks_a_host: int, threaded: bool) -> None:
    check(ranks(3, "hook", ranks_a_host, env={"RANKS_THREADED": "1"} if threaded else {}), 3)


@pytest.mark.parametrize("link", ["channel_link", "peer_link", "host_link"])
def test_links_conform(ranks: Run, link: str) -> None:
    """The same cases for every link."""
    check(ranks(3, link), 3)


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("lost", [0, 1]),
        ("channel_link_lost", [1, 2]),
        ("peer_link_lost", [1, 2]),
        ("host_link_lost", [1, 2]),
    ],
)
def test_a_member_that_ends_is_an_error(
    mpi: Mpi, program: list[str], tmp_path: Path, test: str, told: list[int]
) -> None:
    """MPICH's launcher can be told to leave the others alone, where it sees a shell end."""
    if "openmpi" in program[0]:
        pytest.skip("its launcher ends all ranks")
    shell = ["sh", "-c", 'trap "" USR1; "$@"; true', "sh"]  # nor may that signal end the shell
    command = [mpi.mpiexec, "-disable-auto-cleanup", "-n", "3", *shell, *program, test]
    done = execute(command, {**mpi.env, "RANKS_FOLDER": str(tmp_path)})
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"told.{rank}" for rank in told], done.output
