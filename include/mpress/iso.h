/* Isomorphic neighbourhoods: all processes of a Cartesian grid have the same list of relative
 * neighbours.
 *
 * After Träff, Lübbe, Rougier, Hunold: Isomorphic, Sparse MPI-like Collective Communication
 * Operations for Parallel Stencil Computations, EuroMPI 2015. X is the process with the coordinates
 * X, and C_i the i-th tuple of the list. Neighbour i of X is two processes: its target, X + C_i,
 * and its source, X - C_i. So with the list (-1, +1) the first source is the process at +1; MPI's
 * own neighbourhood calls on a Cartesian communicator have it the other way around.
 *
 * In periodic dimensions coordinates wrap, however far an offset goes. Beyond the border of the
 * others there is no process: such a target or source is MPI_PROC_NULL, and has its place in the
 * list all the same. A list may name an offset more than once, several that lead to one process,
 * and the process itself; it may be empty, and the grid may have no dimension.
 *
 * All functions are local but the two that create a neighbourhood. They return MPI_SUCCESS or an
 * error code of MPI's, which has been raised on the communicator (on MPI_COMM_SELF, where there is
 * none):
 * - MPI_ERR_COMM: MPI_COMM_NULL;
 * - MPI_ERR_TOPOLOGY: the communicator is not Cartesian, or has no neighbourhood;
 * - MPI_ERR_RANK: a rank that the communicator does not have;
 * - MPI_ERR_ARG: a number below 0, a null pointer where something is to be read or written, a
 * radius below `inner`, a list of more ints than an int can count;
 * - MPI_ERR_COUNT, MPI_ERR_TYPE: of datatypes, a number of items below 0 or beyond what MPI can
 *   describe, and a type that is none;
 * - MPI_ERR_INFO_VALUE: a hint that means nothing;
 * - MPI_ERR_NO_MEM: the host's memory ran out. Where others wait by then for what this process was
 *   to send, the job ends.
 * MPI_ERR_OTHER, of functions with a communicator or a datatype, is returned, and not raised: MPI
 * does not run. Nothing is written then. mpress_error_text() has more words. Threads may call at
 * once.
 *
 * Ranks are those of the communicator. An array of tuples has them one behind the other, each with
 * an int for each dimension. */
#ifndef MPRESS_ISO_H
#define MPRESS_ISO_H

#include <mpress/mpress.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where relative coordinates lead -------------------------------------------------------- */

/* The rank at `relative` from this process; MPI_PROC_NULL beyond a border (MPI_Cart_rank is
 * erroneous there). */
int mpress_cart_relative_rank(MPI_Comm cartcomm, const int relative[], int* rank);

/* The relative coordinates of a rank: in periodic dimensions those of the least absolute value, and
 * of two such the positive one. */
int mpress_cart_relative_coord(MPI_Comm cartcomm, int rank, int relative[]);

/* The target at `relative`, and the source at its negative; either may be MPI_PROC_NULL. */
int mpress_cart_relative_shift(MPI_Comm cartcomm, const int relative[], int* source, int* target);

/* ---- Neighbourhoods ------------------------------------------------------------------------- */

/* Collective on `cartcomm`, and blocks, as MPI_Comm_dup() does. Makes a duplicate of it that has
 * the neighbourhood of `s` tuples, too. All processes give the same tuples in the same order, which
 * MPRESS_ISO_CHECK=1 looks at: then lists that differ are MPI_ERR_ARG on all processes, and so on
 * the others is what one process has given wrongly. A duplicate of `isocomm` has the neighbourhood,
 * too; MPI_Comm_free() ends it. */
int mpress_iso_neighborhood_create(MPI_Comm cartcomm, int s, const int relative_coordinates[],
                                   MPI_Comm* isocomm);

/* Creates one with hints, of which all processes give the same. MPI_INFO_NULL: none.
 * - "iso_attribute" = "true": `cartcomm` itself gets the neighbourhood, in the place of one that it
 *   may have, and is `isocomm`. The call is local then, unless MPRESS_ISO_CHECK=1. "false", the
 *   default: a new communicator.
 * - "iso_algorithm": how blocks travel. "direct": each straight to its target; "combining": along
 *   one dimension after another, all that go the same way in one message, which other processes
 *   pass on; "auto", the default: the faster of these, by the length of the blocks. "digits",
 *   "lines" and "ring" are other ways to combine (docs/dev/neighbourhoods.md).
 * - "iso_ports": messages that a process sends at once; by default as many as there are.
 * - "iso_uniform_sizes" = "true": in calls with counts, too, block i has the same length on all
 *   processes, so that other processes than its own can pass it on. Else such calls go direct.
 * - "iso_reproducible" = "true": reductions combine in the order of the list.
 * - keys that communicators take (mpress_codec, ...: docs/semantics.md) hold for a new one, once
 *   mpress has started. */
