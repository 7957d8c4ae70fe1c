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

// Extensions of MPICH's, MPIX_NAME and PMPIX_NAME.
#define MPRESS_EXTENSION_CALLS(X)                                                         \
  X(Request_is_complete, 1) X(Stream_progress, 1) X(Stream_comm_create, 3)                     \
  X(Stream_comm_create_multiplex, 4) X(Threadcomm_init, 3)

// Calls that move data between buffers in other ways than by messages: staged where a buffer lies in
// device memory. Both forms; signatures are in mpi/calls/buffer_calls.hpp.
#define MPRESS_STAGED_CALLS(X)                                                                 \
  X(Bcast, 5) X(Ibcast, 6) X(Bcast_init, 7)                                                    \
  X(Gather, 8) X(Igather, 9) X(Gather_init, 10)                                                \
  X(Gatherv, 9) X(Igatherv, 10) X(Gatherv_init, 11)                                            \
  X(Scatter, 8) X(Iscatter, 9) X(Scatter_init, 10)                                             \
  X(Scatterv, 9) X(Iscatterv, 10) X(Scatterv_init, 11)                                         \
  X(Allgather, 7) X(Iallgather, 8) X(Allgather_init, 9)                                        \
  X(Allgatherv, 8) X(Iallgatherv, 9) X(Allgatherv_init, 10)                                    \
  X(Alltoall, 7) X(Ialltoall, 8) X(Alltoall_init, 9)                                           \
  X(Alltoallv, 9) X(Ialltoallv, 10) X(Alltoallv_init, 11)                                      \
  X(Alltoallw, 9) X(Ialltoallw, 10) X(Alltoallw_init, 11)                                      \
  X(Reduce, 7) X(Ireduce, 8) X(Reduce_init, 9)                                                 \
  X(Allreduce, 6) X(Iallreduce, 7) X(Allreduce_init, 8)                                        \
  X(Reduce_scatter, 6) X(Ireduce_scatter, 7) X(Reduce_scatter_init, 8)                         \
  X(Reduce_scatter_block, 6) X(Ireduce_scatter_block, 7) X(Reduce_scatter_block_init, 8)       \
  X(Scan, 6) X(Iscan, 7) X(Scan_init, 8) X(Exscan, 6) X(Iexscan, 7) X(Exscan_init, 8)          \
  X(Neighbor_allgather, 7) X(Ineighbor_allgather, 8) X(Neighbor_allgather_init, 9)             \
  X(Neighbor_allgatherv, 8) X(Ineighbor_allgatherv, 9) X(Neighbor_allgatherv_init, 10)         \
  X(Neighbor_alltoall, 7) X(Ineighbor_alltoall, 8) X(Neighbor_alltoall_init, 9)                \
  X(Neighbor_alltoallv, 9) X(Ineighbor_alltoallv, 10) X(Neighbor_alltoallv_init, 11)           \
  X(Neighbor_alltoallw, 9) X(Ineighbor_alltoallw, 10) X(Neighbor_alltoallw_init, 11)           \
  X(Reduce_local, 5) X(Pack, 7) X(Unpack, 7) X(Pack_external, 7) X(Unpack_external, 7)

// Calls that stay MPI's own, apart from a look at where their buffers lie; signatures are in
// mpi/calls/checked_calls.hpp. With both forms of counts, and with one.
#define MPRESS_CHECKED_CALLS(X)                                                                \
  X(Put, 8) X(Get, 8) X(Rput, 9) X(Rget, 9) X(Accumulate, 9) X(Raccumulate, 10)                \
  X(Get_accumulate, 12) X(Rget_accumulate, 13) X(Win_create, 6) X(Buffer_attach, 2)            \
  X(File_read_at, 6) X(File_read_at_all, 6) X(File_write_at, 6) X(File_write_at_all, 6)        \
  X(File_iread_at, 6) X(File_iread_at_all, 6) X(File_iwrite_at, 6) X(File_iwrite_at_all, 6)    \
  X(File_read_at_all_begin, 5) X(File_write_at_all_begin, 5) X(File_read, 5)                   \
  X(File_read_all, 5) X(File_read_shared, 5) X(File_read_ordered, 5) X(File_write, 5)          \
  X(File_write_all, 5) X(File_write_shared, 5) X(File_write_ordered, 5) X(File_iread, 5)       \
  X(File_iread_all, 5) X(File_iread_shared, 5) X(File_iwrite, 5) X(File_iwrite_all, 5)         \
  X(File_iwrite_shared, 5) X(File_read_all_begin, 4) X(File_read_ordered_begin, 4)             \
  X(File_write_all_begin, 4) X(File_write_ordered_begin, 4)

