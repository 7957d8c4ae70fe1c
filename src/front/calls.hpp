// Every MPI call that mpress stands in for, and how many arguments it takes. The front exports
// each as MPI_NAME and PMPI_NAME; a backend must define each. To stand in for another call, add it
// here and define it in src/preload.
#pragma once

#include <cstddef>

// clang-format off: a table.

// Calls with a count, which come in two forms: with an int, and as NAME_c with an MPI_Count.
#define MPRESS_COUNTED_CALLS(X)                                                                \
  X(Send, 6) X(Bsend, 6) X(Ssend, 6) X(Rsend, 6)                                               \
  X(Isend, 7) X(Ibsend, 7) X(Issend, 7) X(Irsend, 7)                                           \
  X(Send_init, 7) X(Bsend_init, 7) X(Ssend_init, 7) X(Rsend_init, 7) X(Recv_init, 7)           \
  X(Recv, 7) X(Irecv, 7) X(Mrecv, 5) X(Imrecv, 5)                                              \
  X(Sendrecv, 12) X(Sendrecv_replace, 9) X(Isendrecv, 12) X(Isendrecv_replace, 9)

#define MPRESS_OTHER_CALLS(X)                                                                  \
  X(Init, 2) X(Init_thread, 4) X(Session_init, 3) X(Barrier, 1)                                \
  X(Comm_set_info, 2) X(Comm_get_info, 2) X(Comm_dup_with_info, 3)                             \
  X(Comm_idup_with_info, 4) X(Comm_split_type, 5) X(Comm_create_from_group, 5)                 \
  X(Dist_graph_create, 9) X(Dist_graph_create_adjacent, 10)                                    \
  X(Probe, 4) X(Iprobe, 5) X(Mprobe, 5) X(Improbe, 6)                                          \
  X(Message_c2f, 1) X(Message_f2c, 1) X(Message_toint, 1) X(Message_fromint, 1)                \
  X(Wait, 2) X(Waitall, 3) X(Waitany, 4) X(Waitsome, 5)                                        \
  X(Test, 3) X(Testall, 4) X(Testany, 5) X(Testsome, 5)                                        \
  X(Request_get_status, 3) X(Request_get_status_all, 4) X(Request_get_status_any, 5)           \
  X(Request_get_status_some, 5) X(Request_free, 1) X(Cancel, 1) X(Start, 1) X(Startall, 2)

// clang-format on

namespace mpress::front {

enum Call : std::size_t {
#define MPRESS_NUMBER(name, words) call_##name,
#define MPRESS_NUMBER_BOTH(name, words) call_##name, call_##name##_c,
  MPRESS_OTHER_CALLS(MPRESS_NUMBER) MPRESS_COUNTED_CALLS(MPRESS_NUMBER_BOTH)
#undef MPRESS_NUMBER
#undef MPRESS_NUMBER_BOTH
      call_count
};

}  // namespace mpress::front
