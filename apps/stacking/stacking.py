"""Image stacking: of each image many noisy shots are taken, and their mean is the stack.

Each rank takes its share of the shots and adds them up; one MPI_Allreduce an image adds up what
the ranks have, so that every rank has the stack.

    mpiexec -n 2 python stacking.py --field field.npy --image 4M --images 8 --output stack

A shot is the image plus Gaussian noise. Its noise depends on the numbers of image and shot alone:
the same shots are taken by any number of ranks. NumPy and CuPy draw different noise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
import time

import numpy
from mpi4py import MPI

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
TYPE = numpy.float32


def main() -> None:
    options = parse_options()
    comm = MPI.COMM_WORLD
    xp = use_gpu(comm) if options.device else numpy
    field = load_field(options.field)
    part = xp.empty(options.image, TYPE)  # of the stack: the shots of this rank
    stack = xp.empty_like(part)
    seconds, digests = [], []
    comm.Barrier()
    start = time.perf_counter()
    for number in range(options.images):
        image = make_image(field[number % len(field)], options.image, xp)
        shots = range(comm.rank, options.shots, comm.size)
        add_shots(part, image, number, shots, options.noise, xp)
        part /= options.shots
        if xp is not numpy:
            xp.cuda.get_current_stream().synchronize()  # MPI knows no streams
        comm.Barrier()
        begin = time.perf_counter()
        comm.Allreduce(part, stack)
        seconds.append(time.perf_counter() - begin)
        digests.append(hashlib.blake2b(on_host(stack), digest_size=16).hexdigest())
    taken = comm.allreduce(time.perf_counter() - start, MPI.MAX)
    if options.parts:
        numpy.save(f"{options.output}-part-{comm.rank}.npy", on_host(part))
    found = comm.gather((seconds, digests))
    if comm.rank == 0:
        slowest = [max(times) for times in zip(*(times for times, _ in found), strict=True)]
        result = {
            "ranks": comm.size,
            "bytes": part.nbytes,
            "shape": options.image,
            "shots": options.shots,
            "noise": options.noise,
            "device": options.device,
            "allreduce_seconds": slowest,  # of each image: of the rank that took longest
            "seconds": taken,  # making the images, noise and all, and stacking them
            "digests": list(zip(*(digests for _, digests in found), strict=True)),  # of all ranks
        }
        if options.output:
            numpy.save(f"{options.output}.npy", on_host(stack))
            with open(f"{options.output}.json", "w") as file:
                json.dump(result, file, indent=1)
        print(
            f"{options.images} images of {part.nbytes / 1e6:.1f} MB, {options.shots} shots each, "
            f"{comm.size} ranks: {1e3 * statistics.median(slowest):.2f} ms an Allreduce (median), "
            f"{sum(slowest):.3f} s in all"
        )


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--field", required=True, metavar="FILE.npy",
                        help="what is on the images: the last two dimensions are an image, "
                             "those before count images, which are used in turn")  # fmt: skip
    parser.add_argument("--image", type=shape_of, default="4M", metavar="BYTES|HxW",
                        help="size of an image: 4M (a square) or 512x1024; default 4M. The field "
                             "is interpolated by cubic splines")  # fmt: skip
    parser.add_argument("--images", type=positive, default=8, metavar="N", help="default 8")
    parser.add_argument("--shots", type=positive, default=32, metavar="N",
                        help="of each image, by all ranks together; default 32")  # fmt: skip
    parser.add_argument("--noise", type=float, default=0.05, metavar="SIGMA",
                        help="standard deviation of a shot's noise; an image goes from 0 to 1; "
                             "default 0.05")  # fmt: skip
    parser.add_argument("--device", action="store_true",
                        help="arrays of CuPy; ranks take a host's GPUs in turn")  # fmt: skip
    parser.add_argument("--output", metavar="NAME",
                        help="write the last image's stack to NAME.npy, and times to NAME.json; "
                             "these name the bits that each rank got, by a hash")  # fmt: skip
    parser.add_argument("--parts", action="store_true",
                        help="and what rank R added to it to NAME-part-R.npy")  # fmt: skip
    options = parser.parse_args()
    if options.parts and not options.output:
        parser.error("--parts needs --output")
    return options


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def shape_of(text: str) -> tuple[int, int]:
    """Rows and columns of `4M`, in bytes and at most, or of `512x1024`."""
    if "x" in text:
        rows, columns = map(positive, text.split("x"))
        return rows, columns
    unit = UNITS.get(text[-1:].upper(), 1)
    nbytes = positive(text if unit == 1 else text[:-1]) * unit
    edge = positive(str(math.isqrt(nbytes // TYPE().itemsize)))
    return edge, edge


def use_gpu(comm: MPI.Comm):
    """CuPy, with the GPU of this rank current."""
    import cupy

    # By Split_type each rank is alone where the MPI uses no shared memory.
    hosts = comm.allgather(MPI.Get_processor_name())
    number = hosts[: comm.rank].count(hosts[comm.rank])
    cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount()).use()
    return cupy


def load_field(path: str) -> numpy.ndarray:
    """Images of a file, in three dimensions."""
    try:
        field = numpy.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}")
    if field.ndim < 2 or not field.size or not numpy.isfinite(field).all():
        sys.exit(f"{path}: expected finite numbers in two dimensions or more")
    field = field.reshape(-1, *field.shape[-2:])
    if (numpy.ptp(field, axis=(1, 2)) == 0).any():
        sys.exit(f"{path}: an image has one value everywhere")
    return field


def make_image(values: numpy.ndarray, shape: tuple[int, int], xp):
    """The image, from 0 to 1 but for what splines overshoot."""
    least, greatest = values.min(), values.max()
    image = xp.asarray(((values - least) / (greatest - least)).astype(TYPE))
    for axis, count in enumerate(shape):
        image = interpolate(image, count, axis, xp)
    return image


def interpolate(values, count: int, axis: int, xp):
    """`values` at `count` even steps along an axis, by Catmull-Rom splines; the ends stay."""
    at = xp.linspace(0, values.shape[axis] - 1, count)
    left = xp.floor(at)
    t = at - left
    weights = (
        (-t + 2 * t**2 - t**3) / 2,
        (2 - 5 * t**2 + 3 * t**3) / 2,
        (t + 4 * t**2 - 3 * t**3) / 2,
        (-(t**2) + t**3) / 2,
    )
    result = 0
    for offset, weight in enumerate(weights, -1):
        index = xp.clip(left.astype(int) + offset, 0, values.shape[axis] - 1)
        weight = weight.astype(TYPE).reshape((-1, 1) if axis == 0 else (1, -1))
        result = result + weight * xp.take(values, index, axis=axis)
    return result


def add_shots(total, image, number: int, shots: range, noise: float, xp) -> None:
    """Adds up these shots of the image in `total`."""
    total.fill(0)
    for shot in shots:
        generator = xp.random.default_rng([number, shot])
        total += image
        total += noise * generator.standard_normal(image.shape, dtype=TYPE)


def on_host(array) -> numpy.ndarray:
    return array if isinstance(array, numpy.ndarray) else array.get()


if __name__ == "__main__":
    main()
