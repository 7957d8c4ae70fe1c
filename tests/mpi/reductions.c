/* Random reductions, checked against sums in higher precision: each rank can compute what any other
 * brings. All ranks that get a result get the same bits.
 *
 * reductions SEED ROUNDS BOUND [plain|device]: exact (but for rounding), abs=E, rel=E (of the range
 * of what all ranks bring) or loose. plain: MPI serves some. device: buffers lie on devices, too,
 * each rank's its own. */
#include <complex.h>
#include <float.h>
#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { most_items = 60000, guard = 64 };

enum Call { allreduce, reduce, reduce_scatter, reduce_scatter_block, call_count };
enum Form { blocking, immediate, persistent, form_count };
enum Field { smooth, noise, constant, mixed, cancelling, denormal, not_finite, far, factors };

static uint64_t state;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
static unsigned below(unsigned n) { return (unsigned)((next() >> 20) % n); }

static double unit(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  key ^= key >> 29;
  key *= 0xBF58476D1CE4E5B9u;
  key ^= key >> 32;
  return (double)(key >> 11) / (double)(1ull << 52) - 1;
}

static double wave(int rank, int round, int64_t i) {
  return wave_at((long)i + 1000L * (rank + round)) + 2;
}

/* What a rank brings. */
static double value(enum Field field, int rank, int ranks, int round, int64_t i) {
  const uint64_t key = (uint64_t)i * 1000003u + (uint64_t)rank * 7919u + (uint64_t)round;
  switch (field) {
    case smooth: return wave(rank, round, i);
    case noise: return unit(key);
    case constant: return 1.25;
    case mixed: return unit(key) * pow(10, (double)((key >> 7) % 9) - 4);
    case cancelling:
      return (rank == ranks - 1 && ranks > 1 ? -(ranks - 1) : 1) * wave(rank, round, i);
    case denormal: return unit(key) * 1e-310;
    case not_finite:
      if (key % 997 == 0) return NAN;
      if (key % 1499 == 0 && rank == 0) return INFINITY;
      if (key % 1999 == 0) return -INFINITY;
      return wave(rank, round, i);
    case factors: /* no product of a few overflows, in any order */
      if (key % 997 == 0) return NAN;
      if (key % 1499 == 0) return key % 2 ? INFINITY : -INFINITY;
      if (key % 31 == 0) return key % 2 ? 0.0 : -0.0;
      if (key % 3 == 0) return ldexp(key % 2 ? 1 : -1, (int)(key % 17) - 8);
      return 1 + 1e-3 * unit(key);
    case far: return rank == 1 && i % 4096 < 3 ? 1e30 : wave(rank, round, i);
    default: return 0;
  }
}

struct Type {
  MPI_Datatype mpi;
  int leaves;
  int is_f32;
  int is_integer;
};

/* What a leaf can hold of a value. */
static double as(const struct Type* type, double x) {
  if (type->is_integer) return isfinite(x) ? (int)fmax(-1000, fmin(1000, x * 100)) : 0;
  return type->is_f32 ? (double)(float)x : x;
}

static void write_leaf(void* at, const struct Type* type, int64_t i, double x) {
  if (type->is_integer) {
    ((int*)at)[i] = (int)x;
  } else if (type->is_f32) {
    ((float*)at)[i] = (float)x;
  } else {
    ((double*)at)[i] = x;
  }
}

static double read_leaf(const void* at, const struct Type* type, int64_t i) {
  if (type->is_integer) return ((const int*)at)[i];
  return type->is_f32 ? (double)((const float*)at)[i] : ((const double*)at)[i];
}

static size_t width_of(const struct Type* type) {
  return type->is_integer ? sizeof(int) : type->is_f32 ? sizeof(float) : sizeof(double);
}

static int is_exact, is_loose;
static double bound, bound_of_range;

static void read_bound(const char* text) {
  is_exact = strcmp(text, "exact") == 0;
  is_loose = strcmp(text, "loose") == 0;
  if (strncmp(text, "abs=", 4) == 0) bound = atof(text + 4);
  if (strncmp(text, "rel=", 4) == 0) bound_of_range = atof(text + 4);
}

static uint64_t hash_of(const char* bytes, size_t count) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
  return hash;
}

