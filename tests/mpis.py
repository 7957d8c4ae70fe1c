"""The MPIs that programs of the tests are built with and run under: `--mpi` chooses one."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from execution import BIN


@dataclass(frozen=True)
class Mpi:
    """An MPI that programs are built with and run under: its compiler wrapper and launcher, and
    what that needs in its environment."""

    name: str
    mpicc: Path
    mpiexec: Path
    env: Mapping[str, str] = field(default_factory=dict)


# Ranks of the tests may outnumber cores, where those that wait should leave them to the others, and
# belong to root; that is for the tests to allow.
_MPICH = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "50",
}
# Ranks start in half the time where UCX, the network layer of MPICH's wheel, looks at no network
# and hooks no calls of the C library. Tests of all families have it as it comes.
_UCX = {"UCX_TLS": "self,sm", "UCX_MEM_MMAP_HOOK_MODE": "none"}
_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
_SIDE = BIN.parent / "mpi"
# Which library mpi4py opens.
_OPEN_MPI_PYTHON = {"MPI4PY_LIBMPI": str(_SIDE / "openmpi/lib/libmpi.so.40")}
MPIS = {
    "default": Mpi("default", BIN / "mpicc", BIN / "mpiexec", _MPICH | _UCX | _OPEN_MPI),
    "mpich": Mpi("mpich", _SIDE / "mpich/bin/mpicc", _SIDE / "mpich/bin/mpiexec", _MPICH),
    "openmpi": Mpi(
        "openmpi",
        _SIDE / "openmpi/bin/mpicc",
        _SIDE / "openmpi/bin/mpiexec",
        _OPEN_MPI | _OPEN_MPI_PYTHON,
    ),
    "abi": Mpi("abi", _SIDE / "mpich/bin/mpicc_abi", _SIDE / "mpich/bin/mpiexec", _MPICH),
}


def mpi_of(choice: str) -> Mpi:
    """One of MPIS, or that of a compiler wrapper."""
    if choice in MPIS:
        return MPIS[choice]
    mpicc = Path(shutil.which(choice) or pytest.exit(f"--mpi {choice}: no such MPI", returncode=2))
    # Beside it, by the same ending: mpicc.mpich, mpiexec.mpich.
    mpiexec = mpicc.with_name(mpicc.name.replace("mpicc", "mpiexec"))
    return Mpi(str(mpicc).strip("/").replace("/", "-"), mpicc, mpiexec, _MPICH | _OPEN_MPI)
