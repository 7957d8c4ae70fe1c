/* Thousands of requests of every kind, completed, cancelled or freed: neither the process nor a
 * simulated device holds more after them than after the first. For 2 ranks.
 *
 * A request that is kept costs 16 bytes at the least, its messages more: of 10,000 that is 160 KB
 * in every kind. What a process has resident may grow by half of that by chance. */
#include <mpress/mpress.h>
#include <unistd.h>

#include "../mpi/check.h"
#include "simulated_gpu.h"

enum { MANY = 10000, BATCH = 50, COUNT = 1000, MOST_GROWTH = 80 * 1024 };

static int rank, other;
static float *out, *in, *sum;
static mpress_call call;

static long resident(void) {
  long all = 0, pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  CHECK(file && fscanf(file, "%ld %ld", &all, &pages) == 2);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void exchanged(int number) {
  mpress_request requests[2 * BATCH];
  for (int i = 0; i < number; i += BATCH) {
    for (int k = 0; k < BATCH; ++k) {
      CHECK_MPI(mpress_irecv(in + k * COUNT, COUNT, MPI_FLOAT, other, 1, MPI_COMM_WORLD,
                             &requests[2 * k], NULL));
      CHECK_MPI(mpress_isend(out, COUNT, MPI_FLOAT, other, 1, MPI_COMM_WORLD, &requests[2 * k + 1],
                             &call));
    }
    CHECK_MPI(mpress_waitall(2 * BATCH, requests, MPI_STATUSES_IGNORE));
  }
}

static void reduced(int number) {
  mpress_request requests[BATCH];
  for (int i = 0; i < number; i += BATCH) {
    for (int k = 0; k < BATCH; ++k) {
      CHECK_MPI(mpress_iallreduce(out, sum + k * COUNT, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                  &requests[k], &call));
    }
    CHECK_MPI(mpress_waitall(BATCH, requests, MPI_STATUSES_IGNORE));
  }
}

static void persistent(int number) {
  mpress_request requests[2];
  for (int i = 0; i < number; i += 2) {
    CHECK_MPI(mpress_recv_init(in, COUNT, MPI_FLOAT, other, 2, MPI_COMM_WORLD, &requests[0], NULL));
    CHECK_MPI(
        mpress_send_init(out, COUNT, MPI_FLOAT, other, 2, MPI_COMM_WORLD, &requests[1], &call));
    CHECK_MPI(mpress_startall(2, requests));
    CHECK_MPI(mpress_waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int k = 0; k < 2; ++k) CHECK_MPI(mpress_request_free(&requests[k]));
  }
}

static void never_started(int number) {
  mpress_request request;
  for (int i = 0; i < number; ++i) {
    CHECK_MPI(mpress_allreduce_init(out, sum, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request,
                                    &call));
    CHECK_MPI(mpress_request_free(&request));
  }
}

static void cancelled(int number) {
  for (int i = 0; i < number; ++i) {
    mpress_request request;
    MPI_Status status;
    int is_cancelled = 0;
    CHECK_MPI(mpress_irecv(in, COUNT, MPI_FLOAT, other, 77, MPI_COMM_WORLD, &request, NULL));
    CHECK_MPI(mpress_cancel(&request));
    CHECK_MPI(mpress_wait(&request, &status));
    CHECK_MPI(MPI_Test_cancelled(&status, &is_cancelled));
    CHECK(is_cancelled && !request);
  }
}

/* What is freed while it is under way ends all the same. */
static void freed(int number) {
  for (int i = 0; i < number; i += BATCH) {
    for (int k = 0; k < BATCH; ++k) {
      mpress_request request;
      CHECK_MPI(mpress_isend(out, COUNT, MPI_FLOAT, other, 3, MPI_COMM_WORLD, &request, &call));
      CHECK_MPI(mpress_request_free(&request));
      CHECK(!request);
    }
    for (int k = 0; k < BATCH; ++k) {
      CHECK_MPI(
          mpress_recv(in, COUNT, MPI_FLOAT, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, NULL));
    }
  }
}

/* What mpress holds of a device and of pinned memory. */
static size_t held(void) { return sim_held(rank % sim_devices) + sim_held(sim_pinned); }

/* What is buffered at once may grow by chance, as a rank runs ahead, and what links share is
 * resident once it has been used; what is kept grows each time. */
static void check_growth(const char* what, void (*make)(int), int number) {
  int is_steady = 0;
  make(number / 5);
  for (int tries = 0; tries < 10 && !is_steady; ++tries) {
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const long before = resident();
    const size_t held_before = held();
    make(number);
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const long growth = resident() - before;
    const size_t held_now = held();
    const size_t more = held_now > held_before ? held_now - held_before : 0;
    is_steady = growth <= MOST_GROWTH && more <= (size_t)number * 512;
    if (!is_steady) {
      fprintf(stderr, "rank %d: %s: %ld bytes more, %zu of a device\n", rank, what, growth, more);
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &is_steady, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  }
  CHECK(is_steady);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  other = 1 - rank;
  CHECK_MPI(mpress_init());
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  call.mask = MPRESS_CALL_SPEC;
  call.spec = "mpc";
  float* const host = malloc(BATCH * COUNT * sizeof(float));
  fill_f32(host, COUNT, rank);
  /* On the host, and on a device, whose work takes longer: with an argument as many there. */
  for (int place = 0; place < 2; ++place) {
    const int number = place && argc == 1 ? MANY / 25 : MANY;
    const size_t bytes = BATCH * COUNT * sizeof(float);
    float* const memory[3] = {place ? sim_malloc(rank % sim_devices, bytes) : malloc(bytes),
                              place ? sim_malloc(rank % sim_devices, bytes) : malloc(bytes),
                              place ? sim_malloc(rank % sim_devices, bytes) : malloc(bytes)};
    out = memory[0], in = memory[1], sum = memory[2];
    for (int k = 0; k < 3; ++k) {
      if (place) sim_copy_in(memory[k], host, bytes);
      if (!place) memcpy(memory[k], host, bytes);
    }
    mpress_outcome outcome;
    mpress_call told = call;
    told.mask |= MPRESS_CALL_OUTCOME;
    told.outcome = &outcome;
    CHECK_MPI(mpress_sendrecv(out, COUNT, MPI_FLOAT, other, 1, in, COUNT, MPI_FLOAT, other, 1,
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE, &told));
    CHECK(outcome.served);
    check_growth("messages", exchanged, number);
    check_growth("reductions", reduced, number);
    check_growth("persistent", persistent, number);
    check_growth("never started", never_started, number / 5);
    check_growth("cancelled", cancelled, number);
    check_growth("freed", freed, number);
    for (int k = 0; k < 3; ++k) {
      if (place) sim_free(memory[k]);
      if (!place) free(memory[k]);
    }
  }
  free(host);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
