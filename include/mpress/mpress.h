/* mpress for C and C++: MPI calls whose data travels compressed.
 *
 * Every call has the arguments and the meaning of the MPI call of its name, and last a pointer to
 * an mpress_call, which may be null: what this call alone asks for. Counts are MPI_Count,
 * displacements MPI_Aint. What is not said here is as the MPI standard has it: buffers and
 * requests, order of messages, MPI_IN_PLACE, MPI_PROC_NULL, wildcards, error handlers.
 *
 * Link with -lmpress beside any MPI. mpress_init() starts mpress; in a program that runs under
 * `mpress run` MPI_Init has done so.
 *
 * What pairs with what:
 * - a message of mpress_send() is received by mpress_recv(), or, under `mpress run`, by MPI_Recv();
 *   mpress_recv() takes messages of MPI_Send(), too. Forms mix as MPI's do.
 * - in a collective call all members call mpress, or all call MPI.
 *
 * Buffers may lie in memory of the host or of a CUDA device, whatever the MPI. f32 and f64 (also as
 * complex and in derived types of one of them) are compressed, where that is faster; all else
 * travels as it is.
 *
 * Every function returns MPI_SUCCESS or an error code of MPI's, which has been raised on the
 * communicator: with MPI_ERRORS_ARE_FATAL, which is MPI's default, it does not return then. A call
 * with wrong arguments sends nothing. mpress_error_text() has more words.
 *
 * Threads may call at the same time as MPI lets them (MPI_THREAD_MULTIPLE), each with requests of
 * its own.
 */
#ifndef MPRESS_MPRESS_H
#define MPRESS_MPRESS_H

#include <mpi.h>

#define MPRESS_VERSION_MAJOR 0
#define MPRESS_VERSION_MINOR 1
#define MPRESS_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a call asks for ------------------------------------------------------------------- */

/* What became of a call. */
typedef struct mpress_outcome {
  int served;   /* not 0: mpress moved the data, or some of it; 0: the MPI did */
  double bound; /* each finite element of the result is within this of what it would be without
                   compression, absolute: 0 where nothing was lost, NaN where no bound is known
                   (zfp; a relative bound that a GPU found for data that went to another). Of a
                   message both sides are told; of an exchange, and of collective calls, this is
                   the largest of what this rank sent and got */
} mpress_outcome;

/* Bits of mpress_call.mask: which of the fields count. */
enum {
  MPRESS_CALL_SPEC = 1,
  MPRESS_CALL_STREAM = 2,
  MPRESS_CALL_SAME_BITS = 4,
  MPRESS_CALL_OUTCOME = 8
};

/* What one call asks for, over its communicator's hints and the environment. Fields whose bits are
 * not in `mask` are not looked at, so that the struct can grow: set it to zero first. It is read
 * during the call that takes it, also of calls that do not block; persistent calls keep a copy. */
typedef struct mpress_call {
  unsigned mask; /* MPRESS_CALL_... */

  /* The codec, as docs/api.md has it: "none", "auto", "mpc", "zfp:16", "szp:abs=1e-3",
   * "szp:rel=1e-4". In reductions all members give the same one, or all get an error. Elsewhere
   * each origin has its blocks encoded with its own; receives do not look at it. */
  const char* spec;

  /* A cudaStream_t, for buffers in device memory: the call begins when what the stream holds is
   * done, and what is enqueued behind a blocking call comes after it. A blocking collective call
   * may return before that, once the other members have called: buffers are the call's until the
   * stream has been synchronised. Where it cannot, it returns when it is over, as without a stream.
   * One that does not block waits for the stream, and for no rank. A stream that is being captured
   * is an error. */
  void* stream;

  /* Not 0: of a broadcast with a loss, the root's buffer gets the bits that all others have. The
   * root says so. In all other calls that is so anyway. */
  int same_bits;

  /* Where to tell what became of the call. It stays until the call, or its request, is over. */
  mpress_outcome* outcome;
} mpress_call;

/* ---- Start and errors ----------------------------------------------------------------------- */

/* Starts mpress in all processes of MPI_COMM_WORLD, all of which call it, after MPI_Init and before
 * any other function of this header. Settings are those of the environment (MPRESS_...), and have
 * to be the same everywhere. Again, and under `mpress run`, it does nothing. MPI_Finalize ends
 * mpress. MPI_ERR_OTHER: MPI does not run. */
int mpress_init(void);

/* Sets `flag`: does mpress run, so that calls need no mpress_init()? */
int mpress_initialized(int* flag);

/* "0.1.0". */
const char* mpress_version(void);

/* What was wrong with this thread's last call that failed, in one sentence that names the argument;
 * "" where mpress knows no more than MPI_Error_string() says. Valid until the thread's next call.
 */
