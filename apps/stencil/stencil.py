"""Heat and Jacobi with deep halos in NumPy, or CuPy (--gpu): the bits of the C program beside it.

mpiexec -n 4 python apps/stencil/stencil.py --grid 300x200 --depth 4 --codec szp:abs=1e-6
"""

import argparse

import numpy as np
from mpi4py import MPI

import mpress.iso


def balls(cells: list[np.ndarray], grid: tuple[int, ...], cold: float) -> np.ndarray:
    """1 and `cold` in two balls, at the cells' positions along each axis."""
    axes = np.ix_(*((2 * x + 1 - n) / n for x, n in zip(cells, grid, strict=True)))
    hot, other = (sum((x - centre) ** 2 for x in axes) < 0.09 for centre in (-0.4, 0.4))
    return np.where(hot, 1.0, np.where(other, cold, 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", choices=("heat", "jacobi"), default="heat")
    parser.add_argument("--grid", default="200x200", help="cells, in 2 or 3 dimensions")
    parser.add_argument("--border", choices=("periodic", "fixed"), default="periodic")
    parser.add_argument("--depth", type=int, default=1, help="cells of halo, steps an exchange")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--codec", help="default: MPRESS_CODEC")
    parser.add_argument("--gpu", action="store_true", help="arrays of CuPy")
    parser.add_argument("--output", default="stencil", help="writes OUTPUT-RANK.npy")
    o = parser.parse_args()

    grid, depth, is_periodic = tuple(map(int, o.grid.split("x"))), o.depth, o.border == "periodic"
    dims = len(grid)
    split = MPI.Compute_dims(MPI.COMM_WORLD.size, dims)
    if not all(0 < depth <= n // p for n, p in zip(grid, split, strict=True)):
        parser.error(f"--depth {depth}: a process has to have as many cells, and {o.grid} is cut "
                     f"into {'x'.join(map(str, split))}")  # fmt: skip
    cart = MPI.COMM_WORLD.Create_cart(split, [is_periodic] * dims)
    first = [n * c // p for n, c, p in zip(grid, cart.coords, split, strict=True)]
    last = [n * (c + 1) // p for n, c, p in zip(grid, cart.coords, split, strict=True)]
    shape = [end - begin for begin, end in zip(first, last, strict=True)]
    halo = mpress.iso.HaloExchange(cart, shape, depth, codec=o.codec)

    cells = [np.arange(a - depth, b + depth) for a, b in zip(first, last, strict=True)]
    wrapped = [x % n if is_periodic else x for x, n in zip(cells, grid, strict=True)]
    source = balls(wrapped, grid, -1.0)
    u = np.zeros_like(source) if o.problem == "jacobi" else balls(wrapped, grid, -0.5)
    for axis, (x, n) in enumerate(zip(wrapped, grid, strict=True)):
        np.moveaxis(u, axis, 0)[(x < 0) | (x >= n)] = 0  # stays beyond fixed borders
    u[wrapped[0] < 0] = 1
    if o.gpu:
        import cupy

        source, u = cupy.asarray(source), cupy.asarray(u)

    # A step at `reach` computes that many cells of halo, too, but none beyond a border.
    has = [[one != MPI.PROC_NULL for one in cart.Shift(axis, 1)] for axis in range(dims)]
    weight, new, inner = 2 * dims, u.copy(), (slice(1, -1),) * dims
    for step in range(o.steps):
        if step % depth == 0:
            halo(u)
            reach = min(depth, o.steps - step)
        reach -= 1
        at = tuple(
            slice(depth - reach * low, depth + n + reach * high)
            for n, (low, high) in zip(shape, has, strict=True)
        )
        around = u[tuple(slice(one.start - 1, one.stop + 1) for one in at)]
        total = sum(
            around[(*inner[:axis], slice(None, -2), *inner[axis + 1 :])]
            + around[(*inner[:axis], slice(2, None), *inner[axis + 1 :])]
            for axis in range(dims)
        )
        if o.problem == "jacobi":
            new[at] = (total + source[at]) / weight
        else:
            new[at] = u[at] + 0.9 * (1 / weight) * (total - weight * u[at])
        u, new = new, u
    own = u[(slice(depth, -depth),) * dims]
    np.save(f"{o.output}-{cart.rank}.npy", own.get() if o.gpu else own)


if __name__ == "__main__":
    main()
