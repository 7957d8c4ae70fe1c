// MPI as mpress calls it: PMPI_* entry points bound at the first MPI call of the program.
//
// Nothing here links to libmpi. A shell or launcher that merely loads the preload library binds
// nothing; a program whose MPI is another than the one mpress was compiled for is named and
// stopped (see bind_error()).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace mpress::link {

#define MPRESS_MPI_CALLS(X)                                                                     \
  X(Init) X(Init_thread) X(Finalize) X(Initialized) X(Finalized) X(Query_thread) X(Abort) \
  X(Comm_rank) X(Comm_size) X(Comm_dup) X(Comm_free) X(Comm_group) X(Comm_test_inter) X(Comm_get_parent)                 \
  X(Comm_create_keyval) X(Comm_free_keyval) X(Comm_set_attr) X(Comm_get_attr)                   \
  X(Comm_call_errhandler) X(Add_error_class) X(Add_error_code) X(Add_error_string)              \
  X(Barrier) X(Group_translate_ranks) X(Group_free)                                                        \
  X(Type_size_x) X(Type_get_extent_x) X(Type_get_true_extent_x) X(Type_get_envelope)            \
  X(Type_get_contents) X(Type_contiguous) X(Type_create_struct) X(Type_commit) X(Type_free) X(Type_create_keyval) X(Type_free_keyval) X(Type_set_attr)  \
  X(Type_get_attr) X(Pack) X(Unpack)                                                            \
  X(Send) X(Bsend) X(Ssend) X(Rsend) X(Isend) X(Ibsend) X(Issend) X(Irsend)                     \
  X(Recv) X(Irecv) X(Mrecv) X(Imrecv) X(Sendrecv) X(Sendrecv_replace)                           \
  X(Probe) X(Iprobe) X(Mprobe) X(Improbe)                                                       \
  X(Wait) X(Waitall) X(Waitany) X(Waitsome) X(Test) X(Testall) X(Testany) X(Testsome)           \
  X(Request_get_status) X(Request_free) X(Cancel) X(Start) X(Startall)                          \
  X(Send_init) X(Bsend_init) X(Ssend_init) X(Rsend_init) X(Recv_init)                           \
  X(Grequest_start) X(Grequest_complete)                                                        \
  X(Get_elements_x) X(Status_set_elements_x) X(Status_set_cancelled) X(Test_cancelled)

struct MpiCalls {
#define MPRESS_MPI_POINTER(name) decltype(&PMPI_##name) name;
  MPRESS_MPI_CALLS(MPRESS_MPI_POINTER)
#undef MPRESS_MPI_POINTER
};

/// The bound entry points. The first call binds; where that fails the process ends with one
/// message that names the MPI library found and the one expected.
const MpiCalls& mpi();

/// The MPI that mpress was compiled for, in words.
const char* compiled_mpi();

/// The same bits for the same handle, whether handles are integers or pointers.
template <typename Handle>
std::uintptr_t handle_bits(Handle handle) {
  static_assert(sizeof(Handle) <= sizeof(std::uintptr_t));
  std::uintptr_t bits = 0;
  std::memcpy(&bits, &handle, sizeof handle);
  return bits;
}

/// Receives all of a matched message as bytes, whatever its type.
int receive_bytes(void* buffer, std::size_t bytes, MPI_Message* message);

/// Ends the job with one line on standard error: through MPI_Abort where MPI runs.
[[noreturn]] void fatal(const std::string& message);

}  // namespace mpress::link
