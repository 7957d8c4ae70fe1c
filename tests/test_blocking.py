"""Messages and collective calls under way while the program is in a call in which MPI waits
(tests/mpi/blocking.c)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from execution import Finished
from mpis import Mpi

FORCED = ["--codec", "mpc", "--force"]


@pytest.mark.parametrize("chunk", ["0", "65536"])
def test_messages_get_on_while_mpi_blocks(
    mpress_run: Callable[..., Finished],
    mpi_program: Callable[[str], Path],
    tmp_path: Path,
    chunk: str,
) -> None:
    file = str(tmp_path / "file")
    env = {"MPRESS_CHUNK": chunk}
    done = mpress_run(2, mpi_program("blocking"), [file], options=FORCED, env=env)
    assert done.status == 0, done.output
    assert done.stdout.count("is content") == 2, done.output


def test_broadcasts_get_on_while_mpi_blocks(
    mpi: Mpi,
    mpress_run: Callable[..., Finished],
    mpi_program: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """Ranks pass on what others wait for."""
    arguments = [str(tmp_path / "file"), "broadcasts"]
    env = {"MPRESS_GPU": "off"}
    done = mpress_run(3, mpi_program("blocking"), arguments, options=FORCED, env=env)
    assert done.status == 0, done.output
    assert done.stdout.count("is content") == 3, done.output
    rows = [row for row in done.report["rows"] if row["operation"] == "MPI_Bcast"]
    # Where MPI does not let mpress in while it waits, it serves such calls itself.
    assert bool(rows) == (mpi.name != "abi")
