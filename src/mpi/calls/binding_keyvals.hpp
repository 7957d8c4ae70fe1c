// May a language binding of the program's make keyvals of communicators?
//
// MPICH's bindings for Fortran and C++ give MPI_Comm_create_keyval functions of those languages,
// and afterwards tell MPI, by a function of its own (MPII_Keyval_set_proxy), how to call them. So
// such a keyval looks like one of C's when it is made.
#pragma once

namespace mpress::mpi {

/// Looks at what is loaded now; at what was looked at before no second time.
bool may_bindings_make_keyvals();

}  // namespace mpress::mpi
