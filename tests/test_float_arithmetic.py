"""Floating-point arithmetic of mpress runs in an environment of its own, never in the program's.

src/codec/float_environment.hpp says why. Whatever computes must be reached by way of compute()
alone: here the machine code of what enters programs is searched for arithmetic that is not.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

# What rounds, traps or raises flags. Comparisons for equality (ucomis) do so for signalling NaNs
# alone.
ARITHMETIC = re.compile(
    r"v?(add|sub|mul|div|sqrt|min|max|comi|round|cvt\w*|cmp\w*|addsub|hadd|hsub|fn?m(add|sub)\w*|"
    r"range|reduce|rndscale|scalef|getexp|getmant|fixupimm)(ss|sd|ps|pd)|v?cvtt?\w+|"
    r"f(add|sub|mul|div|ild|ist|com|ld|st)\w*"
)
NOT = re.compile(r"cmps[bwlqd]?|fst?cw|fldcw")
# Functions of the library that read or write numbers, and so compute.
NUMBERS = re.compile(
    r"strto(d|f|ld)|_ZNSi10_M_extractI[edf]E|_ZNSo9_M_insertI[edf]E|_ZSt(10from_chars|8to_chars)PKc\w*[Rdfe]"
)
# The function that compute() has called, of any type.
SCOPED = re.compile(r"_ZZN6mpress7computeI.*4_FUNE")
OWN = re.compile(r"_Z\w*6mpress")


def lines_of(*command: str | Path) -> list[str]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


class Code:
    """Functions of a library: which compute, and who calls, or refers to, which."""

    def __init__(self, library: Path) -> None:
        self.computing: set[str] = set()
        self.users: dict[str, set[str]] = defaultdict(set)
        at: dict[int, str] = {}
        function = ""
        for line in lines_of("objdump", "-d", "--no-show-raw-insn", library):
            if line.endswith(">:"):
                function = line.split("<")[1][:-2]
                at[int(line.split()[0], 16)] = function
                continue
            _, tab, code = line.partition("\t")
            if not tab or not function:
                continue
            name = code.split(None, 1)[0]
            if ARITHMETIC.fullmatch(name) and not NOT.fullmatch(name):
                self.computing.add(function)
            for used in re.findall(r"<([^>+@]+)(?:@plt)?>", code):
                if used != function:
                    self.users[used].add(function)
                if NUMBERS.match(used):
                    self.computing.add(function)
        # What others call: by name, or by tables of functions.
        exported = [line.split()[-1] for line in lines_of("nm", "-D", "--defined-only", library)]
        relocated = re.findall(r"\*ABS\*\+(0x\w+)", "\n".join(lines_of("objdump", "-R", library)))
        in_tables = [int(where, 16) for where in relocated]
        self.entries = {*exported, *(at[where] for where in in_tables if where in at)}

    def unscoped(self) -> list[str]:
        """Chains of functions, from one of mpress that computes to one that others call."""
        found = []
        for function in sorted(self.computing):
            if not OWN.match(function) or SCOPED.match(function):
                continue
            waiting, seen = [[function]], {function}
            while waiting:
                chain = waiting.pop()
                if chain[-1] in self.entries:
                    found.append(" <- ".join(chain))
                    break
                for user in self.users[chain[-1]] - seen:
                    seen.add(user)
                    if not SCOPED.match(user):
                        waiting.append([*chain, user])
        return found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows the instructions of x86-64")
@pytest.mark.parametrize("library", ["preload/libmpress_mpich.so"])
def test_all_of_it_is_scoped(library: str, build_dir: Path) -> None:
    chains = Code(build_dir / "src" / library).unscoped()
    assert not chains, subprocess.run(
        ["c++filt"], check=True, input="\n".join(chains), capture_output=True, text=True
    ).stdout
