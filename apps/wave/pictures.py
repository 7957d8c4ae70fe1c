"""Pictures of the demo: vertical sections through the source of apps/wave's fields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CUT = 0.02  # of the colour limit: smaller pressures are drawn transparent, the model shows through


@dataclass
class Grid:
    """Where the values of a snapshot lie."""

    cells: tuple[int, int, int]
    spacing: float  # m
    split: tuple[int, int, int]  # ranks in each direction
    time_step: float  # s

    def section(self, path: Path) -> np.ndarray:
        """The plane y = middle of a raw file, depth downwards."""
        field = np.fromfile(path, np.float32).reshape(self.cells)
        return field[:, self.cells[1] // 2, :].T

    @property
    def extent(self) -> tuple[float, float, float, float]:
        width, depth = (self.cells[axis] * self.spacing / 1000 for axis in (0, 2))
        return 0, width, depth, 0

    def borders(self) -> list[float]:
        """x in km of the borders between ranks that the section crosses."""
        return [
            self.cells[0] * part // self.split[0] * self.spacing / 1000
            for part in range(1, self.split[0])
        ]


def _over_model(axes, grid: Grid, values: np.ndarray, velocity: np.ndarray, limit: float) -> None:
    """Pressure over the model in grey."""
    axes.imshow(velocity, cmap="gray", extent=grid.extent, vmin=-2500, vmax=5500)
    colours = plt.get_cmap("seismic")(np.clip(values / limit, -1, 1) * 0.5 + 0.5)
    colours[..., 3] = np.clip(np.abs(values) / limit / (10 * CUT), 0, 0.95)
    colours[np.abs(values) < CUT * limit, 3] = 0
    axes.imshow(colours, extent=grid.extent)


def _finish(figure, axes, grid: Grid, title: str, image, label: str) -> None:
    for x in grid.borders():
        axes.axvline(x, color="#e0a000", linewidth=1, linestyle="--")
    axes.set_title(title, fontsize=10)
    axes.set(xlabel="x (km)", ylabel="depth (km)", aspect="equal")
    figure.colorbar(image, ax=axes, label=label, fraction=0.04, pad=0.02)


def _scale(limit: float):
    return plt.cm.ScalarMappable(plt.Normalize(-limit, limit), "seismic")


def _symmetric_limit(values: np.ndarray) -> float:
    return float(np.percentile(np.abs(values), 99.7)) or float(np.abs(values).max()) or 1.0


def draw_wave(path: Path, grid: Grid, velocity: Path, snapshots: dict[int, Path]) -> None:
    """The velocity model, and the pressure over it at each of three steps."""
    model = grid.section(velocity)
    figure, panels = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    first, *others = panels.flat
    image = first.imshow(model / 1000, cmap="viridis", extent=grid.extent)
    _finish(figure, first, grid, "velocity model", image, "P-wave velocity (km/s)")
    for axes, (step, snapshot) in zip(others, snapshots.items(), strict=True):
        values = grid.section(snapshot)
        limit = _symmetric_limit(values)
        _over_model(axes, grid, values, model, limit)
        title = f"pressure at {step * grid.time_step:.2f} s (step {step})"
        _finish(figure, axes, grid, title, _scale(limit), "pressure (Pa)")
    figure.suptitle("apps/wave: section through the source; dashed: border between ranks")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def draw_error(path: Path, grid: Grid, velocity: Path, step: int, exact: Path, lossy: Path,
               codec: str) -> None:  # fmt: skip
    """The wave field computed with lossy halos, and its difference from the exact one."""
    model = grid.section(velocity)
    reference, result = grid.section(exact), grid.section(lossy)
    error = result - reference
    largest = float(np.abs(error).max())
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    limit = _symmetric_limit(reference)
    _over_model(left, grid, result, model, limit)
    title = f"pressure at {step * grid.time_step:.2f} s, halos sent with {codec}"
    _finish(figure, left, grid, title, _scale(limit), "pressure (Pa)")
    limit = _symmetric_limit(error)
    image = right.imshow(error, cmap="seismic", extent=grid.extent, vmin=-limit, vmax=limit)
    share = largest / float(np.abs(reference).max())
    title = f"difference from the exact run: at most {largest:.2g} Pa,\n{share:.1e} of the largest"
    _finish(figure, right, grid, f"{title} pressure in this section", image, "error (Pa)")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
