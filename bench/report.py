"""Write docs/performance.md, docs/dev/results-*.md and their pictures from bench/results/*.json."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import report_cuda
import report_host
import report_overhead
import report_p2p
import report_peer
import report_user
import report_wave
from tables import filled

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"
DEV = DOCS / "dev"

FILES = {
    "host": "codec-host.json",
    "cuda": "codec-cuda-h200.json",
    "p2p": "p2p-device-h200.json",
    "peer": "p2p-peer-h200.json",
    "wave": "wave-scaling-h200.json",
    "overhead": "p2p-overhead-host.json",
}
CUDA_PLOT = DEV / "codec-cuda-h200.svg"
P2P_PLOT = DEV / "p2p-device-h200.svg"
PEER_PLOT = DEV / "p2p-peer-h200.svg"
WAVE_PLOT = DEV / "wave-scaling.svg"
WAVE_PICTURE = DEV / "wave-sections.png"


def read() -> dict[str, Any]:
    return {name: json.loads((RESULTS / file).read_text()) for name, file in FILES.items()}


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
    return {path: filled(text) for path, text in texts.items()}


def drawings(found: dict[str, Any]) -> dict[Path, tuple[Callable[[Any, Path], None], Any]]:
    """What draws each picture, and the results that it shows."""
    return {
        CUDA_PLOT: (report_cuda.plot, found["cuda"]),
        P2P_PLOT: (report_p2p.plot, found["p2p"]),
        PEER_PLOT: (report_peer.plot, found["peer"]),
        WAVE_PLOT: (report_wave.plot, found["wave"]),
        WAVE_PICTURE: (report_wave.draw_sections, found["wave"]["accuracy"]),
    }


def main() -> None:
    found = read()
    for path, text in pages(found).items():
        path.write_text(text)
    for path, (draw, results) in drawings(found).items():
        draw(results, path)
    print(f"wrote {DOCS / 'performance.md'} and {DEV}/results-*.md")


if __name__ == "__main__":
    main()
