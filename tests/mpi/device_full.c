/* Messages both ways at once between devices whose memory the program has nearly all taken, before
 * mpress has used any ("cold") or after a first message ("warm"). Two ranks; the arguments are that
 * word, the bytes of a message and those that are left. */
#include "check.h"
#include "simulated_gpu.h"

enum { ROUNDS = 4 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  const int scarce_from = strcmp(argv[1], "cold") == 0 ? 0 : 1;
  const int count = atoi(argv[2]) / (int)sizeof(float);
  const size_t bytes = sizeof(float) * (size_t)count;
  const int device = check_rank % sim_devices;
  float* values = malloc(bytes);
  float* out = sim_malloc(device, bytes);
  float* in = sim_malloc(device, bytes);
  CHECK(values && out && in);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Request requests[2];
    fill_f32(values, count, 2 * round + check_rank);
    sim_copy_in(out, values, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round == scarce_from) sim_set_limit(device, 2 * bytes + (size_t)atoi(argv[3]));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_MPI(MPI_Irecv(in, count, MPI_FLOAT, 1 - check_rank, 0, MPI_COMM_WORLD, &requests[0]));
    CHECK_MPI(MPI_Isend(out, count, MPI_FLOAT, 1 - check_rank, 0, MPI_COMM_WORLD, &requests[1]));
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    sim_copy_out(values, in, bytes);
    CHECK(same_f32(values, count, 2 * round + 1 - check_rank));
  }
  sim_free(out);
  sim_free(in);
  free(values);
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