#define MPRESS_CHECKED_CALLS_OF_ONE_FORM(X)                                                    \
  X(Fetch_and_op, 7) X(Compare_and_swap, 7) X(Win_attach, 3) X(Psend_init, 9)                  \
  X(Precv_init, 9)

// Calls that stay MPI's own, but may wait for other ranks: what is under way gets on meanwhile.
// Signatures are in mpi/calls/blocking_calls.hpp.
#define MPRESS_BLOCKING_CALLS(X)                                                                 \
  X(Comm_dup, 2) X(Comm_split, 4) X(Comm_create, 3) X(Comm_create_group, 4) X(Comm_free, 1)      \
  X(Comm_disconnect, 1) X(Comm_accept, 5) X(Comm_connect, 5) X(Comm_join, 2) X(Comm_spawn, 8)    \
  X(Comm_spawn_multiple, 9) X(Intercomm_create, 6) X(Intercomm_create_from_groups, 8)            \
  X(Intercomm_merge, 3) X(Cart_create, 6) X(Cart_sub, 3) X(Graph_create, 6)                      \
  X(Session_finalize, 1) X(Win_allocate, 6) X(Win_allocate_c, 6) X(Win_allocate_shared, 6)       \
  X(Win_allocate_shared_c, 6) X(Win_create_dynamic, 3) X(Win_free, 1) X(Win_fence, 2)            \
  X(Win_start, 3) X(Win_complete, 1) X(Win_wait, 1) X(Win_lock, 4) X(Win_lock_all, 2)            \
  X(Win_unlock, 2) X(Win_unlock_all, 1) X(Win_flush, 2) X(Win_flush_all, 1)                      \
  X(Win_flush_local, 2) X(Win_flush_local_all, 1) X(Buffer_detach, 2) X(Buffer_detach_c, 2)      \
  X(File_open, 5) X(File_close, 1) X(File_set_size, 2)                \
  X(File_preallocate, 2) X(File_set_view, 6) X(File_set_info, 2) X(File_set_atomicity, 2)        \
  X(File_sync, 1) X(File_seek_shared, 3) X(File_get_position_shared, 2) X(File_read_all_end, 3)  \
  X(File_read_at_all_end, 3) X(File_read_ordered_end, 3) X(File_write_all_end, 3)                \
  X(File_write_at_all_end, 3) X(File_write_ordered_end, 3)

// Calls that bindings for other languages may pass by: the end of MPI, and what makes handlers of
// errors, and keyvals of communicators.
#define MPRESS_CALLS_PASSED_BY(X)                                                                \
  X(Finalize, 0) X(Comm_create_errhandler, 2) X(Win_create_errhandler, 2)                        \
  X(File_create_errhandler, 2) X(Comm_create_keyval, 4) X(Keyval_create, 4)

// clang-format on

namespace mpress::front {

enum Call : std::size_t {
#define MPRESS_NUMBER(name, words) call_##name,
#define MPRESS_NUMBER_BOTH(name, words) call_##name, call_##name##_c,
  MPRESS_OTHER_CALLS(MPRESS_NUMBER) MPRESS_EXTENSION_CALLS(MPRESS_NUMBER)
      MPRESS_COUNTED_CALLS(MPRESS_NUMBER_BOTH) MPRESS_STAGED_CALLS(MPRESS_NUMBER_BOTH)
          MPRESS_CHECKED_CALLS(MPRESS_NUMBER_BOTH) MPRESS_CHECKED_CALLS_OF_ONE_FORM(MPRESS_NUMBER)
              MPRESS_BLOCKING_CALLS(MPRESS_NUMBER) MPRESS_CALLS_PASSED_BY(MPRESS_NUMBER)
#undef MPRESS_NUMBER
#undef MPRESS_NUMBER_BOTH
                  call_count
};

}  // namespace mpress::front
