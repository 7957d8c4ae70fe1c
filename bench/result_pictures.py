"""How pictures are drawn and saved, so that the same results make the same file."""

import hashlib
import json
from pathlib import Path
from typing import Any


def pyplot() -> Any:
    """matplotlib.pyplot, loaded when the first picture is drawn: text is made without it."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "mpress"
    from matplotlib import pyplot as plt

    return plt


def digest(results: Any) -> str:
    """What tells results apart; a picture carries that of the results it shows."""
    return hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()


def save(figure: Any, path: Path, results: Any) -> None:
    """Write `figure` as SVG or PNG, with the digest of `results`, and close it."""
    metadata: dict[str, str | None] = {"Description": f"results {digest(results)}"}
    if path.suffix == ".svg":
        metadata["Date"] = None
    figure.savefig(path, dpi=80, metadata=metadata)
    pyplot().close(figure)