const char* mpress_error_text(void);

/* For bindings of other languages: calls of MPI that this thread makes between the two, and that
 * mpress sees, as under `mpress run`, ask for what `call` says. `comm` is where errors are raised,
 * `buffer` one of the calls', for the device of a stream, or null. Pairs may nest. A call_begin()
 * that returns an error has not begun. */
int mpress_call_begin(MPI_Comm comm, const mpress_call* call, const void* buffer);

/* The same for one blocking collective call, which may return before its stream gets to it, as
 * those of this header may (mpress_call, `stream`). Other calls are not ordered behind the stream.
 * Where no call was made, mpress_call_end() waits for it. */
int mpress_collective_begin(MPI_Comm comm, const mpress_call* call, const void* buffer);
int mpress_call_end(void);

/* ---- Messages ------------------------------------------------------------------------------- */

/* What has begun and is not over; MPRESS_REQUEST_NULL where there is nothing. */
typedef struct mpress_request_* mpress_request;
#define MPRESS_REQUEST_NULL ((mpress_request)0)

/* MPI_Send. */
int mpress_send(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                MPI_Comm comm, const mpress_call* call);
/* MPI_Recv. */
int mpress_recv(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                MPI_Comm comm, MPI_Status* status, const mpress_call* call);
/* MPI_Sendrecv. */
int mpress_sendrecv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, int destination,
                    int sent_tag, void* received, MPI_Count received_count,
                    MPI_Datatype received_type, int source, int received_tag, MPI_Comm comm,
                    MPI_Status* status, const mpress_call* call);
/* MPI_Isend, MPI_Irecv: `buffer` is the call's until its request is complete. */
int mpress_isend(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                 MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_irecv(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                 MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Send_init, MPI_Recv_init. */
int mpress_send_init(const void* buffer, MPI_Count count, MPI_Datatype type, int destination,
                     int tag, MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_recv_init(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                     MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* ---- Requests ------------------------------------------------------------------------------- */

/* MPI_Wait and its like. What is under way, of all requests, proceeds in them, and in every other
 * function of this header. A request that is complete becomes MPRESS_REQUEST_NULL; a persistent one
 * becomes inactive. */
int mpress_wait(mpress_request* request, MPI_Status* status);
int mpress_waitall(int count, mpress_request* requests, MPI_Status* statuses);
int mpress_waitany(int count, mpress_request* requests, int* index, MPI_Status* status);
int mpress_test(mpress_request* request, int* flag, MPI_Status* status);
int mpress_testall(int count, mpress_request* requests, int* flag, MPI_Status* statuses);
/* Start persistent requests. */
int mpress_start(mpress_request* request);
int mpress_startall(int count, mpress_request* requests);
/* MPI_Cancel, of messages. */
int mpress_cancel(mpress_request* request);
/* MPI_Request_free. */
int mpress_request_free(mpress_request* request);

/* ---- Collective calls ----------------------------------------------------------------------- */

/* Each in three forms: NAME() blocks, iNAME() gives a request at once, NAME_init() makes a request
 * that mpress_start() starts. All destinations of a block have the same bits. */

/* MPI_Bcast. */
int mpress_bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                 const mpress_call* call);
int mpress_ibcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                  mpress_request* request, const mpress_call* call);
int mpress_bcast_init(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                      mpress_request* request, const mpress_call* call);

/* MPI_Gather. */
int mpress_gather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                  MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                  const mpress_call* call);
int mpress_igather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                   MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                   mpress_request* request, const mpress_call* call);
int mpress_gather_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                       void* received, MPI_Count received_count, MPI_Datatype received_type,
                       int root, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Gatherv. */
int mpress_gatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                   const MPI_Count received_counts[], const MPI_Aint displacements[],
                   MPI_Datatype received_type, int root, MPI_Comm comm, const mpress_call* call);
int mpress_igatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                    const MPI_Count received_counts[], const MPI_Aint displacements[],
                    MPI_Datatype received_type, int root, MPI_Comm comm, mpress_request* request,
                    const mpress_call* call);
int mpress_gatherv_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                        void* received, const MPI_Count received_counts[],
                        const MPI_Aint displacements[], MPI_Datatype received_type, int root,
                        MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Scatter. */
int mpress_scatter(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                   MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                   const mpress_call* call);
int mpress_iscatter(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                    MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                    mpress_request* request, const mpress_call* call);
int mpress_scatter_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                        void* received, MPI_Count received_count, MPI_Datatype received_type,
                        int root, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Scatterv. */
