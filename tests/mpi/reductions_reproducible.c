/* Reductions whose bits do not depend on the order of the ranks, nor on the call: the same
 * contributions are brought on communicators of other orders, by all calls in all forms. Prints a
 * hash of the results, which is the same however they travel.
 *
 * reductions_reproducible SEED BOUND [key|none] [device]: exact, or abs=E. key: communicators get
 * the info key; none: they do not, and the environment says it, or nothing does: then what differs
 * is counted. device: buffers lie on devices, too. */
#include <complex.h>
#include <float.h>
#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum Call { allreduce, reduce, reduce_scatter, reduce_scatter_block, call_count };
enum Form { blocking, immediate, persistent, form_count };
enum Field { noise, scales, adverse, special, tiny, huge, field_count };

static int world, size, has_devices, must_be_same;
static double bound;
static uint64_t seed, hash = 1469598103934665603u;
static long differing;

static uint64_t mixed(uint64_t key) {
  key = (key + seed) * 0x9E3779B97F4A7C15u;
  key ^= key >> 29;
  key *= 0xBF58476D1CE4E5B9u;
  return key ^ key >> 32;
}

/* Element i of contribution `by`. */
static double brought(enum Field field, int is_f32, int by, int64_t i) {
  const uint64_t key = mixed((uint64_t)i * 1000003u + (uint64_t)by);
  const double unit = (double)(key >> 11) / (double)(1ull << 52) - 1;
  const double most = is_f32 ? FLT_MAX : DBL_MAX;
  switch (field) {
    case noise: return unit;
    case scales: return ldexp(unit, (int)(key % 40) - 20);
    case adverse: /* the first two cancel */
      if (by > 1) return unit;
      return (by == 0 ? 1 : -1) * most * fabs((double)(mixed((uint64_t)i) >> 11) / (1ull << 53));
    case special:
      switch (key % 50) {
        case 0: return NAN;
        case 1: return INFINITY;
        case 2: return -INFINITY;
        case 3:
        case 4: return -0.0;
        case 5: return 0.0;
        default: return i % 3 == 0 ? (key % 2 ? 0.0 : -0.0) : unit;
      }
    case tiny: return unit * (is_f32 ? FLT_MIN : DBL_MIN);
    default: return unit * most;
  }
}

struct Type {
  MPI_Datatype mpi;
  int leaves, is_f32;
};

static size_t width_of(const struct Type* type) { return type->is_f32 ? 4 : 8; }

static void fill(void* at, const struct Type* type, enum Field field, int64_t leaves) {
  for (int64_t i = 0; i < leaves; ++i) {
    const double x = brought(field, type->is_f32, world, i);
    if (type->is_f32) {
      ((float*)at)[i] = (float)x;
    } else {
      ((double*)at)[i] = x;
    }
  }
}

static void complete(MPI_Request* request, enum Form form) {
  if (form == persistent) CHECK_MPI(MPI_Start(request));
  CHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
  if (form == persistent) CHECK_MPI(MPI_Request_free(request));
}

/* The result's elements from `first` on, `count` of them, as this rank has them. */
struct Got {
  int64_t first, count;
};

