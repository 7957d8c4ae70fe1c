/* What calls really err by, to be compared with what a report tells of them: rank 0 prints for each
 * call the largest absolute error of finite elements on any rank, against sums in higher precision,
 * and what the rounding of a sum of elements may add to it; then the range of what all bring.
 *
 * errors_told FIELD TYPE OP [device]: smooth, noise or not_finite; f32 or f64; sum or max. */
#include <float.h>
#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { each = 30000 };
enum Call {
  allreduce,
  iallreduce,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  bcast,
  send,
  call_count
};

static const char* const names[] = {"MPI_Allreduce",
                                    "MPI_Allreduce",
                                    "MPI_Reduce",
                                    "MPI_Reduce_scatter",
                                    "MPI_Reduce_scatter_block",
                                    "MPI_Bcast",
                                    "MPI_Send"};
static const char* field;
static int is_f32, is_sum, rank, size;

static double noise(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  key ^= key >> 29;
  key *= 0xBF58476D1CE4E5B9u;
  key ^= key >> 32;
  return (double)(key >> 11) / (double)(1ull << 52) - 1;
}

/* What a rank brings. */
static double value(int from, int64_t i) {
  const uint64_t key = (uint64_t)i * 1000003u + (uint64_t)from * 7919u;
  double x = sin(1e-3 * (double)i + from) + 2;
  if (strcmp(field, "noise") == 0) x = noise(key);
  if (strcmp(field, "not_finite") == 0 && key % 997 == 0) x = NAN;
  if (strcmp(field, "not_finite") == 0 && key % 1999 == 0) x = INFINITY;
  return is_f32 ? (double)(float)x : x;
}

static double element(const struct Memory* memory, int64_t i) {
  return is_f32 ? (double)((const float*)memory->shadow)[i] : ((const double*)memory->shadow)[i];
}

/* The largest error of `count` elements, those from `first` on of the whole result. */
static double error_of(enum Call call, const struct Memory* out, int64_t first, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    long double expected = value(0, first + i);
    for (int r = 1; r < size && call < bcast; ++r) {
      const double x = value(r, first + i);
      if (is_sum) {
        expected += x;
      } else if (x > expected || x != x) {
        expected = x;
      }
    }
    const double got = element(out, i);
    if (!isfinite((double)expected)) {
      CHECK(!isfinite(got) || !is_sum);
      continue;
    }
    largest = fmax(largest, (double)fabsl((long double)got - expected));
  }
  return largest;
}

int main(int argc, char** argv) {
  CHECK(argc > 3);
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  field = argv[1];
  is_f32 = strcmp(argv[2], "f32") == 0;
  is_sum = strcmp(argv[3], "sum") == 0;
  const int device = argc > 4 ? rank % sim_devices : -1;
  const MPI_Datatype type = is_f32 ? MPI_FLOAT : MPI_DOUBLE;
  const MPI_Op op = is_sum ? MPI_SUM : MPI_MAX;
  const int count = each * size;
  struct Memory in = memory_on(device, (size_t)count * (is_f32 ? 4 : 8));
  struct Memory out = memory_on(device, in.bytes);
  int counts[64];
  double least = INFINITY, greatest = -INFINITY, sizes = 0;
  CHECK(size <= 64);
  for (int r = 0; r < size; ++r) counts[r] = each;
  for (int i = 0; i < count; ++i) {
    const double x = value(rank, i);
    if (is_f32) {
      ((float*)in.shadow)[i] = (float)x;
    } else {
      ((double*)in.shadow)[i] = x;
    }
    for (int r = 0; r < size; ++r) {
      const double one = value(r, i);
      if (isfinite(one)) least = fmin(least, one), greatest = fmax(greatest, one);
    }
  }
  sizes = size * fmax(fabs(least), fabs(greatest));
  put(&in);
  double errors[call_count] = {0};
  for (int call = 0; call < call_count; ++call) {
    MPI_Request request;
    int64_t first = 0, results = count;
    memset(out.shadow, 0, out.bytes);
    put(&out);
    switch (call) {
      case allreduce:
        CHECK_MPI(MPI_Allreduce(in.data, out.data, count, type, op, MPI_COMM_WORLD));
        break;
      case iallreduce:
        CHECK_MPI(MPI_Iallreduce(in.data, out.data, count, type, op, MPI_COMM_WORLD, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
      case reduce:
        CHECK_MPI(MPI_Reduce(in.data, out.data, count, type, op, 0, MPI_COMM_WORLD));
        if (rank != 0) results = 0;
        break;
      case reduce_scatter:
        CHECK_MPI(MPI_Reduce_scatter(in.data, out.data, counts, type, op, MPI_COMM_WORLD));
        first = (int64_t)rank * each, results = each;
        break;
      case reduce_scatter_block:
        CHECK_MPI(MPI_Reduce_scatter_block(in.data, out.data, each, type, op, MPI_COMM_WORLD));
        first = (int64_t)rank * each, results = each;
        break;
      case bcast:
        CHECK_MPI(MPI_Bcast(rank == 0 ? in.data : out.data, count, type, 0, MPI_COMM_WORLD));
        if (rank == 0) results = 0;
        break;
      default:
        results = rank == 1 ? count : 0;
        if (rank == 0) CHECK_MPI(MPI_Send(in.data, count, type, 1, 0, MPI_COMM_WORLD));
        if (rank == 1) {
          CHECK_MPI(MPI_Recv(out.data, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    get(&out);
    errors[call] = error_of((enum Call)call, &out, first, results);
  }
  double all[64 * call_count];
  CHECK_MPI(
      MPI_Gather(errors, sizeof errors, MPI_BYTE, all, sizeof errors, MPI_BYTE, 0, MPI_COMM_WORLD));
  for (int call = 0; rank == 0 && call < call_count; ++call) {
    for (int r = 0; r < size; ++r) errors[call] = fmax(errors[call], all[r * call_count + call]);
    const double rounding = call < bcast ? size * (is_f32 ? FLT_EPSILON : DBL_EPSILON) * sizes : 0;
    printf("%s %.17g %.17g\n", names[call], errors[call], rounding);
  }
  if (rank == 0) printf("range %.17g 0\n", greatest - least);
  drop(&in);
  drop(&out);
  CHECK_MPI(MPI_Finalize());
  return 0;
}
