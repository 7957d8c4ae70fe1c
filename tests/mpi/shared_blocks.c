/* Some broadcasts from rank 1, or all-gathers, of a block that compresses; all ranks have the same
 * of it.
 *
 * shared_blocks bcast|allgather CALLS COUNT host|devices */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

int main(int argc, char** argv) {
  int rank, size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  const int is_broadcast = strcmp(argv[1], "bcast") == 0;
  const int calls = atoi(argv[2]), count = atoi(argv[3]);
  const int device = strcmp(argv[4], "host") == 0 ? -1 : rank % sim_devices;
  const size_t bytes = sizeof(double) * (size_t)count;
  struct Memory out = memory_on(device, bytes);
  struct Memory in = memory_on(device, bytes * (size_t)size);
  double* const given = (double*)out.shadow;
  for (int call = 0; call < calls; ++call) {
    for (int i = 0; i < count; ++i)
      given[i] = wave_at(i + 1000 * (call + (is_broadcast ? 0 : rank)));
    memset(in.shadow, 0, in.bytes);
    put(&in);
    put(&out);
    if (is_broadcast) {
      void* const data = rank == 1 ? out.data : in.data;
      CHECK_MPI(MPI_Bcast(data, count, MPI_DOUBLE, 1, MPI_COMM_WORLD));
    } else {
      CHECK_MPI(
          MPI_Allgather(out.data, count, MPI_DOUBLE, in.data, count, MPI_DOUBLE, MPI_COMM_WORLD));
    }
    get(&in);
    for (int block = 0; block < (is_broadcast ? rank != 1 : size); ++block) {
      const double* const got = (const double*)in.shadow + (size_t)block * (size_t)count;
      for (int i = 0; i < count; ++i) {
        CHECK(fabs(got[i] - wave_at(i + 1000 * (call + (is_broadcast ? 0 : block)))) <= 1e-4);
      }
    }
  }
  drop(&out);
  drop(&in);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
