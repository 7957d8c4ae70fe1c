/* mpress for C and C++: MPI calls whose data travels compressed.
 *
 * Every call has the arguments and the meaning of the MPI call of its name, and last a pointer to
 * an mpress_call, which may be null: what this call alone asks for. Counts are MPI_Count,
 * displacements MPI_Aint. What is not said here is as the MPI standard has it: buffers and
 * requests, order of messages, MPI_IN_PLACE, MPI_PROC_NULL, wildcards, error handlers.
 *
 * Link with -lmpress beside any MPI. mpress_init() starts mpress, and so does the first blocking
 * collective call on a communicator of all processes; in a program that runs under `mpress run`
 * MPI_Init has done so. Earlier calls are MPI's, uncompressed, which is said once (mpress_init).
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
 * Errors. Every function returns MPI_SUCCESS or an error code of MPI's, which has been raised on
 * the communicator (on MPI_COMM_SELF, where there is none): with MPI_ERRORS_ARE_FATAL, which is
 * MPI's default, it does not return then. A call with wrong arguments sends nothing.
 * mpress_error_text() has more words. Beside MPI's own errors there are
 * - MPI_ERR_OTHER: MPI does not run, or mpress has not started, and the call has memory of a device
 *   that MPI does not take;
 * - MPI_ERR_ARG: an mpress_call with unknown bits in its mask, with a spec or outcome that is null
 *   though its bit is set, or with a spec that is none; no place for a request;
 * - MPI_ERR_NO_MEM: the host's memory ran out;
 * - errors of a class of mpress's own, whose MPI_Error_string() begins with "mpress": a compressed
 *   message is corrupt; the spec does not fit the type of the elements (such as zfp:40 for f32);
 *   members gave a reduction different codecs; a device refuses to work, or the stream is being
 *   captured into a graph.
 *
 * What is compressed. Data of MPRESS_THRESHOLD bytes and more (64 KB) to processes of the same
 * MPI_COMM_WORLD, where that is faster, or with MPRESS_FORCE=1. The innermost setting wins: the
 * call's spec, then the communicator's hint mpress_codec (where mpress sees MPI's calls, as under
 * `mpress run`), then MPRESS_CODEC. docs/semantics.md has all conditions.
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
   * One that does not block waits for the stream, and for no rank. So does each start of a
   * persistent request, for what the stream holds then: it lives as long as the request. A stream
   * that is being captured is an error. */
  void* stream;

  /* Not 0: of a broadcast with a loss, the root's buffer gets the bits that all others have. The
   * root says so. In all other calls that is so anyway. */
  int same_bits;

  /* Where to tell what became of the call: set to {0, 0} when the call begins, final when the call,
   * or its request, is over; of persistent requests that of the last start. It stays until then. */
  mpress_outcome* outcome;
} mpress_call;

/* ---- Start and errors ----------------------------------------------------------------------- */

/* Starts mpress in all processes of MPI_COMM_WORLD, all of which call it, after MPI_Init. Settings
 * are those of the environment (MPRESS_...), and have to be the same everywhere. Under `mpress run`
 * it does nothing. MPI_Finalize ends mpress. MPI_ERR_OTHER: MPI does not run.
 *
 * The first blocking collective call of this header's on a communicator of all processes
 * (MPI_COMM_WORLD, a duplicate, one in another order) calls it, too. Both use MPI_COMM_WORLD, where
 * all processes make their collective calls in one order, and threads one at a time.
 *
 * Before that calls are MPI's: `served` is 0, and one process says so once. Receives that are under
 * way then keep all messages MPI's, and collective calls that were made all that are not blocking
 * ones of all processes, until mpress_init() is called again and none is under way. It may be
 * called at any time, and does nothing once all calls are mpress's. */
int mpress_init(void);

/* Sets `flag`: has mpress started? MPI_ERR_ARG: `flag` is null. */
int mpress_initialized(int* flag);

/* The version of the library, such as "0.1.0"; that of this header is MPRESS_VERSION_.... */
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

/* Ends what the thread's last mpress_call_begin() or mpress_collective_begin() has begun.
 * MPI_ERR_OTHER: none has. */
int mpress_call_end(void);

