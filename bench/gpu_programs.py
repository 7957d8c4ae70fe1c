"""Programs in C of the benchmarks that use MPI and GPUs."""

import shutil
import subprocess
from pathlib import Path


def compiled(source: Path, program: Path, *options: str | Path) -> None:
    """Makes `program`, with the mpicc and CUDA's toolkit on PATH; `options` are the compiler's."""
    cuda = Path(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc").resolve().parent.parent
    command = ["mpicc", "-O2", source, "-o", program, "-I", cuda / "include", *options,
               "-L", cuda / "lib64", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]  # fmt: skip
    subprocess.run(command, check=True)
