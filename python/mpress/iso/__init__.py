"""Exchanges with the same relative neighbours on all processes of a Cartesian grid.

    cart = MPI.COMM_WORLD.Create_cart((4, 4), periods=(True, True))
    near = mpress.iso.Neighborhood(cart, mpress.iso.moore(2, 1))
    near.alltoall(sent, received)          # a row of each for every neighbour

    halo = mpress.iso.HaloExchange(cart, shape=(200, 200), depth=2, codec="szp:rel=1e-4")
    halo(u, v)                             # arrays of 204 x 204
    halo.start(u, v); ...; halo.finish()   # around the interior's computation

After Träff et al., Isomorphic, Sparse MPI-like Collective Communication Operations for Parallel
Stencil Computations, EuroMPI 2015. Offset i of a list stands for two processes: what is sent as
block i goes to the one at +offset, and what is received as block i comes from the one at -offset.
Arrays may be NumPy's, or of a library whose arrays lie on GPUs (CuPy, torch ...).
"""

from __future__ import annotations

from mpress.iso.halo import HaloExchange
from mpress.iso.lists import moore, von_neumann
from mpress.iso.neighborhood import Neighborhood
from mpress.iso.requests import PersistentRequest, Request

__all__ = ["HaloExchange", "Neighborhood", "PersistentRequest", "Request", "moore", "von_neumann"]
