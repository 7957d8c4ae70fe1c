// The collective calls of MPI's that mpress may serve.
#pragma once

#include "coll/call.hpp"

namespace mpress::engine::collectives {

using trace::Op;

inline constexpr Collective alltoall{.op = Op::alltoall, .family = Family::alltoall};
inline constexpr Collective alltoallv{
    .op = Op::alltoallv, .family = Family::alltoall, .has_own_counts = true};
inline constexpr Collective alltoallw{
    .op = Op::alltoallw, .family = Family::alltoall, .has_own_counts = true};
inline constexpr Collective gather{.op = Op::gather, .family = Family::gather};
inline constexpr Collective gatherv{
    .op = Op::gatherv, .family = Family::gather, .has_own_counts = true};
inline constexpr Collective scatter{.op = Op::scatter, .family = Family::scatter};
inline constexpr Collective scatterv{
    .op = Op::scatterv, .family = Family::scatter, .has_own_counts = true};
inline constexpr Collective allgather{
    .op = Op::allgather, .family = Family::allgather, .has_many_readers = true};
inline constexpr Collective allgatherv{
    .op = Op::allgatherv, .family = Family::allgather, .has_many_readers = true};
inline constexpr Collective neighbor_alltoall{
    .op = Op::neighbor_alltoall, .family = Family::neighbor, .has_own_counts = true};
inline constexpr Collective neighbor_alltoallv{
    .op = Op::neighbor_alltoallv, .family = Family::neighbor, .has_own_counts = true};
inline constexpr Collective neighbor_alltoallw{
    .op = Op::neighbor_alltoallw, .family = Family::neighbor, .has_own_counts = true};
inline constexpr Collective neighbor_allgather{.op = Op::neighbor_allgather,
                                               .family = Family::neighbor,
                                               .has_own_counts = true,
                                               .has_many_readers = true};
inline constexpr Collective neighbor_allgatherv{.op = Op::neighbor_allgatherv,
                                                .family = Family::neighbor,
                                                .has_own_counts = true,
                                                .has_many_readers = true};
inline constexpr Collective bcast{
    .op = Op::bcast, .family = Family::bcast, .has_many_readers = true};
inline constexpr Collective allreduce{
    .op = Op::allreduce, .family = Family::allreduce, .reduces = true};
inline constexpr Collective reduce{.op = Op::reduce, .family = Family::reduce, .reduces = true};
inline constexpr Collective reduce_scatter{
    .op = Op::reduce_scatter, .family = Family::reduce_scatter, .reduces = true};
inline constexpr Collective reduce_scatter_block{
    .op = Op::reduce_scatter_block, .family = Family::reduce_scatter, .reduces = true};

}  // namespace mpress::engine::collectives
