"""Test fields with known statistics, the same on every machine.

`make(name, shape, dtype, seed)` returns one of

wave         pressure of a 3-D acoustic wave in a layered medium, late: the fronts fill about a
             quarter of the domain, the rest is exactly zero or far below the usual bounds
wave_sparse  the same wave early: all but a few per cent of the domain is empty
turb         isotropic random field with the energy spectrum k^(-5/3) of a turbulent flow
rand         Gaussian white noise, the hardest case of a codec

Ratios (raw bytes / encoded bytes) of a plain fixed-length code, for which the fields were
calibrated on 256 x 256 x 256 float32 values: blocks of 32, first differences that restart in
each block, one byte of width a block, one sign plane:

bound / range   wave   wave_sparse   turb   rand
1e-3            19.8   87.2          4.52   3.56
1e-4            13.0   71.6          3.09   2.61
1e-5             9.4   58.7          2.34   2.06

For turb also with differences carried through 4096 values: 5.26, 3.44, 2.53; and with the better
of first and second order chosen a block: 5.74, 3.60, 2.63.

The wave. p(t+1) = 2 p(t) - p(t-1) + (c dt / h)^2 Laplacian p(t), second order in time and space
(7 points), zero outside. Depth is the last axis, with four layers (LAYERS); the source is a Ricker
wavelet in the middle, 14 points a wavelength in the slowest layer at its peak frequency; the
Courant number of the fastest layer is 0.355. On an edge of 256 cells wave is step 420 and
wave_sparse step 200; on other shapes the steps scale with the shortest edge, so that the filled
part of the domain stays the same. The source is weighted by dt^2, about 1e-6, as in SI units.

The turbulence. White noise filtered in Fourier space with amplitude k^(-11/6), which is the energy
k^(-5/3) after integration over shells of area k^2, up to a quarter of the grid's wave numbers (4
cells a wavelength: a resolved flow, whose smallest scales an order-2 prediction can still follow);
mean 0, standard deviation 1.
"""

import hashlib
import os
import tempfile
from pathlib import Path

import numpy

NAMES = ("wave", "wave_sparse", "turb", "rand")

LAYERS = ((0.0, 1500.0), (0.3, 2000.0), (0.55, 2600.0), (0.75, 3400.0))  # relative depth, m/s
COURANT = 0.355
POINTS_PER_WAVELENGTH = 14.0
SOURCE_WEIGHT = 1e-6
REFERENCE_EDGE = 256
STEPS = {"wave": 420, "wave_sparse": 200}  # on an edge of REFERENCE_EDGE cells

_DTYPES = {"f32": numpy.float32, "f64": numpy.float64}
_CACHE_FROM_BYTES = 1 << 22
_CACHE_VERSION = 1


def make(name, shape, dtype="f32", seed=None, xp=numpy, cache=True):
    """The field `name` as a C-contiguous array of module `xp` (numpy, or one with its interface).

    shape  three extents, each at least 8 for the waves; rand takes any number of them
    dtype  "f32" or "f64": the type of the arithmetic as well as of the result
    seed   of turb and rand; the waves do not depend on it
    cache  keep large waves, which take tens of seconds, in the user's cache directory
    """
    shape = tuple(int(n) for n in shape)
    if name not in NAMES:
        raise ValueError(f"unknown field {name!r}; choose from {', '.join(NAMES)}")
    if dtype not in _DTYPES:
        raise ValueError(f"unknown element type {dtype!r}; choose f32 or f64")
    if not shape or min(shape) < 1:
        raise ValueError(f"every extent of {shape} must be positive")
    real = _DTYPES[dtype]
    if name == "rand":
        return xp.asarray(_noise(shape, real, 2 if seed is None else seed))
    if len(shape) != 3:
        raise ValueError(f"{name} needs three extents, got {shape}")
    if name == "turb":
        return _turbulence(_noise(shape, real, 1 if seed is None else seed), xp)
    if min(shape) < 8:
        raise ValueError(f"{name} needs extents of at least 8, got {shape}")
    steps = max(1, round(STEPS[name] * min(shape) / REFERENCE_EDGE))
    if not cache or numpy.prod(shape) * real().nbytes < _CACHE_FROM_BYTES:
        return _wave(shape, real, steps, xp)
    return _cached_wave(shape, real, steps, xp)


