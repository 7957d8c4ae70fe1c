/* Wrong arguments of every kind: the class of the error, its words where they are mpress's, and
 * that nothing was sent. To be run by 2 ranks, whose calls are all wrong in the same way.
 *
 * wrong [null]: null: arrays of counts, displacements and types that are not there. */
#include <mpress/mpress.h>

#include "../mpi/check.h"

enum { COUNT = 40000 };
static double out[2 * COUNT], in[2 * COUNT];
static MPI_Comm comm;
static int rank, other;
static mpress_request request = MPRESS_REQUEST_NULL;

static int class_of(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}

/* Is the call wrong as it should be, and has it begun nothing? */
#define WRONG(expected, call)              \
  do {                                     \
    const int found = class_of(call);      \
    CHECK(found == (expected));            \
    CHECK(request == MPRESS_REQUEST_NULL); \
  } while (0)

/* The same of a call that mpress refuses, and says why. */
#define REFUSED(words, call)                                               \
  do {                                                                     \
    WRONG(MPI_ERR_ARG, call);                                              \
    CHECK(strstr(mpress_error_text(), words));                             \
    CHECK(strstr(mpress_error_text(), "mpress: ") == mpress_error_text()); \
  } while (0)

/* What a call asks for itself, in each form of messages and of collective calls. */
static void asked(const mpress_call* call, const char* words) {
  REFUSED(words, mpress_send(out, COUNT, MPI_DOUBLE, other, 1, comm, call));
  REFUSED(words, mpress_recv(in, COUNT, MPI_DOUBLE, other, 1, comm, MPI_STATUS_IGNORE, call));
  REFUSED(words, mpress_sendrecv(out, COUNT, MPI_DOUBLE, other, 1, in, COUNT, MPI_DOUBLE, other, 1,
                                 comm, MPI_STATUS_IGNORE, call));
  REFUSED(words, mpress_isend(out, COUNT, MPI_DOUBLE, other, 1, comm, &request, call));
  REFUSED(words, mpress_irecv(in, COUNT, MPI_DOUBLE, other, 1, comm, &request, call));
  REFUSED(words, mpress_send_init(out, COUNT, MPI_DOUBLE, other, 1, comm, &request, call));
  REFUSED(words, mpress_recv_init(in, COUNT, MPI_DOUBLE, other, 1, comm, &request, call));
  MPI_Message message = MPI_MESSAGE_NULL;
  REFUSED(words, mpress_mrecv(in, COUNT, MPI_DOUBLE, &message, MPI_STATUS_IGNORE, call));
  REFUSED(words, mpress_imrecv(in, COUNT, MPI_DOUBLE, &message, &request, call));
  REFUSED(words, mpress_bcast(in, COUNT, MPI_DOUBLE, 0, comm, call));
  REFUSED(words, mpress_ibcast(in, COUNT, MPI_DOUBLE, 0, comm, &request, call));
  REFUSED(words, mpress_bcast_init(in, COUNT, MPI_DOUBLE, 0, comm, &request, call));
  REFUSED(words, mpress_allreduce(out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm, call));
  REFUSED(words, mpress_iallreduce(out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request, call));
  REFUSED(words, mpress_allreduce_init(out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request, call));
  REFUSED(words, mpress_alltoall(out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm, call));
  REFUSED(words, mpress_call_begin(comm, call, NULL));
}

/* Every collective call: `X` makes of each what is checked. */
static MPI_Count counts[2] = {COUNT, COUNT};
static MPI_Aint places[2] = {0, COUNT}, bytes_at[2] = {0, COUNT * 8};
static MPI_Datatype types[2];
#define OF_EACH(X)                                                                             \
  X(bcast, in, COUNT, MPI_DOUBLE, 0, comm)                                                     \
  X(gather, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0, comm)                            \
  X(gatherv, out, COUNT, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, 0, comm)                  \
  X(scatter, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0, comm)                           \
  X(scatterv, out, counts, places, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 0, comm)                 \
  X(allgather, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm)                            \
  X(allgatherv, out, COUNT, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, comm)                  \
  X(alltoall, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm)                             \
  X(alltoallv, out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, comm)          \
  X(alltoallw, out, counts, bytes_at, types, in, counts, bytes_at, types, comm)                \
  X(reduce, out, in, COUNT, MPI_DOUBLE, MPI_SUM, 0, comm)                                      \
  X(allreduce, out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm)                                      \
  X(reduce_scatter, out, in, counts, MPI_DOUBLE, MPI_SUM, comm)                                \
  X(reduce_scatter_block, out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm)                           \
  X(scan, out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm)                                           \
  X(exscan, out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm)                                         \
  X(neighbor_allgather, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm)                   \
  X(neighbor_allgatherv, out, COUNT, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, comm)         \
  X(neighbor_alltoall, out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm)                    \
  X(neighbor_alltoallv, out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, comm) \
  X(neighbor_alltoallw, out, counts, bytes_at, types, in, counts, bytes_at, types, comm)

