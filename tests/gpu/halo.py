"""mpress.iso.HaloExchange with CuPy arrays, each rank's on a GPU of its own where there are enough:
beside the same exchange of NumPy arrays, by each codec; and around work that a stream still holds.

    mpiexec -n N python halo.py
"""

import cupy
import numpy as np
from mpi4py import MPI

import mpress.iso

CODECS = {None: 0.0, "mpc": 0.0, "szp:abs=1e-4": 1e-4}
SHAPE, DEPTH, STEPS = (96, 80, 64), 2, 4
cupy.cuda.Device(MPI.COMM_WORLD.rank % cupy.cuda.runtime.getDeviceCount()).use()


def field(rank: int) -> np.ndarray:
    """Smooth inside; beyond, what no exchange brings."""
    whole = np.full([n + 2 * DEPTH for n in SHAPE], np.nan)
    inside = (slice(DEPTH, -DEPTH),) * len(SHAPE)
    axes = np.meshgrid(*(np.linspace(0, 3, n) for n in SHAPE), indexing="ij")
    whole[inside] = np.sin(sum(axes) + rank)
    return whole


def main() -> None:
    world = MPI.COMM_WORLD
    dims = MPI.Compute_dims(world.size, 3)
    for periods in ((True, True, True), (False, True, False)):
        cart = world.Create_cart(dims, periods)
        exact = field(cart.rank)
        mpress.iso.HaloExchange(cart, SHAPE, DEPTH)(exact)
        for codec, bound in CODECS.items():
            halo = mpress.iso.HaloExchange(cart, SHAPE, DEPTH, codec=codec)
            for _ in range(STEPS):
                u = cupy.asarray(field(cart.rank))
                v = u * 2  # still to be computed when the exchange begins
                halo(u, v)
                w = cupy.asarray(field(cart.rank))
                halo.start(w)
                halo.finish()
                for got, factor in ((u, 1), (v, 2), (w, 1)):
                    np.testing.assert_allclose(
                        cupy.asnumpy(got), factor * exact, rtol=0, atol=bound * 1.0001
                    )
        cart.Free()
    if world.rank == 0:
        print("ok")


if __name__ == "__main__":
    main()