int mpress_iso_neighborhood_create_with_info(MPI_Comm cartcomm, int s,
                                             const int relative_coordinates[], MPI_Info info,
                                             MPI_Comm* isocomm);

/* How many tuples the list has, and how many sources (indegree) and targets (outdegree) this
 * process has that are not MPI_PROC_NULL. Those that occur more than once count as often. */
int mpress_iso_neighborhood_count(MPI_Comm isocomm, int* s, int* indegree, int* outdegree);

/* The first `max_s` sources and targets in the order of the list, MPI_PROC_NULL among them. */
int mpress_iso_neighborhood_get(MPI_Comm isocomm, int max_s, int sources[], int destinations[]);

/* Both without MPI_PROC_NULL, at most `max_s` of each: as MPI_Dist_graph_create_adjacent()
 * takes them. */
int mpress_iso_neighborhood_graph_get(MPI_Comm isocomm, int max_s, int sources[],
                                      int destinations[]);

/* The first `max_s` tuples of the list, as they were given. */
int mpress_iso_neighborhood_get_relative(MPI_Comm isocomm, int max_s, int relative_coordinates[]);

/* ---- Exchanges ------------------------------------------------------------------------------ */

/* MPI_Neighbor_alltoall() with the list's neighbours: `sent` has a block of `sent_count` items for
 * each of the s tuples, one behind the other, and `received` gets one for each. Block i goes to the
 * target of tuple i, as its block i: it comes from the source of tuple i. Blocks for targets, and
 * from sources, that do not exist have their places, and are neither read nor written. Collective:
 * all processes of `isocomm` make the call, with blocks of equal length.
 *
 * Buffers may be in memory of the host or of GPUs, on each process wherever it likes. `call`: see
 * mpress.h; blocks may be encoded by its codec, or by that of the communicator.
 *
 * Errors, beside those of all functions here: MPI_ERR_ARG for MPI_IN_PLACE and where a block's
 * length differs between the buffers, MPI_ERR_COUNT, MPI_ERR_TYPE; of a call on a communicator
 * where mpress is not at work on all processes, MPI_ERR_OTHER. */
int mpress_iso_neighbor_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                 void* received, MPI_Count received_count,
                                 MPI_Datatype received_type, MPI_Comm isocomm,
                                 const mpress_call* call);
/* The same without waiting; `*request` completes (mpress_wait, ...) when it is over. Several may be
 * under way, which all processes begin in the same order. */
int mpress_iso_ineighbor_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                  void* received, MPI_Count received_count,
                                  MPI_Datatype received_type, MPI_Comm isocomm,
                                  mpress_request* request, const mpress_call* call);
/* A call that mpress_start() starts again and again. Collective, and may wait. `info`: hints in the
 * place of those of the neighbourhood; MPI_INFO_NULL: none. */
int mpress_iso_neighbor_alltoall_init(const void* sent, MPI_Count sent_count,
                                      MPI_Datatype sent_type, void* received,
                                      MPI_Count received_count, MPI_Datatype received_type,
                                      MPI_Comm isocomm, MPI_Info info, mpress_request* request,
                                      const mpress_call* call);

/* MPI_Neighbor_alltoallv(): with counts and displacements (in items) for each tuple. Those of
 * targets and sources that do not exist are not read, unless "iso_uniform_sizes" was given: then
 * counts of `sent` are, too. */
int mpress_iso_neighbor_alltoallv(const void* sent, const MPI_Count sent_counts[],
                                  const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                                  void* received, const MPI_Count received_counts[],
                                  const MPI_Aint received_displacements[],
                                  MPI_Datatype received_type, MPI_Comm isocomm,
                                  const mpress_call* call);
int mpress_iso_ineighbor_alltoallv(const void* sent, const MPI_Count sent_counts[],
                                   const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                                   void* received, const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   MPI_Datatype received_type, MPI_Comm isocomm,
                                   mpress_request* request, const mpress_call* call);
