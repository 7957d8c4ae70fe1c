/* The floating-point environment is the program's, whatever mpress computes in its calls: nothing
 * traps, and modes and flags are as they were. Messages bring what masked fields hold.
 *
 * float_environment traps early|late BOUND [MASK]: traps are unmasked before MPI_Init (those of
 *   MASK, as MXCSR has them), or behind it: each alone, all, and flags that are raised already.
 *   BOUND: what a codec may make finite numbers err by.
 * float_environment modes BOUND: each rank rounds in another direction, and some flush. Sums are
 *   within the bound and have the same bits on all ranks.
 * float_environment sums [elsewhere]: of two ranks, in all modes, as MPI adds up itself. elsewhere:
 *   what a call leaves to do is done while the thread has other modes. */
#define _GNU_SOURCE
#include <stdint.h>

#include "beneath.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
static unsigned get(void) { return _mm_getcsr(); }
static void set(unsigned state) { _mm_setcsr(state); }
#else
#include <fenv.h>
static unsigned get(void) { return 0x1F80 | (unsigned)fegetround() >> 22 << 13; }
static void set(unsigned state) { fesetround((int)((state >> 13 & 3) << 22)); }
#endif

enum {
  N = 24000,
  most_ranks = 4,
  usual = 0x1F80,
  all_traps = 0x1F80,
  flushing = 0x8040,
  controls = 0xFFC0
};

static int rank, size;
static double bound;
static float out[most_ranks * N], in[most_ranks * N];
static double out64[most_ranks * N], in64[most_ranks * N];
static unsigned state;         /* the program's */
static unsigned watched = ~0u; /* of that; flags where MPI itself may raise none */

static void make(float* x, double* y, int owner) {
  static const uint32_t odd[] = {0x7FC00123u, 0x7FA00001u, 0x7F800000u, 0xFF800000u,
                                 0x7F7FFFFFu, 0x80000000u, 0x00000001u, 0x7CF00000u};
  static const uint64_t odd64[] = {0x7FF8000000000123u, 0x7FF4000000000001u, 0x7FF0000000000000u,
                                   0xFFF0000000000000u, 0x7FEFFFFFFFFFFFFFu, 0x8000000000000000u,
                                   0x0000000000000001u, 0x479E000000000000u};
  for (int i = 0; i < N; ++i) {
    x[i] = (float)(owner + 1) + 1e-3f * (float)(i % 4099);
    y[i] = (double)(owner + 1) + 1e-3 * (i % 4099);
    if (i % 37 >= 8) continue;
    memcpy(&x[i], &odd[i % 37], 4);
    memcpy(&y[i], &odd64[i % 37], 8);
  }
}

static void compare(const float* x, const double* y, int owner) {
  static float x_of[N];
  static double y_of[N];
  make(x_of, y_of, owner);
  for (int i = 0; i < N; ++i) {
    const int is_finite = isfinite(x_of[i]) && isfinite(y_of[i]);
    CHECK(memcmp(&x[i], &x_of[i], 4) == 0 || (is_finite && fabs((double)x[i] - x_of[i]) <= bound));
    CHECK(memcmp(&y[i], &y_of[i], 8) == 0 || (is_finite && fabs(y[i] - y_of[i]) <= bound));
  }
}

/* A call in the program's environment, which is the same behind it. */
#define IN_ITS_OWN(...)                            \
  do {                                             \
    unsigned after;                                \
    set(state);                                    \
    CHECK_MPI(__VA_ARGS__);                        \
    after = get();                                 \
    set(usual);                                    \
    CHECK((after & watched) == (state & watched)); \
  } while (0)

