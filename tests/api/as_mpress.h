/* Makes a program of MPI one of mpress's own interface: included before it, this has its messages,
 * its collective calls and its requests be mpress's, which asks for nothing of each. What mpress.h
 * has no name for stays MPI's, and does not compile where it takes a request.
 *
 * Counts and displacements of int are copied, and kept to the end, as calls under way read them. */
#ifndef MPRESS_TESTS_AS_MPRESS_H
#define MPRESS_TESTS_AS_MPRESS_H

#include <mpress/mpress.h>
#include <pthread.h>
#include <stdlib.h>

#define AS_MPRESS static inline __attribute__((unused))

/* ---- What is copied ------------------------------------------------------------------------- */

struct AsKept {
  struct AsKept* next;
  union {
    MPI_Count counts[1];
    MPI_Aint places[1];
  } numbers;
};
static struct AsKept* as_kept;
static pthread_mutex_t as_mutex = PTHREAD_MUTEX_INITIALIZER;

AS_MPRESS struct AsKept* as_keep(int number) {
  struct AsKept* const one = malloc(sizeof *one + (size_t)number * sizeof(MPI_Count));
  if (!one) abort();
  pthread_mutex_lock(&as_mutex);
  one->next = as_kept;
  as_kept = one;
  pthread_mutex_unlock(&as_mutex);
  return one;
}

/* What does not count stays null: nobody may look at it. */
AS_MPRESS const MPI_Count* as_counts(const int* from, int number) {
  if (!from || number == 0) return NULL;
  struct AsKept* const one = as_keep(number);
  for (int i = 0; i < number; ++i) one->numbers.counts[i] = from[i];
  return one->numbers.counts;
}

AS_MPRESS const MPI_Aint* as_places(const int* from, int number) {
  if (!from || number == 0) return NULL;
  struct AsKept* const one = as_keep(number);
  for (int i = 0; i < number; ++i) one->numbers.places[i] = from[i];
  return one->numbers.places;
}

/* How many blocks a call has: one for each member, or of the other group. */
AS_MPRESS int as_members(MPI_Comm comm) {
  int is_inter = 0, number = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter) {
    MPI_Comm_remote_size(comm, &number);
  } else {
    MPI_Comm_size(comm, &number);
  }
  return number;
}

AS_MPRESS int as_own(MPI_Comm comm) {
  int number = 0;
  MPI_Comm_size(comm, &number);
  return number;
}

/* At the root alone they count. */
AS_MPRESS int as_roots(int root, MPI_Comm comm) {
  int is_inter = 0, rank = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  MPI_Comm_rank(comm, &rank);
  return root == (is_inter ? MPI_ROOT : rank) ? as_members(comm) : 0;
}

AS_MPRESS int as_neighbors(MPI_Comm comm, int incoming) {
  int topology = MPI_UNDEFINED, number = 0, out = 0, is_weighted = 0, rank = 0;
  MPI_Topo_test(comm, &topology);
  if (topology == MPI_CART) {
    MPI_Cartdim_get(comm, &number);
    return 2 * number;
  }
  if (topology == MPI_DIST_GRAPH) {
    MPI_Dist_graph_neighbors_count(comm, &number, &out, &is_weighted);
    return incoming ? number : out;
  }
  MPI_Comm_rank(comm, &rank);
  MPI_Graph_neighbors_count(comm, rank, &number);
  return number;
}
#define AS_IN(comm) as_neighbors(comm, 1)
#define AS_OUT(comm) as_neighbors(comm, 0)

/* ---- Start and end -------------------------------------------------------------------------- */

AS_MPRESS int as_init(int* argc, char*** argv) {
  const int code = MPI_Init(argc, argv);
  return code == MPI_SUCCESS ? mpress_init() : code;
}

AS_MPRESS int as_init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = MPI_Init_thread(argc, argv, required, provided);
  return code == MPI_SUCCESS ? mpress_init() : code;
}

AS_MPRESS int as_finalize(void) {
  const int code = MPI_Finalize();
  while (as_kept) {
    struct AsKept* const one = as_kept;
    as_kept = one->next;
    free(one);
  }
  return code;
}

/* What is under way proceeds in mpress's calls, as it does in MPI_Barrier under `mpress run`. */
AS_MPRESS int as_barrier(MPI_Comm comm) {
  int nothing = 0, all = 0;
  return mpress_allreduce(&nothing, &all, 1, MPI_INT, MPI_MAX, comm, NULL);
}

