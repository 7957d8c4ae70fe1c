/* Messages by mpress's own calls: what MPI promises, bounds, outcomes, and errors that send
 * nothing. To be run by 2 ranks. */
#include <mpress/mpress.h>

#include "../mpi/check.h"

enum { COUNT = 50000 };

static mpress_call with(const char* spec, mpress_outcome* outcome) {
  mpress_call call;
  memset(&call, 0, sizeof call);
  call.mask = MPRESS_CALL_SPEC | (outcome ? MPRESS_CALL_OUTCOME : 0);
  call.spec = spec;
  call.outcome = outcome;
  return call;
}

static mpress_call telling(mpress_outcome* outcome) {
  mpress_call call = with(NULL, outcome);
  call.mask = MPRESS_CALL_OUTCOME;
  return call;
}

static double largest_error(const double* values, int seed) {
  double error = 0;
  for (int i = 0; i < COUNT; ++i) {
    error = fmax(error, fabs(values[i] - ((double)(seed + 1) + 1e-6 * (double)i)));
  }
  return error;
}

static int class_of(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}

static void blocking(int rank, double* values) {
  const char* const specs[] = {"none",         "auto",         "mpc",   "mpc:dim=3",
                               "szp:abs=1e-3", "szp:rel=1e-4", "zfp:32"};
  const double bounds[] = {0, 0, 0, 0, 1e-3, 1e-4, 1e-2};
  for (int i = 0; i < (int)(sizeof specs / sizeof *specs); ++i) {
    mpress_outcome outcome = {-1, -1};
    const mpress_call call = with(specs[i], &outcome);
    if (rank == 0) {
      fill_f64(values, COUNT, i);
      CHECK_MPI(mpress_send(values, COUNT, MPI_DOUBLE, 1, i, MPI_COMM_WORLD, &call));
      CHECK(outcome.served == (i > 0));
      if (i < 4) CHECK(outcome.bound == 0);
      if (i == 4) CHECK(outcome.bound > 0 && outcome.bound <= 1e-3);
      if (i == 6) CHECK(isnan(outcome.bound));
    } else {
      MPI_Status status;
      const mpress_call told = telling(&outcome);
      CHECK_MPI(mpress_recv(values, COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                            &status, &told));
      int count = 0;
      MPI_Get_count(&status, MPI_DOUBLE, &count);
      CHECK(count == COUNT && status.MPI_SOURCE == 0 && status.MPI_TAG == i);
      CHECK(largest_error(values, i) <= bounds[i]);
      if (i >= 4) CHECK(largest_error(values, i) > 0); /* it was asked for, and done */
      CHECK(outcome.served == (i > 0));
      if (i < 4) CHECK(outcome.bound == 0);
      if (i == 4 || i == 5) {
        CHECK(largest_error(values, i) <= outcome.bound && outcome.bound <= bounds[i]);
      }
      if (i == 6) CHECK(isnan(outcome.bound));
    }
  }
}

static void later(int rank, double* out, double* in) {
  const int other = 1 - rank;
  const mpress_call call = with("szp:rel=1e-6", NULL);
  mpress_outcome outcome;
  const mpress_call told = telling(&outcome);
  for (int round = 0; round < 5; ++round) {
    mpress_request requests[3] = {MPRESS_REQUEST_NULL, MPRESS_REQUEST_NULL, MPRESS_REQUEST_NULL};
    fill_f64(out, COUNT, rank + round);
    CHECK_MPI(mpress_irecv(in, COUNT, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &requests[0], &told));
    CHECK_MPI(mpress_isend(out, COUNT, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &requests[2], &call));
    if (round == 0) {
      CHECK_MPI(mpress_waitall(3, requests, MPI_STATUSES_IGNORE));
    } else if (round == 1) {
      for (int left = 2; left > 0; --left) {
        int index = -1;
        CHECK_MPI(mpress_waitany(3, requests, &index, MPI_STATUS_IGNORE));
        CHECK((index == 0 || index == 2) && !requests[index]);
      }
    } else if (round == 2) {
      int done = 0;
      while (!done) CHECK_MPI(mpress_testall(3, requests, &done, MPI_STATUSES_IGNORE));
    } else {
      int done = 0;
      while (!done) CHECK_MPI(mpress_test(&requests[0], &done, MPI_STATUS_IGNORE));
      CHECK_MPI(mpress_wait(&requests[2], MPI_STATUS_IGNORE));
    }
    CHECK(!requests[0] && !requests[1] && !requests[2]);
    const double error = largest_error(in, other + round);
    CHECK(outcome.served && error > 0 && error <= outcome.bound && outcome.bound < 1e-7);
  }
}

