/* Devices without memory to spare, and one that refuses to work: messages still arrive, or their
 * call says what went wrong. Two ranks; the argument is what is lacking. */
#include "check.h"
#include "simulated_gpu.h"

enum { N = 600001, ROUNDS = 6 };

static float* on_device(int device) {
  float* memory = sim_malloc(device, sizeof(float) * N);
  CHECK(memory != NULL);
  return memory;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  const char* lacking = argv[1];
  float* values = malloc(sizeof(float) * N);
  float* data = on_device(rank % sim_devices);
  if (strcmp(lacking, "device memory") == 0) {
    for (int device = 0; device < sim_devices; ++device) sim_set_limit(device, 0);
  } else if (strcmp(lacking, "pinned memory") == 0) {
    sim_set_limit(sim_pinned, 0);
  } else if (strcmp(lacking, "some of both") == 0) {
    for (int device = 0; device < sim_devices; ++device) sim_set_limit(device, 5 << 20);
    sim_set_limit(sim_pinned, 1 << 20);
  } else {
    CHECK(strcmp(lacking, "devices") == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) sim_set_failing(0, 0);
  }
  const int works = strcmp(lacking, "devices") != 0;
  for (int round = 0; round < ROUNDS; ++round) {
    /* Rank 0's memory is the host's at last: it lacks nothing. */
    const int from_host = works && round >= ROUNDS - 2;
    const int count = round % 2 == 0 ? N : 5000;
    fill_f32(values, N, round);
    if (rank == 0) {
      if (works) sim_copy_in(data, values, sizeof(float) * N);
      const float* from = from_host ? values : data;
      const int code = MPI_Send(from, count, MPI_FLOAT, 1, round, MPI_COMM_WORLD);
      if (works) CHECK(code == MPI_SUCCESS);
      if (!works) {
        CHECK(code != MPI_SUCCESS && is_device_error(code));
        CHECK_MPI(MPI_Send(values, count, MPI_FLOAT, 1, round, MPI_COMM_WORLD));
      }
      /* Which memory a receiver takes messages in is known from its first receive on. */
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
      MPI_Status status;
      int got;
      int code = MPI_Recv(data, N, MPI_FLOAT, 0, round, MPI_COMM_WORLD, &status);
      if (!works && code != MPI_SUCCESS) { /* what was announced did not come */
        code = MPI_Recv(data, N, MPI_FLOAT, 0, round, MPI_COMM_WORLD, &status);
      }
      CHECK_MPI(code);
      CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &got));
      CHECK(got == count);
      sim_copy_out(values, data, sizeof(float) * N);
      CHECK(same_f32(values, count, round));
      CHECK_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, round, MPI_COMM_WORLD));
    }
  }
  if (works || rank != 0) sim_free(data);
  free(values);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