int mpress_iso_neighbor_alltoallv_init(const void* sent, const MPI_Count sent_counts[],
                                       const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                                       void* received, const MPI_Count received_counts[],
                                       const MPI_Aint received_displacements[],
                                       MPI_Datatype received_type, MPI_Comm isocomm, MPI_Info info,
                                       mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_alltoallw(): with displacements in bytes, and types for each tuple. What is said of
 * counts above holds for types, too. */
int mpress_iso_neighbor_alltoallw(const void* sent, const MPI_Count sent_counts[],
                                  const MPI_Aint sent_displacements[],
                                  const MPI_Datatype sent_types[], void* received,
                                  const MPI_Count received_counts[],
                                  const MPI_Aint received_displacements[],
                                  const MPI_Datatype received_types[], MPI_Comm isocomm,
                                  const mpress_call* call);
int mpress_iso_ineighbor_alltoallw(const void* sent, const MPI_Count sent_counts[],
                                   const MPI_Aint sent_displacements[],
                                   const MPI_Datatype sent_types[], void* received,
                                   const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   const MPI_Datatype received_types[], MPI_Comm isocomm,
                                   mpress_request* request, const mpress_call* call);
int mpress_iso_neighbor_alltoallw_init(
    const void* sent, const MPI_Count sent_counts[], const MPI_Aint sent_displacements[],
    const MPI_Datatype sent_types[], void* received, const MPI_Count received_counts[],
    const MPI_Aint received_displacements[], const MPI_Datatype received_types[], MPI_Comm isocomm,
    MPI_Info info, mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_allgather(): one block goes to all targets; block i of `received` comes from the
 * source of tuple i. */
int mpress_iso_neighbor_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                  void* received, MPI_Count received_count,
                                  MPI_Datatype received_type, MPI_Comm isocomm,
                                  const mpress_call* call);
int mpress_iso_ineighbor_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                   void* received, MPI_Count received_count,
                                   MPI_Datatype received_type, MPI_Comm isocomm,
                                   mpress_request* request, const mpress_call* call);
int mpress_iso_neighbor_allgather_init(const void* sent, MPI_Count sent_count,
                                       MPI_Datatype sent_type, void* received,
                                       MPI_Count received_count, MPI_Datatype received_type,
                                       MPI_Comm isocomm, MPI_Info info, mpress_request* request,
                                       const mpress_call* call);

/* MPI_Neighbor_allgatherv(): processes may send blocks of different lengths. "iso_uniform_sizes":
 * they do not. */
int mpress_iso_neighbor_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                   void* received, const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   MPI_Datatype received_type, MPI_Comm isocomm,
                                   const mpress_call* call);
int mpress_iso_ineighbor_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                    void* received, const MPI_Count received_counts[],
                                    const MPI_Aint received_displacements[],
                                    MPI_Datatype received_type, MPI_Comm isocomm,
                                    mpress_request* request, const mpress_call* call);
int mpress_iso_neighbor_allgatherv_init(const void* sent, MPI_Count sent_count,
                                        MPI_Datatype sent_type, void* received,
                                        const MPI_Count received_counts[],
                                        const MPI_Aint received_displacements[],
                                        MPI_Datatype received_type, MPI_Comm isocomm, MPI_Info info,
                                        mpress_request* request, const mpress_call* call);

/* The same with displacements in bytes, and types for each source; MPI has no such call. */
int mpress_iso_neighbor_allgatherw(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                   void* received, const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   const MPI_Datatype received_types[], MPI_Comm isocomm,
                                   const mpress_call* call);
int mpress_iso_ineighbor_allgatherw(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                    void* received, const MPI_Count received_counts[],
                                    const MPI_Aint received_displacements[],
                                    const MPI_Datatype received_types[], MPI_Comm isocomm,
                                    mpress_request* request, const mpress_call* call);
int mpress_iso_neighbor_allgatherw_init(const void* sent, MPI_Count sent_count,
                                        MPI_Datatype sent_type, void* received,
                                        const MPI_Count received_counts[],
                                        const MPI_Aint received_displacements[],
                                        const MPI_Datatype received_types[], MPI_Comm isocomm,
                                        MPI_Info info, mpress_request* request,
                                        const mpress_call* call);

/* ---- Reductions ----------------------------------------------------------------------------- */

/* `received` becomes the combination of the `count` items that each source has in `sent`; a source
 * that the list leads to more than once counts as often, and the process itself only where it is in
 * the list. Without any source it stays as it was; what it held before never counts.
 *
 * `op` commutes, and takes items of `type`; MPI_ERR_OP otherwise. It is not freed before the
 * request is over, or, of a persistent call, freed. Vectors are combined in the order
 * of the list, or, by message combining, as they come together; "iso_reproducible" = "true" has
 * them in the list's order always. With szp, vectors of f32 and f64 that are added, or of which
 * the least or the greatest is taken, are encoded each with its share of the bound, so that the
 * result keeps it, but for the rounding of its additions; sums within an absolute bound are made in
 * quanta, in which no addition rounds and no order matters (docs/neighbourhoods.md). Other codecs
 * are not used. Processes that ask for different codecs get an error. Memory of GPUs is combined by
 * the host. */
