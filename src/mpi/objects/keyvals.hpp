// Keyvals of the program's communicators, whose copy callbacks MPI is not to call for duplicates
// that mpress makes for itself.
//
// MPI_Comm_idup is the only constructor of communicators that does not block, and it copies
// attributes. So the program's keyvals are made with callbacks of mpress's in front of its own:
// while a PrivateDuplicate lives, nothing is copied, and later nothing deleted.
#pragma once

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

using CopyCallback = int (*)(MPI_Comm, int, void*, void*, void*, int*);
using DeleteCallback = int (*)(MPI_Comm, int, void*, void*);

/// MPI_Comm_create_keyval, or `create` where private duplicates are not hidden.
int create_comm_keyval(decltype(calls().Comm_create_keyval) create, CopyCallback copy,
                       DeleteCallback remove, int* keyval, void* extra_state);

/// Are private duplicates hidden from all copy callbacks of keyvals that were made so? Not from
/// those of other languages, whose bindings give MPI functions that are not C's and say so
/// afterwards, and not under an MPI that is never asked for private duplicates.
bool hides_private_duplicates();

}  // namespace mpress::mpi