/* ---- Messages -------------------------------------------------------------------------------
 *
 * Arguments are those of MPI's calls with large counts (MPI_Send_c). A message is compressed by its
 * sender, as the sender's spec says; receives take what comes, and look at no spec. A derived type
 * with gaps is packed first; gaps of receive buffers stay as they are.
 *
 * Outcome: whether mpress moved the message, compressed or not, and the bound that its elements
 * have at the receiver, which both sides are told; NaN for zfp, and where GPUs alone know it.
 *
 * Streams: the host waits until the stream has done what it holds, then the call begins. A blocking
 * call is over when it returns, so what is enqueued behind it comes after it.
 *
 * Errors of mpress's class: a corrupt message (of receives), a spec that does not fit the type (of
 * sends), a device that refuses to work (of both). A message that is too long is MPI_ERR_TRUNCATE,
 * and the buffer is undefined then, as in MPI. */

/* What has begun and is not over; MPRESS_REQUEST_NULL where there is nothing. */
typedef struct mpress_request_* mpress_request;
#define MPRESS_REQUEST_NULL ((mpress_request)0)

/* MPI_Send: waits for no more than its receiver's matching call. */
int mpress_send(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                MPI_Comm comm, const mpress_call* call);
/* MPI_Recv, also of messages of MPI_Send(); `status` has the program's own count. */
int mpress_recv(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                MPI_Comm comm, MPI_Status* status, const mpress_call* call);
/* MPI_Sendrecv; the spec is that of what is sent. */
int mpress_sendrecv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, int destination,
                    int sent_tag, void* received, MPI_Count received_count,
                    MPI_Datatype received_type, int source, int received_tag, MPI_Comm comm,
                    MPI_Status* status, const mpress_call* call);