int main(int argc, char** argv) {
  int world, size;
  CHECK(argc > 3);
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = world;
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 88172645463325252ull;
  const int rounds = atoi(argv[2]);
  read_bound(argv[3]);
  const int is_plain = argc > 4 && strcmp(argv[4], "plain") == 0;
  const int has_devices = argc > 4 && strcmp(argv[4], "device") == 0;
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &comms[2])); /* the other way round */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[3]));
  const struct Type types[] = {{MPI_FLOAT, 1, 1, 0},
                               {MPI_DOUBLE, 1, 0, 0},
                               {MPI_C_FLOAT_COMPLEX, 2, 1, 0},
                               {MPI_INT, 1, 0, 1}};
  const MPI_Op ops[] = {MPI_SUM, MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD};

  for (int round = 0; round < rounds; ++round) {
    const MPI_Comm comm = comms[below(4)];
    const enum Call call = (enum Call)below(call_count);
    const enum Form form = (enum Form)below(form_count);
    enum Field field = (enum Field)below(factors);
    const struct Type* type = &types[below(8) == 0 ? 3 : below(3)];
    MPI_Op op = ops[below(6) == 0 ? 4 : below(4)];
    if (type->leaves == 2 && op != MPI_SUM) op = MPI_SUM;
    if (op == MPI_PROD && type->is_integer) op = MPI_MAX;
    if (op == MPI_PROD) field = factors;
    if (type->is_f32 && field == denormal) field = mixed;
    const unsigned pick = below(10);
    const int most = pick == 0 ? 0 : pick < 3 ? 100 : most_items;
    const int items = most == 0 ? 0 : (int)below((unsigned)most);
    const int is_mpis = type->is_integer;
    /* MPICH 5 copies overlapping results of MPI_Reduce_scatter in place. */
    const int may_be_mpis = is_mpis || is_plain || items < 1000 || form != blocking;
    const int is_in_place = below(2) != 0 && !(may_be_mpis && call == reduce_scatter);
    const unsigned root_seed = below(1 << 20);
    const uint64_t counts_seed = next();
    const uint64_t before = next();
    int rank, ranks;
    CHECK_MPI(MPI_Comm_rank(comm, &rank));
    CHECK_MPI(MPI_Comm_size(comm, &ranks));
    const int root = (int)(root_seed % (unsigned)ranks);

    /* Items of each rank's result, where ranks get pieces. */
    int counts[64], begins[65] = {0};
    CHECK(ranks <= 64);
    for (int i = 0; i < ranks; ++i) {
      counts[i] = items;
      if (call == reduce_scatter) {
        state = counts_seed + 31u * (unsigned)i + 1;
        next();
        counts[i] = below(4) == 0 ? 0 : (int)below((unsigned)items + 1);
      }
      begins[i + 1] = begins[i] + counts[i];
    }
    const int is_scatter = call == reduce_scatter || call == reduce_scatter_block;
    const int all_items = is_scatter ? begins[ranks] : items;
    const int64_t leaves = (int64_t)all_items * type->leaves;
    const int64_t first = is_scatter ? (int64_t)begins[rank] * type->leaves : 0;
    const int64_t results = is_scatter ? (int64_t)counts[rank] * type->leaves : leaves;
    const size_t width = width_of(type);
    const int gets = call != reduce || rank == root;
    const int in_place = is_in_place && (call != reduce || rank == root);

    const size_t in_bytes = (size_t)leaves * width;
    const size_t out_bytes = (size_t)(in_place ? leaves : results) * width;
    const uint64_t after = state;
    state ^= (uint64_t)(world + 1) * 0x9E3779B97F4A7C15u;
    const int in_device = has_devices && below(3) != 0 ? world % 2 : -1;
    const int out_device = has_devices && below(3) != 0 ? world % 2 : -1;
    state = after;
    struct Memory in_memory = memory_on(in_device, in_bytes + guard);
    struct Memory out_memory =
        memory_on(out_device, (in_bytes > out_bytes ? in_bytes : out_bytes) + guard);
    char* const input = in_memory.shadow;
    char* const output = out_memory.shadow;
    /* What all ranks bring, one after another. */
    double* const brought = malloc(sizeof(double) * (size_t)(leaves * ranks) + 1);
    const double* const own = brought + rank * leaves;
    const int starts = form == persistent ? 2 : 1;
    MPI_Request request = MPI_REQUEST_NULL;
    const void* const out = in_place ? MPI_IN_PLACE : (const void*)in_memory.data;
    void* const in = out_memory.data;
    for (int start = 0; start < starts; ++start) {
      const int seed = round * 3 + start;
      for (int r = 0; r < ranks; ++r) {
        for (int64_t i = 0; i < leaves; ++i) {
          brought[r * leaves + i] = as(type, value(field, r, ranks, seed, i));
        }
      }
      for (int64_t i = 0; i < leaves; ++i) write_leaf(in_place ? output : input, type, i, own[i]);
      if (!in_place) memset(output, 0xA5, out_bytes);
      memset(output + out_bytes, 0x5A, guard);
      put(&in_memory);
      put(&out_memory);
      if (start == 0) {
        switch (call) {
          case allreduce:
            if (form == blocking) {
              CHECK_MPI(MPI_Allreduce(out, in, items, type->mpi, op, comm));
            } else if (form == immediate) {
              CHECK_MPI(MPI_Iallreduce(out, in, items, type->mpi, op, comm, &request));
            } else {
              CHECK_MPI(
                  MPI_Allreduce_init(out, in, items, type->mpi, op, comm, MPI_INFO_NULL, &request));
            }
            break;
          case reduce:
            if (form == blocking) {
              CHECK_MPI(MPI_Reduce(out, in, items, type->mpi, op, root, comm));
            } else if (form == immediate) {
              CHECK_MPI(MPI_Ireduce(out, in, items, type->mpi, op, root, comm, &request));
            } else {
              CHECK_MPI(MPI_Reduce_init(out, in, items, type->mpi, op, root, comm, MPI_INFO_NULL,
                                        &request));
            }
            break;
          case reduce_scatter:
            if (form == blocking) {
              CHECK_MPI(MPI_Reduce_scatter(out, in, counts, type->mpi, op, comm));
            } else if (form == immediate) {
              CHECK_MPI(MPI_Ireduce_scatter(out, in, counts, type->mpi, op, comm, &request));
            } else {
              CHECK_MPI(MPI_Reduce_scatter_init(out, in, counts, type->mpi, op, comm, MPI_INFO_NULL,
                                                &request));
            }
            break;
          default:
            if (form == blocking) {
              CHECK_MPI(MPI_Reduce_scatter_block(out, in, items, type->mpi, op, comm));
            } else if (form == immediate) {
              CHECK_MPI(MPI_Ireduce_scatter_block(out, in, items, type->mpi, op, comm, &request));
            } else {
              CHECK_MPI(MPI_Reduce_scatter_block_init(out, in, items, type->mpi, op, comm,
                                                      MPI_INFO_NULL, &request));
            }
        }
      }
      if (form == persistent) CHECK_MPI(MPI_Start(&request));
      if (form != blocking) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      get(&in_memory);
      get(&out_memory);

      double least = INFINITY, greatest = -INFINITY;
      if (bound_of_range > 0) {
        for (int64_t i = 0; i < leaves * ranks; ++i) {
          const double x = brought[i];
          if (isfinite(x)) least = fmin(least, x), greatest = fmax(greatest, x);
        }
      }
      const double error = bound + (greatest > least ? bound_of_range * (greatest - least) : 0);
      /* By mpress for certain. */
      const int in_order = argc == 4 && form == blocking && leaves / ranks >= 1024;
      const double epsilon = type->is_f32 ? FLT_EPSILON : DBL_EPSILON;
      for (int64_t i = 0; gets && i < results; ++i) {
        long double sum = 0, sizes = 0;
        double extreme = brought[first + i];
        for (int r = 0; r < ranks; ++r) {
          const double x = brought[r * leaves + first + i];
          sum += x;
          sizes += fabsl((long double)x);
          if (op == MPI_MIN && x < extreme) extreme = x;
          if (op == MPI_MAX && x > extreme) extreme = x;
        }
        const double got = read_leaf(output, type, i);
        if (op == MPI_PROD) {
          /* Whoever serves it; mpress rounds to the type at each step, in the order of the ranks.
           */
          double product = brought[first + i];
          for (int r = 1; r < ranks; ++r) {
            product = as(type, product * brought[r * leaves + first + i]);
          }
          const int is_same = (got == product && !signbit(got) == !signbit(product)) ||
                              (got != got && product != product);
          const double rounding = 2 * ranks * epsilon * fabs(product);
          CHECK(is_same || (!in_order && fabs(got - product) <= rounding));
          continue;
        }
        const int is_sum = op == MPI_SUM;
        const double expected = is_sum ? (double)sum : extreme;
        if (!isfinite((double)sizes)) {
          /* MPI says nothing of the least of a NaN and another number. */
          if (!is_sum) continue;
          if (isnan(got) && isnan(expected)) continue;
          if (got == expected) continue;
        }
        if (is_loose && isfinite(got)) continue;
        const double rounding = is_sum ? (double)sizes * epsilon * ranks : 0;
        const double allowed = is_exact || type->is_integer ? rounding : fmax(error, rounding);
        if (fabs(got - expected) <= allowed) continue;
        fprintf(stderr,
                "rank %d: round %d, call %d, form %d, field %d, %d ranks, element %lld of %lld: "
                "%.17g in the place of %.17g, allowed %g, off by %g\n",
                world, round, (int)call, (int)form, (int)field, ranks, (long long)i,
                (long long)results, got, expected, allowed, got - expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
      if (gets) {
        for (int i = 0; i < guard; ++i) CHECK(output[out_bytes + (size_t)i] == 0x5A);
      }
      for (int64_t i = 0; !in_place && i < leaves; ++i) { /* what is sent stays as it is */
        CHECK(read_leaf(input, type, i) == own[i] || own[i] != own[i]);
      }
      /* What MPI serves may differ from rank to rank. */
      if (call == allreduce && !is_mpis && leaves / ranks >= 1024) {
        uint64_t hash[2] = {hash_of(output, (size_t)results * width), 0};
        hash[1] = ~hash[0];
        CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, hash, 2, MPI_UINT64_T, MPI_MAX, comm));
        CHECK(hash[0] == ~hash[1]);
      }
    }
    if (form == persistent) CHECK_MPI(MPI_Request_free(&request));
    free(brought);
    drop(&in_memory);
    drop(&out_memory);
    state = before;
  }
  for (int i = 1; i < 4; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
  CHECK_MPI(MPI_Finalize());
  if (world == 0) puts("ok");
  return 0;
}
