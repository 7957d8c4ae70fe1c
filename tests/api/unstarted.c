/* Programs that call mpress without mpress_init(), or late. An argument says what comes first:
 *
 *   world      a blocking collective call of all ranks, on a communicator that is not
 * MPI_COMM_WORLD; parts      collective calls on parts of the ranks, and of all without blocking;
 *   messages   messages in all forms, complete before mpress starts;
 *   pending    receives, and a broadcast, that are under way when mpress starts, and after it;
 *   threads    all of these at once. (Some MPIs serve collective calls themselves then.)
 *
 * MPRESS_FORCE=1: what is mpress's is served. `seen`, behind it, where all is mpress's from
 * MPI_Init on. Four ranks. */
#include <mpress/mpress.h>
#include <pthread.h>

#include "../mpi/check.h"

enum { COUNT = 40000, RANKS = 4 };

static int rank, is_seen;
static MPI_Comm half;      /* of ranks of one parity */
static MPI_Comm backwards; /* all of them, in the opposite order */

static mpress_call told(mpress_outcome* outcome) {
  mpress_call call = {0};
  call.mask = MPRESS_CALL_SPEC | MPRESS_CALL_OUTCOME;
  call.spec = "mpc";
  call.outcome = outcome;
  return call;
}

/* A sum over a communicator's members; returns whether mpress served it. */
static int sum_over(MPI_Comm comm) {
  static _Thread_local double mine[COUNT], sum[COUNT];
  int size;
  mpress_outcome outcome = {-1, -1};
  const mpress_call call = told(&outcome);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; ++i) mine[i] = i % 1000;
  CHECK_MPI(mpress_allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, comm, &call));
  for (int i = 0; i < COUNT; ++i) CHECK(sum[i] == size * (double)(i % 1000));
  CHECK(outcome.bound == 0);
  return outcome.served;
}

/* The same without blocking, or by a persistent request, which is started twice. */
static int sum_later(MPI_Comm comm, int is_persistent) {
  static _Thread_local double mine[COUNT], sum[COUNT];
  int size;
  mpress_outcome outcome = {-1, -1};
  const mpress_call call = told(&outcome);
  mpress_request request;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; ++i) mine[i] = i % 1000;
  if (is_persistent) {
    CHECK_MPI(mpress_allreduce_init(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request, &call));
    CHECK_MPI(mpress_start(&request));
    CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
    CHECK_MPI(mpress_start(&request));
  } else {
    CHECK_MPI(mpress_iallreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request, &call));
  }
  CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < COUNT; ++i) CHECK(sum[i] == size * (double)(i % 1000));
  if (is_persistent) CHECK_MPI(mpress_request_free(&request));
  return outcome.served;
}

/* With the rank beside this one; returns whether mpress served what this one sent. */
static int exchange(int tag) {
  static _Thread_local double out[COUNT], in[COUNT];
  const int other = rank ^ 1;
  mpress_outcome sent = {-1, -1}, got = {-1, -1};
  const mpress_call sending = told(&sent), receiving = told(&got);
  mpress_request request;
  fill_f64(out, COUNT, rank);
  CHECK_MPI(mpress_isend(out, COUNT, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, &request, &sending));
  CHECK_MPI(mpress_recv(in, COUNT, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE,
                        &receiving));
  CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
  CHECK(same_f64(in, COUNT, other) && sent.bound == 0 && got.bound == 0);
  return sent.served;
}

static int has_started(void) {
  int flag = -1;
  CHECK_MPI(mpress_initialized(&flag));
  return flag;
}

static void world(void) {
  mpress_request none = MPRESS_REQUEST_NULL;
  CHECK_MPI(mpress_wait(&none, MPI_STATUS_IGNORE)); /* which does not start it */
  CHECK(has_started() == is_seen);
  CHECK(sum_over(backwards) && has_started());
  CHECK(sum_over(half) && sum_over(MPI_COMM_WORLD) && exchange(1));
  CHECK_MPI(mpress_init());
  CHECK(exchange(2));
}

static void parts(void) {
  sum_over(MPI_COMM_SELF);
  CHECK(sum_over(half) == is_seen);
  sum_later(half, 0), sum_later(MPI_COMM_WORLD, 0), sum_later(MPI_COMM_WORLD, 1);
  CHECK(has_started() == is_seen);
  CHECK(sum_over(MPI_COMM_WORLD) && has_started());
  /* Elsewhere a rank might have made that call before. */
  CHECK(sum_over(half) == is_seen && exchange(1));
  CHECK_MPI(mpress_init());
  CHECK(sum_over(half) && sum_over(MPI_COMM_WORLD) && exchange(2));
  sum_later(half, 0), sum_later(MPI_COMM_WORLD, 1);
}

