// MPI's calls that may wait for other ranks and stay MPI's own, with buffers of nobody's: makers of
// communicators, windows' synchronisation, files but for their data, processes. Their signatures,
// and their entry points in the program's MPI. Without the buffers of MPI 4.1
// (MPI_Comm_flush_buffer and the like): language bindings that find some of those names make the
// others by themselves.
#pragma once

#include <mpi.h>

#include "mpi/calls/later_calls.hpp"

namespace mpress::mpi {

// clang-format off: a table. X(name, parameters).

#define MPRESS_BLOCKING(X)                                                                       \
  X(Comm_dup, MPI_Comm, MPI_Comm*) X(Comm_split, MPI_Comm, int, int, MPI_Comm*)                  \
  X(Comm_create, MPI_Comm, MPI_Group, MPI_Comm*)                                                 \
  X(Comm_create_group, MPI_Comm, MPI_Group, int, MPI_Comm*) X(Comm_free, MPI_Comm*)              \
  X(Comm_disconnect, MPI_Comm*) X(Comm_accept, const char*, MPI_Info, int, MPI_Comm, MPI_Comm*)  \
  X(Comm_connect, const char*, MPI_Info, int, MPI_Comm, MPI_Comm*) X(Comm_join, int, MPI_Comm*)  \
  X(Comm_spawn, const char*, char**, int, MPI_Info, int, MPI_Comm, MPI_Comm*, int*)              \
  X(Comm_spawn_multiple, int, char**, char***, const int*, const MPI_Info*, int, MPI_Comm, MPI_Comm*, int*)\
  X(Intercomm_create, MPI_Comm, int, MPI_Comm, int, int, MPI_Comm*)                              \
  X(Intercomm_create_from_groups, MPI_Group, int, MPI_Group, int, const char*, MPI_Info, MPI_Errhandler, MPI_Comm*)\
  X(Intercomm_merge, MPI_Comm, int, MPI_Comm*)                                                   \
  X(Cart_create, MPI_Comm, int, const int*, const int*, int, MPI_Comm*)                          \
  X(Cart_sub, MPI_Comm, const int*, MPI_Comm*)                                                   \
  X(Graph_create, MPI_Comm, int, const int*, const int*, int, MPI_Comm*)                         \
  X(Session_finalize, MPI_Session*)                                                              \
  X(Win_allocate, MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*)                            \
  X(Win_allocate_c, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*)                     \
  X(Win_allocate_shared, MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*)                     \
  X(Win_allocate_shared_c, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*)              \
  X(Win_create_dynamic, MPI_Info, MPI_Comm, MPI_Win*) X(Win_free, MPI_Win*)                      \
  X(Win_fence, int, MPI_Win) X(Win_start, MPI_Group, int, MPI_Win) X(Win_complete, MPI_Win)      \
  X(Win_wait, MPI_Win) X(Win_lock, int, int, int, MPI_Win) X(Win_lock_all, int, MPI_Win)         \
  X(Win_unlock, int, MPI_Win) X(Win_unlock_all, MPI_Win) X(Win_flush, int, MPI_Win)              \
  X(Win_flush_all, MPI_Win) X(Win_flush_local, int, MPI_Win) X(Win_flush_local_all, MPI_Win)     \
  X(Buffer_detach, void*, int*) X(Buffer_detach_c, void*, MPI_Count*)                            \
  X(File_open, MPI_Comm, const char*, int, MPI_Info, MPI_File*) X(File_close, MPI_File*)         \
  X(File_set_size, MPI_File, MPI_Offset) X(File_preallocate, MPI_File, MPI_Offset)               \
  X(File_set_view, MPI_File, MPI_Offset, MPI_Datatype, MPI_Datatype, const char*, MPI_Info)      \
  X(File_set_info, MPI_File, MPI_Info) X(File_set_atomicity, MPI_File, int)                      \
  X(File_sync, MPI_File) X(File_seek_shared, MPI_File, MPI_Offset, int)                          \
  X(File_get_position_shared, MPI_File, MPI_Offset*)                                             \
  X(File_read_all_end, MPI_File, void*, MPI_Status*)                                             \
  X(File_read_at_all_end, MPI_File, void*, MPI_Status*)                                          \
  X(File_read_ordered_end, MPI_File, void*, MPI_Status*)                                         \
  X(File_write_all_end, MPI_File, const void*, MPI_Status*)                                      \
  X(File_write_at_all_end, MPI_File, const void*, MPI_Status*)                                   \
  X(File_write_ordered_end, MPI_File, const void*, MPI_Status*)

// clang-format on

/// Entry points of all of them: MPI's own, of which the younger ones may be missing, or mpress's.
struct BlockingCalls {
#define MPRESS_MEMBER(name, ...) int (*name)(__VA_ARGS__);
  MPRESS_BLOCKING(MPRESS_MEMBER)
#undef MPRESS_MEMBER
};

/// To be called by bind(), once.
void bind_blocking_calls(void* library);

/// MPI's own; null where the program's MPI lacks the call.
extern BlockingCalls bound_blocking_calls;
inline const BlockingCalls& blocking_calls() { return bound_blocking_calls; }

}  // namespace mpress::mpi
