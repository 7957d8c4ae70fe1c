// Every function of include/mpress/{mpress,iso}.h that needs the program's MPI, and how many
// arguments it takes. libmpress.so exports each as mpress_NAME; a backend defines each in src/api.
#pragma once

#include <cstddef>

// clang-format off: a table.

#define MPRESS_API_CALLS(X)                                                                    \
  X(init, 0) X(initialized, 1) X(error_text, 0)                                                \
  X(call_begin, 3) X(collective_begin, 3) X(call_end, 0) X(stand_in, 0)                        \
  X(send, 7) X(recv, 8) X(sendrecv, 13) X(isend, 8) X(irecv, 8) X(send_init, 8) X(recv_init, 8) \
  X(probe, 4) X(iprobe, 5) X(mprobe, 5) X(improbe, 6) X(mrecv, 6) X(imrecv, 6)                 \
  X(wait, 2) X(waitall, 3) X(waitany, 4) X(test, 3) X(testall, 4) X(start, 1) X(startall, 2)   \
  X(cancel, 1) X(request_free, 1)                                                              \
  X(cart_relative_rank, 3) X(cart_relative_coord, 3) X(cart_relative_shift, 4)                 \
  X(iso_neighborhood_create, 4) X(iso_neighborhood_create_with_info, 5)                        \
  X(iso_neighborhood_count, 4) X(iso_neighborhood_get, 4) X(iso_neighborhood_graph_get, 4)     \
  X(iso_neighborhood_get_relative, 3) X(cart_neighborhood_count, 4)                            \
  X(cart_neighborhood_get, 4) X(cart_neighborhood_graph_get, 4)                                \
  X(iso_neighbor_alltoall, 8) X(iso_ineighbor_alltoall, 9) X(iso_neighbor_alltoall_init, 10)   \
  X(iso_neighbor_alltoallv, 10) X(iso_ineighbor_alltoallv, 11)                                 \
  X(iso_neighbor_alltoallv_init, 12)                                                           \
  X(iso_neighbor_alltoallw, 10) X(iso_ineighbor_alltoallw, 11)                                 \
  X(iso_neighbor_alltoallw_init, 12)                                                           \
  X(iso_neighbor_allgather, 8) X(iso_ineighbor_allgather, 9) X(iso_neighbor_allgather_init, 10) \
  X(iso_neighbor_allgatherv, 9) X(iso_ineighbor_allgatherv, 10)                                \
  X(iso_neighbor_allgatherv_init, 11)                                                          \
  X(iso_neighbor_allgatherw, 9) X(iso_ineighbor_allgatherw, 10)                                \
  X(iso_neighbor_allgatherw_init, 11)                                                          \
  X(iso_neighbor_reduce, 7) X(iso_ineighbor_reduce, 8) X(iso_neighbor_reduce_init, 9)          \
  X(iso_neighbor_scatter_reduce, 10) X(iso_ineighbor_scatter_reduce, 11)                       \
  X(iso_neighbor_scatter_reduce_init, 12)                                                      \
  X(iso_moore, 6) X(iso_von_neumann, 6)                                                        \
  X(type_create_triangular, 7) X(type_create_triangular_literal, 7)

// Collective calls, and how many arguments MPI's blocking form takes: NAME has one more, iNAME and
// NAME_init two. X(name, MPI's name, words)
#define MPRESS_API_COLLECTIVES(X)                                                              \
  X(bcast, Bcast, 5) X(gather, Gather, 8) X(gatherv, Gatherv, 9) X(scatter, Scatter, 8)        \
  X(scatterv, Scatterv, 9) X(allgather, Allgather, 7) X(allgatherv, Allgatherv, 8)             \
  X(alltoall, Alltoall, 7) X(alltoallv, Alltoallv, 9) X(alltoallw, Alltoallw, 9)               \
  X(reduce, Reduce, 7) X(allreduce, Allreduce, 6) X(reduce_scatter, Reduce_scatter, 6)         \
  X(reduce_scatter_block, Reduce_scatter_block, 6) X(scan, Scan, 6) X(exscan, Exscan, 6)       \
  X(neighbor_allgather, Neighbor_allgather, 7) X(neighbor_allgatherv, Neighbor_allgatherv, 8)  \
  X(neighbor_alltoall, Neighbor_alltoall, 7) X(neighbor_alltoallv, Neighbor_alltoallv, 9)      \
  X(neighbor_alltoallw, Neighbor_alltoallw, 9)

// clang-format on

namespace mpress::front {

enum ApiCall : std::size_t {
#define MPRESS_NUMBER(name, words) api_##name,
#define MPRESS_NUMBERS(name, mpi_name, words) api_##name, api_i##name, api_##name##_init,
  MPRESS_API_CALLS(MPRESS_NUMBER) MPRESS_API_COLLECTIVES(MPRESS_NUMBERS)
#undef MPRESS_NUMBER
#undef MPRESS_NUMBERS
      api_call_count
};

}  // namespace mpress::front
