"""Whether what arrived is what its codec promises."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpress import codec, measure


def judge(spec: str, sent: np.ndarray, received: np.ndarray) -> dict[str, Any]:
    """Whether a message arrived as its codec promises: every bit, or within the bound, or, where
    there is none (zfp), as the codec itself decodes what it encoded."""
    same = np.array_equal(sent.view(np.uint8), received.view(np.uint8))
    if same or not codec(spec).lossy:
        return {"promise": "exact", "kept": same, "max_error": 0.0 if same else None}
    quality = measure.compare(sent, received)
    error = quality.max_error if np.isfinite(quality.max_error) else None
    encoded = codec(spec).encode(sent)
    if encoded.bound is None:
        kept = codec(spec).decode(encoded).tobytes() == received.tobytes()
        return {"promise": "as decoded", "kept": kept, "max_error": error}
    kept = quality.specials_kept and quality.max_error <= encoded.bound
    return {"promise": "bound", "kept": kept, "max_error": error, "bound": encoded.bound}
