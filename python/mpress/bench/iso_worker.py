"""What the ranks of `mpress bench iso` run: python -m mpress.bench.iso_worker PLAN.json OUT.json.

They are started under the MPI's own launcher, without the preload library: what is compared with
mpress is MPI itself. iso_jobs makes the plan and reads the output; rank 0 alone sees the files.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpi4py import MPI

from mpress import _api, _core
from mpress.bench import communication, creation, stencil

STAGES = {"communication": communication.run, "creation": creation.run, "stencil": stencil.run}


@contextmanager
def _record(comm: MPI.Comm) -> Iterator[str]:
    """Where the ranks of a host keep what mpress counts: hosts may share no folder."""
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    made = tempfile.mkdtemp(prefix="mpress-record-") if here.rank == 0 else ""
    try:
        yield here.bcast(made)
        here.Barrier()
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)


def main() -> None:
    comm = MPI.COMM_WORLD
    plan = comm.bcast(json.loads(Path(sys.argv[1]).read_text()) if comm.rank == 0 else None)
    if comm.size != plan["ranks"]:
        sys.exit(
            f"mpress.bench.iso_worker: expected {plan['ranks']} ranks, but there are {comm.size}"
        )
    out = Path(sys.argv[2])
    mpi = _core.mpi_name(MPI.Get_library_version())
    hosts = len(set(comm.allgather(MPI.Get_processor_name())))

    def keep(rows: list[dict[str, Any]]) -> None:
        if comm.rank == 0:
            found = {"mpi": mpi, "ranks": comm.size, "hosts": hosts, "rows": rows}
            aside = out.with_suffix(".new")
            aside.write_text(json.dumps(found) + "\n")
            aside.replace(out)

    with _record(comm) as folder:
        os.environ["MPRESS_RECORD"] = folder
        _api.start()
        STAGES[plan["stage"]](plan, keep)


if __name__ == "__main__":
    main()