static void persistent(int rank, double* out, double* in) {
  const int other = 1 - rank;
  mpress_request requests[2];
  mpress_outcome outcome;
  const mpress_call told = telling(&outcome);
  {
    /* Spec and struct may go when the call has returned. */
    char spec[] = "szp:abs=1e-5";
    const mpress_call call = with(spec, NULL);
    CHECK_MPI(
        mpress_send_init(out, COUNT, MPI_DOUBLE, other, 9, MPI_COMM_WORLD, &requests[0], &call));
    memset(spec, 'x', sizeof spec - 1);
  }
  CHECK_MPI(mpress_recv_init(in, COUNT, MPI_DOUBLE, other, 9, MPI_COMM_WORLD, &requests[1], &told));
  for (int round = 0; round < 3; ++round) {
    fill_f64(out, COUNT, rank + round);
    CHECK_MPI(mpress_startall(2, requests));
    CHECK_MPI(mpress_waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(requests[0] && requests[1]);
    const double error = largest_error(in, other + round);
    CHECK(error > 0 && error <= outcome.bound && outcome.bound <= 1e-5);
  }
  CHECK_MPI(mpress_request_free(&requests[0]));
  CHECK_MPI(mpress_request_free(&requests[1]));
  CHECK(!requests[0] && !requests[1]);
}

static void others(int rank, double* out, double* in) {
  const int other = 1 - rank;
  /* The other sends without loss to rank 0: what counts is the larger bound of the two. */
  mpress_outcome outcome;
  const mpress_call call = with(rank == 0 ? "szp:abs=1e-4" : "mpc", &outcome);
  fill_f64(out, COUNT, rank);
  CHECK_MPI(mpress_sendrecv(out, COUNT, MPI_DOUBLE, other, 3, in, COUNT, MPI_DOUBLE, other, 3,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE, &call));
  CHECK(outcome.served && outcome.bound > 9e-5 && outcome.bound <= 1e-4);
  CHECK((largest_error(in, other) > 0) == (rank == 1) && largest_error(in, other) <= 1e-4);
  /* Nobody, nothing, bytes, and what MPI alone sends. */
  CHECK_MPI(mpress_send(out, COUNT, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &call));
  CHECK_MPI(mpress_recv(in, COUNT, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE,
                        &call));
  CHECK_MPI(mpress_sendrecv(out, 0, MPI_DOUBLE, other, 4, in, 0, MPI_DOUBLE, other, 4,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE, &call));
  fill_noise(out, COUNT * sizeof(double), (unsigned)rank);
  CHECK_MPI(mpress_sendrecv(out, COUNT * 8, MPI_BYTE, other, 5, in, COUNT * 8, MPI_BYTE, other, 5,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE, &call));
  fill_noise(out, COUNT * sizeof(double), (unsigned)other);
  CHECK(memcmp(out, in, COUNT * sizeof(double)) == 0);
  if (rank == 0) {
    fill_f64(out, COUNT, 5);
    CHECK_MPI(MPI_Send(out, COUNT, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD));
  } else {
    CHECK_MPI(mpress_recv(in, COUNT, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, NULL));
    CHECK(same_f64(in, COUNT, 5));
  }
}

static void wrong(int rank, double* values) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const char* const specs[] = {"", "szp", "szp:abs=-1", "zfp:99", "gzip", NULL};
  mpress_request request = MPRESS_REQUEST_NULL;
  for (int i = 0; i < (int)(sizeof specs / sizeof *specs); ++i) {
    mpress_call call = with(specs[i], NULL);
    /* That a rate is too large for a type is known when there is data. */
    if (specs[i] && strcmp(specs[i], "zfp:99") == 0) continue;
    const int code = mpress_send(values, COUNT, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &call);
    CHECK(class_of(code) == MPI_ERR_ARG);
    CHECK(strstr(mpress_error_text(), "call.spec"));
    CHECK(class_of(mpress_isend(values, COUNT, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &request,
                                &call)) == MPI_ERR_ARG);
    CHECK(!request);
  }
  mpress_call call = with("mpc", NULL);
  call.mask |= 1u << 30;
  CHECK(class_of(mpress_send(values, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &call)) ==
        MPI_ERR_ARG);
  CHECK(strstr(mpress_error_text(), "call.mask"));
  call.mask = MPRESS_CALL_OUTCOME;
  CHECK(class_of(mpress_send(values, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &call)) ==
        MPI_ERR_ARG);
  CHECK(strstr(mpress_error_text(), "call.outcome"));
  CHECK(class_of(mpress_isend(values, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, NULL, NULL)) ==
        MPI_ERR_ARG);
  CHECK(strstr(mpress_error_text(), "request"));
  CHECK(class_of(mpress_wait(NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  CHECK(class_of(mpress_waitall(-1, NULL, MPI_STATUSES_IGNORE)) == MPI_ERR_COUNT);
  CHECK(class_of(mpress_waitall(1, NULL, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  CHECK(mpress_send(values, COUNT, MPI_DOUBLE, 77, 1, MPI_COMM_WORLD, NULL) != MPI_SUCCESS);
  CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
  CHECK_MPI(mpress_waitall(0, NULL, MPI_STATUSES_IGNORE));
  /* Nothing of all this was sent. */
  int found = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
  CHECK(!found);
  call = with("zfp:60", NULL); /* a rate that f32 does not have */
  if (rank == 0) {
    const int code = mpress_send(values, COUNT, MPI_FLOAT, 1, 1, MPI_COMM_WORLD, &call);
    CHECK(code != MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
  CHECK(!found);
}

int main(int argc, char** argv) {
  int rank;
  CHECK(mpress_init() == MPI_ERR_OTHER && strstr(mpress_error_text(), "MPI_Init"));
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  double* out = malloc(COUNT * sizeof(double));
  double* in = malloc(COUNT * sizeof(double));
  CHECK_MPI(mpress_init());
  CHECK_MPI(mpress_init());
  CHECK(strcmp(mpress_version(), "0.1.0") == 0);
  blocking(rank, out);
  later(rank, out, in);
  persistent(rank, out, in);
  others(rank, out, in);
  wrong(rank, out);
  MPI_Finalize();
  CHECK(mpress_send(out, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, NULL) == MPI_ERR_OTHER);
  free(out);
  free(in);
  if (rank == 0) puts("ok");
  return 0;
}
