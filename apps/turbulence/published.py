"""What others have published of the Taylor-Green vortex, in the units of turbulence.py: velocities
of at most 1, a cube of edge 2 pi, Reynolds number 1 over viscosity, energy a unit of mass."""

from __future__ import annotations

import numpy as np

# By time: energy and dissipation at Reynolds number 1600, of a pseudo-spectral solution on 512^3
# points: spectral_Re1600_512.gdiag, the reference of case C3.5 of the International Workshops on
# High-Order CFD Methods (case_c3.5.pdf). At t = 8.97 the most is dissipated.
DNS_1600 = {
    0: (0.125, 0.00046874),
    1: (0.124515267, 0.00051882),
    2: (0.123916766, 0.00070756),
    3: (0.123023879, 0.00112652),
    4: (0.121508194, 0.00206624),
    5: (0.118435751, 0.00412710),
    6: (0.113581113, 0.00553099),
    7: (0.107024732, 0.00736477),
    8: (0.098289883, 0.01037290),
    8.97: (0.086789565, 0.01285753),
    10: (0.074479168, 0.01127205),
    12: (0.054441658, 0.00836089),
    15: (0.036438725, 0.00433186),
    19: (0.023596047, 0.00224938),
}


def early_dissipation(t, reynolds: float):
    """The series in time of Taylor and Green, Proc. R. Soc. A 158 (1937), to its third power: for
    t up to about 1/2."""
    r = reynolds
    series = 1 - 6 * t / r + (5 / 48 + 18 / r**2) * t**2 - (5 / 3 + 36 / r**2) * t**3 / r
    return 0.75 / r * series


def model_spectrum(k, energy: float, dissipation: float, viscosity: float):
    """Energy by wave number of isotropic turbulence: the model of S. B. Pope, Turbulent Flows
    (2000), equations 6.246 to 6.248, with the constants that he gives for high Reynolds numbers.
    Between the largest eddies and the smallest it is Kolmogorov's, 1.5 dissipation^(2/3) k^(-5/3).
    """
    largest = energy**1.5 / dissipation
    smallest = (viscosity**3 / dissipation) ** 0.25
    of_large = (k * largest / np.sqrt((k * largest) ** 2 + 6.78)) ** (5 / 3 + 2)
    of_small = np.exp(-5.2 * (((k * smallest) ** 4 + 0.40**4) ** 0.25 - 0.40))
    return 1.5 * dissipation ** (2 / 3) * k ** (-5 / 3) * of_large * of_small
