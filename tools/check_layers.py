"""Checks that files of src include what src/layers.ini lets them: python tools/check_layers.py."""

from __future__ import annotations

import re
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).resolve().parent.parent / "src"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp"}


class Layer(NamedTuple):
    holds: list[str]
    allowed: list[str]


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def read_table(path: Path) -> dict[str, Layer]:
    parser = ConfigParser()
    parser.read_string(path.read_text(), str(path))
    return {
        name: Layer(names(section["holds"]), names(section["may include"]))
        for name, section in parser.items()
        if name != parser.default_section
    }


def lies_below(file: str, path: str) -> bool:
    if path.endswith("/*"):
        return file.startswith(path[:-1]) and "/" not in file[len(path) - 1 :]
    return file == path or file.startswith(path + "/")


def layer_of(file: str, table: dict[str, Layer]) -> str | None:
    """The layer with the longest path above a file."""
    held = [
        (len(path), name)
        for name, layer in table.items()
        for path in layer.holds
        if lies_below(file, path)
    ]
    return max(held)[1] if held else None


def check_order(table: dict[str, Layer]) -> list[str]:
    """Layers may include only layers, or paths of layers, that stand before them."""
    errors: list[str] = []
    before: dict[str, Layer] = {}
    for name, layer in table.items():
        for allowed in layer.allowed:
            lower = allowed if allowed in table else layer_of(allowed.removesuffix("/*"), table)
            if lower is None:
                errors.append(f"{name} may include {allowed}, which is no layer and in none")
            elif lower not in before:
                errors.append(f"{name} may include {allowed}, which does not stand before it")
        before[name] = layer
    return errors


def may_include(name: str, included: str, table: dict[str, Layer]) -> bool:
    of_included = layer_of(included, table)
    return of_included == name or any(
        of_included == allowed or lies_below(included, allowed) for allowed in table[name].allowed
    )


def check_files(sources: Path, table: dict[str, Layer]) -> list[str]:
    """Files of no layer, and includes that break the table."""
    errors: list[str] = []
    for path in sorted(sources.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        file = path.relative_to(sources).as_posix()
        name = layer_of(file, table)
        if name is None:
            errors.append(f"{file} belongs to no layer")
            continue
        for included in INCLUDE.findall(path.read_text()):
            if not (sources / included).exists():
                continue  # generated, or beside it
            if not may_include(name, included, table):
                errors.append(f"{file} includes {included}, which {name} may not: layers.ini")
    return errors


def check(sources: Path) -> list[str]:
    table = read_table(sources / "layers.ini")
    return check_order(table) + check_files(sources, table)


def main() -> None:
    errors = check(SOURCES)
    for error in errors:
        print(error, file=sys.stderr)
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
