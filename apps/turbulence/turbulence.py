"""Decaying turbulence from the Taylor-Green vortex, by a pseudo-spectral method.

The domain is a periodic cube of edge 2 pi with N^3 points, cut into slabs. A transform in three
dimensions transforms within the slabs, transposes these among the ranks by one MPI_Alltoall, and
transforms along the axis that is whole then.

    mpiexec -n 4 python turbulence.py --points 64 --until 10 --output vortex

The momentum equation is in rotational form, with the 2/3 rule against aliasing (Canuto et al.,
Spectral Methods in Fluid Dynamics, 1988), a classical Runge-Kutta scheme of fourth order, and
single precision throughout.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time

import numpy
from mpi4py import MPI


class Transform:
    """Between slabs of points, [component][x of this rank][y][z], and slabs of waves,
    [component][x][y of this rank][z]. Both ways keep sums of squares (norm="ortho"): the root mean
    square of an error is the same before and after."""

    def __init__(self, comm: MPI.Comm, points: int, xp):
        self.comm, self.points, self.xp = comm, points, xp
        self.width = points // comm.size  # of a slab
        self.seconds = 0.0  # in MPI_Alltoall

    def forward(self, field):
        waves = self.xp.fft.rfft2(field, axes=(2, 3), norm="ortho")
        parts, width, size = len(field), self.width, self.comm.size
        blocks = waves.reshape(parts, width, size, width, -1).transpose(2, 0, 1, 3, 4)
        blocks = self.exchange(blocks).transpose(1, 0, 2, 3, 4)
        waves = blocks.reshape(parts, self.points, width, -1)
        return self.single(self.xp.fft.fft(waves, axis=1, norm="ortho"))

    def backward(self, waves):
        waves = self.xp.fft.ifft(waves, axis=1, norm="ortho")
        parts, width, size = len(waves), self.width, self.comm.size
        blocks = waves.reshape(parts, size, width, width, -1).transpose(1, 0, 2, 3, 4)
        blocks = self.exchange(blocks).transpose(1, 2, 0, 3, 4)
        waves = blocks.reshape(parts, width, self.points, -1)
        shape = (self.points, self.points)
        field = self.xp.fft.irfft2(waves, s=shape, axes=(2, 3), norm="ortho")
        return field.astype(self.xp.float32, copy=False)

    def exchange(self, blocks):
        """Block r goes to rank r; what comes back is ordered by the ranks it came from."""
        send = self.xp.ascontiguousarray(self.single(blocks))
        receive = self.xp.empty_like(send)
        if self.xp is not numpy:
            self.xp.cuda.get_current_stream().synchronize()  # MPI knows no streams
        begin = time.perf_counter()
        self.comm.Alltoall(send, receive)
        self.seconds += time.perf_counter() - begin
        return receive

    def single(self, waves):
        """NumPy before 2.0 transforms to double precision."""
        return waves.astype(self.xp.complex64, copy=False)


class Solver:
    """The state is `waves`: the velocity's, three components."""

    def __init__(self, comm: MPI.Comm, points: int, reynolds: float, xp):
        self.comm, self.points, self.viscosity, self.xp = comm, points, 1 / reynolds, xp
        self.transform = Transform(comm, points, xp)
        width = self.transform.width
        own = slice(comm.rank * width, (comm.rank + 1) * width)
        every = xp.asarray(numpy.fft.fftfreq(points, 1 / points).astype(numpy.float32))
        last = xp.arange(points // 2 + 1, dtype=xp.float32)
        self.k = (every[:, None, None], every[own][None, :, None], last[None, None, :])
        self.square = sum(k * k for k in self.k)
        self.over_square = 1 / xp.where(self.square == 0, 1, self.square)
        kept = [xp.abs(k) * 3 < points for k in self.k]
        self.kept = kept[0] & kept[1] & kept[2]
        # Of the waves along z, those but the first and last stand for their conjugates, too. The
        # energy of a wave is its square over the number of points, halved.
        self.weight = xp.where((last == 0) | (last == points // 2), 0.5, 1.0) / points**3
        self.waves = self.transform.forward(self.vortex(own)) * self.kept

    def vortex(self, own: slice):
        """Taylor and Green, Proc. R. Soc. A 158 (1937); the first axis is x."""
        xp = self.xp
        at = 2 * math.pi / self.points * xp.arange(self.points)
        x, y, z = at[own][:, None, None], at[None, :, None], at[None, None, :]
        u = xp.sin(x) * xp.cos(y) * xp.cos(z)
        v = -xp.cos(x) * xp.sin(y) * xp.cos(z)
        return xp.stack([u, v, xp.zeros_like(u)]).astype(xp.float32)

    def curl(self, waves):
        k, (u, v, w) = self.k, waves
        parts = [k[1] * w - k[2] * v, k[2] * u - k[0] * w, k[0] * v - k[1] * u]
        return 1j * self.xp.stack(parts)

    def change(self, waves):
        """The time derivative: u x curl u, without what pressure takes away, and viscosity."""
        both = self.xp.concatenate([waves, self.curl(waves)])
        u, v, w, a, b, c = self.transform.backward(both)
        product = self.xp.stack([v * c - w * b, w * a - u * c, u * b - v * a])
        force = self.transform.forward(product) * self.kept
        along = sum(k * part for k, part in zip(self.k, force, strict=True)) * self.over_square
        for k, part in zip(self.k, force, strict=True):
            part -= k * along
        return force - self.viscosity * self.square * waves

    def step(self, seconds: float) -> None:
        change = self.change(self.waves)
        after = self.waves + seconds / 6 * change
        for ahead, weight in ((1 / 2, 1 / 3), (1 / 2, 1 / 3), (1, 1 / 6)):
            change = self.change(self.waves + ahead * seconds * change)
            after += weight * seconds * change
        self.waves = after

    def spectrum(self):
        """Energy of the shells of wave numbers k - 1/2 to k + 1/2, of all ranks."""
        shells = self.xp.rint(self.xp.sqrt(self.square)).astype(int).ravel()
        energy = (self.weight * (abs(self.waves) ** 2).sum(axis=0)).ravel()
        return self.sum_of(
            self.xp.bincount(shells, weights=energy, minlength=self.points)[: self.points]
        )

    def balance(self) -> tuple[float, float, float]:
        """Kinetic energy and its dissipation, a unit of mass; divergence over velocity gradient."""
        energy = self.weight * (abs(self.waves) ** 2).sum(axis=0)
        flux = sum(k * part for k, part in zip(self.k, self.waves, strict=True))
        sums = [energy.sum(), (self.square * energy).sum(), (self.weight * abs(flux) ** 2).sum()]
        total, enstrophy, divergence = map(float, self.sum_of(self.xp.stack(sums)))
        return total, 2 * self.viscosity * enstrophy, math.sqrt(divergence / enstrophy)

    def sum_of(self, values) -> numpy.ndarray:
        return self.comm.allreduce(on_host(values))

    def velocity(self) -> numpy.ndarray:
        return on_host(self.transform.backward(self.waves))


def main() -> None:
    comm = MPI.COMM_WORLD
    options = parse_options(comm)
    solver = Solver(
        comm, options.points, options.reynolds, use_gpu(comm) if options.device else numpy
    )
    length = options.step or default_step(options)
    steps = round(options.until / length)
    history = [(0.0, *solver.balance())]
    taken = []  # seconds of each step, and of its transposes
    for number in range(1, steps + 1):
        comm.Barrier()
        begin, solver.transform.seconds = time.perf_counter(), 0.0
        solver.step(length)
        if options.device:
            solver.xp.cuda.get_current_stream().synchronize()
        taken.append((time.perf_counter() - begin, solver.transform.seconds))
        history.append((number * length, *solver.balance()))
    spectrum, velocity = solver.spectrum(), solver.velocity()
    found = comm.gather(taken)
    if options.output:
        numpy.save(f"{options.output}-velocity-{comm.rank}.npy", velocity)
    if comm.rank:
        return
    slowest = [
        [max(times) for times in zip(*step, strict=True)] for step in zip(*found, strict=True)
    ]
    names = ("times", "energy", "dissipation", "divergence")
    result = {
        "points": options.points, "ranks": comm.size, "reynolds": options.reynolds,
        "step": length, "device": options.device,
        "step_seconds": [step for step, _ in slowest],  # of the rank that took longest
        "transpose_seconds": [transpose for _, transpose in slowest],
        **dict(zip(names, map(list, zip(*history, strict=True)), strict=True)),
        "spectrum": spectrum.tolist(),
    }  # fmt: skip
    if options.output:
        with open(f"{options.output}.json", "w") as file:
            json.dump(result, file, indent=1)
    if slowest:
        step, transposes = map(statistics.median, zip(*slowest, strict=True))
        print(f"{options.points}^3 points, {comm.size} ranks, {steps} steps to t = "
              f"{history[-1][0]:.3g}: {1e3 * step:.1f} ms a step, {1e3 * transposes:.1f} of them "
              f"in transposes (medians)")  # fmt: skip
    peak = max(history, key=lambda one: one[2])
    print(f"energy {history[0][1]:.6f}, at the end {history[-1][1]:.6f}; dissipation at most "
          f"{peak[2]:.5f}, at t = {peak[0]:.3g}; divergence {history[-1][3]:.1e}")  # fmt: skip


def default_step(options: argparse.Namespace) -> float:
    """Within what the scheme bears for velocities of up to about 2, and viscosity."""
    largest_square = 3 * (options.points / 3) ** 2
    return min(2 / options.points, 2.5 * options.reynolds / largest_square)


def parse_options(comm: MPI.Comm) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=64, metavar="N", help="an axis; default 64")
    parser.add_argument("--reynolds", type=float, default=1600, help="default 1600")
    parser.add_argument("--until", type=float, default=10, metavar="T", help="time; default 10")
    parser.add_argument("--step", type=float, metavar="DT", help="default: what is stable")
    parser.add_argument("--device", action="store_true",
                        help="arrays of CuPy; ranks take a host's GPUs in turn")  # fmt: skip
    parser.add_argument("--output", metavar="NAME",
                        help="write NAME.json, and rank R's slab of velocity at the end to "
                             "NAME-velocity-R.npy: components, x, y, z")  # fmt: skip
    options = parser.parse_args()
    wrong = None
    if options.points < 4 or options.points % 2:
        wrong = f"--points {options.points}: expected an even number from 4 on"
    elif options.points % comm.size:
        wrong = f"--points {options.points}: {comm.size} ranks do not divide it"
    elif not options.reynolds > 0 or not options.until >= 0 or (options.step or 1) < 0:
        wrong = "--reynolds, --until, --step: expected numbers above 0"
    if wrong:
        if comm.rank == 0:
            parser.print_usage(sys.stderr)
            print(f"turbulence.py: {wrong}", file=sys.stderr)
        sys.exit(2)
    return options


def use_gpu(comm: MPI.Comm):
    """CuPy, with the GPU of this rank current."""
    import cupy

    # By Split_type each rank is alone where the MPI uses no shared memory.
    hosts = comm.allgather(MPI.Get_processor_name())
    number = hosts[: comm.rank].count(hosts[comm.rank])
    cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount()).use()
    return cupy


def on_host(array) -> numpy.ndarray:
    return array if isinstance(array, numpy.ndarray) else array.get()


if __name__ == "__main__":
    main()