static struct Got call_it(enum Call call, enum Form form, const void* in, void* out, int items,
                          const struct Type* type, MPI_Op op, MPI_Comm comm) {
  int rank, counts[64];
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  const int root = size / 2;
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Datatype t = type->mpi;
  struct Got got = {0, items};
  if (call == allreduce) {
    if (form == blocking) CHECK_MPI(MPI_Allreduce(in, out, items, t, op, comm));
    if (form == immediate) CHECK_MPI(MPI_Iallreduce(in, out, items, t, op, comm, &r));
    if (form == persistent)
      CHECK_MPI(MPI_Allreduce_init(in, out, items, t, op, comm, MPI_INFO_NULL, &r));
  } else if (call == reduce) {
    if (in == MPI_IN_PLACE && rank != root) in = out;
    if (form == blocking) CHECK_MPI(MPI_Reduce(in, out, items, t, op, root, comm));
    if (form == immediate) CHECK_MPI(MPI_Ireduce(in, out, items, t, op, root, comm, &r));
    if (form == persistent)
      CHECK_MPI(MPI_Reduce_init(in, out, items, t, op, root, comm, MPI_INFO_NULL, &r));
    if (rank != root) got.count = 0;
  } else if (call == reduce_scatter) {
    for (int k = 0, left = items; k < size; ++k) { /* uneven, and some have none */
      counts[k] = k == size - 1 ? left : left / (2 + k) + (k == 1);
      if (counts[k] > left) counts[k] = left;
      if (k < rank) got.first += counts[k];
      if (k == rank) got.count = counts[k];
      left -= counts[k];
    }
    if (form == blocking) CHECK_MPI(MPI_Reduce_scatter(in, out, counts, t, op, comm));
    if (form == immediate) CHECK_MPI(MPI_Ireduce_scatter(in, out, counts, t, op, comm, &r));
    if (form == persistent)
      CHECK_MPI(MPI_Reduce_scatter_init(in, out, counts, t, op, comm, MPI_INFO_NULL, &r));
  } else {
    const int block = items / size;
    got = (struct Got){(int64_t)rank * block, block};
    if (form == blocking) CHECK_MPI(MPI_Reduce_scatter_block(in, out, block, t, op, comm));
    if (form == immediate) CHECK_MPI(MPI_Ireduce_scatter_block(in, out, block, t, op, comm, &r));
    if (form == persistent)
      CHECK_MPI(MPI_Reduce_scatter_block_init(in, out, block, t, op, comm, MPI_INFO_NULL, &r));
  }
  if (form != blocking) complete(&r, form);
  return (struct Got){got.first * type->leaves, got.count * type->leaves};
}

static double leaf(const void* at, const struct Type* type, int64_t i) {
  return type->is_f32 ? (double)((const float*)at)[i] : ((const double*)at)[i];
}

