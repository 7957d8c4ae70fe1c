// MPI's calls with buffers that stay MPI's own, apart from a look at where those lie: one-sided
// communication, files, partitioned communication, the memory of buffered sends. Their signatures,
// and their entry points in the program's MPI.
#pragma once

#include <mpi.h>

namespace mpress::mpi {

// clang-format off: tables. N is the type of a count, D of a displacement unit: int, or MPI_Count
// and MPI_Aint. X(name, what looks at the arguments (preload/checked_calls.cpp), parameters).

#define MPRESS_CHECKED_BOTH_FORMS(X)                                                              \
  X(Put, Origin, const void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Win)           \
  X(Get, Origin, void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Win)                 \
  X(Rput, Origin, const void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Win,          \
    MPI_Request*)                                                                                 \
  X(Rget, Origin, void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Win, MPI_Request*)  \
  X(Accumulate, Accumulated,                                                                      \
    const void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Op, MPI_Win)                \
  X(Raccumulate, Accumulated,                                                                     \
    const void*, N, MPI_Datatype, int, MPI_Aint, N, MPI_Datatype, MPI_Op, MPI_Win, MPI_Request*)  \
  X(Get_accumulate, Fetched, const void*, N, MPI_Datatype, void*, N, MPI_Datatype, int, MPI_Aint, \
    N, MPI_Datatype, MPI_Op, MPI_Win)                                                             \
  X(Rget_accumulate, Fetched, const void*, N, MPI_Datatype, void*, N, MPI_Datatype, int,          \
    MPI_Aint, N, MPI_Datatype, MPI_Op, MPI_Win, MPI_Request*)                                     \
  X(Win_create, Window, void*, MPI_Aint, D, MPI_Info, MPI_Comm, MPI_Win*)                         \
  X(Buffer_attach, Attached, void*, N)                                                            \
  X(File_read_at, FileAt, MPI_File, MPI_Offset, void*, N, MPI_Datatype, MPI_Status*)              \
  X(File_read_at_all, FileAt, MPI_File, MPI_Offset, void*, N, MPI_Datatype, MPI_Status*)          \
  X(File_write_at, FileAt, MPI_File, MPI_Offset, const void*, N, MPI_Datatype, MPI_Status*)       \
  X(File_write_at_all, FileAt, MPI_File, MPI_Offset, const void*, N, MPI_Datatype, MPI_Status*)   \
  X(File_iread_at, FileAt, MPI_File, MPI_Offset, void*, N, MPI_Datatype, MPI_Request*)            \
  X(File_iread_at_all, FileAt, MPI_File, MPI_Offset, void*, N, MPI_Datatype, MPI_Request*)        \
  X(File_iwrite_at, FileAt, MPI_File, MPI_Offset, const void*, N, MPI_Datatype, MPI_Request*)     \
  X(File_iwrite_at_all, FileAt, MPI_File, MPI_Offset, const void*, N, MPI_Datatype, MPI_Request*) \
  X(File_read_at_all_begin, FileAt, MPI_File, MPI_Offset, void*, N, MPI_Datatype)                 \
  X(File_write_at_all_begin, FileAt, MPI_File, MPI_Offset, const void*, N, MPI_Datatype)          \
  X(File_read, File, MPI_File, void*, N, MPI_Datatype, MPI_Status*)                               \
  X(File_read_all, File, MPI_File, void*, N, MPI_Datatype, MPI_Status*)                           \
  X(File_read_shared, File, MPI_File, void*, N, MPI_Datatype, MPI_Status*)                        \
  X(File_read_ordered, File, MPI_File, void*, N, MPI_Datatype, MPI_Status*)                       \
  X(File_write, File, MPI_File, const void*, N, MPI_Datatype, MPI_Status*)                        \
  X(File_write_all, File, MPI_File, const void*, N, MPI_Datatype, MPI_Status*)                    \
  X(File_write_shared, File, MPI_File, const void*, N, MPI_Datatype, MPI_Status*)                 \
  X(File_write_ordered, File, MPI_File, const void*, N, MPI_Datatype, MPI_Status*)                \
  X(File_iread, File, MPI_File, void*, N, MPI_Datatype, MPI_Request*)                             \
  X(File_iread_all, File, MPI_File, void*, N, MPI_Datatype, MPI_Request*)                         \
  X(File_iread_shared, File, MPI_File, void*, N, MPI_Datatype, MPI_Request*)                      \
  X(File_iwrite, File, MPI_File, const void*, N, MPI_Datatype, MPI_Request*)                      \
  X(File_iwrite_all, File, MPI_File, const void*, N, MPI_Datatype, MPI_Request*)                  \
  X(File_iwrite_shared, File, MPI_File, const void*, N, MPI_Datatype, MPI_Request*)               \
  X(File_read_all_begin, File, MPI_File, void*, N, MPI_Datatype)                                  \
  X(File_read_ordered_begin, File, MPI_File, void*, N, MPI_Datatype)                              \
  X(File_write_all_begin, File, MPI_File, const void*, N, MPI_Datatype)                           \
  X(File_write_ordered_begin, File, MPI_File, const void*, N, MPI_Datatype)

#define MPRESS_CHECKED_ONE_FORM(X)                                                                \
  X(Fetch_and_op, FetchedOne, const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Op, MPI_Win)   \
  X(Compare_and_swap, Swapped,                                                                    \
    const void*, const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Win)                        \
  X(Win_attach, WindowPart, MPI_Win, void*, MPI_Aint)                                             \
  X(Psend_init, Partitioned, const void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm,       \
    MPI_Info, MPI_Request*)                                                                       \
  X(Precv_init, Partitioned, void*, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info,   \
    MPI_Request*)

// clang-format on

/// The calls' types, by name.
template <typename N, typename D>
struct CheckedSignatures {
#define MPRESS_SIGNATURE(name, check, ...) using name = int(__VA_ARGS__);
  MPRESS_CHECKED_BOTH_FORMS(MPRESS_SIGNATURE)
  MPRESS_CHECKED_ONE_FORM(MPRESS_SIGNATURE)
#undef MPRESS_SIGNATURE
};
using Checked = CheckedSignatures<int, int>;
using LargeChecked = CheckedSignatures<MPI_Count, MPI_Aint>;

/// Entry points of all of them: MPI's own, of which the younger ones may be missing, or mpress's.
struct CheckedCalls {
#define MPRESS_MEMBER(name, check, ...) Checked::name* name;
#define MPRESS_MEMBERS(name, check, ...) \
  Checked::name* name;                   \
  LargeChecked::name* name##_c;
  MPRESS_CHECKED_BOTH_FORMS(MPRESS_MEMBERS)
  MPRESS_CHECKED_ONE_FORM(MPRESS_MEMBER)
#undef MPRESS_MEMBER
#undef MPRESS_MEMBERS
};

/// To be called by bind(), once.
void bind_checked_calls(void* library);

/// MPI's own; null where the program's MPI lacks the call.
extern CheckedCalls bound_checked_calls;
inline const CheckedCalls& checked_calls() { return bound_checked_calls; }

}  // namespace mpress::mpi