static void messages(void) {
  static double out[COUNT], in[COUNT];
  const int other = rank ^ 1;
  mpress_outcome outcome = {-1, -1};
  const mpress_call call = told(&outcome);
  MPI_Status status;
  MPI_Message message;
  mpress_request requests[2];
  int number = 0, flag = 0;
  CHECK(exchange(1) == is_seen);
  fill_f64(out, COUNT, rank);
  CHECK_MPI(mpress_isend(out, COUNT, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[0], NULL));
  CHECK_MPI(mpress_mprobe(other, 2, MPI_COMM_WORLD, &message, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_DOUBLE, &number));
  CHECK(number == COUNT);
  CHECK_MPI(mpress_imrecv(in, COUNT, MPI_DOUBLE, &message, &requests[1], &call));
  CHECK_MPI(mpress_waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK(same_f64(in, COUNT, other) && outcome.served == is_seen);
  CHECK_MPI(mpress_sendrecv(out, COUNT, MPI_DOUBLE, other, 3, in, COUNT, MPI_DOUBLE, other, 3,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE, &call));
  CHECK_MPI(mpress_iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(same_f64(in, COUNT, other) && outcome.served == is_seen && !flag);
  CHECK(has_started() == is_seen);
  CHECK(sum_over(MPI_COMM_WORLD) && exchange(5) && sum_over(half));
}

static void pending(void) {
  static double first[COUNT], again[COUNT], sent[COUNT], moved[COUNT];
  const int other = rank ^ 1, is_first = rank % 2 == 0;
  mpress_request requests[3];
  fill_f64(sent, COUNT, rank);
  fill_f64(moved, COUNT, 7);
  if (is_first) {
    CHECK_MPI(mpress_irecv(first, COUNT, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0], NULL));
    CHECK_MPI(
        mpress_recv_init(again, COUNT, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[1], NULL));
    CHECK_MPI(mpress_start(&requests[1]));
    CHECK_MPI(mpress_ibcast(moved, COUNT, MPI_DOUBLE, 0, backwards, &requests[2], NULL));
  }
  CHECK(sum_over(MPI_COMM_WORLD)); /* without the others' broadcast */
  if (!is_first) {
    CHECK_MPI(mpress_ibcast(moved, COUNT, MPI_DOUBLE, 0, backwards, &requests[2], NULL));
    for (int tag = 1; tag <= 2; ++tag) {
      mpress_outcome outcome;
      const mpress_call call = told(&outcome);
      CHECK_MPI(mpress_send(sent, COUNT, MPI_DOUBLE, other, tag, MPI_COMM_WORLD, &call));
      CHECK(outcome.served == is_seen);
    }
  }
  CHECK_MPI(mpress_init()); /* too early */
  CHECK(exchange(3) == is_seen);
  CHECK_MPI(
      mpress_waitall(is_first ? 3 : 1, is_first ? requests : &requests[2], MPI_STATUSES_IGNORE));
  CHECK(same_f64(moved, COUNT, 7));
  if (is_first) {
    CHECK(same_f64(first, COUNT, other) && same_f64(again, COUNT, other));
    CHECK_MPI(mpress_request_free(&requests[1]));
  }
  CHECK_MPI(mpress_init());
  CHECK(exchange(4) && sum_over(half));
}

/* ---- Threads -------------------------------------------------------------------------------- */

static MPI_Comm own[2];

static void* sums_of_all(void* number) {
  for (int i = 0; i < 5; ++i) sum_over(own[*(int*)number]);
  return NULL;
}

static void* sums_of_parts(void* unused) {
  (void)unused;
  for (int i = 0; i < 10; ++i) sum_over(half), sum_later(backwards, 0);
  return NULL;
}

static void* messages_of_pairs(void* unused) {
  (void)unused;
  for (int i = 0; i < 20; ++i) exchange(6);
  return NULL;
}

static void threads(void) {
  int numbers[2] = {rank % 2, 1 - rank % 2}; /* who starts mpress may differ */
  pthread_t thread[4];
  for (int i = 0; i < 2; ++i) {
    CHECK(!pthread_create(&thread[i], NULL, sums_of_all, &numbers[i]));
  }
  CHECK(!pthread_create(&thread[2], NULL, sums_of_parts, NULL));
  CHECK(!pthread_create(&thread[3], NULL, messages_of_pairs, NULL));
  for (int i = 0; i < 4; ++i) CHECK(!pthread_join(thread[i], NULL));
  CHECK(has_started());
  CHECK_MPI(mpress_init());
  sum_over(half);
  CHECK(exchange(7));
}

int main(int argc, char** argv) {
  const char* const first = argc > 1 ? argv[1] : "";
  const int is_threaded = strcmp(first, "threads") == 0;
  int size, provided;
  is_seen = argc > 2;
  MPI_Init_thread(&argc, &argv, is_threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(size == RANKS);
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards));
  for (int i = 0; i < 2; ++i) CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
  if (strcmp(first, "world") == 0) world();
  if (strcmp(first, "parts") == 0) parts();
  if (strcmp(first, "messages") == 0) messages();
  if (strcmp(first, "pending") == 0) pending();
  if (is_threaded) threads();
  CHECK_MPI(MPI_Comm_free(&half));
  CHECK_MPI(MPI_Comm_free(&backwards));
  for (int i = 0; i < 2; ++i) CHECK_MPI(MPI_Comm_free(&own[i]));
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
