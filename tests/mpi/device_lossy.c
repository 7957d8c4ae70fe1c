/* Messages that a lossy codec changes: what a device and what the host make of the same message are
 * the same bits, and near the original. Four ranks: 0 and 1 send from the host and from a device,
 * 2 and 3 receive on the host and on a device. */
#include "check.h"
#include "simulated_gpu.h"

int main(int argc, char** argv) {
  static const int counts[] = {20000, 100003, 600001};
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  const int on_device = rank % 2;
  for (int c = 0; c < 3; ++c) {
    const int n = counts[c];
    const size_t bytes = sizeof(float) * (size_t)n;
    float* original = malloc(bytes);
    float* got[2] = {malloc(bytes), malloc(bytes)};
    float* device = sim_malloc(rank % sim_devices, bytes);
    for (int i = 0; i < n; ++i) original[i] = sinf(1e-3f * (float)i) + 0.01f * cosf((float)i);
    if (rank < 2) {
      sim_copy_in(device, original, bytes);
      for (int to = 2; to < 4; ++to) {
        CHECK_MPI(MPI_Send(on_device ? device : original, n, MPI_FLOAT, to, c, MPI_COMM_WORLD));
      }
    } else {
      for (int from = 0; from < 2; ++from) {
        CHECK_MPI(MPI_Recv(on_device ? device : got[from], n, MPI_FLOAT, from, c, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE));
        if (on_device) sim_copy_out(got[from], device, bytes);
        for (int i = 0; i < n; ++i) CHECK(fabsf(got[from][i] - original[i]) < 3e-3f);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD); /* ranks on devices reach each other once a message has come */
    sim_free(device);
    free(original);
    free(got[0]);
    free(got[1]);
  }
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