/* MPI_Isend: `buffer` is the call's until its request is complete. `call` is read at once. */
int mpress_isend(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
                 MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Irecv: the same. Data in device memory has come when the request is complete. */
int mpress_irecv(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                 MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Send_init: what `buffer` holds is encoded anew at each start. */
int mpress_send_init(const void* buffer, MPI_Count count, MPI_Datatype type, int destination,
                     int tag, MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Recv_init. */
int mpress_recv_init(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                     MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* Of a message that is there and has not been received: `status`, which may be MPI_STATUS_IGNORE,
 * has the program's own count. MPI_Probe() and its like tell that under `mpress run` alone, else
 * what travels. */

/* MPI_Probe: waits until there is one. */
int mpress_probe(int source, int tag, MPI_Comm comm, MPI_Status* status);
/* MPI_Iprobe: `flag` tells whether there is one; else `status` is not touched. */
int mpress_iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
/* MPI_Mprobe: the message can be received by mpress_mrecv() and mpress_imrecv() alone. */
int mpress_mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status);
/* MPI_Improbe: the same, where `flag` tells that there is one. */
int mpress_improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                   MPI_Status* status);
/* MPI_Mrecv, of what mpress_mprobe() or mpress_improbe() gave; `message` becomes MPI_MESSAGE_NULL.
 * Errors are raised on the message's communicator, or on MPI_COMM_SELF where there is none. */
int mpress_mrecv(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                 MPI_Status* status, const mpress_call* call);
/* MPI_Imrecv: `buffer` is the call's until its request is complete. */
int mpress_imrecv(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                  mpress_request* request, const mpress_call* call);

/* ---- Requests -------------------------------------------------------------------------------
 *
 * What is under way, of all requests, proceeds in these, and in every other function of this
 * header. A request that is complete becomes MPRESS_REQUEST_NULL; a persistent one becomes
 * inactive. Null and inactive requests count as complete, as in MPI. Statuses have the program's
 * own counts, and may be MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE.
 *
 * Errors: what a call that has begun did wrong is raised on its communicator. A null pointer in the
 * place of requests is MPI_ERR_ARG, a negative count MPI_ERR_COUNT. */

/* MPI_Wait: returns when the request is complete. */
int mpress_wait(mpress_request* request, MPI_Status* status);
/* MPI_Waitall: where some fail, MPI_ERR_IN_STATUS, and every status has its request's outcome. */
int mpress_waitall(int count, mpress_request* requests, MPI_Status* statuses);
/* MPI_Waitany: `index` is MPI_UNDEFINED where no request is active. */
int mpress_waitany(int count, mpress_request* requests, int* index, MPI_Status* status);
/* MPI_Test: `flag` tells whether the request is complete. */
int mpress_test(mpress_request* request, int* flag, MPI_Status* status);
/* MPI_Testall: `flag` tells whether all are; else none is touched. */
int mpress_testall(int count, mpress_request* requests, int* flag, MPI_Status* statuses);
/* MPI_Start, of a persistent request; collective ones all members start. The outcome, if the call
 * that made the request named one, is {0, 0} again. Waits for the stream that the call named; where
 * that is being captured, or its device refuses, is an error on the request's communicator. */
int mpress_start(mpress_request* request);
/* MPI_Startall. */
int mpress_startall(int count, mpress_request* requests);
/* MPI_Cancel, of messages: a receive that is cancelled delivers nothing. Of collective calls it is
 * MPI_ERR_REQUEST, and they go on. */
int mpress_cancel(mpress_request* request);
/* MPI_Request_free: mpress completes what is under way. The outcome's memory stays until then. */
int mpress_request_free(mpress_request* request);

/* ---- Collective calls -----------------------------------------------------------------------
 *
 * Each in three forms: NAME() blocks, iNAME() gives a request at once, NAME_init() makes a request
 * that mpress_start() starts; it has no info. Counts are in elements of the type, displacements in
 * its extents; those of w-forms in bytes. MPI_IN_PLACE is given where MPI has it: for `sent`, in
 * scatters for `received`, and of calls with a root at the root alone.
 *
 * What is compressed. mpress serves broadcasts, gathers, scatters, all-gathers, all-to-alls, and
 * reductions, where compressing may pay, or with MPRESS_FORCE=1; in device memory they are served
 * uncompressed, too. All else, and an all-to-all in place, is the MPI's own call, which gets host
 * memory in the place of a device's, unless it takes that itself. Each origin encodes its block
 * once, as its own spec says; who passes it on does not encode it again. Of a persistent call the
 * spec, and who serves it, are settled when it is made. Non-blocking and persistent calls are
 * served where blocking ones are, but
 * - under an MPI that does not let mpress proceed while it waits (the standard ABI's library, MPICH
 *   before 4.3, any MPICH under MPI_THREAD_MULTIPLE) only with MPRESS_PROGRESS=thread;
 * - non-blocking ones under Open MPI, and under MPICH with MPI_THREAD_MULTIPLE, on communicators
 *   other than MPI_COMM_WORLD only after a blocking or persistent call there that mpress may serve.
 *
 * Outcome: `served` is 0 where the MPI made the call. The bound of calls that move data is the
 * largest of the blocks that this member sent and got, that of reductions is of the result. All
 * destinations of a block have the same bits.
 *
 * Streams: a blocking call begins behind what the stream holds; where devices serve it alone it
 * returns once the other members have called (docs/c.md says which calls), and buffers are its own
 * until the stream has been synchronised. All other calls have the host wait. Forms that give a
 * request wait for the stream, and for no rank.
 *
 * Errors of mpress's class: members gave a reduction different codecs, which all of them are told;
 * a spec that does not fit the type; a corrupt block; a device that refuses to work, on that member
 * and on those that lack its blocks. Those of a request are raised by the call that completes
 * it. */

/* MPI_Bcast. With a loss, all but the root get the same bits; with `same_bits` the root, too. */
int mpress_bcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                 const mpress_call* call);
/* MPI_Ibcast. */
int mpress_ibcast(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                  mpress_request* request, const mpress_call* call);
/* MPI_Bcast_init. */
int mpress_bcast_init(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm,
                      mpress_request* request, const mpress_call* call);

/* MPI_Gather: what the root brings itself is exact. */
int mpress_gather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                  MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                  const mpress_call* call);
/* MPI_Igather. */
int mpress_igather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                   MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                   mpress_request* request, const mpress_call* call);
/* MPI_Gather_init. */
int mpress_gather_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                       void* received, MPI_Count received_count, MPI_Datatype received_type,
                       int root, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Gatherv. Each member knows its own blocks alone: long ones are mpress's, and MPI's own call
 * moves the others; in device memory all are mpress's. */
