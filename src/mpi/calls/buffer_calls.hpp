// MPI's calls with buffers, apart from messages: their signatures in both forms of counts, and
// their entry points in the program's MPI. Most headers at hand lack some, so these are the
// declarations.
#pragma once

#include <mpi.h>

namespace mpress::mpi {

// clang-format off: tables. N is the type of a count, D of a displacement: int, or MPI_Count and
// MPI_Aint. P is that of a position in external32 data: MPI_Aint or MPI_Count.

// Collective calls: X(blocking, non-blocking, what it reads and writes (mpi/collectives/operands.hpp),
// parameters). Each is persistent too, as NAME_init.
#define MPRESS_COLLECTIVES(X)                                                                     \
  X(Bcast, Ibcast, bcast, void*, N, MPI_Datatype, int, MPI_Comm)                                  \
  X(Gather, Igather, gather,                                                                      \
    const void*, N, MPI_Datatype, void*, N, MPI_Datatype, int, MPI_Comm)                          \
  X(Gatherv, Igatherv, gatherv,                                                                   \
    const void*, N, MPI_Datatype, void*, const N*, const D*, MPI_Datatype, int, MPI_Comm)         \
  X(Scatter, Iscatter, scatter,                                                                   \
    const void*, N, MPI_Datatype, void*, N, MPI_Datatype, int, MPI_Comm)                          \
  X(Scatterv, Iscatterv, scatterv,                                                                \
    const void*, const N*, const D*, MPI_Datatype, void*, N, MPI_Datatype, int, MPI_Comm)         \
  X(Allgather, Iallgather, allgather,                                                             \
    const void*, N, MPI_Datatype, void*, N, MPI_Datatype, MPI_Comm)                               \
  X(Allgatherv, Iallgatherv, allgatherv,                                                          \
    const void*, N, MPI_Datatype, void*, const N*, const D*, MPI_Datatype, MPI_Comm)              \
  X(Alltoall, Ialltoall, alltoall,                                                                \
    const void*, N, MPI_Datatype, void*, N, MPI_Datatype, MPI_Comm)                               \
  X(Alltoallv, Ialltoallv, alltoallv,                                                             \
    const void*, const N*, const D*, MPI_Datatype,                                                \
    void*, const N*, const D*, MPI_Datatype, MPI_Comm)                                            \
  X(Alltoallw, Ialltoallw, alltoallw,                                                             \
    const void*, const N*, const D*, const MPI_Datatype*,                                         \
    void*, const N*, const D*, const MPI_Datatype*, MPI_Comm)                                     \
  X(Reduce, Ireduce, reduce, const void*, void*, N, MPI_Datatype, MPI_Op, int, MPI_Comm)          \
  X(Allreduce, Iallreduce, allreduce, const void*, void*, N, MPI_Datatype, MPI_Op, MPI_Comm)      \
  X(Reduce_scatter, Ireduce_scatter, reduce_scatter,                                              \
    const void*, void*, const N*, MPI_Datatype, MPI_Op, MPI_Comm)                                 \
  X(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block,                            \
    const void*, void*, N, MPI_Datatype, MPI_Op, MPI_Comm)                                        \
  X(Scan, Iscan, scan, const void*, void*, N, MPI_Datatype, MPI_Op, MPI_Comm)                \
  X(Exscan, Iexscan, exscan, const void*, void*, N, MPI_Datatype, MPI_Op, MPI_Comm)               \
  X(Neighbor_allgather, Ineighbor_allgather, neighbor_allgather,                                  \
    const void*, N, MPI_Datatype, void*, N, MPI_Datatype, MPI_Comm)                               \
  X(Neighbor_allgatherv, Ineighbor_allgatherv, neighbor_allgatherv,                               \
    const void*, N, MPI_Datatype, void*, const N*, const D*, MPI_Datatype, MPI_Comm)              \
  X(Neighbor_alltoall, Ineighbor_alltoall, neighbor_alltoall,                                     \
    const void*, N, MPI_Datatype, void*, N, MPI_Datatype, MPI_Comm)                               \
  X(Neighbor_alltoallv, Ineighbor_alltoallv, neighbor_alltoallv,                                  \
    const void*, const N*, const D*, MPI_Datatype,                                                \
    void*, const N*, const D*, MPI_Datatype, MPI_Comm)                                            \
  X(Neighbor_alltoallw, Ineighbor_alltoallw, neighbor_alltoallw,                                  \
    const void*, const N*, const MPI_Aint*, const MPI_Datatype*,                                  \
    void*, const N*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm)

// Calls of one process: X(name, what it reads and writes, parameters).
#define MPRESS_LOCAL_CALLS(X)                                                                     \
  X(Reduce_local, reduce_local, const void*, void*, N, MPI_Datatype, MPI_Op)                      \
  X(Pack, pack, const void*, N, MPI_Datatype, void*, N, N*, MPI_Comm)                             \
  X(Unpack, unpack, const void*, N, N*, void*, N, MPI_Datatype, MPI_Comm)                         \
  X(Pack_external, pack_external, const char*, const void*, N, MPI_Datatype, void*, P, P*)        \
  X(Unpack_external, unpack_external, const char*, const void*, P, P*, void*, N, MPI_Datatype)

// clang-format on

/// The calls' types, by name.
template <typename N, typename D, typename P>
struct Signatures {
#define MPRESS_SIGNATURE(name, immediate, describe, ...) using name = int(__VA_ARGS__);
#define MPRESS_LOCAL_SIGNATURE(name, describe, ...) using name = int(__VA_ARGS__);
  MPRESS_COLLECTIVES(MPRESS_SIGNATURE)
  MPRESS_LOCAL_CALLS(MPRESS_LOCAL_SIGNATURE)
#undef MPRESS_SIGNATURE
#undef MPRESS_LOCAL_SIGNATURE
};
using Counts = Signatures<int, int, MPI_Aint>;
using LargeCounts = Signatures<MPI_Count, MPI_Aint, MPI_Count>;

/// A call with more parameters at its end.
template <typename Signature, typename... More>
struct Extended;
template <typename... A, typename... More>
struct Extended<int(A...), More...> {
  using Type = int(A..., More...);
};
template <typename Signature>
using Immediate = typename Extended<Signature, MPI_Request*>::Type;
template <typename Signature>
using Persistent = typename Extended<Signature, MPI_Info, MPI_Request*>::Type;

/// Entry points of all of them: MPI's own, of which the younger ones may be missing, or mpress's.
struct BufferCalls {
#define MPRESS_MEMBERS(name, immediate, describe, ...) \
  Counts::name* name;                                  \
  LargeCounts::name* name##_c;                         \
  Immediate<Counts::name>* immediate;                  \
  Immediate<LargeCounts::name>* immediate##_c;         \
  Persistent<Counts::name>* name##_init;               \
  Persistent<LargeCounts::name>* name##_init_c;
#define MPRESS_LOCAL_MEMBERS(name, describe, ...) \
  Counts::name* name;                             \
  LargeCounts::name* name##_c;
  MPRESS_COLLECTIVES(MPRESS_MEMBERS)
  MPRESS_LOCAL_CALLS(MPRESS_LOCAL_MEMBERS)
#undef MPRESS_MEMBERS
#undef MPRESS_LOCAL_MEMBERS
};

/// To be called by bind(), once.
void bind_buffer_calls(void* library);

/// MPI's own; null where the program's MPI lacks the call.
extern BufferCalls bound_buffer_calls;
inline const BufferCalls& buffer_calls() { return bound_buffer_calls; }

}  // namespace mpress::mpi
