/* Blocking calls with a stream that devices serve alone: they return before the stream gets to
 * them, and come in its order all the same. To be run by ranks with a device each.
 *
 * stream_order [DIES]: that rank's process ends, or its device, while the others' streams wait. */
#include <mpress/mpress.h>
#include <pthread.h>
#include <unistd.h>

#include "../mpi/check.h"
#include "simulated_gpu.h"

enum { MOST = 40000 };
static const size_t most_bytes = MOST * sizeof(double);

static int rank, size, errors;
static MPI_Comm comm;
static void* stream;
static mpress_call call;
static double *field, *result, *out, *in;

static double value(int seed, int i) { return (double)(seed + 1) + 1e-3 * (double)i; }

/* By another number each: reductions with one step or two, and blocks. */
enum { ALLREDUCE, REDUCE, SCATTERED, ALLGATHER, BCAST, CALLS };

static int make(int what, int count) {
  switch (what) {
    case ALLREDUCE: return mpress_allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm, &call);
    case REDUCE: return mpress_reduce(out, in, count, MPI_DOUBLE, MPI_SUM, 0, comm, &call);
    case SCATTERED:
      return mpress_reduce_scatter_block(out, in, count / size, MPI_DOUBLE, MPI_SUM, comm, &call);
    case ALLGATHER:
      return mpress_allgather(out, count / size, MPI_DOUBLE, in, count / size, MPI_DOUBLE, comm,
                              &call);
    default: return mpress_bcast(rank == 0 ? out : in, count, MPI_DOUBLE, 0, comm, &call);
  }
}

static void check(int what, int count, int seed) {
  const int each = count / size;
  for (int i = 0; i < (what == SCATTERED ? each : count); ++i) {
    double expected = 0;
    if (what == ALLGATHER) {
      expected = value(seed + i / each, i % each);
    } else if (what == BCAST) {
      expected = value(seed, i);
    } else {
      for (int r = 0; r < size; ++r) {
        expected += value(seed + r, what == SCATTERED ? rank * each + i : i);
      }
    }
    const int is_mine = !(what == REDUCE && rank != 0) && !(what == BCAST && rank == 0);
    if (is_mine) CHECK(fabs(result[i] - expected) <= 1e-9 * fabs(expected));
  }
}

/* What the stream is given later is held up until let_go(), or for some time: so long a call takes
 * that waits on the host. */
static struct {
  int goes;
  pthread_t thread;
} held;

static void* let_go_late(void* unused) {
  (void)unused;
  for (int i = 0; i < 400 && !__atomic_load_n(&held.goes, __ATOMIC_ACQUIRE); ++i) usleep(1000);
  __atomic_fetch_or(&held.goes, 2, __ATOMIC_ACQ_REL);
  return NULL;
}

static void hold(void) {
  held.goes = 0;
  sim_stream_wait(stream, &held.goes);
  CHECK(!pthread_create(&held.thread, NULL, let_go_late, NULL));
}

/* Whether it was held up until now. */
static int let_go(void) {
  const int was_held = __atomic_fetch_or(&held.goes, 1, __ATOMIC_ACQ_REL) == 0;
  CHECK(!pthread_join(held.thread, NULL));
  return was_held;
}

/* Whether the call returned on all ranks before their streams, which are held, got to it. */
static int round_of(int what, int count, int seed, int is_held) {
  for (int i = 0; i < count; ++i) field[i] = value(rank + seed, i);
  if (is_held) hold();
  sim_stream_copy(stream, out, field, most_bytes);
  CHECK_MPI(make(what, count));
  int is_early = is_held && let_go();
  sim_stream_copy(stream, result, in, most_bytes);
  sim_stream_synchronize(stream);
  check(what, count, seed);
  if (is_held) MPI_Allreduce(MPI_IN_PLACE, &is_early, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return is_early;
}

static void note(MPI_Comm* on, int* code, ...) {
  (void)on;
  (void)code;
  __atomic_add_fetch(&errors, 1, __ATOMIC_RELAXED); /* a thread of mpress's may call */
}

/* The others' devices stop waiting for it. The error is raised once: by their call, where the
 * device has failed before it, or by a later one. */
static void lose(int dies) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  if (rank != dies) hold();
  if (rank == dies) sim_set_failing(rank % sim_devices, 1);
  make(ALLREDUCE, MOST);
  if (rank != dies) let_go();
  for (int i = 0; i < 100000 && __atomic_load_n(&errors, __ATOMIC_RELAXED) == 0; ++i) {
    CHECK_MPI(mpress_sendrecv(field, 1, MPI_INT, 0, 0, result, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
                              MPI_STATUS_IGNORE, NULL));
    usleep(50);
  }
  CHECK(errors == 1);
  if (rank != dies) sim_stream_synchronize(stream);
  MPI_Errhandler_free(&handler);
}