def _noise(shape, real, seed):
    generator = numpy.random.Generator(numpy.random.PCG64(seed))
    return generator.standard_normal(shape, dtype=real)


def _turbulence(noise, xp):
    shape = noise.shape
    real = noise.dtype
    # The spectrum is isotropic in physical wave numbers, cells being cubes.
    kx = xp.fft.fftfreq(shape[0]).astype(real)
    ky = xp.fft.fftfreq(shape[1]).astype(real)
    kz = xp.fft.rfftfreq(shape[2]).astype(real)
    k_squared = kx[:, None, None] ** 2 + ky[None, :, None] ** 2 + kz[None, None, :] ** 2
    keep = (k_squared > 0) & (k_squared <= 1.0 / 16.0)
    amplitude = xp.where(keep, xp.where(keep, k_squared, 1) ** (-11.0 / 12.0), 0)
    spectrum = xp.fft.rfftn(xp.asarray(noise)) * amplitude.astype(real)
    field = xp.fft.irfftn(spectrum, shape, axes=(0, 1, 2)).astype(real)
    deviation = field.std()
    return field / deviation if deviation > 0 else field


def _wave(shape, real, steps, xp):
    """Pressure after `steps` steps; cost is proportional to the box the stencil has reached."""
    velocity = numpy.empty(shape[2])
    depth = numpy.arange(shape[2]) / shape[2]
    for top, speed in LAYERS:
        velocity[depth >= top] = speed
    fastest = max(speed for _, speed in LAYERS)
    slowest = min(speed for _, speed in LAYERS)
    courant_squared = (COURANT * velocity / fastest) ** 2
    side = xp.asarray(courant_squared.astype(real))
    centre = xp.asarray((2.0 - 6.0 * courant_squared).astype(real))
    steps_per_period = POINTS_PER_WAVELENGTH / (COURANT * slowest / fastest)

    old = xp.zeros(shape, real)
    now = xp.zeros(shape, real)
    source = tuple(n // 2 for n in shape)
    for step in range(steps):
        # What the stencil can have reached; the outermost layer stays zero.
        lo = [max(1, s - step) for s in source]
        hi = [min(n - 1, s + step + 1) for s, n in zip(source, shape, strict=True)]
        _leapfrog(now, old, side, centre, lo, hi, xp)
        phase = (numpy.pi * (step / steps_per_period - 1.2)) ** 2
        old[source] += real(SOURCE_WEIGHT * (1 - 2 * phase) * numpy.exp(-phase))
        now, old = old, now
    return now


def _leapfrog(now, old, side, centre, lo, hi, xp):
    """Replaces `old` by the next step inside [lo, hi), a few planes at a time to stay in cache."""
    y, z = slice(lo[1], hi[1]), slice(lo[2], hi[2])
    plane_elements = (hi[1] - lo[1]) * (hi[2] - lo[2])
    planes = max(1, (1 << 16) // plane_elements) if xp is numpy else hi[0] - lo[0]
    for first in range(lo[0], hi[0], planes):
        last = min(first + planes, hi[0])
        x = slice(first, last)
        total = now[first - 1 : last - 1, y, z] + now[first + 1 : last + 1, y, z]
        total += now[x, lo[1] - 1 : hi[1] - 1, z]
        total += now[x, lo[1] + 1 : hi[1] + 1, z]
        total += now[x, y, lo[2] - 1 : hi[2] - 1]
        total += now[x, y, lo[2] + 1 : hi[2] + 1]
        total *= side[z]
        total += centre[z] * now[x, y, z]
        total -= old[x, y, z]
        old[x, y, z] = total


def _cached_wave(shape, real, steps, xp):
    what = (_CACHE_VERSION, shape, real.__name__, steps, LAYERS, COURANT, POINTS_PER_WAVELENGTH)
    key = hashlib.sha256(repr((*what, SOURCE_WEIGHT)).encode()).hexdigest()[:16]
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    file = Path(root) / "mpress" / f"wave-{key}.npy"
    try:
        return xp.asarray(numpy.load(file, allow_pickle=False))
    except (OSError, ValueError):
        pass  # not there, or cut short by a full disk: compute it
    field = _wave(shape, real, steps, xp)
    host = field if isinstance(field, numpy.ndarray) else field.get()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".tmp", delete=False) as partial:
            numpy.save(partial, host)
        os.replace(partial.name, file)
    except OSError:
        pass  # a read-only home costs time, not correctness
    return field
