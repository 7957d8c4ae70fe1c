/* Calls on device memory of communicators that are made, used and freed one after another: each
 * finds its way, and its memory, anew. device_afresh COMMUNICATORS. */
#define FLOATS 300000
#include "device_link.h"
#include "simulated_gpu.h"

enum { CALLS = 9, SHORT = 2000, LONG = 64000, most_ranks = 8 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(size <= most_ranks && LONG * size <= FLOATS);
  check_rank = rank;
  struct Memory from = room_on(rank % sim_devices), to = room_on(rank % sim_devices);
  for (int i = 0; i < atoi(argv[1]); ++i) {
    MPI_Comm comm;
    CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    const int count = i % 3 == 2 ? LONG : SHORT;
    for (int call = 0; call < CALLS; ++call) {
      const int seed = i + call, root = i % size;
      switch (call % 3) {
        case 0: /* all bring the same */
          set_values(&from, count, seed);
          CHECK_MPI(MPI_Allreduce(from.data, to.data, count, MPI_FLOAT, MPI_MAX, comm));
          check_values(&to, count, seed);
          break;
        case 1:
          set_values(&from, count, rank == root ? seed : seed + 1);
          CHECK_MPI(MPI_Bcast(from.data, count, MPI_FLOAT, root, comm));
          check_values(&from, count, seed);
          break;
        default: /* each gets what has its own number of everybody, who all bring the same */
          set_values(&from, count * size, seed);
          CHECK_MPI(MPI_Alltoall(from.data, count, MPI_FLOAT, to.data, count, MPI_FLOAT, comm));
          get(&to);
          for (int other = 0; other < size; ++other) {
            const size_t bytes = sizeof(float) * (size_t)count;
            CHECK(memcmp(to.shadow + (size_t)other * bytes, from.shadow + (size_t)rank * bytes,
                         bytes) == 0);
          }
          set_values(&to, 0, 0);
      }
    }
    CHECK_MPI(MPI_Comm_free(&comm));
  }
  drop(&from);
  drop(&to);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
