/* Rows of encoded messages and rows of raw ones between devices, of the same sizes, in all
 * receiving calls: where the last ones were encoded says nothing of the next one. Two ranks. */
#include "check.h"
#include "simulated_gpu.h"

enum { N = 150000 };

static float *host, *device;
static MPI_Comm encoded, raw;

static float value(int i, int round) { return sinf(1e-3f * (float)(i + round)); }

static void send(int n, int round, MPI_Comm comm) {
  for (int i = 0; i < n; ++i) host[i] = value(i, round);
  sim_copy_in(device, host, sizeof(float) * (size_t)n);
  CHECK_MPI(MPI_Send(device, n, MPI_FLOAT, 1, 1, comm));
}

static void receive(int room, int n, int round, MPI_Comm comm) {
  MPI_Request request;
  MPI_Status status;
  MPI_Message message;
  memset(host, 0x5a, sizeof(float) * (size_t)room);
  sim_copy_in(device, host, sizeof(float) * (size_t)room);
  switch (round % 4) {
    case 0: CHECK_MPI(MPI_Recv(device, room, MPI_FLOAT, 0, 1, comm, &status)); break;
    case 1:
      CHECK_MPI(MPI_Irecv(device, room, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request));
      CHECK_MPI(MPI_Wait(&request, &status));
      break;
    case 2:
      CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_FLOAT, MPI_PROC_NULL, 1, device, room, MPI_FLOAT, 0, 1,
                             comm, &status));
      break;
    default:
      CHECK_MPI(MPI_Mprobe(0, 1, comm, &message, &status));
      CHECK_MPI(MPI_Mrecv(device, room, MPI_FLOAT, &message, &status));
  }
  int count = 0;
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == n && status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
  sim_copy_out(host, device, sizeof(float) * (size_t)room);
  for (int i = 0; i < n; ++i) CHECK(host[i] == value(i, round));
  if (room > n) CHECK(((unsigned char*)host)[sizeof(float) * (size_t)n] == 0x5a);
}

static MPI_Comm with_codec(const char* codec) {
  MPI_Info info;
  MPI_Comm comm;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpress_codec", codec);
  MPI_Info_set(info, "mpress_threshold", "0");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  encoded = with_codec("mpc");
  raw = with_codec("none");
  host = malloc(sizeof(float) * N);
  device = sim_malloc(check_rank % sim_devices, sizeof(float) * N);
  static const int sizes[] = {3000, 40000, N};
  for (int s = 0; s < 3; ++s) {
    for (int round = 0; round < 60; ++round) {
      const int row = round / 12; /* 8 encoded ones, 4 raw ones */
      MPI_Comm comm = round - 12 * row < 8 ? encoded : raw;
      const int n = round % 5 == 4 ? sizes[s] - 7 : sizes[s];
      if (check_rank == 0) send(n, round, comm);
      if (check_rank == 1) receive(sizes[s], n, round, comm);
    }
  }
  sim_free(device);
  free(host);
  MPI_Comm_free(&encoded);
  MPI_Comm_free(&raw);
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
