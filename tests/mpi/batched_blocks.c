/* Calls in which a rank has a block for each of several others: their device encodes all of a call
 * in one launch, and each reader gets the very bits that a message of its own would have brought.
 *
 * batched_blocks FLOATS LAUNCHES FORM...: floats in the longest block, launches that a call takes
 * of a rank that has blocks for three others, and how they are sent, one way after another. Of the
 * forms "mixed" has some ranks' buffers in memory of the host, and "noise" has blocks that do not
 * compress. 4 ranks. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { RANKS = 4, MEETINGS = 8, CALLS = 3 };

static const char* form;
static int rank;
static int most;          /* floats of the longest block */
static double* wave;      /* of each of them */
static struct Memory out; /* a block for each rank, `most` floats apart */
static struct Memory in;  /* and of each */
static MPI_Request persistent = MPI_REQUEST_NULL;
static int counts[RANKS], places[RANKS], byte_places[RANKS], in_counts[RANKS];
static MPI_Datatype types[RANKS];

static int is(const char* name) { return strcmp(form, name) == 0; }

/* A form of one root and many readers; else all have blocks for all. */
static int is_scatter(void) { return is("scatter") || is("scatterv") || is("scatter in place"); }

/* Floats of the block that goes from one rank to another. */
static int floats(int from, int to) {
  if (is("alltoallv") || is("alltoallw")) return most - 16 * ((from + 2 * to) % 5);
  return is("scatterv") ? most - 16 * to : most;
}

static double scale_of(int from, int to) { return (from + 1) * pow(30, to); }

static double value(double scale, int call, int i) { return scale * (1 + 1e-3 * call + wave[i]); }

static void fill(int call) {
  for (int to = 0; to < RANKS; ++to) {
    const double scale = scale_of(rank, to);
    for (int i = 0; i < most; ++i) {
      ((float*)out.shadow)[to * most + i] = (float)value(scale, call, i);
    }
  }
  if (is("noise")) fill_noise(out.shadow, out.bytes, (unsigned)(rank + RANKS * call));
  put(&out);
  memset(in.shadow, 0x5a, in.bytes);
  put(&in);
}

static void communicate(void) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  float* const to = (float*)in.data;
  if (is("persistent")) {
    CHECK_MPI(MPI_Start(&persistent));
    CHECK_MPI(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
  } else if (is("immediate")) {
    CHECK_MPI(MPI_Ialltoall(out.data, most, MPI_FLOAT, to, most, MPI_FLOAT, comm, &request));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (is("alltoallv")) {
    CHECK_MPI(
        MPI_Alltoallv(out.data, counts, places, MPI_FLOAT, to, in_counts, places, MPI_FLOAT, comm));
  } else if (is("alltoallw")) {
    CHECK_MPI(MPI_Alltoallw(out.data, counts, byte_places, types, to, in_counts, byte_places, types,
                            comm));
  } else if (is("scatter")) {
    CHECK_MPI(MPI_Scatter(out.data, most, MPI_FLOAT, to + most, most, MPI_FLOAT, 1, comm));
  } else if (is("scatter in place")) {
    CHECK_MPI(MPI_Scatter(out.data, most, MPI_FLOAT, rank == 1 ? MPI_IN_PLACE : to + most, most,
                          MPI_FLOAT, 1, comm));
  } else if (is("scatterv")) {
    CHECK_MPI(MPI_Scatterv(out.data, counts, places, MPI_FLOAT, to + most, floats(1, rank),
                           MPI_FLOAT, 1, comm));
  } else {
    CHECK_MPI(MPI_Alltoall(out.data, most, MPI_FLOAT, to, most, MPI_FLOAT, comm));
  }
}

/* What messages bring, one block each: to `expected`. */
static void exchange(struct Memory* expected) {
  memset(expected->shadow, 0x5a, expected->bytes);
  put(expected);
  for (int distance = 1; distance < RANKS; ++distance) {
    const int to = (rank + distance) % RANKS, from = (rank + RANKS - distance) % RANKS;
    CHECK_MPI(MPI_Sendrecv((float*)out.data + to * most, floats(rank, to), MPI_FLOAT, to, 0,
                           (float*)expected->data + from * most, floats(from, rank), MPI_FLOAT,
                           from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  get(expected);
}

static void check(const struct Memory* expected, int call) {
  const float* const got = (const float*)in.shadow;
  const float* const right = (const float*)expected->shadow;
  get(&in);
  for (int from = 0; from < RANKS; ++from) {
    if (is_scatter() && from != 1) continue;
    if (from == rank) { /* its own block never travels */
      const size_t own = sizeof(float) * (size_t)(is("scatter in place") ? 0 : floats(rank, rank));
      CHECK(memcmp(got + rank * most, (float*)out.shadow + rank * most, own) == 0);
      continue;
    }
    CHECK(memcmp(got + from * most, right + from * most, sizeof(float) * (size_t)most) == 0);
    const double scale = scale_of(from, rank);
    const int checked = is("noise") ? 0 : floats(from, rank);
    for (int i = 0; i < checked; ++i) {
      CHECK(fabs(got[from * most + i] - value(scale, call, i)) <= 0.02 * scale);
    }
  }
}

/* All calls of a form. */
static void run(int device_launches) {
  /* Of a rank's two buffers either may lie on the host. */
  const int device = rank % sim_devices;
  const size_t bytes = sizeof(float) * RANKS * (size_t)most;
  out = memory_on(is("mixed") && rank == 2 ? -1 : device, bytes);
  in = memory_on(is("mixed") && rank == 3 ? -1 : device, bytes);
  struct Memory expected = memory_on(in.device, bytes);
  for (int i = 0; i < RANKS; ++i) {
    counts[i] = floats(rank, i);
    in_counts[i] = floats(i, rank);
    places[i] = i * most;
    byte_places[i] = i * most * (int)sizeof(float);
    types[i] = MPI_FLOAT;
  }
  if (is("persistent")) {
    CHECK_MPI(MPI_Alltoall_init(out.data, most, MPI_FLOAT, in.data, most, MPI_FLOAT, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &persistent));
  }
  const int sends_on_device = out.device >= 0 && (!is_scatter() || rank == 1);
  size_t launches = sends_on_device ? (size_t)device_launches : 0;
  /* To memory of the host no link leads: such a block is an eager message. */
  if (is("mixed") && sends_on_device && rank != 3) ++launches;
  /* GPUs meet, and get what the others have opened. */
  fill(0);
  for (int i = 0; i < MEETINGS; ++i) {
    communicate();
    exchange(&expected);
  }
  for (int call = 0; call < CALLS; ++call) {
    fill(call);
    exchange(&expected);
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); /* the messages' memory is free again */
    const size_t before = sim_encode_calls();
    communicate();
    const size_t taken = sim_encode_calls() - before;
    if (taken != launches) fprintf(stderr, "rank %d, %s: %zu launches\n", rank, form, taken);
    CHECK(taken == launches);
    check(&expected, call);
  }
  if (persistent != MPI_REQUEST_NULL) CHECK_MPI(MPI_Request_free(&persistent));
  drop(&out);
  drop(&in);
  drop(&expected);
}

int main(int argc, char** argv) {
  int size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  CHECK(size == RANKS && argc >= 4);
  most = atoi(argv[1]);
  wave = malloc(sizeof(double) * (size_t)most);
  for (int i = 0; i < most; ++i) wave[i] = sin(1e-2 * i);
  for (int i = 3; i < argc; ++i) {
    form = argv[i];
    run(atoi(argv[2]));
  }
  free(wave);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