int mpress_scatterv(const void* sent, const MPI_Count sent_counts[], const MPI_Aint displacements[],
                    MPI_Datatype sent_type, void* received, MPI_Count received_count,
                    MPI_Datatype received_type, int root, MPI_Comm comm, const mpress_call* call);
int mpress_iscatterv(const void* sent, const MPI_Count sent_counts[],
                     const MPI_Aint displacements[], MPI_Datatype sent_type, void* received,
                     MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                     mpress_request* request, const mpress_call* call);
int mpress_scatterv_init(const void* sent, const MPI_Count sent_counts[],
                         const MPI_Aint displacements[], MPI_Datatype sent_type, void* received,
                         MPI_Count received_count, MPI_Datatype received_type, int root,
                         MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Allgather. */
int mpress_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                     MPI_Count received_count, MPI_Datatype received_type, MPI_Comm comm,
                     const mpress_call* call);
int mpress_iallgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                      void* received, MPI_Count received_count, MPI_Datatype received_type,
                      MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_allgather_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                          void* received, MPI_Count received_count, MPI_Datatype received_type,
                          MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Allgatherv. */
int mpress_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                      void* received, const MPI_Count received_counts[],
                      const MPI_Aint displacements[], MPI_Datatype received_type, MPI_Comm comm,
                      const mpress_call* call);
int mpress_iallgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                       void* received, const MPI_Count received_counts[],
                       const MPI_Aint displacements[], MPI_Datatype received_type, MPI_Comm comm,
                       mpress_request* request, const mpress_call* call);
int mpress_allgatherv_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                           void* received, const MPI_Count received_counts[],
                           const MPI_Aint displacements[], MPI_Datatype received_type,
                           MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Alltoall. */
int mpress_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                    MPI_Count received_count, MPI_Datatype received_type, MPI_Comm comm,
                    const mpress_call* call);
int mpress_ialltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                     MPI_Count received_count, MPI_Datatype received_type, MPI_Comm comm,
                     mpress_request* request, const mpress_call* call);
int mpress_alltoall_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                         void* received, MPI_Count received_count, MPI_Datatype received_type,
                         MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Alltoallv. */
int mpress_alltoallv(const void* sent, const MPI_Count sent_counts[],
                     const MPI_Aint sent_displacements[], MPI_Datatype sent_type, void* received,
                     const MPI_Count received_counts[], const MPI_Aint received_displacements[],
                     MPI_Datatype received_type, MPI_Comm comm, const mpress_call* call);
int mpress_ialltoallv(const void* sent, const MPI_Count sent_counts[],
                      const MPI_Aint sent_displacements[], MPI_Datatype sent_type, void* received,
                      const MPI_Count received_counts[], const MPI_Aint received_displacements[],
                      MPI_Datatype received_type, MPI_Comm comm, mpress_request* request,
                      const mpress_call* call);
int mpress_alltoallv_init(const void* sent, const MPI_Count sent_counts[],
                          const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                          void* received, const MPI_Count received_counts[],
                          const MPI_Aint received_displacements[], MPI_Datatype received_type,
                          MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Alltoallw. */
int mpress_alltoallw(const void* sent, const MPI_Count sent_counts[],
                     const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                     void* received, const MPI_Count received_counts[],
                     const MPI_Aint received_displacements[], const MPI_Datatype received_types[],
                     MPI_Comm comm, const mpress_call* call);
int mpress_ialltoallw(const void* sent, const MPI_Count sent_counts[],
                      const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                      void* received, const MPI_Count received_counts[],
                      const MPI_Aint received_displacements[], const MPI_Datatype received_types[],
                      MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_alltoallw_init(const void* sent, const MPI_Count sent_counts[],
                          const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                          void* received, const MPI_Count received_counts[],
                          const MPI_Aint received_displacements[],
                          const MPI_Datatype received_types[], MPI_Comm comm,
                          mpress_request* request, const mpress_call* call);

/* MPI_Reduce. Compressed are MPI_SUM, MPI_MIN and MPI_MAX; with codecs that lose nothing MPI_PROD,
 * too. */
int mpress_reduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm, const mpress_call* call);
int mpress_ireduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   int root, MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_reduce_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, int root, MPI_Comm comm, mpress_request* request,
                       const mpress_call* call);

/* MPI_Allreduce: all members have the same bits. */
int mpress_allreduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                     MPI_Op op, MPI_Comm comm, const mpress_call* call);
int mpress_iallreduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                      MPI_Op op, MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_allreduce_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm, mpress_request* request,
                          const mpress_call* call);

/* MPI_Reduce_scatter. */
int mpress_reduce_scatter(const void* sent, void* received, const MPI_Count received_counts[],
                          MPI_Datatype type, MPI_Op op, MPI_Comm comm, const mpress_call* call);