static void asked_of_each(const mpress_call* call, const char* words) {
#define ASKED(name, ...)                                       \
  REFUSED(words, mpress_##name(__VA_ARGS__, call));            \
  REFUSED(words, mpress_i##name(__VA_ARGS__, &request, call)); \
  REFUSED(words, mpress_##name##_init(__VA_ARGS__, &request, call));
  OF_EACH(ASKED)
}

static void nowhere_for_each(void) {
#define NOWHERE(name, ...)                                     \
  REFUSED("request", mpress_i##name(__VA_ARGS__, NULL, NULL)); \
  REFUSED("request", mpress_##name##_init(__VA_ARGS__, NULL, NULL));
  OF_EACH(NOWHERE)
}

/* Arrays that are not there: of calls that all members find wrong. */
static void null_arrays(const mpress_call* call) {
  const MPI_Datatype type = MPI_DOUBLE;
#define NULLS(name, ...)                                          \
  REFUSED("counts", mpress_##name(__VA_ARGS__, call));            \
  REFUSED("counts", mpress_i##name(__VA_ARGS__, &request, call)); \
  REFUSED("counts", mpress_##name##_init(__VA_ARGS__, &request, call));
  NULLS(allgatherv, out, COUNT, type, in, NULL, places, type, comm)
  NULLS(alltoallv, out, NULL, places, type, in, counts, places, type, comm)
  NULLS(alltoallv, out, counts, places, type, in, NULL, places, type, comm)
  NULLS(alltoallw, out, NULL, bytes_at, types, in, counts, bytes_at, types, comm)
  NULLS(reduce_scatter, out, in, NULL, type, MPI_SUM, comm)
  /* The root's alone. */
  NULLS(gatherv, out, COUNT, type, in, NULL, places, type, 0, MPI_COMM_SELF)
  NULLS(scatterv, out, NULL, places, type, in, COUNT, type, 0, MPI_COMM_SELF)
  REFUSED("displacements",
          mpress_gatherv(out, COUNT, type, in, counts, NULL, type, 0, MPI_COMM_SELF, call));
  REFUSED("displacements",
          mpress_alltoallv(out, counts, NULL, type, in, counts, places, type, comm, call));
  REFUSED("types",
          mpress_alltoallw(out, counts, bytes_at, NULL, in, counts, bytes_at, types, comm, call));
}

static void nowhere_for_a_request(void) {
  REFUSED("request", mpress_isend(out, COUNT, MPI_DOUBLE, other, 1, comm, NULL, NULL));
  REFUSED("request", mpress_irecv(in, COUNT, MPI_DOUBLE, other, 1, comm, NULL, NULL));
  REFUSED("request", mpress_send_init(out, COUNT, MPI_DOUBLE, other, 1, comm, NULL, NULL));
  REFUSED("request", mpress_recv_init(in, COUNT, MPI_DOUBLE, other, 1, comm, NULL, NULL));
  REFUSED("request", mpress_ibcast(in, COUNT, MPI_DOUBLE, 0, comm, NULL, NULL));
  REFUSED("request", mpress_bcast_init(in, COUNT, MPI_DOUBLE, 0, comm, NULL, NULL));
  REFUSED("request", mpress_iallreduce(out, in, COUNT, MPI_DOUBLE, MPI_SUM, comm, NULL, NULL));
}

/* What MPI itself finds: mpress must not have begun before. Of reductions without a count or a type
 * MPICH 5.0 finds nothing, and aborts. */
static void of_mpi(const mpress_call* call) {
  WRONG(MPI_ERR_COUNT, mpress_send(out, -1, MPI_DOUBLE, other, 1, comm, call));
  WRONG(MPI_ERR_COUNT, mpress_irecv(in, -1, MPI_DOUBLE, other, 1, comm, &request, call));
  WRONG(MPI_ERR_TYPE, mpress_send(out, COUNT, MPI_DATATYPE_NULL, other, 1, comm, call));
  WRONG(MPI_ERR_RANK, mpress_send(out, COUNT, MPI_DOUBLE, 2, 1, comm, call));
  WRONG(MPI_ERR_RANK, mpress_isend(out, COUNT, MPI_DOUBLE, -77, 1, comm, &request, call));
  WRONG(MPI_ERR_RANK, mpress_recv(in, COUNT, MPI_DOUBLE, 2, 1, comm, MPI_STATUS_IGNORE, call));
  WRONG(MPI_ERR_TAG, mpress_send(out, COUNT, MPI_DOUBLE, other, -77, comm, call));
  WRONG(MPI_ERR_TAG, mpress_send_init(out, COUNT, MPI_DOUBLE, other, -77, comm, &request, call));
  WRONG(MPI_ERR_COMM, mpress_send(out, COUNT, MPI_DOUBLE, other, 1, MPI_COMM_NULL, call));
  WRONG(MPI_ERR_COMM, mpress_bcast(in, COUNT, MPI_DOUBLE, 0, MPI_COMM_NULL, call));
  WRONG(MPI_ERR_ROOT, mpress_bcast(in, COUNT, MPI_DOUBLE, 2, comm, call));
  WRONG(MPI_ERR_ROOT, mpress_ibcast(in, COUNT, MPI_DOUBLE, -77, comm, &request, call));
  WRONG(MPI_ERR_COUNT, mpress_bcast(in, -1, MPI_DOUBLE, 0, comm, call));
  WRONG(MPI_ERR_TYPE, mpress_bcast(in, COUNT, MPI_DATATYPE_NULL, 0, comm, call));
  WRONG(MPI_ERR_OP, mpress_allreduce(out, in, COUNT, MPI_DOUBLE, MPI_OP_NULL, comm, call));
}

/* Is it an error, of whatever class? MPIs do not agree. */
#define FAILS(call)                        \
  do {                                     \
    CHECK((call) != MPI_SUCCESS);          \
    CHECK(request == MPRESS_REQUEST_NULL); \
  } while (0)

/* The same of calls with blocks, and of reductions: what counts on all ranks is wrong. */
static void of_mpi_in_blocks(const mpress_call* call) {
  const MPI_Datatype type = MPI_DOUBLE, none = MPI_DATATYPE_NULL;
  const MPI_Count few[2] = {-1, -1};
  WRONG(MPI_ERR_COUNT, mpress_gather(out, -1, type, in, COUNT, type, 0, comm, call));
  WRONG(MPI_ERR_ROOT, mpress_gather(out, COUNT, type, in, COUNT, type, 2, comm, call));
  WRONG(MPI_ERR_TYPE, mpress_gather(out, COUNT, none, in, COUNT, type, 0, comm, call));
  WRONG(MPI_ERR_ROOT, mpress_igather(out, COUNT, type, in, COUNT, type, -77, comm, &request, call));
  WRONG(MPI_ERR_ROOT,
        mpress_gather_init(out, COUNT, type, in, COUNT, type, 2, comm, &request, call));
  WRONG(MPI_ERR_ROOT, mpress_gatherv(out, COUNT, type, in, counts, places, type, 2, comm, call));
  WRONG(MPI_ERR_COUNT, mpress_scatter(out, COUNT, type, in, -1, type, 0, MPI_COMM_SELF, call));
  WRONG(MPI_ERR_ROOT, mpress_scatter(out, COUNT, type, in, COUNT, type, 2, comm, call));
  WRONG(MPI_ERR_ROOT,
        mpress_iscatterv(out, counts, places, type, in, COUNT, type, -77, comm, &request, call));
  WRONG(MPI_ERR_COUNT, mpress_allgather(out, -1, type, in, COUNT, type, comm, call));
  WRONG(MPI_ERR_TYPE,
        mpress_allgather_init(out, COUNT, type, in, COUNT, none, comm, &request, call));
#if !defined(OPEN_MPI) /* which does not look at these, and crashes */
  FAILS(mpress_allgatherv(out, COUNT, type, in, few, places, type, comm, call));
#endif
  WRONG(MPI_ERR_COUNT, mpress_alltoall(out, -1, type, in, COUNT, type, comm, call));
  WRONG(MPI_ERR_COUNT, mpress_alltoallv(out, few, places, type, in, few, places, type, comm, call));
  WRONG(MPI_ERR_COUNT,
        mpress_alltoallw(out, few, bytes_at, types, in, counts, bytes_at, types, comm, call));
  WRONG(MPI_ERR_ROOT, mpress_reduce(out, in, COUNT, type, MPI_SUM, 2, comm, call));
  WRONG(MPI_ERR_ROOT, mpress_reduce_init(out, in, COUNT, type, MPI_SUM, 2, comm, &request, call));
  WRONG(MPI_ERR_OP, mpress_ireduce(out, in, COUNT, type, MPI_OP_NULL, 0, comm, &request, call));
  WRONG(MPI_ERR_COUNT, mpress_reduce_scatter(out, in, few, type, MPI_SUM, comm, call));
  WRONG(MPI_ERR_OP, mpress_reduce_scatter(out, in, counts, type, MPI_OP_NULL, comm, call));
  WRONG(MPI_ERR_OP, mpress_reduce_scatter_block(out, in, COUNT, type, MPI_OP_NULL, comm, call));
  WRONG(MPI_ERR_OP, mpress_scan(out, in, COUNT, type, MPI_OP_NULL, comm, call));
  WRONG(MPI_ERR_OP, mpress_iexscan(out, in, COUNT, type, MPI_OP_NULL, comm, &request, call));
  WRONG(MPI_ERR_OP, mpress_exscan_init(out, in, COUNT, type, MPI_OP_NULL, comm, &request, call));
  WRONG(MPI_ERR_COMM, mpress_alltoall(out, 1, type, in, 1, type, MPI_COMM_NULL, call));
  WRONG(MPI_ERR_COMM, mpress_iscan(out, in, 1, type, MPI_SUM, MPI_COMM_NULL, &request, call));
  /* No neighbours. */
  FAILS(mpress_neighbor_allgather(out, COUNT, type, in, COUNT, type, comm, call));
  FAILS(mpress_neighbor_alltoallv(out, counts, places, type, in, counts, places, type, comm, call));
  FAILS(mpress_ineighbor_alltoall(out, COUNT, type, in, COUNT, type, comm, &request, call));
  FAILS(mpress_neighbor_allgatherv_init(out, COUNT, type, in, counts, places, type, comm, &request,
                                        call));
}

static void of_probes(void) {
  MPI_Message message = MPI_MESSAGE_NULL;
  int flag = 0;
  REFUSED("flag", mpress_iprobe(other, 1, comm, NULL, MPI_STATUS_IGNORE));
  REFUSED("flag", mpress_improbe(other, 1, comm, NULL, &message, MPI_STATUS_IGNORE));
  REFUSED("message", mpress_improbe(other, 1, comm, &flag, NULL, MPI_STATUS_IGNORE));
  REFUSED("message", mpress_mprobe(other, 1, comm, NULL, MPI_STATUS_IGNORE));
  REFUSED("message", mpress_mrecv(in, COUNT, MPI_DOUBLE, NULL, MPI_STATUS_IGNORE, NULL));
  REFUSED("message", mpress_imrecv(in, COUNT, MPI_DOUBLE, NULL, &request, NULL));
  REFUSED("request", mpress_imrecv(in, COUNT, MPI_DOUBLE, &message, NULL, NULL));
  WRONG(MPI_ERR_RANK, mpress_probe(2, 1, comm, MPI_STATUS_IGNORE));
  WRONG(MPI_ERR_RANK, mpress_iprobe(2, 1, comm, &flag, MPI_STATUS_IGNORE));
  WRONG(MPI_ERR_RANK, mpress_mprobe(2, 1, comm, &message, MPI_STATUS_IGNORE));
}

static void of_requests(void) {
  REFUSED("flag", mpress_initialized(NULL));
  REFUSED("request", mpress_wait(NULL, MPI_STATUS_IGNORE));
  int flag = 0, index = 0;
  REFUSED("request", mpress_test(NULL, &flag, MPI_STATUS_IGNORE));
  REFUSED("request", mpress_start(NULL));
  REFUSED("request", mpress_cancel(NULL));
  REFUSED("request", mpress_request_free(NULL));
  REFUSED("requests", mpress_waitall(1, NULL, MPI_STATUSES_IGNORE));
  REFUSED("requests", mpress_waitany(1, NULL, &index, MPI_STATUS_IGNORE));
  REFUSED("requests", mpress_testall(1, NULL, &flag, MPI_STATUSES_IGNORE));
  REFUSED("requests", mpress_startall(1, NULL));
  WRONG(MPI_ERR_COUNT, mpress_waitall(-1, &request, MPI_STATUSES_IGNORE));
  WRONG(MPI_ERR_COUNT, mpress_startall(-1, &request));
  /* Nothing to start, to cancel, or to free. */
  WRONG(MPI_ERR_REQUEST, mpress_start(&request));
  WRONG(MPI_ERR_REQUEST, mpress_cancel(&request));
  WRONG(MPI_ERR_REQUEST, mpress_request_free(&request));
}

/* It goes on. Where MPI has the call, its cancelling is MPI's. */
static void cancelled(void) {
  mpress_outcome outcome;
  mpress_call call = {0};
  call.mask = MPRESS_CALL_SPEC | MPRESS_CALL_OUTCOME;
  call.spec = "mpc";
  call.outcome = &outcome;
  fill_f64(out, COUNT, 0);
  if (rank == 0) memcpy(in, out, COUNT * sizeof *in);
  CHECK_MPI(mpress_ibcast(in, COUNT, MPI_DOUBLE, 0, comm, &request, &call));
  const int found = class_of(mpress_cancel(&request));
  CHECK(request != MPRESS_REQUEST_NULL);
  CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
  CHECK(!outcome.served || found == MPI_ERR_REQUEST);
  CHECK(same_f64(in, COUNT, 0));
}

/* Calls that are right go on, and find no message that should not be there. */
static void right(void) {
  int found = 0;
  CHECK_MPI(MPI_Barrier(comm));
  CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, MPI_STATUS_IGNORE));
  CHECK(!found);
  CHECK_MPI(MPI_Barrier(comm)); /* the other has looked, too */
  fill_f64(out, COUNT, rank);
  mpress_call call = {0};
  call.mask = MPRESS_CALL_SPEC;
  call.spec = "mpc";
  CHECK_MPI(mpress_sendrecv(out, COUNT, MPI_DOUBLE, other, 1, in, COUNT, MPI_DOUBLE, other, 1, comm,
                            MPI_STATUS_IGNORE, &call));
  CHECK(same_f64(in, COUNT, other));
  CHECK(mpress_error_text()[0] == 0);
  CHECK_MPI(mpress_allreduce(out, in, COUNT, MPI_DOUBLE, MPI_MAX, comm, &call));
  CHECK(same_f64(in, COUNT, 1));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK_MPI(mpress_init());
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  other = 1 - rank;
  /* Whichever MPI raises errors without a communicator on. */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);

  for (int r = 0; r < 2; ++r) types[r] = MPI_DOUBLE;
  if (argc > 1) {
    null_arrays(NULL);
    right();
  }

  const char* const specs[] = {
      NULL,      "",          " ",          "gzip",        "szp",
      "szp:abs", "szp:abs=0", "szp:abs=-1", "szp:rel=nan", "zfp",
      "zfp:0",   "mpc:dim=0", "mpc:dim=99", "none:1",      "szp:abs=1,mode=slow"};
  for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
    mpress_call call = {0};
    call.mask = MPRESS_CALL_SPEC;
    call.spec = specs[i];
    asked(&call, "call.spec");
  }
  mpress_call call = {0};
  call.mask = 1u << 30;
  asked(&call, "call.mask");
  call.mask = MPRESS_CALL_OUTCOME;
  asked(&call, "call.outcome");
  asked_of_each(&call, "call.outcome");
  call.mask = MPRESS_CALL_SPEC;
  call.spec = "gzip";
  asked_of_each(&call, "gzip");
  right();
  nowhere_for_a_request();
  nowhere_for_each();
  of_probes();
  of_requests();
  cancelled();
  right();
  of_mpi(NULL);
  of_mpi_in_blocks(NULL);
  call.mask = MPRESS_CALL_SPEC;
  call.spec = "szp:abs=1e-3";
  of_mpi(&call);
  of_mpi_in_blocks(&call);
  right();
  CHECK_MPI(MPI_Comm_free(&comm));
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