/* A thread with a communicator and a stream of its own. */
static void* work(void* of) {
  MPI_Comm own = *(MPI_Comm*)of;
  const int device = rank % sim_devices;
  mpress_call asked = call;
  asked.stream = sim_stream_create(device);
  double* const data = malloc(most_bytes);
  double* const from = sim_malloc(device, most_bytes);
  double* const to = sim_malloc(device, most_bytes);
  for (int round = 0; round < 60; ++round) {
    const int count = round % 3 == 0 ? 8 : MOST / 4;
    for (int i = 0; i < count; ++i) data[i] = value(rank + round, i);
    sim_stream_copy(asked.stream, from, data, (size_t)count * sizeof(double));
    CHECK_MPI(mpress_allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, own, &asked));
    sim_stream_copy(asked.stream, data, to, (size_t)count * sizeof(double));
    sim_stream_synchronize(asked.stream);
    for (int i = 0; i < count; ++i) {
      double sum = 0;
      for (int r = 0; r < size; ++r) sum += value(r + round, i);
      CHECK(fabs(data[i] - sum) <= 1e-9 * sum);
    }
  }
  sim_stream_destroy(asked.stream);
  sim_free(from);
  sim_free(to);
  free(data);
  return NULL;
}

static void in_threads(void) {
  enum { THREADS = 3 };
  MPI_Comm comms[THREADS];
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; ++t) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  for (int t = 0; t < THREADS; ++t) CHECK(!pthread_create(&threads[t], NULL, work, &comms[t]));
  for (int t = 0; t < THREADS; ++t) CHECK(!pthread_join(threads[t], NULL));
  for (int t = 0; t < THREADS; ++t) MPI_Comm_free(&comms[t]);
}

int main(int argc, char** argv) {
  int has_threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, getenv("MPRESS_PROGRESS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &has_threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK_MPI(mpress_init());
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int device = rank % sim_devices;
  stream = sim_stream_create(device);
  call.mask = MPRESS_CALL_SPEC | MPRESS_CALL_STREAM;
  call.spec = "none";
  call.stream = stream;
  field = malloc(most_bytes);
  result = malloc(most_bytes);
  out = sim_malloc(device, most_bytes);
  in = sim_malloc(device, most_bytes);
  sim_copy_in(out, memset(field, 0, most_bytes), most_bytes);
  sim_copy_in(in, field, most_bytes);
  sim_synchronize(); /* the stream does not wait for the default one */
  const int counts[] = {8 * size, MOST / size * size};
  for (int what = 0; what < CALLS; ++what) {
    for (int k = what < ALLGATHER ? 0 : 1; k < 2; ++k) {
      /* The first ones wait on the host, until devices have opened each other's memory: what has
       * failed is tried again after twice as many calls, which a busy machine may need. */
      int early = 0;
      for (int tries = 0; tries < 4 && early < 3; ++tries) {
        for (int i = 0; i < 70 << tries; ++i) round_of(what, counts[k], i, 0);
        early = 0;
        for (int i = 0; i < 3; ++i) early += round_of(what, counts[k], i, 1);
      }
      CHECK(early == 3);
    }
  }
  /* One while another is under way, whose stream gets to it: neither waits for the host. */
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < MOST; ++k) field[k] = value(rank, k);
    sim_stream_copy(stream, out, field, most_bytes);
    hold();
    CHECK_MPI(make(ALLREDUCE, MOST));
    let_go();
    sim_stream_copy(stream, out, in, most_bytes);
    CHECK_MPI(make(ALLREDUCE, MOST));
    sim_stream_copy(stream, result, in, most_bytes);
    sim_stream_synchronize(stream);
    for (int k = 0; k < MOST; ++k) {
      double sum = 0;
      for (int r = 0; r < size; ++r) sum += value(r, k);
      CHECK(fabs(result[k] - size * sum) <= 1e-9 * size * sum);
    }
  }
  if (has_threads == MPI_THREAD_MULTIPLE) in_threads();
  if (argc > 1) {
    lose(atoi(argv[1]));
  } else {
    /* The communicator, and MPI, may end before the stream gets there. */
    hold();
    CHECK_MPI(make(ALLREDUCE, MOST));
    MPI_Comm_free(&comm);
    let_go();
  }
  MPI_Finalize();
  if (argc < 2) {
    sim_stream_synchronize(stream);
    sim_stream_destroy(stream);
    sim_free(out);
    sim_free(in);
  }
  free(field);
  free(result);
  if (rank == 0) puts("ok");
  return 0;
}
