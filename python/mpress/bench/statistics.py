"""What times of several launches tell: Tukey's outliers, and means with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

TUKEY_FACTOR = 3.0

# Student's t of 1 to 30 degrees of freedom, two-sided 95 %.
_STUDENT = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
_NORMAL = 1.959964


def without_outliers(values: Sequence[float], factor: float = TUKEY_FACTOR) -> np.ndarray:
    """Those within `factor` interquartile ranges of the quartiles (Tukey), which are those of type
    7 of Hyndman and Fan, Am. Stat. 50(4), 1996."""
    found = np.asarray(values, np.float64)
    low, high = np.quantile(found, (0.25, 0.75), method="linear")
    reach = factor * (high - low)
    return found[(found >= low - reach) & (found <= high + reach)]


def student(degrees: int) -> float:
    """What a mean of `degrees` + 1 values is within, in standard errors, with 95 %."""
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    # The first terms of the expansion by Cornish and Fisher.
    z = _NORMAL
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / degrees**power for power, term in enumerate(terms))


def mean_interval(values: Sequence[float]) -> tuple[float, list[float] | None]:
    """Their mean and its 95 % confidence interval; None of one value."""
    found = np.asarray(values, np.float64)
    mean = float(found.mean())
    if found.size < 2:
        return mean, None
    half = student(found.size - 1) * float(found.std(ddof=1)) / math.sqrt(found.size)
    return mean, [mean - half, mean + half]


def launch_means(launches: Sequence[Sequence[float]]) -> list[float]:
    """Of each launch the mean of its times, without their outliers."""
    return [float(without_outliers(times).mean()) for times in launches]


def outliers(times: Sequence[float]) -> int:
    """How many there are."""
    return len(times) - without_outliers(times).size
