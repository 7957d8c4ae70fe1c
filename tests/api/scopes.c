/* Scopes: what MPI's own calls between mpress_call_begin() and mpress_call_end() ask for, where
 * mpress sees them, as under `mpress run` ("seen"); elsewhere they are plain. For 2 ranks. */
#include <mpress/mpress.h>
#include <pthread.h>

#include "../mpi/check.h"

enum { COUNT = 40000 };
static double out[COUNT], in[COUNT];
static int rank, is_seen;

static double largest_error(int seed, int factor) {
  double error = 0;
  for (int i = 0; i < COUNT; ++i) {
    error = fmax(error, fabs(in[i] / factor - ((double)(seed + 1) + 1e-6 * (double)i)));
  }
  return error;
}

static mpress_call with(const char* spec, mpress_outcome* outcome) {
  mpress_call call;
  memset(&call, 0, sizeof call);
  call.mask = MPRESS_CALL_SPEC | MPRESS_CALL_OUTCOME;
  call.spec = spec;
  call.outcome = outcome;
  return call;
}

/* Returns by how much what arrived differs from what was sent. */
static double exchanged(void) {
  const int other = 1 - rank;
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Sendrecv(out, COUNT, MPI_DOUBLE, other, 1, in, COUNT, MPI_DOUBLE, other, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  return largest_error(other, 1);
}

static void* elsewhere(void* error) {
  *(double*)error = exchanged();
  return NULL;
}

static void messages(void) {
  mpress_outcome wide = {-1, -1}, narrow = {-1, -1};
  const mpress_call outer = with("szp:abs=1e-2", &wide), inner = with("szp:abs=1e-6", &narrow);
  const mpress_call empty = {0};
  CHECK(exchanged() == 0);
  CHECK_MPI(mpress_call_begin(MPI_COMM_WORLD, &outer, out));
  CHECK((exchanged() > 1e-4) == is_seen);
  CHECK(largest_error(1 - rank, 1) <= 1e-2);
  CHECK(wide.served == is_seen && (wide.bound > 1e-4) == is_seen);
  /* Pairs nest: the inner one holds. */
  CHECK_MPI(mpress_call_begin(MPI_COMM_WORLD, &inner, NULL));
  const double error = exchanged();
  CHECK((error > 0) == is_seen && error <= 1e-6);
  CHECK(narrow.served == is_seen && narrow.bound <= 1e-6);
  CHECK_MPI(mpress_call_end());
  CHECK((exchanged() > 1e-4) == is_seen);
  /* One that fails has not begun. */
  mpress_call wrong = with("gzip", &narrow);
  CHECK(mpress_call_begin(MPI_COMM_WORLD, &wrong, NULL) != MPI_SUCCESS);
  CHECK((exchanged() > 1e-4) == is_seen);
  /* Calls of another thread ask for nothing. */
  pthread_t thread;
  double others = -1;
  CHECK(!pthread_create(&thread, NULL, elsewhere, &others));
  CHECK(!pthread_join(thread, NULL));
  CHECK(others == 0);
  CHECK_MPI(mpress_call_end());
  CHECK(exchanged() == 0);
  /* Nothing is asked for. */
  CHECK_MPI(mpress_call_begin(MPI_COMM_WORLD, NULL, NULL));
  CHECK_MPI(mpress_call_begin(MPI_COMM_WORLD, &empty, NULL));
  CHECK(exchanged() == 0);
  CHECK_MPI(mpress_call_end());
  CHECK_MPI(mpress_call_end());
}

static void collective(void) {
  mpress_outcome outcome = {-1, -1};
  const mpress_call call = with("szp:abs=1e-3", &outcome);
  CHECK_MPI(mpress_collective_begin(MPI_COMM_WORLD, &call, out));
  CHECK_MPI(MPI_Allreduce(out, in, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  CHECK_MPI(mpress_call_end());
  const double error = largest_error(1, 1);
  CHECK((error > 1e-9) == is_seen && error <= 1e-3 + 1e-12);
  CHECK(outcome.served == is_seen && (outcome.bound > 0) == is_seen);
  /* Where no call was made. */
  CHECK_MPI(mpress_collective_begin(MPI_COMM_WORLD, &call, out));
  CHECK_MPI(mpress_call_end());
  CHECK_MPI(MPI_Allreduce(out, in, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
  CHECK(largest_error(1, 1) == 0);
}

/* An end without a beginning. */
static void unpaired(void) {
  int found = -1;
  MPI_Error_class(mpress_call_end(), &found);
  CHECK(found == MPI_ERR_OTHER);
  CHECK(strstr(mpress_error_text(), "mpress_call_begin"));
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  CHECK(provided >= MPI_THREAD_SERIALIZED);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  is_seen = argc > 1;
  int flag = -1;
  CHECK_MPI(mpress_initialized(&flag));
  CHECK(flag == is_seen);
  CHECK_MPI(mpress_init());
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", MPRESS_VERSION_MAJOR, MPRESS_VERSION_MINOR,
           MPRESS_VERSION_PATCH);
  CHECK(strcmp(mpress_version(), version) == 0);
  fill_f64(out, COUNT, rank);
  unpaired();
  messages();
  collective();
  unpaired();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