int mpress_ireduce_scatter(const void* sent, void* received, const MPI_Count received_counts[],
                           MPI_Datatype type, MPI_Op op, MPI_Comm comm, mpress_request* request,
                           const mpress_call* call);
int mpress_reduce_scatter_init(const void* sent, void* received, const MPI_Count received_counts[],
                               MPI_Datatype type, MPI_Op op, MPI_Comm comm, mpress_request* request,
                               const mpress_call* call);

/* MPI_Reduce_scatter_block. */
int mpress_reduce_scatter_block(const void* sent, void* received, MPI_Count received_count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                const mpress_call* call);
int mpress_ireduce_scatter_block(const void* sent, void* received, MPI_Count received_count,
                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                 mpress_request* request, const mpress_call* call);
int mpress_reduce_scatter_block_init(const void* sent, void* received, MPI_Count received_count,
                                     MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                     mpress_request* request, const mpress_call* call);

/* MPI_Scan, which is MPI's own; of device memory, too. */
int mpress_scan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, const mpress_call* call);
int mpress_iscan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_scan_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                     MPI_Op op, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Exscan, the same. */
int mpress_exscan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm, const mpress_call* call);
int mpress_iexscan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_exscan_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_allgather, and the neighbourhood calls below, are MPI's own; of device memory, too.
 */
int mpress_neighbor_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                              void* received, MPI_Count received_count, MPI_Datatype received_type,
                              MPI_Comm comm, const mpress_call* call);
int mpress_ineighbor_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                               void* received, MPI_Count received_count, MPI_Datatype received_type,
                               MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_neighbor_allgather_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                   void* received, MPI_Count received_count,
                                   MPI_Datatype received_type, MPI_Comm comm,
                                   mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_allgatherv. */
int mpress_neighbor_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                               void* received, const MPI_Count received_counts[],
                               const MPI_Aint displacements[], MPI_Datatype received_type,
                               MPI_Comm comm, const mpress_call* call);
int mpress_ineighbor_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                void* received, const MPI_Count received_counts[],
                                const MPI_Aint displacements[], MPI_Datatype received_type,
                                MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_neighbor_allgatherv_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                    void* received, const MPI_Count received_counts[],
                                    const MPI_Aint displacements[], MPI_Datatype received_type,
                                    MPI_Comm comm, mpress_request* request,
                                    const mpress_call* call);

/* MPI_Neighbor_alltoall. */
int mpress_neighbor_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                             void* received, MPI_Count received_count, MPI_Datatype received_type,
                             MPI_Comm comm, const mpress_call* call);
int mpress_ineighbor_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                              void* received, MPI_Count received_count, MPI_Datatype received_type,
                              MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_neighbor_alltoall_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                  void* received, MPI_Count received_count,
                                  MPI_Datatype received_type, MPI_Comm comm,
                                  mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_alltoallv. */
int mpress_neighbor_alltoallv(const void* sent, const MPI_Count sent_counts[],
                              const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                              void* received, const MPI_Count received_counts[],
                              const MPI_Aint received_displacements[], MPI_Datatype received_type,
                              MPI_Comm comm, const mpress_call* call);
int mpress_ineighbor_alltoallv(const void* sent, const MPI_Count sent_counts[],
                               const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                               void* received, const MPI_Count received_counts[],
                               const MPI_Aint received_displacements[], MPI_Datatype received_type,
                               MPI_Comm comm, mpress_request* request, const mpress_call* call);
int mpress_neighbor_alltoallv_init(const void* sent, const MPI_Count sent_counts[],
                                   const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                                   void* received, const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   MPI_Datatype received_type, MPI_Comm comm,
                                   mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_alltoallw. */
int mpress_neighbor_alltoallw(const void* sent, const MPI_Count sent_counts[],
                              const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                              void* received, const MPI_Count received_counts[],
                              const MPI_Aint received_displacements[],
                              const MPI_Datatype received_types[], MPI_Comm comm,
                              const mpress_call* call);
int mpress_ineighbor_alltoallw(const void* sent, const MPI_Count sent_counts[],
                               const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                               void* received, const MPI_Count received_counts[],
                               const MPI_Aint received_displacements[],
                               const MPI_Datatype received_types[], MPI_Comm comm,
                               mpress_request* request, const mpress_call* call);
int mpress_neighbor_alltoallw_init(const void* sent, const MPI_Count sent_counts[],
                                   const MPI_Aint sent_displacements[],
                                   const MPI_Datatype sent_types[], void* received,
                                   const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   const MPI_Datatype received_types[], MPI_Comm comm,
                                   mpress_request* request, const mpress_call* call);

#ifdef __cplusplus
}
#endif

#endif
