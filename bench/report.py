"""Write docs/performance.md, docs/dev/results-*.md and their pictures from bench/results/*.json."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import report_aware
import report_collectives
import report_cuda
import report_gaps
import report_host
import report_host_link
import report_overhead
import report_p2p
import report_peer
import report_reduction_figures
import report_reductions
import report_streams
import report_user
import report_wave
from report_collective_figures import FIGURES
from tables import filled

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"
DEV = DOCS / "dev"

FILES = {
    "host": "codec-host.json",
    "cuda": "codec-cuda-h200.json",
    "p2p": "p2p-device-h200.json",
    "wave": "wave-scaling-four-h100.json",
    "overhead": "p2p-overhead-host.json",
}
# Each file of these that there is, is a run on their page. Without any there is no page, but for
# `peer`, which always has one.
SEVERAL = {
    "peer": "p2p-peer-*.json",
    "host_link": "host-link-*.json",
    "aware": "cuda-aware-*.json",
    "collectives": "collectives-*.json",
    "reductions": "reductions-*.json",
    "quality": "gzccl-*.json",
    "streams": "streams-*.json",
    "gaps": "gaps-*.json",
}
CUDA_PLOT = DEV / "codec-cuda-h200.svg"
P2P_PLOT = DEV / "p2p-device-h200.svg"
PEER_PLOT = DEV / "p2p-peer.svg"
WAVE_PLOT = DEV / "wave-scaling.svg"
WAVE_PICTURE = DEV / "wave-sections.png"
HOST_LINK_PLOT = DEV / "host-link.svg"
AWARE_PLOT = DEV / "cuda-aware.svg"
COLLECTIVE_PLOTS = {name: DEV / f"collectives-{name}.svg" for name in FIGURES}

REDUCTION_PLOTS = {
    name: DEV / f"reductions-{name}.svg" for name in report_reduction_figures.FIGURES
}


def read(folder: Path = RESULTS) -> dict[str, Any]:
    found = {name: json.loads((folder / file).read_text()) for name, file in FILES.items()}
    for name, pattern in SEVERAL.items():
        runs = [json.loads(path.read_text()) | {"file": path.name}
                for path in sorted(folder.glob(pattern))]  # fmt: skip
        if name == "aware" and not any(map(report_aware.is_aware, runs)):
            continue  # those that there are, are to compare with
        if runs:
            found[name] = {"runs": runs}
    return found


def pages(found: dict[str, Any]) -> dict[Path, str]:
    """The text of every generated page. It depends on the results alone."""
    codecs = report_host.section(found["host"]), report_cuda.section(found["cuda"], CUDA_PLOT)
    texts = {
        DOCS / "performance.md": report_user.page(found, FILES),
        DEV / "results-codecs.md": "\n".join(codecs),
        DEV / "results-gpu-to-gpu.md": report_peer.section(found["peer"], PEER_PLOT),
        DEV / "results-device-messages.md": report_p2p.section(found["p2p"], P2P_PLOT),
        DEV / "results-wave.md": report_wave.section(found["wave"], WAVE_PLOT, WAVE_PICTURE),
        DEV / "results-raw-calls.md": report_overhead.section(found["overhead"]),
    }
    if "host_link" in found:
        text = report_host_link.section(found["host_link"], HOST_LINK_PLOT)
        texts[DEV / "results-host-link.md"] = text
    if "aware" in found:
        texts[DEV / "results-cuda-aware.md"] = report_aware.section(found["aware"], AWARE_PLOT)
    if "streams" in found:
        texts[DEV / "results-streams.md"] = report_streams.section(found["streams"])
    if "gaps" in found:
        texts[DEV / "results-gaps.md"] = report_gaps.section(found["gaps"])
    if "collectives" in found:
        text = report_collectives.section(found["collectives"], COLLECTIVE_PLOTS)
        texts[DEV / "results-collectives.md"] = text
    if reduced := about_reductions(found):
        texts[DEV / "results-reductions.md"] = report_reductions.section(reduced, REDUCTION_PLOTS)
    return {path: filled(text) for path, text in texts.items()}


def about_reductions(found: dict[str, Any]) -> dict[str, Any]:
    """What their page is made of; empty where there is none."""
    own = {name: found[name] for name in ("reductions", "quality") if name in found}
    return own | {"cuda": found["cuda"]} if own else {}


def drawings(found: dict[str, Any]) -> dict[Path, tuple[Callable[[Any, Path], None], Any]]:
    """What draws each picture, and the results that it shows."""
    wanted: dict[Path, tuple[Callable[[Any, Path], None], Any]] = {
        CUDA_PLOT: (report_cuda.plot, found["cuda"]),
        P2P_PLOT: (report_p2p.plot, found["p2p"]),
        PEER_PLOT: (report_peer.plot, found["peer"]),
        WAVE_PLOT: (report_wave.plot, found["wave"]),
        WAVE_PICTURE: (report_wave.draw_sections, found["wave"]["accuracy"]),
    }
    if "host_link" in found:
        wanted[HOST_LINK_PLOT] = report_host_link.plot, found["host_link"]
    if "aware" in found:
        wanted[AWARE_PLOT] = report_aware.plot, found["aware"]
    if "collectives" in found:
        for name, path in COLLECTIVE_PLOTS.items():
            wanted[path] = FIGURES[name].plot, found["collectives"]
    reduced = about_reductions(found)
    for name in report_reduction_figures.shown(reduced) if reduced else ():
        wanted[REDUCTION_PLOTS[name]] = report_reduction_figures.drawing(name, reduced)
    return wanted


def main() -> None:
    found = read()
    for path, text in pages(found).items():
        path.write_text(text)
    for path, (draw, results) in drawings(found).items():
        draw(results, path)
    print(f"wrote {DOCS / 'performance.md'} and {DEV}/results-*.md")


if __name__ == "__main__":
    main()