int mpress_iso_neighbor_reduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                               MPI_Op op, MPI_Comm isocomm, const mpress_call* call);
int mpress_iso_ineighbor_reduce(const void* sent, void* received, MPI_Count count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm isocomm,
                                mpress_request* request, const mpress_call* call);
int mpress_iso_neighbor_reduce_init(const void* sent, void* received, MPI_Count count,
                                    MPI_Datatype type, MPI_Op op, MPI_Comm isocomm, MPI_Info info,
                                    mpress_request* request, const mpress_call* call);

/* The same with a vector for each target: as mpress_iso_neighbor_alltoallw() has them. Each has as
 * many items as the result, and may be of a type of its own. */
int mpress_iso_neighbor_scatter_reduce(const void* sent, const MPI_Count sent_counts[],
                                       const MPI_Aint sent_displacements[],
                                       const MPI_Datatype sent_types[], void* received,
                                       MPI_Count count, MPI_Datatype type, MPI_Op op,
                                       MPI_Comm isocomm, const mpress_call* call);
int mpress_iso_ineighbor_scatter_reduce(const void* sent, const MPI_Count sent_counts[],
                                        const MPI_Aint sent_displacements[],
                                        const MPI_Datatype sent_types[], void* received,
                                        MPI_Count count, MPI_Datatype type, MPI_Op op,
                                        MPI_Comm isocomm, mpress_request* request,
                                        const mpress_call* call);
int mpress_iso_neighbor_scatter_reduce_init(const void* sent, const MPI_Count sent_counts[],
                                            const MPI_Aint sent_displacements[],
                                            const MPI_Datatype sent_types[], void* received,
                                            MPI_Count count, MPI_Datatype type, MPI_Op op,
                                            MPI_Comm isocomm, MPI_Info info,
                                            mpress_request* request, const mpress_call* call);

/* The neighbours that MPI's own neighbourhood calls have on a Cartesian communicator, two in each
 * dimension, at -1 and at +1: in this order in both arrays. In a periodic dimension of one or two
 * processes both neighbours are one process: MPI delivers block 0 as its block 1 there, and a graph
 * communicator of these lists as its block 0. */
int mpress_cart_neighborhood_count(MPI_Comm cartcomm, int* s, int* indegree, int* outdegree);
int mpress_cart_neighborhood_get(MPI_Comm cartcomm, int max_s, int sources[], int destinations[]);
int mpress_cart_neighborhood_graph_get(MPI_Comm cartcomm, int max_s, int sources[],
                                       int destinations[]);

/* ---- Lists of tuples ------------------------------------------------------------------------ */

/* The tuples whose greatest absolute value is above `inner` and at most `radius`, in lexicographic
 * order: `*s` of them, of which the first `max_s` are written. -1 <= inner <= radius; 0: all but
 * the process itself, -1: it, too. `relative_coordinates` may be null where `max_s` is 0. */
int mpress_iso_moore(int dimensions, int radius, int inner, int max_s, int relative_coordinates[],
                     int* s);

/* The tuples whose sum of absolute values is within these bounds. */
int mpress_iso_von_neumann(int dimensions, int radius, int inner, int max_s,
                           int relative_coordinates[], int* s);

/* ---- Datatypes ------------------------------------------------------------------------------ */

/* `count` blocks of `oldtype`: block i, from 0, has firstblock + i * blockincrement items, and
 * begins i * stride + strideincrement * i * (i - 1) / 2 items behind block 0, as `stride` grows by
 * `strideincrement` from block to block. A lower triangle of n rows that is stored row by row
 * without gaps: (n, 1, 1, 1, 1); an upper one: (n, n, -1, n, -1). Of a matrix with `ld` items a
 * row, m rows that shrink to the left: (m, m, -1, ld, 0), to the right: (m, m, -1, ld + 1, 0); that
 * grow to the right: (m, 1, 1, ld, 0), to the left: (m, 1, 1, ld - 1, 0).
 *
 * The bounds of the type are those of its items. It is not committed; MPI_Type_free() ends it.
 * No block may have less than 0 items. */
int mpress_type_create_triangular(MPI_Count count, MPI_Count firstblock, MPI_Count blockincrement,
                                  MPI_Count stride, MPI_Count strideincrement, MPI_Datatype oldtype,
                                  MPI_Datatype* newtype);

/* A type with the paper's formula as it is printed: block i begins
 * i * (stride + strideincrement) items behind block 0. */
int mpress_type_create_triangular_literal(MPI_Count count, MPI_Count firstblock,
                                          MPI_Count blockincrement, MPI_Count stride,
                                          MPI_Count strideincrement, MPI_Datatype oldtype,
                                          MPI_Datatype* newtype);

#ifdef __cplusplus
}
#endif

#endif
