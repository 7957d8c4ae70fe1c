"""Compiles the wave program, and reads what it prints."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = sorted(HERE.glob("*.c"))

# Contracted, a multiplication and an addition round once: in the middle of a row otherwise than at
# its end, and on a GPU otherwise than on the host.
_C_OPTIONS = ("-std=c11", "-O3", "-ffp-contract=off")
_CUDA_OPTIONS = ("-std=c++17", "-O3", "--fmad=false")


class ProgramError(Exception):
    """The program cannot be compiled, or printed no times."""


@dataclass(frozen=True)
class Times:
    """What a run tells of the steps that it timed."""

    time_step: float  # s, of the simulated time
    steps: int
    seconds: float
    step_seconds: float
    flops: float  # a second, of all ranks together
    waited: float  # s a rank in which nothing was computed because halos were on their way
    waited_share: float  # of the ranks' time


def build(program: Path, mpicc: str | Path, options: Sequence[str] = (),
          nvcc: str | Path | None = None, architecture: str = "native") -> None:  # fmt: skip
    """Compiles `program`; with `--device cuda` where `nvcc` is given. Raises ProgramError."""
    command = [mpicc, *_C_OPTIONS, *options, "-o", program, *SOURCES]
    if nvcc is not None:
        solver = program.with_suffix(".cuda.o")
        _call([nvcc, *_CUDA_OPTIONS, f"-arch={architecture}", *_defines(options), "-c", "-o",
               solver, HERE / "solver_cuda.cu"])  # fmt: skip
        home = Path(shutil.which(nvcc) or nvcc).resolve().parent.parent
        command += ["-DWAVE_CUDA", solver, f"-L{home / 'lib64'}", "-lcudart_static", "-lstdc++"]
        command += ["-ldl", "-lrt", "-lpthread"]
    _call([*command, "-lm"])


def times(printed: str) -> Times:
    """Of the lines that the program printed. Raises ProgramError."""
    time_step = re.search(r" dt ([\d.e+-]+) s", printed)
    found = re.search(
        r"(\d+) steps in ([\d.]+) s, ([\d.]+) ms a step, [\d.]+ steps/s, ([\d.]+) GFLOP/s, "
        r"waiting for halos ([\d.]+) s a rank",
        printed,
    )
    if not time_step or not found:
        raise ProgramError(f"the wave program printed no times:\n{printed}")
    steps, seconds, waited = int(found[1]), float(found[2]), float(found[5])
    step_seconds = 1e-3 * float(found[3])
    return Times(
        float(time_step[1]), steps, seconds, step_seconds, 1e9 * float(found[4]), waited,
        waited / (steps * step_seconds),
    )  # fmt: skip


def _defines(options: Sequence[str]) -> list[str]:
    return [option for option in options if option.startswith("-D")]


def _call(command: Sequence[str | Path]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise ProgramError(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stderr}")
