/* A rank passes on what it gets encoded while its device has yet to decode that: in broadcasts
 * along a chain of three, in which the second rank's decoders wait for the third rank to have all.
 */
#include <time.h>

#include "check.h"
#include "simulated_gpu.h"

enum { COUNT = 12000, ROUNDS = 6, HELD = 4 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
  const int rank = check_rank;
  float* const values = malloc(COUNT * sizeof(float));
  float* const data = sim_malloc(rank % 2, COUNT * sizeof(float));
  /* The first messages of a pair connect it. */
  for (int round = 0; round < ROUNDS; ++round) {
    const int is_held = rank == 1 && round >= HELD;
    int flag = 0;
    fill_f32(values, COUNT, rank == 0 ? round : 99);
    sim_copy_in(data, values, COUNT * sizeof(float));
    if (is_held) sim_hold_decoders(&flag);
    MPI_Request request;
    CHECK_MPI(MPI_Ibcast(data, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD, &request));
    if (is_held) {
      const double begin = now();
      int is_over = 0, has_all = 0;
      while (!has_all && now() - begin < 20) {
        CHECK_MPI(MPI_Test(&request, &is_over, MPI_STATUS_IGNORE));
        CHECK(!is_over);
        CHECK_MPI(MPI_Iprobe(2, 0, MPI_COMM_WORLD, &has_all, MPI_STATUS_IGNORE));
      }
      CHECK(has_all);
      __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
      sim_hold_decoders(NULL);
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_CHAR, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    sim_copy_out(values, data, COUNT * sizeof(float));
    CHECK(same_f32(values, COUNT, round));
    if (rank == 2 && round >= HELD) {
      CHECK_MPI(MPI_Send(NULL, 0, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    }
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  sim_free(data);
  free(values);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