int mpress_gatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                   const MPI_Count received_counts[], const MPI_Aint displacements[],
                   MPI_Datatype received_type, int root, MPI_Comm comm, const mpress_call* call);
/* MPI_Igatherv. */
int mpress_igatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                    const MPI_Count received_counts[], const MPI_Aint displacements[],
                    MPI_Datatype received_type, int root, MPI_Comm comm, mpress_request* request,
                    const mpress_call* call);
/* MPI_Gatherv_init. */
int mpress_gatherv_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                        void* received, const MPI_Count received_counts[],
                        const MPI_Aint displacements[], MPI_Datatype received_type, int root,
                        MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Scatter: what the root keeps is exact. */
int mpress_scatter(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                   MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                   const mpress_call* call);
/* MPI_Iscatter. */
int mpress_iscatter(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                    MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                    mpress_request* request, const mpress_call* call);
/* MPI_Scatter_init. */
int mpress_scatter_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                        void* received, MPI_Count received_count, MPI_Datatype received_type,
                        int root, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Scatterv: as mpress_gatherv(). */
int mpress_scatterv(const void* sent, const MPI_Count sent_counts[], const MPI_Aint displacements[],
                    MPI_Datatype sent_type, void* received, MPI_Count received_count,
                    MPI_Datatype received_type, int root, MPI_Comm comm, const mpress_call* call);
/* MPI_Iscatterv. */
int mpress_iscatterv(const void* sent, const MPI_Count sent_counts[],
                     const MPI_Aint displacements[], MPI_Datatype sent_type, void* received,
                     MPI_Count received_count, MPI_Datatype received_type, int root, MPI_Comm comm,
                     mpress_request* request, const mpress_call* call);
/* MPI_Scatterv_init. */
int mpress_scatterv_init(const void* sent, const MPI_Count sent_counts[],
                         const MPI_Aint displacements[], MPI_Datatype sent_type, void* received,
                         MPI_Count received_count, MPI_Datatype received_type, int root,
                         MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Allgather: with a loss, a member's own part of `received` has the bits that the others
 * got, also in place. */
int mpress_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                     MPI_Count received_count, MPI_Datatype received_type, MPI_Comm comm,
                     const mpress_call* call);
/* MPI_Iallgather. */
int mpress_iallgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                      void* received, MPI_Count received_count, MPI_Datatype received_type,
                      MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Allgather_init. */
int mpress_allgather_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                          void* received, MPI_Count received_count, MPI_Datatype received_type,
                          MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Allgatherv: the same. */
int mpress_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                      void* received, const MPI_Count received_counts[],
                      const MPI_Aint displacements[], MPI_Datatype received_type, MPI_Comm comm,
                      const mpress_call* call);
/* MPI_Iallgatherv. */
int mpress_iallgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                       void* received, const MPI_Count received_counts[],
                       const MPI_Aint displacements[], MPI_Datatype received_type, MPI_Comm comm,
                       mpress_request* request, const mpress_call* call);
/* MPI_Allgatherv_init. */
int mpress_allgatherv_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                           void* received, const MPI_Count received_counts[],
                           const MPI_Aint displacements[], MPI_Datatype received_type,
                           MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Alltoall: what a member has for itself is exact. */
int mpress_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                    MPI_Count received_count, MPI_Datatype received_type, MPI_Comm comm,
                    const mpress_call* call);
/* MPI_Ialltoall. */
int mpress_ialltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type, void* received,
                     MPI_Count received_count, MPI_Datatype received_type, MPI_Comm comm,
                     mpress_request* request, const mpress_call* call);
/* MPI_Alltoall_init. */
int mpress_alltoall_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                         void* received, MPI_Count received_count, MPI_Datatype received_type,
                         MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Alltoallv: the same; blocks as in mpress_gatherv(). */
int mpress_alltoallv(const void* sent, const MPI_Count sent_counts[],
                     const MPI_Aint sent_displacements[], MPI_Datatype sent_type, void* received,
                     const MPI_Count received_counts[], const MPI_Aint received_displacements[],
                     MPI_Datatype received_type, MPI_Comm comm, const mpress_call* call);
