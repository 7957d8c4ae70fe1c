// MPI as mpress calls it: PMPI_* entry points bound at the first MPI call of the program.
//
// Nothing here links to libmpi. The front (src/front) says which library it is; entry points are
// looked up in that library alone, since a global look-up would find mpress's own.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "mpi/calls/later_calls.hpp"

#if defined(OPEN_MPI)
// Open MPI's predefined handles are addresses of its data. Naming them would tie this library to
// libmpi at load time, so they are looked up like the entry points.
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global)                        \
  ([]() -> type {                                                   \
    static void* const address = mpress::mpi::find_symbol(#global); \
    return static_cast<type>(address);                              \
  }())
#endif

namespace mpress::mpi {

/// The address of the bound library's data of this name; null where it has none.
void* find_symbol(const char* name);

// clang-format off: tables.

// Calls that every MPI since 3.0 has.
#define MPRESS_MPI_3_CALLS(X)                                                                    \
  X(Init) X(Init_thread) X(Finalize) X(Initialized) X(Finalized) X(Query_thread) X(Abort)                    \
  X(Comm_rank) X(Comm_size) X(Comm_dup) X(Comm_split) X(Comm_idup) X(Comm_free) X(Comm_group) X(Comm_test_inter)          \
  X(Comm_get_parent) X(Comm_create_keyval) X(Comm_free_keyval) X(Comm_set_attr) X(Comm_get_attr) \
  X(Comm_set_errhandler) X(Comm_get_errhandler) X(Errhandler_free) X(Comm_call_errhandler)       \
  X(Win_call_errhandler) X(Comm_create_errhandler) X(Win_create_errhandler) X(Add_error_class) X(Add_error_code) X(Add_error_string)                \
  X(Get_library_version)                                                                         \
  X(Comm_dup_with_info) X(Comm_set_info) X(Comm_get_info) X(Comm_split_type)                     \
  X(Dist_graph_create) X(Dist_graph_create_adjacent)                                             \
  X(Info_free) X(Info_get) X(Info_get_nkeys) X(Info_get_nthkey) X(Info_set)                                   \
  X(Barrier) X(Ibarrier) X(Allgather) X(Allreduce) X(Ireduce_scatter_block)                                   \
  X(Op_commutative) X(Group_translate_ranks) X(Group_free)                                                         \
  X(Comm_remote_size) X(Topo_test) X(Cartdim_get) X(Cart_get) X(Cart_shift)                      \
  X(Graph_neighbors_count) X(Graph_neighbors) X(Dist_graph_neighbors_count)                      \
  X(Dist_graph_neighbors) X(Pack_size) X(Pack_external_size)                               \
  X(Type_size_x) X(Type_get_extent_x) X(Type_get_true_extent_x) X(Type_get_envelope)             \
  X(Type_get_contents) X(Type_create_hindexed) X(Type_contiguous) X(Type_commit) X(Type_free) X(Type_create_keyval) X(Type_set_attr) X(Pack)   \
  X(Send) X(Bsend) X(Ssend) X(Rsend) X(Isend) X(Ibsend) X(Issend) X(Irsend)                      \
  X(Recv) X(Irecv) X(Mrecv) X(Imrecv) X(Sendrecv) X(Sendrecv_replace)                            \
  X(Probe) X(Iprobe) X(Mprobe) X(Improbe)                                                        \
  X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome)            \
  X(Request_get_status) X(Request_free) X(Cancel) X(Start) X(Startall)                           \
  X(Send_init) X(Bsend_init) X(Ssend_init) X(Rsend_init) X(Recv_init)                            \
  X(Grequest_start) X(Grequest_complete)                                                         \
  X(Get_elements_x) X(Status_set_elements_x) X(Status_set_cancelled) X(Test_cancelled)

// Younger calls, and that on files: null where the program's MPI does not have them and nothing
// stands in for them (mpi/calls/stand_ins.cpp).
#define MPRESS_MPI_LATER_CALLS(X)                                                                \
  X(Send_c) X(Bsend_c) X(Ssend_c) X(Rsend_c) X(Isend_c) X(Ibsend_c) X(Issend_c) X(Irsend_c)      \
  X(Recv_c) X(Irecv_c) X(Mrecv_c) X(Imrecv_c) X(Sendrecv_c) X(Sendrecv_replace_c)                \
  X(Send_init_c) X(Bsend_init_c) X(Ssend_init_c) X(Rsend_init_c) X(Recv_init_c) X(Pack_c)        \
  X(Type_get_envelope_c) X(Type_get_contents_c)                                                  \
  X(Info_get_string) X(Comm_idup_with_info) X(Comm_create_from_group) X(Session_init)            \
  X(Isendrecv) X(Isendrecv_c) X(Isendrecv_replace) X(Isendrecv_replace_c)                        \
  X(Request_get_status_any) X(Request_get_status_some)                                           \
  X(Message_c2f) X(Message_f2c) X(Message_toint) X(Message_fromint) X(File_call_errhandler)      \
  X(File_create_errhandler) X(Keyval_create)

// Extensions of MPICH's, PMPIX_NAME: null where the program's MPI does not have them.
#define MPRESS_MPIX_CALLS(X)                                                                     \
  X(Request_is_complete) X(Stream_progress) X(Stream_comm_create)                                \
  X(Stream_comm_create_multiplex) X(Threadcomm_init)

#define MPRESS_MPI_CALLS(X) MPRESS_MPI_3_CALLS(X) MPRESS_MPI_LATER_CALLS(X)

// clang-format on

struct Calls {
#define MPRESS_MPI_POINTER(name) decltype(&PMPI_##name) name;
  MPRESS_MPI_CALLS(MPRESS_MPI_POINTER)
#undef MPRESS_MPI_POINTER
#define MPRESS_MPIX_POINTER(name) decltype(&PMPIX_##name) name;
  MPRESS_MPIX_CALLS(MPRESS_MPIX_POINTER)
#undef MPRESS_MPIX_POINTER
};

/// Binds the entry points of the program's MPI: `library` is from dlopen, `path` its file. To be
/// called once, before anything else here. Where a call is missing that every MPI has, the process
/// ends with a message that names it.
void bind(void* library, const char* path);

/// Fills in younger calls that the library lacks and that can be made of others.
void stand_in(Calls& calls);

/// The bound entry points.
extern Calls bound_calls;
inline const Calls& calls() { return bound_calls; }

/// The MPI that mpress was compiled for, in words.
const char* compiled_mpi();

/// Was the operation of this status cancelled?
inline bool is_cancelled(const MPI_Status& status) {
  int cancelled = 0;
  calls().Test_cancelled(&status, &cancelled);
  return cancelled != 0;
}

/// Name and number of the MPI library: mpi_name().
std::string library_name();

/// The same bits for the same handle, whether handles are integers or pointers.
template <typename Handle>
std::uintptr_t handle_bits(Handle handle) {
  static_assert(sizeof(Handle) <= sizeof(std::uintptr_t));
  std::uintptr_t bits = 0;
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}

/// Ends the job with one line on standard error: through MPI_Abort where MPI runs.
[[noreturn]] void fatal(const std::string& message);

}  // namespace mpress::mpi
