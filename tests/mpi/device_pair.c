/* Messages from a device to a device, of which none is short, in blocking and other calls, of data
 * that codecs make smaller and of data that they do not. A lossy codec's bound is 3e-3. */
#include "check.h"
#include "simulated_gpu.h"

static const int counts[] = {20000, 100003, 600001, 2500000};

static float value(int i, int noisy) {
  const float smooth = sinf(1e-3f * (float)i) + 0.01f * cosf((float)i);
  if (!noisy) return smooth;
  const unsigned bits = (unsigned)i * 2654435761u;
  return (float)(bits % 1000003u) * (i % 7 ? 1e-20f : 1e-3f);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  const int noisy = argc > 1;
  for (int c = 0; c < 4; ++c) {
    const int n = counts[c];
    const size_t bytes = sizeof(float) * (size_t)n;
    float* host = malloc(bytes);
    float* from = sim_malloc(rank % sim_devices, bytes);
    float* to = sim_malloc(rank % sim_devices, bytes);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < n; ++i) host[i] = value(i + rank + round, noisy);
      sim_copy_in(from, host, bytes);
      memset(host, 0, bytes);
      sim_copy_in(to, host, bytes);
      if (round % 2 == 0) {
        MPI_Request requests[2];
        CHECK_MPI(MPI_Irecv(to, n, MPI_FLOAT, 1 - rank, c, MPI_COMM_WORLD, &requests[0]));
        CHECK_MPI(MPI_Isend(from, n, MPI_FLOAT, 1 - rank, c, MPI_COMM_WORLD, &requests[1]));
        CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
      } else {
        MPI_Status status;
        int got = 0;
        if (rank == 0) CHECK_MPI(MPI_Send(from, n, MPI_FLOAT, 1, c, MPI_COMM_WORLD));
        CHECK_MPI(MPI_Recv(to, n, MPI_FLOAT, 1 - rank, c, MPI_COMM_WORLD, &status));
        if (rank == 1) CHECK_MPI(MPI_Send(from, n, MPI_FLOAT, 0, c, MPI_COMM_WORLD));
        CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &got));
        CHECK(got == n && status.MPI_SOURCE == 1 - rank && status.MPI_TAG == c);
      }
      sim_copy_out(host, to, bytes);
      for (int i = 0; i < n; ++i) {
        const float sent = value(i + 1 - rank + round, noisy);
        if (noisy) {
          CHECK(host[i] == sent);
        } else {
          CHECK(fabsf(host[i] - sent) < 3e-3f);
        }
      }
    }
    sim_free(from);
    sim_free(to);
    free(host);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