static void messages(void) {
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Request four[4];
  make(out, out64, rank);
  IN_ITS_OWN(MPI_Sendrecv(out, N, MPI_FLOAT, next, 1, in, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
  IN_ITS_OWN(MPI_Sendrecv(out64, N, MPI_DOUBLE, next, 2, in64, N, MPI_DOUBLE, previous, 2,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  compare(in, in64, previous);
  memset(in, 0, sizeof in), memset(in64, 0, sizeof in64);
  IN_ITS_OWN(MPI_Irecv(in, N, MPI_FLOAT, previous, 3, MPI_COMM_WORLD, &four[0]));
  IN_ITS_OWN(MPI_Irecv(in64, N, MPI_DOUBLE, previous, 4, MPI_COMM_WORLD, &four[1]));
  IN_ITS_OWN(MPI_Isend(out, N, MPI_FLOAT, next, 3, MPI_COMM_WORLD, &four[2]));
  IN_ITS_OWN(MPI_Isend(out64, N, MPI_DOUBLE, next, 4, MPI_COMM_WORLD, &four[3]));
  IN_ITS_OWN(MPI_Waitall(4, four, MPI_STATUSES_IGNORE));
  compare(in, in64, previous);
  memset(in, 0, sizeof in), memset(in64, 0, sizeof in64);
  IN_ITS_OWN(MPI_Recv_init(in, N, MPI_FLOAT, previous, 5, MPI_COMM_WORLD, &four[0]));
  IN_ITS_OWN(MPI_Recv_init(in64, N, MPI_DOUBLE, previous, 6, MPI_COMM_WORLD, &four[1]));
  IN_ITS_OWN(MPI_Send_init(out, N, MPI_FLOAT, next, 5, MPI_COMM_WORLD, &four[2]));
  IN_ITS_OWN(MPI_Send_init(out64, N, MPI_DOUBLE, next, 6, MPI_COMM_WORLD, &four[3]));
  IN_ITS_OWN(MPI_Startall(4, four));
  IN_ITS_OWN(MPI_Waitall(4, four, MPI_STATUSES_IGNORE));
  compare(in, in64, previous);
  for (int i = 0; i < 4; ++i) IN_ITS_OWN(MPI_Request_free(&four[i]));
}

static void data_movement(void) {
  MPI_Request request;
  make(in, in64, 7);
  for (int root = 0; root < 2; ++root) {
    IN_ITS_OWN(MPI_Bcast(in, N, MPI_FLOAT, root, MPI_COMM_WORLD));
    IN_ITS_OWN(MPI_Bcast(in64, N, MPI_DOUBLE, root, MPI_COMM_WORLD));
    compare(in, in64, 7);
    make(in, in64, 7);
  }
  make(out, out64, rank);
  IN_ITS_OWN(MPI_Allgather(out, N, MPI_FLOAT, in, N, MPI_FLOAT, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Iallgather(out64, N, MPI_DOUBLE, in64, N, MPI_DOUBLE, MPI_COMM_WORLD, &request));
  IN_ITS_OWN(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < size; ++i) compare(in + i * N, in64 + i * N, i);
  IN_ITS_OWN(MPI_Gather(out, N, MPI_FLOAT, in, N, MPI_FLOAT, 0, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Gather(out64, N, MPI_DOUBLE, in64, N, MPI_DOUBLE, 0, MPI_COMM_WORLD));
  for (int i = 0; i < size && rank == 0; ++i) compare(in + i * N, in64 + i * N, i);
  for (int i = 0; i < size; ++i) make(out + i * N, out64 + i * N, rank);
  IN_ITS_OWN(MPI_Alltoall(out, N, MPI_FLOAT, in, N, MPI_FLOAT, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Alltoall(out64, N, MPI_DOUBLE, in64, N, MPI_DOUBLE, MPI_COMM_WORLD));
  for (int i = 0; i < size; ++i) compare(in + i * N, in64 + i * N, i);
  IN_ITS_OWN(MPI_Scatter(out, N, MPI_FLOAT, in, N, MPI_FLOAT, 0, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Scatter(out64, N, MPI_DOUBLE, in64, N, MPI_DOUBLE, 0, MPI_COMM_WORLD));
  compare(in, in64, 0);
}

/* Exact in any order: MPI's own sums raise no flags either. */
static void make_summands(void) {
  for (int i = 0; i < size * N; ++i) out[i] = i % 64 ? (float)(i % 7) : rank ? 0.0f : 3e38f;
  for (int i = 0; i < size * N; ++i) out64[i] = i % 64 ? (double)(i % 7) : rank ? 0.0 : 1.5e308;
}

static void compare_sums(int first, int count) {
  for (int i = 0; i < count; ++i) {
    const int at = first + i;
    const double sum = at % 64 ? size * (at % 7) : 3e38f, sum64 = at % 64 ? sum : 1.5e308;
    CHECK(in[i] == (float)sum || fabs(in[i] - sum) <= bound * 1.001);
    CHECK(in64[i] == sum64 || fabs(in64[i] - sum64) <= bound * 1.001);
  }
}

static void sums(void) {
  MPI_Request two[2];
  make_summands();
  IN_ITS_OWN(MPI_Allreduce(out, in, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Allreduce(out64, in64, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  compare_sums(0, N);
  IN_ITS_OWN(MPI_Iallreduce(out, in, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &two[0]));
  IN_ITS_OWN(MPI_Iallreduce(out64, in64, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &two[1]));
  IN_ITS_OWN(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
  compare_sums(0, N);
  IN_ITS_OWN(MPI_Reduce(out, in, N, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Reduce(out64, in64, N, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
  if (rank == 0) compare_sums(0, N);
  IN_ITS_OWN(MPI_Reduce_scatter_block(out, in, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  IN_ITS_OWN(MPI_Reduce_scatter_block(out64, in64, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  compare_sums(rank * N, N);
}

static void all_calls(void) {
  messages();
  data_movement();
  sums();
}

static void late(void) {
  static const unsigned raised[] = {0, 0x3F, 0x21};
  for (unsigned trap = 0; trap < 6; ++trap) {
    state = usual & ~(0x80u << trap);
    all_calls();
  }
  state = usual & ~all_traps;
  all_calls();
  for (int i = 0; i < 3; ++i) {
    state = usual | raised[i] | (unsigned)i << 13;
    all_calls();
  }
}

/* With a mode of its own in each rank; what all get is compared. */
static void modes(int is_single, int flushes) {
  const MPI_Datatype type = is_single ? MPI_FLOAT : MPI_DOUBLE;
  void* const from = is_single ? (void*)out : (void*)out64;
  void* const to = is_single ? (void*)in : (void*)in64;
  const size_t bytes = N * (is_single ? sizeof *in : sizeof *in64);
  state = usual | (unsigned)rank % 4 << 13 | (flushes && rank % 2 ? flushing : 0u);
  for (int i = 0; i < N; ++i) {
    /* As far from any multiple of the step as can be, of all sizes. */
    out64[i] = (rank % 2 ? -1 : 1) * ldexp(1 + (i * 7919 % 4099) / 4099.0, i % 12);
    out[i] = (float)out64[i];
    if (is_single) out64[i] = out[i];
  }
  for (int round = 0; round < 3; ++round) {
    MPI_Request request;
    switch (round) {
      case 0: IN_ITS_OWN(MPI_Allreduce(from, to, N, type, MPI_SUM, MPI_COMM_WORLD)); break;
      case 1:
        IN_ITS_OWN(MPI_Iallreduce(from, to, N, type, MPI_SUM, MPI_COMM_WORLD, &request));
        IN_ITS_OWN(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
      default:
        IN_ITS_OWN(MPI_Reduce(from, to, N, type, MPI_SUM, 0, MPI_COMM_WORLD));
        IN_ITS_OWN(MPI_Bcast(to, N, type, 0, MPI_COMM_WORLD));
    }
    unsigned long long hash = 1469598103934665603u, least, most;
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ ((unsigned char*)to)[i]) * 1099511628211u;
    CHECK_MPI(MPI_Allreduce(&hash, &least, 1, MPI_UNSIGNED_LONG_LONG, MPI_MIN, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Allreduce(&hash, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD));
    CHECK(least == most);
    for (int i = 0; i < N && round < 2; ++i) {
      const double one = out64[i] * (rank % 2 ? -1 : 1);
      const double sum = size % 2 ? one : 0, got = is_single ? in[i] : in64[i];
      CHECK(fabs(got - sum) <= bound);
    }
  }
}

typedef int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

static void as_mpi_adds(int ends_elsewhere) {
  const Allreduce beneath = (Allreduce)own_function("PMPI_Allreduce");
  static float expected[N];
  static double expected64[N];
  watched = controls;
  for (unsigned mode = 0; mode < 8; ++mode) {
    MPI_Request two[2];
    state = usual | (mode & 3) << 13 | (mode & 4 ? flushing : 0);
    for (int i = 0; i < N; ++i) {
      out64[i] = ldexp(1 + (i * 7919 % 4099) / 4099.0, i * 31 % 2000 - 1060) / (rank + 3);
      out[i] = (float)ldexp(1 + (i * 7919 % 4099) / 4099.0, i * 31 % 250 - 140) / (float)(rank + 3);
    }
    set(state);
    CHECK_MPI(beneath(out, expected, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_MPI(beneath(out64, expected64, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    set(usual);
    IN_ITS_OWN(MPI_Allreduce(out, in, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    IN_ITS_OWN(MPI_Allreduce(out64, in64, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(memcmp(in, expected, sizeof expected) == 0);
    CHECK(memcmp(in64, expected64, sizeof expected64) == 0);
    IN_ITS_OWN(MPI_Iallreduce(out, in, N, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &two[0]));
    IN_ITS_OWN(MPI_Iallreduce(out64, in64, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &two[1]));
    if (ends_elsewhere) state = usual | (mode + 1) % 4 << 13;
    IN_ITS_OWN(MPI_Waitall(2, two, MPI_STATUSES_IGNORE));
    CHECK(memcmp(in, expected, sizeof expected) == 0);
    CHECK(memcmp(in64, expected64, sizeof expected64) == 0);
  }
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const int is_early = argc > 2 && strcmp(argv[2], "early") == 0;
  const unsigned mask = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 16) : all_traps;
  int provided, is_kept; /* MPI_Init of some MPIs computes itself, and raises flags */
  bound = argc > 2 ? atof(argv[strcmp(what, "traps") == 0 ? 3 : 2]) : 0;
  state = is_early ? usual & ~mask : usual;
  set(state);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  is_kept = ((get() ^ state) & controls) == 0;
  set(usual);
  CHECK(is_kept);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(size <= most_ranks);
  if (strcmp(what, "modes") == 0) {
    for (int is_single = 0; is_single < 2; ++is_single) {
      modes(is_single, 0);
      modes(is_single, 1);
    }
  } else if (strcmp(what, "sums") == 0) {
    as_mpi_adds(argc > 2);
  } else if (is_early) {
    all_calls();
  } else {
    late();
  }
  set(state);
  MPI_Finalize();
  is_kept = ((get() ^ state) & controls) == 0;
  set(usual);
  return is_kept ? 0 : 1;
}
