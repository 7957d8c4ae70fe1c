/* A device fails in the middle of messages from GPU to GPU: calls return errors that name it, or
 * the job ends; none waits for ever. Two ranks; the arguments are the rank whose device fails, and
 * after how many pieces of work; a third is how many floats messages have. To be run with chunks of
 * 4 KiB. */
#include "device_link.h"
#include "simulated_gpu.h"

enum { MOST_ROUNDS = 100 };

int main(int argc, char** argv) {
  int failed = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(argc == 3 || argc == 4);
  const int large = argc == 4 ? atoi(argv[3]) : 60000;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  meet();
  float* values = malloc(sizeof(float) * (size_t)large);
  float* data = sim_malloc(rank, sizeof(float) * (size_t)large);
  fill_f32(values, large, 3);
  sim_copy_in(data, values, sizeof(float) * (size_t)large);
  if (atoi(argv[1]) == rank) sim_set_failing(rank, (unsigned)atoi(argv[2]));
  for (int round = 0, have_failed = 0; have_failed == 0; ++round) {
    int code;
    CHECK(round < MOST_ROUNDS);
    if (rank == 0) {
      code = MPI_Send(data, large, MPI_FLOAT, 1, round, MPI_COMM_WORLD);
      if (code != MPI_SUCCESS) { /* whether the receiver has heard of it or not */
        CHECK_MPI(MPI_Send(values, large, MPI_FLOAT, 1, round, MPI_COMM_WORLD));
      }
    } else {
      code = MPI_Recv(data, large, MPI_FLOAT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS && atoi(argv[1]) == 0) { /* what was announced did not come */
        CHECK(is_device_error(code));
        code = MPI_Recv(data, large, MPI_FLOAT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_MPI(code);
      }
    }
    CHECK(code == MPI_SUCCESS || is_device_error(code));
    failed = code != MPI_SUCCESS;
    MPI_Allreduce(&failed, &have_failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 || failed) continue;
    memset(values, 0, sizeof(float) * (size_t)large);
    sim_copy_out(values, data, sizeof(float) * (size_t)large);
    CHECK(same_f32(values, large, 3));
  }
  CHECK(failed || atoi(argv[1]) != rank);
  free(values);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
