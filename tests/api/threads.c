/* MPI_THREAD_MULTIPLE: threads that make messages and collective calls at the same time, each on
 * communicators and with requests of its own, completed in every way. For any number of ranks. */
#include <mpress/mpress.h>
#include <pthread.h>

#include "../mpi/check.h"

enum { THREADS = 4, ROUNDS = 24, COUNT = 20000, WAYS = 6 };

static int rank, size;

struct Work {
  MPI_Comm comm;
  int number, errors;
  double *out, *in, *sum, *moved;
};

/* Completes three requests, of which the second may be persistent. */
static void complete(mpress_request requests[3], int way, MPI_Status* status) {
  int flag = 0, index = -1;
  MPI_Status statuses[3];
  switch (way) {
    case 0:
      CHECK_MPI(mpress_waitall(3, requests, statuses));
      *status = statuses[0];
      return;
    case 1:
      for (int left = 3; left > 0; --left) {
        MPI_Status one;
        CHECK_MPI(mpress_waitany(3, requests, &index, &one));
        CHECK(index >= 0 && index < 3);
        if (index == 0) *status = one;
      }
      CHECK_MPI(mpress_waitany(3, requests, &index, MPI_STATUS_IGNORE));
      CHECK(index == MPI_UNDEFINED);
      return;
    case 2:
      while (!flag) CHECK_MPI(mpress_testall(3, requests, &flag, statuses));
      *status = statuses[0];
      return;
    case 3:
      while (!flag) CHECK_MPI(mpress_test(&requests[0], &flag, status));
      CHECK_MPI(mpress_waitall(3, requests, MPI_STATUSES_IGNORE));
      return;
    case 4:
      CHECK_MPI(mpress_wait(&requests[2], MPI_STATUS_IGNORE));
      CHECK_MPI(mpress_wait(&requests[0], status));
      CHECK_MPI(mpress_wait(&requests[1], MPI_STATUS_IGNORE));
      return;
    default:
      while (!flag) CHECK_MPI(mpress_test(&requests[2], &flag, MPI_STATUS_IGNORE));
      CHECK_MPI(mpress_waitany(1, requests, &index, status));
      CHECK(index == 0);
      CHECK_MPI(mpress_wait(&requests[1], MPI_STATUS_IGNORE));
  }
}

/* The last failing call's words are this thread's own. */
static void fail(struct Work* w) {
  mpress_call call = {0};
  char words[32];
  snprintf(words, sizeof words, "codec%d", w->number);
  call.mask = MPRESS_CALL_SPEC;
  call.spec = words;
  CHECK(mpress_send(w->out, 1, MPI_DOUBLE, rank, 1, w->comm, &call) != MPI_SUCCESS);
  for (int i = 0; i < 20; ++i) CHECK(strstr(mpress_error_text(), words));
  ++w->errors;
}

static void* work(void* argument) {
  struct Work* const w = argument;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  mpress_call lossy = {0};
  mpress_outcome outcome;
  lossy.mask = MPRESS_CALL_SPEC;
  lossy.spec = "szp:abs=1e-3";
  mpress_call exact = lossy;
  exact.spec = "mpc";
  mpress_call told = {0};
  told.mask = MPRESS_CALL_OUTCOME;
  told.outcome = &outcome;
  mpress_request again;
  CHECK_MPI(mpress_send_init(w->out, COUNT, MPI_DOUBLE, next, 3, w->comm, &again, &exact));
  for (int round = 0; round < ROUNDS; ++round) {
    const int seed = 10 * rank + w->number + round, theirs = seed + 10 * (previous - rank);
    const int count = COUNT - 100 * w->number - round;
    const int is_persistent = round % 4 == 3, is_lossy = round % 2 == 0;
    const int sent = is_persistent ? COUNT : count;
    mpress_request requests[3];
    MPI_Status status;
    int got = -1;
    fill_f64(w->out, COUNT, seed);
    outcome.bound = -1;
    CHECK_MPI(mpress_irecv(w->in, COUNT, MPI_DOUBLE, previous, 3, w->comm, &requests[0], &told));
    if (is_persistent) {
      requests[1] = again;
      CHECK_MPI(mpress_start(&requests[1]));
    } else {
      CHECK_MPI(mpress_isend(w->out, count, MPI_DOUBLE, next, 3, w->comm, &requests[1],
                             is_lossy ? &lossy : &exact));
    }
    CHECK_MPI(mpress_iallreduce(w->out, w->sum, count, MPI_DOUBLE, MPI_MAX, w->comm, &requests[2],
                                &exact));
    complete(requests, (round + w->number) % WAYS, &status);
    CHECK(!requests[0] && !requests[2] && (requests[1] == again || !is_persistent));
    CHECK_MPI(MPI_Get_count(&status, MPI_DOUBLE, &got));
    CHECK(got == sent && status.MPI_SOURCE == previous && status.MPI_TAG == 3);
    CHECK(outcome.served && (outcome.bound > 0) == is_lossy && outcome.bound <= 1e-3);
    for (int i = 0; i < sent; ++i) {
      CHECK(fabs(w->in[i] - ((double)(theirs + 1) + 1e-6 * (double)i)) <= outcome.bound);
    }
    CHECK(same_f64(w->sum, count, 10 * (size - 1) + w->number + round));
    CHECK_MPI(
        mpress_allgather(w->out, 4000, MPI_DOUBLE, w->moved, 4000, MPI_DOUBLE, w->comm, &exact));
    for (int r = 0; r < size; ++r)
      CHECK(same_f64(w->moved + 4000 * r, 4000, seed + 10 * (r - rank)));
    if (round % 8 == 0) fail(w);
    CHECK_MPI(mpress_sendrecv(w->out, COUNT, MPI_DOUBLE, next, 4, w->in, COUNT, MPI_DOUBLE,
                              previous, 4, w->comm, MPI_STATUS_IGNORE, &exact));
    CHECK(same_f64(w->in, COUNT, theirs));
    CHECK(mpress_error_text()[0] == 0);
  }
  CHECK_MPI(mpress_request_free(&again));
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(provided == MPI_THREAD_MULTIPLE);
  CHECK_MPI(mpress_init());
  pthread_t threads[THREADS];
  struct Work works[THREADS];
  for (int t = 0; t < THREADS; ++t) {
    works[t] = (struct Work){.number = t};
    works[t].out = malloc(COUNT * sizeof(double));
    works[t].in = malloc(COUNT * sizeof(double));
    works[t].sum = malloc(COUNT * sizeof(double));
    works[t].moved = malloc((size_t)size * 4000 * sizeof(double));
    CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &works[t].comm));
    MPI_Comm_set_errhandler(works[t].comm, MPI_ERRORS_RETURN);
  }
  for (int t = 0; t < THREADS; ++t) CHECK(!pthread_create(&threads[t], NULL, work, &works[t]));
  for (int t = 0; t < THREADS; ++t) CHECK(!pthread_join(threads[t], NULL));
  for (int t = 0; t < THREADS; ++t) {
    CHECK(works[t].errors == ROUNDS / 8);
    CHECK_MPI(MPI_Comm_free(&works[t].comm));
    free(works[t].out);
    free(works[t].in);
    free(works[t].sum);
    free(works[t].moved);
  }
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