#define MPI_Init as_init
#define MPI_Init_thread as_init_thread
#define MPI_Finalize as_finalize
#define MPI_Barrier(comm) as_barrier(comm)

/* ---- Messages and requests ------------------------------------------------------------------ */

#define MPI_Send(...) mpress_send(__VA_ARGS__, NULL)
#define MPI_Recv(...) mpress_recv(__VA_ARGS__, NULL)
#define MPI_Sendrecv(...) mpress_sendrecv(__VA_ARGS__, NULL)
#define MPI_Isend(...) mpress_isend(__VA_ARGS__, NULL)
#define MPI_Irecv(...) mpress_irecv(__VA_ARGS__, NULL)
#define MPI_Send_init(...) mpress_send_init(__VA_ARGS__, NULL)
#define MPI_Recv_init(...) mpress_recv_init(__VA_ARGS__, NULL)
#define MPI_Probe(...) mpress_probe(__VA_ARGS__)
#define MPI_Iprobe(...) mpress_iprobe(__VA_ARGS__)
#define MPI_Mprobe(...) mpress_mprobe(__VA_ARGS__)
#define MPI_Improbe(...) mpress_improbe(__VA_ARGS__)
#define MPI_Mrecv(...) mpress_mrecv(__VA_ARGS__, NULL)
#define MPI_Imrecv(...) mpress_imrecv(__VA_ARGS__, NULL)

#define MPI_Request mpress_request
#undef MPI_REQUEST_NULL
#define MPI_REQUEST_NULL MPRESS_REQUEST_NULL
#define MPI_Wait(...) mpress_wait(__VA_ARGS__)
#define MPI_Waitall(...) mpress_waitall(__VA_ARGS__)
#define MPI_Waitany(...) mpress_waitany(__VA_ARGS__)
#define MPI_Test(...) mpress_test(__VA_ARGS__)
#define MPI_Testall(...) mpress_testall(__VA_ARGS__)
#define MPI_Start(...) mpress_start(__VA_ARGS__)
#define MPI_Startall(...) mpress_startall(__VA_ARGS__)
#define MPI_Cancel(...) mpress_cancel(__VA_ARGS__)
#define MPI_Request_free(...) mpress_request_free(__VA_ARGS__)

/* These may complete one of several, and when they do so is theirs to choose. */
AS_MPRESS int as_some(int count, mpress_request* requests, int* done, int* indices,
                      MPI_Status* statuses) {
  MPI_Status* const status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses;
  const int code = mpress_waitany(count, requests, indices, status);
  *done = indices[0] == MPI_UNDEFINED ? MPI_UNDEFINED : 1;
  return code;
}

AS_MPRESS int as_any(int count, mpress_request* requests, int* index, int* flag,
                     MPI_Status* status) {
  *flag = 1;
  return mpress_waitany(count, requests, index, status);
}

#define MPI_Waitsome(...) as_some(__VA_ARGS__)
#define MPI_Testsome(...) as_some(__VA_ARGS__)
#define MPI_Testany(...) as_any(__VA_ARGS__)
/* A request that is complete ends here already: waiting for it again does nothing. */
#define MPI_Request_get_status(request, flag, status) mpress_test(&(request), flag, status)

/* ---- Collective calls ----------------------------------------------------------------------- */

#define MPI_Bcast(...) mpress_bcast(__VA_ARGS__, NULL)
#define MPI_Gather(...) mpress_gather(__VA_ARGS__, NULL)
#define MPI_Scatter(...) mpress_scatter(__VA_ARGS__, NULL)
#define MPI_Allgather(...) mpress_allgather(__VA_ARGS__, NULL)
#define MPI_Alltoall(...) mpress_alltoall(__VA_ARGS__, NULL)
#define MPI_Reduce(...) mpress_reduce(__VA_ARGS__, NULL)
#define MPI_Allreduce(...) mpress_allreduce(__VA_ARGS__, NULL)
#define MPI_Reduce_scatter_block(...) mpress_reduce_scatter_block(__VA_ARGS__, NULL)
#define MPI_Scan(...) mpress_scan(__VA_ARGS__, NULL)
#define MPI_Exscan(...) mpress_exscan(__VA_ARGS__, NULL)
#define MPI_Neighbor_allgather(...) mpress_neighbor_allgather(__VA_ARGS__, NULL)
#define MPI_Neighbor_alltoall(...) mpress_neighbor_alltoall(__VA_ARGS__, NULL)

