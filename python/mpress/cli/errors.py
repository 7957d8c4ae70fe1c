"""What a command raises when the user got something wrong, and the checks that commands share."""

import json
import math
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from mpress import _core


class UserError(Exception):
    """One sentence that names the culprit and says what was expected; exit status 2."""


def checked_spec(option: str, spec: str) -> str:
    """The canonical text of a codec spec given for `option`."""
    try:
        return _core.describe(spec)["text"]
    except ValueError as error:
        raise UserError(f"{option}: {error}") from None


def checked_bytes(option: str, text: str) -> int:
    """Bytes, with an optional suffix K, M or G."""
    try:
        return _core.parse_bytes(text)
    except (TypeError, ValueError) as error:
        raise UserError(f"{option} {error}") from None


def checked_device(name: str) -> bool:
    """Whether `--device` asks for a GPU, which there is."""
    if name not in ("cpu", "cuda"):
        raise UserError(f"--device {name!r}: expected cpu or cuda")
    from mpress import cuda_bench

    if name == "cuda" and not cuda_bench.available():
        built = _core.build_info()["cuda"]
        why = "no GPU was found" if built else "this mpress was built without CUDA"
        raise UserError(f"--device cuda: {why}")
    return name == "cuda"


def checked_transport(name: str) -> str:
    """One of jobs.TRANSPORTS."""
    from mpress.p2p import jobs

    if name not in jobs.TRANSPORTS:
        raise UserError(f"--transport {name!r}: expected mpi, shm or tcp")
    return name


def checked_link(name: str | None) -> str | None:
    """One of jobs.LINKS, or None."""
    from mpress.p2p import jobs

    if name is not None and name not in jobs.LINKS:
        raise UserError(f"--link {name!r}: expected one of {', '.join(jobs.LINKS)}")
    return name


def checked_seconds(option: str, seconds: float) -> float:
    """How long to measure; 0 is as short as can be."""
    if not (math.isfinite(seconds) and seconds >= 0):
        raise UserError(f"{option} {seconds:g}: expected seconds, 0 or more")
    return seconds


def checked_output(option: str, file: Path) -> None:
    """A file that can be written, or made."""
    if file.is_dir():
        raise UserError(f"{option} {file}: expected a file, but this is a directory")
    if not file.absolute().parent.is_dir():
        raise UserError(f"{option} {file}: its directory does not exist")
    if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise UserError(f"{option} {file}: expected a file that can be written")


def read_json(name: str, file: Path) -> Any:
    """What a file holds; `name` is what the user is told that it is."""
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{name} is not JSON: {error}") from None


def checked_picture(option: str, file: Path) -> None:
    """A picture that can be drawn into a file: found out before anything is measured for it."""
    checked_output(option, file)
    if file.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise UserError(f"{option} {file}: expected a name that ends in .pdf, .png or .svg")
    load_plots()


def load_plots() -> ModuleType:
    """mpress.plots, which needs matplotlib."""
    try:
        from mpress import plots
    except ImportError:
        raise UserError(
            "drawing takes the package matplotlib (pip install 'mpress[plot]')"
        ) from None
    return plots