/* MPI_Ialltoallv. */
int mpress_ialltoallv(const void* sent, const MPI_Count sent_counts[],
                      const MPI_Aint sent_displacements[], MPI_Datatype sent_type, void* received,
                      const MPI_Count received_counts[], const MPI_Aint received_displacements[],
                      MPI_Datatype received_type, MPI_Comm comm, mpress_request* request,
                      const mpress_call* call);
/* MPI_Alltoallv_init. */
int mpress_alltoallv_init(const void* sent, const MPI_Count sent_counts[],
                          const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                          void* received, const MPI_Count received_counts[],
                          const MPI_Aint received_displacements[], MPI_Datatype received_type,
                          MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Alltoallw: the same; displacements in bytes. */
int mpress_alltoallw(const void* sent, const MPI_Count sent_counts[],
                     const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                     void* received, const MPI_Count received_counts[],
                     const MPI_Aint received_displacements[], const MPI_Datatype received_types[],
                     MPI_Comm comm, const mpress_call* call);
/* MPI_Ialltoallw. */
int mpress_ialltoallw(const void* sent, const MPI_Count sent_counts[],
                      const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                      void* received, const MPI_Count received_counts[],
                      const MPI_Aint received_displacements[], const MPI_Datatype received_types[],
                      MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Alltoallw_init. */
int mpress_alltoallw_init(const void* sent, const MPI_Count sent_counts[],
                          const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                          void* received, const MPI_Count received_counts[],
                          const MPI_Aint received_displacements[],
                          const MPI_Datatype received_types[], MPI_Comm comm,
                          mpress_request* request, const mpress_call* call);

/* Reductions of f32 and f64 by MPI_SUM, MPI_MIN, MPI_MAX and MPI_PROD, and by MPI_SUM of complex
 * numbers; other operators and types are MPI's own. Within a bound E of szp: the result is within E
 * of the exact one, whatever the number of members; szp:rel is of the range of what all of them
 * bring. zfp has no bound. MPI_PROD travels without loss, whatever the codec. All members give the
 * same spec. */

/* MPI_Reduce: `received` counts at the root alone. */
int mpress_reduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                  int root, MPI_Comm comm, const mpress_call* call);
/* MPI_Ireduce. */
int mpress_ireduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   int root, MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Reduce_init. */
int mpress_reduce_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, int root, MPI_Comm comm, mpress_request* request,
                       const mpress_call* call);

/* MPI_Allreduce: all members have the same bits, with any codec. */
int mpress_allreduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                     MPI_Op op, MPI_Comm comm, const mpress_call* call);
/* MPI_Iallreduce. */
int mpress_iallreduce(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                      MPI_Op op, MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Allreduce_init. */
int mpress_allreduce_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm, mpress_request* request,
                          const mpress_call* call);

/* MPI_Reduce_scatter: `received_counts` are elements, one for each member. */
int mpress_reduce_scatter(const void* sent, void* received, const MPI_Count received_counts[],
                          MPI_Datatype type, MPI_Op op, MPI_Comm comm, const mpress_call* call);
/* MPI_Ireduce_scatter. */
int mpress_ireduce_scatter(const void* sent, void* received, const MPI_Count received_counts[],
                           MPI_Datatype type, MPI_Op op, MPI_Comm comm, mpress_request* request,
                           const mpress_call* call);
/* MPI_Reduce_scatter_init. */
int mpress_reduce_scatter_init(const void* sent, void* received, const MPI_Count received_counts[],
                               MPI_Datatype type, MPI_Op op, MPI_Comm comm, mpress_request* request,
                               const mpress_call* call);

/* MPI_Reduce_scatter_block: `received_count` elements for each member. */
int mpress_reduce_scatter_block(const void* sent, void* received, MPI_Count received_count,
                                MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                const mpress_call* call);
/* MPI_Ireduce_scatter_block. */
int mpress_ireduce_scatter_block(const void* sent, void* received, MPI_Count received_count,
                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                 mpress_request* request, const mpress_call* call);
/* MPI_Reduce_scatter_block_init. */
int mpress_reduce_scatter_block_init(const void* sent, void* received, MPI_Count received_count,
                                     MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                     mpress_request* request, const mpress_call* call);