#define MPI_Ibcast(...) mpress_ibcast(__VA_ARGS__, NULL)
#define MPI_Igather(...) mpress_igather(__VA_ARGS__, NULL)
#define MPI_Iscatter(...) mpress_iscatter(__VA_ARGS__, NULL)
#define MPI_Iallgather(...) mpress_iallgather(__VA_ARGS__, NULL)
#define MPI_Ialltoall(...) mpress_ialltoall(__VA_ARGS__, NULL)
#define MPI_Ireduce(...) mpress_ireduce(__VA_ARGS__, NULL)
#define MPI_Iallreduce(...) mpress_iallreduce(__VA_ARGS__, NULL)
#define MPI_Ireduce_scatter_block(...) mpress_ireduce_scatter_block(__VA_ARGS__, NULL)
#define MPI_Iscan(...) mpress_iscan(__VA_ARGS__, NULL)
#define MPI_Iexscan(...) mpress_iexscan(__VA_ARGS__, NULL)
#define MPI_Ineighbor_allgather(...) mpress_ineighbor_allgather(__VA_ARGS__, NULL)
#define MPI_Ineighbor_alltoall(...) mpress_ineighbor_alltoall(__VA_ARGS__, NULL)

/* MPI's have an info before the request. */
#define MPI_Bcast_init(b, n, t, root, comm, info, request) \
  ((void)(info), mpress_bcast_init(b, n, t, root, comm, request, NULL))
#define MPI_Gather_init(s, n, t, r, m, u, root, comm, info, request) \
  ((void)(info), mpress_gather_init(s, n, t, r, m, u, root, comm, request, NULL))
#define MPI_Scatter_init(s, n, t, r, m, u, root, comm, info, request) \
  ((void)(info), mpress_scatter_init(s, n, t, r, m, u, root, comm, request, NULL))
#define MPI_Allgather_init(s, n, t, r, m, u, comm, info, request) \
  ((void)(info), mpress_allgather_init(s, n, t, r, m, u, comm, request, NULL))
#define MPI_Alltoall_init(s, n, t, r, m, u, comm, info, request) \
  ((void)(info), mpress_alltoall_init(s, n, t, r, m, u, comm, request, NULL))
#define MPI_Reduce_init(s, r, n, t, op, root, comm, info, request) \
  ((void)(info), mpress_reduce_init(s, r, n, t, op, root, comm, request, NULL))
#define MPI_Allreduce_init(s, r, n, t, op, comm, info, request) \
  ((void)(info), mpress_allreduce_init(s, r, n, t, op, comm, request, NULL))
#define MPI_Reduce_scatter_block_init(s, r, n, t, op, comm, info, request) \
  ((void)(info), mpress_reduce_scatter_block_init(s, r, n, t, op, comm, request, NULL))
#define MPI_Scan_init(s, r, n, t, op, comm, info, request) \
  ((void)(info), mpress_scan_init(s, r, n, t, op, comm, request, NULL))
#define MPI_Exscan_init(s, r, n, t, op, comm, info, request) \
  ((void)(info), mpress_exscan_init(s, r, n, t, op, comm, request, NULL))

/* Those with arrays; `...`: what the form has behind them. */
#define AS_GATHERED(call, s, n, t, r, counts, places, u, root, comm, ...) \
  call(s, n, t, r, as_counts(counts, as_roots(root, comm)),               \
       as_places(places, as_roots(root, comm)), u, root, comm, __VA_ARGS__)
#define MPI_Gatherv(s, n, t, r, counts, places, u, root, comm) \
  AS_GATHERED(mpress_gatherv, s, n, t, r, counts, places, u, root, comm, NULL)
#define MPI_Igatherv(s, n, t, r, counts, places, u, root, comm, request) \
  AS_GATHERED(mpress_igatherv, s, n, t, r, counts, places, u, root, comm, request, NULL)
#define MPI_Gatherv_init(s, n, t, r, counts, places, u, root, comm, info, request) \
  ((void)(info),                                                                   \
   AS_GATHERED(mpress_gatherv_init, s, n, t, r, counts, places, u, root, comm, request, NULL))

#define AS_SCATTERED(call, s, counts, places, t, r, n, u, root, comm, ...)                        \
  call(s, as_counts(counts, as_roots(root, comm)), as_places(places, as_roots(root, comm)), t, r, \
       n, u, root, comm, __VA_ARGS__)
#define MPI_Scatterv(s, counts, places, t, r, n, u, root, comm) \
  AS_SCATTERED(mpress_scatterv, s, counts, places, t, r, n, u, root, comm, NULL)