/* Within a rounding, or the bound; of what has a sum that a long double holds. */
static void compare(const char* results, const struct Type* type, enum Field field, MPI_Op op,
                    int64_t leaves) {
  for (int64_t i = 0; i < leaves; ++i) {
    long double sum = 0, most = 0;
    double extreme = 0;
    for (int by = 0; by < size; ++by) {
      double x = brought(field, type->is_f32, by, i);
      if (type->is_f32) x = (double)(float)x;
      sum += x;
      most = fmaxl(most, fabsl((long double)x));
      if (by == 0 || (op == MPI_MIN ? x < extreme : x > extreme)) extreme = x;
    }
    const double got = leaf(results, type, i);
    if (op != MPI_SUM) {
      CHECK(got == extreme);
      continue;
    }
    const long double epsilon = type->is_f32 ? FLT_EPSILON : DBL_EPSILON;
    const long double least = type->is_f32 ? FLT_TRUE_MIN : DBL_TRUE_MIN;
    const long double rounding = epsilon * fabsl(sum) + LDBL_EPSILON * size * most + least;
    if (fabsl(got - sum) <= bound + rounding) continue;
    fprintf(stderr, "rank %d: field %d, element %lld: %.17g in the place of %.17Lg\n", world,
            (int)field, (long long)i, got, sum);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void check_all(const struct Type* type, MPI_Op op, enum Field field, int items,
                      const MPI_Comm* comms) {
  const int64_t leaves = (int64_t)items * type->leaves;
  const size_t bytes = (size_t)leaves * width_of(type);
  char* const expected = malloc(bytes);
  int step = items;
  for (int c = 0; c < 3; ++c) {
    for (int call = 0; call < call_count; ++call) {
      if (call == reduce_scatter_block && items % size != 0) continue;
      const enum Form form = (enum Form)(step++ % form_count);
      /* MPICH 5 copies overlapping results of MPI_Reduce_scatter in place. */
      const int is_in_place = step / 3 % 2 == 0 && (must_be_same || call != reduce_scatter);
      struct Memory in = memory_on(has_devices && step % 5 < 3 ? world % 2 : -1, bytes);
      struct Memory out = memory_on(has_devices && step % 7 < 5 ? world % 2 : -1, bytes);
      fill(in.shadow, type, field, leaves);
      memcpy(out.shadow, in.shadow, bytes);
      put(&in);
      put(&out);
      const struct Got got = call_it((enum Call)call, form, is_in_place ? MPI_IN_PLACE : in.data,
                                     out.data, items, type, op, comms[c]);
      get(&out);
      if (c == 0 && call == allreduce) {
        memcpy(expected, out.shadow, bytes);
        for (size_t i = 0; i < bytes; ++i) {
          hash = (hash ^ (unsigned char)expected[i]) * 1099511628211u;
        }
        if (must_be_same && (field == noise || field == scales || (field == tiny && bound == 0))) {
          compare(expected, type, field, op, leaves);
        }
      }
      const size_t width = width_of(type);
      const int differs =
          memcmp(expected + (size_t)got.first * width, out.shadow, (size_t)got.count * width) != 0;
      differing += differs;
      if (must_be_same && differs) {
        fprintf(stderr, "rank %d: communicator %d, call %d, form %d, field %d, %d items differ\n",
                world, c, call, (int)form, (int)field, items);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      drop(&in);
      drop(&out);
    }
  }
  free(expected);
}

int main(int argc, char** argv) {
  CHECK(argc > 3);
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size <= 64);
  check_rank = world;
  seed = strtoull(argv[1], NULL, 10);
  if (strncmp(argv[2], "abs=", 4) == 0) bound = atof(argv[2] + 4);
  const int has_key = strcmp(argv[3], "key") == 0;
  const char* const environment = getenv("MPRESS_REPRODUCIBLE");
  must_be_same = has_key || (environment && *environment == '1');
  has_devices = argc > 4 && strcmp(argv[4], "device") == 0;
  MPI_Comm comms[3];
  MPI_Info info;
  CHECK_MPI(MPI_Info_create(&info));
  CHECK_MPI(MPI_Info_set(info, "mpress_reproducible", "1"));
  const int keys[] = {world, -world, world * 7 % 11};
  for (int c = 0; c < 3; ++c) {
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, keys[c], &comms[c]));
    if (has_key) CHECK_MPI(MPI_Comm_set_info(comms[c], info));
    /* With threads, MPI makes no private communicator in the background. */
    float first = 1;
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_FLOAT, MPI_SUM, comms[c]));
    CHECK(fabs(first - (double)size) <= bound);
  }
  CHECK_MPI(MPI_Info_free(&info));
  const struct Type types[] = {{MPI_FLOAT, 1, 1}, {MPI_DOUBLE, 1, 0}, {MPI_C_DOUBLE_COMPLEX, 2, 0}};
  const int items[] = {1, size * 100, 5001, 131072};
  const MPI_Op ops[] = {MPI_SUM, MPI_SUM, MPI_MIN, MPI_MAX};
  int turn = (int)(seed % 4);
  for (int t = 0; t < 3; ++t) {
    for (int field = 0; field < field_count; ++field) {
      for (int i = 0; i < (int)(sizeof items / sizeof *items); ++i) {
        if (items[i] > 100000 && (field != noise || t != 1)) continue;
        const MPI_Op op = types[t].leaves == 2 ? MPI_SUM : ops[turn++ % 4];
        check_all(&types[t], op, (enum Field)field, items[i], comms);
      }
    }
  }
  for (int c = 0; c < 3; ++c) CHECK_MPI(MPI_Comm_free(&comms[c]));
  long all = 0;
  CHECK_MPI(MPI_Reduce(&differing, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Finalize());
  if (world == 0) {
    printf("%016llx %s\n", (unsigned long long)hash, all == 0 ? "same" : "others");
  }
  return 0;
}