/* MPI_Scan, which is MPI's own: never compressed; of device memory, too. */
int mpress_scan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                MPI_Comm comm, const mpress_call* call);
/* MPI_Iscan. */
int mpress_iscan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Scan_init. */
int mpress_scan_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                     MPI_Op op, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* MPI_Exscan, the same. */
int mpress_exscan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm, const mpress_call* call);
/* MPI_Iexscan. */
int mpress_iexscan(const void* sent, void* received, MPI_Count count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Exscan_init. */
int mpress_exscan_init(const void* sent, void* received, MPI_Count count, MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm, mpress_request* request, const mpress_call* call);

/* Neighbourhood calls are MPI's own: never compressed; of device memory, too. */

/* MPI_Neighbor_allgather. */
int mpress_neighbor_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                              void* received, MPI_Count received_count, MPI_Datatype received_type,
                              MPI_Comm comm, const mpress_call* call);
/* MPI_Ineighbor_allgather. */
int mpress_ineighbor_allgather(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                               void* received, MPI_Count received_count, MPI_Datatype received_type,
                               MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Neighbor_allgather_init. */
int mpress_neighbor_allgather_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                   void* received, MPI_Count received_count,
                                   MPI_Datatype received_type, MPI_Comm comm,
                                   mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_allgatherv. */
int mpress_neighbor_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                               void* received, const MPI_Count received_counts[],
                               const MPI_Aint displacements[], MPI_Datatype received_type,
                               MPI_Comm comm, const mpress_call* call);
/* MPI_Ineighbor_allgatherv. */
int mpress_ineighbor_allgatherv(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                void* received, const MPI_Count received_counts[],
                                const MPI_Aint displacements[], MPI_Datatype received_type,
                                MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Neighbor_allgatherv_init. */
int mpress_neighbor_allgatherv_init(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                                    void* received, const MPI_Count received_counts[],
                                    const MPI_Aint displacements[], MPI_Datatype received_type,
                                    MPI_Comm comm, mpress_request* request,
                                    const mpress_call* call);

/* MPI_Neighbor_alltoall. */
int mpress_neighbor_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                             void* received, MPI_Count received_count, MPI_Datatype received_type,
                             MPI_Comm comm, const mpress_call* call);
/* MPI_Ineighbor_alltoall. */
int mpress_ineighbor_alltoall(const void* sent, MPI_Count sent_count, MPI_Datatype sent_type,
                              void* received, MPI_Count received_count, MPI_Datatype received_type,
                              MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Neighbor_alltoall_init. */
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
/* MPI_Ineighbor_alltoallv. */
int mpress_ineighbor_alltoallv(const void* sent, const MPI_Count sent_counts[],
                               const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                               void* received, const MPI_Count received_counts[],
                               const MPI_Aint received_displacements[], MPI_Datatype received_type,
                               MPI_Comm comm, mpress_request* request, const mpress_call* call);
/* MPI_Neighbor_alltoallv_init. */
int mpress_neighbor_alltoallv_init(const void* sent, const MPI_Count sent_counts[],
                                   const MPI_Aint sent_displacements[], MPI_Datatype sent_type,
                                   void* received, const MPI_Count received_counts[],
                                   const MPI_Aint received_displacements[],
                                   MPI_Datatype received_type, MPI_Comm comm,
                                   mpress_request* request, const mpress_call* call);

/* MPI_Neighbor_alltoallw: displacements in bytes. */
int mpress_neighbor_alltoallw(const void* sent, const MPI_Count sent_counts[],
                              const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                              void* received, const MPI_Count received_counts[],
                              const MPI_Aint received_displacements[],
                              const MPI_Datatype received_types[], MPI_Comm comm,
                              const mpress_call* call);
/* MPI_Ineighbor_alltoallw. */
int mpress_ineighbor_alltoallw(const void* sent, const MPI_Count sent_counts[],
                               const MPI_Aint sent_displacements[], const MPI_Datatype sent_types[],
                               void* received, const MPI_Count received_counts[],
                               const MPI_Aint received_displacements[],
                               const MPI_Datatype received_types[], MPI_Comm comm,
                               mpress_request* request, const mpress_call* call);
/* MPI_Neighbor_alltoallw_init. */
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
