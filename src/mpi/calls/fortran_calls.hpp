// Do the MPI calls of the program's Fortran parts reach mpress?
//
// Between Fortran and MPI's C library stands a binding. mpress sees the calls that a binding makes
// to C entry points through the dynamic linker, by whichever of their two names (docs/semantics.md
// has what the known bindings do). One that goes straight into MPI's internals would start requests
// with mpress and complete them without it.
#pragma once

#include <string>

namespace mpress::mpi {

/// A Fortran MPI call that a loaded object makes and that would pass mpress by, in words; empty
/// where there is none. Looks at what is loaded now.
std::string unseen_fortran_call();

}  // namespace mpress::mpi