#define MPI_Iscatterv(s, counts, places, t, r, n, u, root, comm, request) \
  AS_SCATTERED(mpress_iscatterv, s, counts, places, t, r, n, u, root, comm, request, NULL)
#define MPI_Scatterv_init(s, counts, places, t, r, n, u, root, comm, info, request) \
  ((void)(info),                                                                    \
   AS_SCATTERED(mpress_scatterv_init, s, counts, places, t, r, n, u, root, comm, request, NULL))

#define AS_COLLECTED(call, number, s, n, t, r, counts, places, u, comm, ...)                  \
  call(s, n, t, r, as_counts(counts, number(comm)), as_places(places, number(comm)), u, comm, \
       __VA_ARGS__)
#define MPI_Allgatherv(s, n, t, r, counts, places, u, comm) \
  AS_COLLECTED(mpress_allgatherv, as_members, s, n, t, r, counts, places, u, comm, NULL)
#define MPI_Iallgatherv(s, n, t, r, counts, places, u, comm, request) \
  AS_COLLECTED(mpress_iallgatherv, as_members, s, n, t, r, counts, places, u, comm, request, NULL)
#define MPI_Allgatherv_init(s, n, t, r, counts, places, u, comm, info, request)                  \
  ((void)(info), AS_COLLECTED(mpress_allgatherv_init, as_members, s, n, t, r, counts, places, u, \
                              comm, request, NULL))
#define MPI_Neighbor_allgatherv(s, n, t, r, counts, places, u, comm) \
  AS_COLLECTED(mpress_neighbor_allgatherv, AS_IN, s, n, t, r, counts, places, u, comm, NULL)
#define MPI_Ineighbor_allgatherv(s, n, t, r, counts, places, u, comm, request)                   \
  AS_COLLECTED(mpress_ineighbor_allgatherv, AS_IN, s, n, t, r, counts, places, u, comm, request, \
               NULL)

#define AS_EXCHANGED(call, out, in, s, counts, places, t, r, counts2, places2, u, comm, ...) \
  call(s, as_counts(counts, out(comm)), as_places(places, out(comm)), t, r,                  \
       as_counts(counts2, in(comm)), as_places(places2, in(comm)), u, comm, __VA_ARGS__)
#define MPI_Alltoallv(...) AS_EXCHANGED(mpress_alltoallv, as_members, as_members, __VA_ARGS__, NULL)
#define MPI_Ialltoallv(...) \
  AS_EXCHANGED(mpress_ialltoallv, as_members, as_members, __VA_ARGS__, NULL)
#define MPI_Alltoallv_init(s, counts, places, t, r, counts2, places2, u, comm, info, request)      \
  ((void)(info), AS_EXCHANGED(mpress_alltoallv_init, as_members, as_members, s, counts, places, t, \
                              r, counts2, places2, u, comm, request, NULL))
#define MPI_Alltoallw(...) AS_EXCHANGED(mpress_alltoallw, as_members, as_members, __VA_ARGS__, NULL)
#define MPI_Ialltoallw(...) \
  AS_EXCHANGED(mpress_ialltoallw, as_members, as_members, __VA_ARGS__, NULL)
#define MPI_Alltoallw_init(s, counts, places, t, r, counts2, places2, u, comm, info, request)      \
  ((void)(info), AS_EXCHANGED(mpress_alltoallw_init, as_members, as_members, s, counts, places, t, \
                              r, counts2, places2, u, comm, request, NULL))
#define MPI_Neighbor_alltoallv(...) \
  AS_EXCHANGED(mpress_neighbor_alltoallv, AS_OUT, AS_IN, __VA_ARGS__, NULL)
#define MPI_Ineighbor_alltoallv(...) \
  AS_EXCHANGED(mpress_ineighbor_alltoallv, AS_OUT, AS_IN, __VA_ARGS__, NULL)

#define MPI_Reduce_scatter(s, r, counts, t, op, comm) \
  mpress_reduce_scatter(s, r, as_counts(counts, as_own(comm)), t, op, comm, NULL)
#define MPI_Ireduce_scatter(s, r, counts, t, op, comm, request) \
  mpress_ireduce_scatter(s, r, as_counts(counts, as_own(comm)), t, op, comm, request, NULL)
#define MPI_Reduce_scatter_init(s, r, counts, t, op, comm, info, request) \
  ((void)(info),                                                          \
   mpress_reduce_scatter_init(s, r, as_counts(counts, as_own(comm)), t, op, comm, request, NULL))

#endif
