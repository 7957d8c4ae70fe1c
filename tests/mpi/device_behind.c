/* A message from GPU to GPU, the header of which MPI cannot send at once, since its receiver has
 * not taken what came before: that goes on while the sender waits for the data to be taken. With
 * the argument "blocking" by a send that blocks, with "gather" in a gather that does not. */
#include <unistd.h>

#include "check.h"
#include "simulated_gpu.h"

enum { COUNT = 100000, AHEAD = 3000, BYTES = 2048 };

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
  const int rank = check_rank, other = 1 - rank;
  const int is_blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;
  const int is_gather = argc > 1 && strcmp(argv[1], "gather") == 0;
  float* const values = malloc(COUNT * sizeof(float));
  float* const data = sim_malloc(rank % 2, 2 * COUNT * sizeof(float));
  char* const ahead = calloc(AHEAD, BYTES);
  MPI_Request* const requests = malloc(AHEAD * sizeof(MPI_Request));
  /* The first messages of a pair connect it. */
  for (int round = 0; round < 6; ++round) {
    if (rank == 0) {
      fill_f32(values, COUNT, round);
      sim_copy_in(data, values, COUNT * sizeof(float));
      const int is_behind = round >= 4;
      for (int i = 0; is_behind && i < AHEAD; ++i) {
        CHECK_MPI(MPI_Isend(ahead + (size_t)i * BYTES, BYTES, MPI_CHAR, other, 1, MPI_COMM_WORLD,
                            &requests[i]));
      }
      MPI_Request request = MPI_REQUEST_NULL;
      if (is_gather) {
        CHECK_MPI(MPI_Igather(data, COUNT, MPI_FLOAT, NULL, 0, MPI_FLOAT, other, MPI_COMM_WORLD,
                              &request));
      } else if (is_blocking) {
        CHECK_MPI(MPI_Send(data, COUNT, MPI_FLOAT, other, 0, MPI_COMM_WORLD));
      } else {
        CHECK_MPI(MPI_Isend(data, COUNT, MPI_FLOAT, other, 0, MPI_COMM_WORLD, &request));
      }
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      if (is_behind) CHECK_MPI(MPI_Waitall(AHEAD, requests, MPI_STATUSES_IGNORE));
    } else {
      if (round >= 4) usleep(100000);
      if (is_gather) {
        MPI_Request request;
        CHECK_MPI(MPI_Igather(MPI_IN_PLACE, 0, MPI_FLOAT, data, COUNT, MPI_FLOAT, rank,
                              MPI_COMM_WORLD, &request));
        CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      } else {
        CHECK_MPI(MPI_Recv(data, COUNT, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      for (int i = 0; round >= 4 && i < AHEAD; ++i) {
        CHECK_MPI(MPI_Recv(ahead, BYTES, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      sim_copy_out(values, data, COUNT * sizeof(float));
      CHECK(same_f32(values, COUNT, round));
    }
  }
  sim_free(data);
  free(values);
  free(ahead);
  free(requests);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
