"""Compiles the stencil program, and reads what it prints."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mpress

HERE = Path(__file__).resolve().parent
PREFIX = Path(mpress.__file__).parent  # what `mpress info --prefix` prints

# Contracted, a multiplication and an addition round once: not everywhere in a row alike.
OPTIONS = ("-std=c99", "-O3", "-ffp-contract=off")


class ProgramError(Exception):
    """The program cannot be compiled, or printed no times."""


@dataclass(frozen=True)
class Times:
    step: float  # s
    exchanging: float  # s of a step, the mean of the processes
    exchanges: int
    messages: int  # of all processes, an exchange
    bytes: int  # in them, before a codec


def build(program: Path, mpicc: str | Path, options: Sequence[str | Path] = ()) -> None:
    """Raises ProgramError."""
    command = [mpicc, *OPTIONS, *options, "-o", program, *sorted(HERE.glob("*.c"))]
    command += [f"-I{PREFIX}/include", f"-L{PREFIX}/lib", f"-Wl,-rpath,{PREFIX}/lib"]
    words = [*map(str, command), "-lmpress", "-lm"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise ProgramError(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stderr}")


def times(printed: str) -> Times:
    """Of the lines that the program printed. Raises ProgramError."""
    found = re.search(
        r"([\d.]+) us a step, of which exchanging ([\d.]+) us; (\d+) exchanges, (\d+) messages and "
        r"(\d+) bytes each",
        printed,
    )
    if not found:
        raise ProgramError(f"the stencil program printed no times:\n{printed}")
    step, exchanging, *counts = found.groups()
    return Times(1e-6 * float(step), 1e-6 * float(exchanging), *map(int, counts))
