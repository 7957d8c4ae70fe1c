/* Sums in quanta of the same contributions, whoever brings which: prints a hash of the results, by
 * which runs on other hosts, links, chunks and orders of ranks are compared. Within a run the same
 * data has the same bits by MPI_Allreduce, MPI_Reduce and MPI_Reduce_scatter_block, in place and
 * not, blocking and not.
 *
 * reductions_alike SHIFT [device|mixed]: rank r brings contribution (r + SHIFT) mod ranks; buffers
 * lie on devices, or on those of odd ranks. With MPRESS_CODEC=szp:abs=..., MPRESS_THRESHOLD=0. */
#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

static int rank, size;

/* In two rounds of three one brings some that are larger than what a sum of four need not look at,
 * for bounds of 1e-4, or just not; all of them quanta. */
static double value(int contribution, int64_t i, double large) {
  if (large > 0 && contribution == 0 && i % 4999 == 17) return large;
  return wave_at((long)i + 1000L * contribution) + 2;
}

static uint64_t hash_of(uint64_t hash, const void* data, size_t bytes) {
  uint32_t word;
  for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
    memcpy(&word, (const char*)data + i, sizeof word);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

static void by_allreduce(struct Memory* in, struct Memory* out, int count, MPI_Datatype type,
                         int form) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (form == 1) {
    CHECK_MPI(MPI_Iallreduce(in->data, out->data, count, type, MPI_SUM, MPI_COMM_WORLD, &request));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (form == 2) {
    memcpy(out->shadow, in->shadow, out->bytes);
    put(out);
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, out->data, count, type, MPI_SUM, MPI_COMM_WORLD));
  } else {
    CHECK_MPI(MPI_Allreduce(in->data, out->data, count, type, MPI_SUM, MPI_COMM_WORLD));
  }
  get(out);
}

int main(int argc, char** argv) {
  CHECK(argc > 1);
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  const int brings = (rank + atoi(argv[1])) % size;
  const char* where = argc > 2 ? argv[2] : "";
  const int is_on_device = strcmp(where, "device") == 0 || (*where == 'm' && rank % 2);
  const int device = is_on_device ? rank % sim_devices : -1;
  const int lengths[] = {5003, 9001, 30000, 75001};
  uint64_t hash = 0xcbf29ce484222325u;
  for (int round = 0; round < 24; ++round) {
    const int each = lengths[round / 3 % 4];
    const int is_f32 = round < 12;
    const double just_not = (is_f32 ? 0x1p17 : 0x1p25) * 1e-4 / 4 * (1 - 1e-5);
    const double large = round % 3 == 0 ? 0 : round % 3 == 1 ? just_not : is_f32 ? 20 : 2000;
    const MPI_Datatype type = is_f32 ? MPI_FLOAT : MPI_DOUBLE;
    const size_t width = is_f32 ? 4 : 8;
    const int count = each * size;
    struct Memory in = memory_on(device, width * (size_t)count);
    struct Memory out = memory_on(device, width * (size_t)count);
    struct Memory piece = memory_on(device, width * (size_t)each);
    struct Memory again = memory_on(device, width * (size_t)count);
    for (int i = 0; i < count; ++i) {
      const double v = value(brings, i, large);
      if (is_f32) {
        ((float*)in.shadow)[i] = (float)v;
      } else {
        ((double*)in.shadow)[i] = v;
      }
    }
    put(&in);
    by_allreduce(&in, &out, count, type, 0);
    hash = hash_of(hash, out.shadow, out.bytes);
    for (int form = 1; form < 3; ++form) {
      by_allreduce(&in, &again, count, type, form);
      CHECK(memcmp(out.shadow, again.shadow, out.bytes) == 0);
    }
    memset(again.shadow, 0, again.bytes);
    put(&again);
    const int root = round % size;
    CHECK_MPI(MPI_Reduce(in.data, again.data, count, type, MPI_SUM, root, MPI_COMM_WORLD));
    get(&again);
    if (rank == root) CHECK(memcmp(out.shadow, again.shadow, out.bytes) == 0);
    CHECK_MPI(MPI_Reduce_scatter_block(in.data, piece.data, each, type, MPI_SUM, MPI_COMM_WORLD));
    get(&piece);
    CHECK(memcmp((char*)out.shadow + piece.bytes * (size_t)rank, piece.shadow, piece.bytes) == 0);
    drop(&in);
    drop(&out);
    drop(&piece);
    drop(&again);
  }
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) printf("ok %016llx\n", (unsigned long long)hash);
  return 0;
}
