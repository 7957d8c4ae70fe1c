/* Messages from a device to a device, of which none is short, in blocking and other calls, of data
 * that codecs make smaller and of data that they do not ("noisy"), also to a buffer that receives
 * share ("shared"). A lossy codec's bound is 3e-3. */
#include "check.h"
#include "simulated_gpu.h"

static const int counts[] = {20000, 100003, 300001, 900000};
enum { MOST = 900000, SHIFTS = 8 };
static float wave[MOST + SHIFTS];

static float value(int i, int noisy) {
  if (!noisy) return wave[i];
  const unsigned bits = (unsigned)i * 2654435761u;
  return (float)(bits % 1000003u) * (i % 7 ? 1e-20f : 1e-3f);
}

/* As benchmarks do: receives under way that share a buffer. */
static void share_buffer(int rank) {
  enum { n = 150000, window = 8 };
  float* host = malloc(sizeof(float) * n);
  float* memory = sim_malloc(rank % sim_devices, sizeof(float) * n);
  for (int i = 0; i < n; ++i) host[i] = value(i, 0);
  if (rank == 0) sim_copy_in(memory, host, sizeof(float) * n);
  MPI_Request requests[window];
  for (int i = 0; i < window; ++i) {
    if (rank == 0) {
      CHECK_MPI(MPI_Isend(memory, n, MPI_FLOAT, 1, 9, MPI_COMM_WORLD, &requests[i]));
    } else {
      CHECK_MPI(MPI_Irecv(memory, n, MPI_FLOAT, 0, 9, MPI_COMM_WORLD, &requests[i]));
    }
  }
  CHECK_MPI(MPI_Waitall(window, requests, MPI_STATUSES_IGNORE));
  memset(host, 0, sizeof(float) * n);
  sim_copy_out(host, memory, sizeof(float) * n);
  for (int i = 0; i < n; ++i) CHECK(host[i] == value(i, 0));
  sim_free(memory);
  free(host);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  for (int i = 0; i < MOST + SHIFTS; ++i) {
    wave[i] = sinf(1e-3f * (float)i) + 0.01f * cosf((float)i);
  }
  const int noisy = argc > 1 && strcmp(argv[1], "noisy") == 0;
  if (argc > 1 && strcmp(argv[1], "shared") == 0) share_buffer(rank);
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
