"""The names of what `mpress bench iso` compares. Knows no MPI."""

from __future__ import annotations

ALGORITHMS = ("auto", "direct", "combining", "digits", "lines", "ring")
PERSISTENT = "persistent-"
"""In front of one of ALGORITHMS: a request is started and waited for."""
OF_MPI = ("graph", "graph-again", "cart", "alltoallv")
"""graph   MPI_Neighbor_alltoallw on a communicator of MPI_Dist_graph_create_adjacent
graph-again  the same once more, so that it shows which differences mean nothing
cart    MPI_Neighbor_alltoallw on a bare Cartesian communicator, where that has these neighbours
alltoallv    MPI_Alltoallv between all"""
OF_MPRESS = (*ALGORITHMS, *(PERSISTENT + name for name in ALGORITHMS))
METHODS = (*OF_MPRESS, *OF_MPI)
REFERENCE = "graph"
DEFAULTS = ("auto", "direct", "combining", "digits", "persistent-auto", "graph", "alltoallv")

ENCODING = ("auto", "persistent-auto")
"""Methods that are measured with each codec, too: blocks that are encoded go direct."""

OF_HALOS = tuple(name for name in METHODS if name != "alltoallv")
HALO_DEFAULTS = ("auto", "direct", "combining", "digits", "graph")
STENCILS = {5: 2, 9: 2, 7: 3, 27: 3}
"""Dimensions, by points."""

COMMUNICATORS = ("iso", "attribute", "graph-adjacent", "graph-general", "cart", "duplicate")
"""iso     mpress_iso_neighborhood_create, a new communicator
attribute  the same with iso_attribute: the Cartesian communicator itself
graph-adjacent   MPI_Dist_graph_create_adjacent
graph-general    MPI_Dist_graph_create, each rank with its own targets
cart       MPI_Cart_create, which all others need before
duplicate  MPI_Comm_dup of the Cartesian communicator"""
SCHEDULE = "schedule-"
"""In front of an algorithm: a rank's schedule of an all-to-all, made before its first call."""
CREATIONS = (*COMMUNICATORS, *(SCHEDULE + name for name in ("direct", "combining", "digits")))
CREATION_REFERENCE = "graph-adjacent"


def algorithm_of(method: str) -> str:
    return method.removeprefix(PERSISTENT)
