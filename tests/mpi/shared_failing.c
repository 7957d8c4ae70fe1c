/* A device refuses to work in the midst of calls of which several ranks get the same: a reader's is
 * that reader's error, an origin's an error of all that lack its block. No rank waits for ever, and
 * the communicator still works.
 *
 * shared_failing PIECES: of work that the device does before it refuses. */
#include "failing.h"
#include "simulated_gpu.h"

enum { count = 50000 };

static double value(int from, int i) { return from + 1 + 1e-4 * i; }

static void check_blocks(const char* data, int blocks) {
  const float* const got = (const float*)data;
  for (int i = 0; i < blocks; ++i) {
    for (int k = 0; k < count; ++k) CHECK(fabs(got[i * count + k] - value(i, k)) < 1e-2);
  }
}

int main(int argc, char** argv) {
  int rank, size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  CHECK(size == 3);
  const int pieces = atoi(argv[1]);
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const size_t bytes = sizeof(float) * count;
  struct Memory out = memory_on(rank % sim_devices, bytes);
  struct Memory in = memory_on(rank % sim_devices, 3 * bytes);
  struct Memory host_out = memory_on(-1, bytes), host_in = memory_on(-1, 3 * bytes);
  for (int i = 0; i < count; ++i) ((float*)out.shadow)[i] = (float)value(rank, i);
  put(&out);
  memcpy(host_out.data, out.shadow, bytes);
  for (int i = 0; i < 3; ++i) {
    CHECK_MPI(MPI_Allgather(out.data, count, MPI_FLOAT, in.data, count, MPI_FLOAT, MPI_COMM_WORLD));
    get(&in);
    check_blocks(in.shadow, 3);
  }
  if (rank == 2) sim_set_failing(2 % sim_devices, (unsigned)pieces);
  /* A short broadcast: rank 2 passes nothing on. */
  int code = MPI_Bcast(rank == 0 ? out.data : in.data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  CHECK(rank == 2 || code == MPI_SUCCESS);
  CHECK(rank != 2 || pieces > 0 || code != MPI_SUCCESS);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  if (rank == 1) {
    get(&in);
    check_blocks(in.shadow, 1);
  }
  /* All lack its block, if it was not made before. */
  code = MPI_Allgather(out.data, count, MPI_FLOAT, in.data, count, MPI_FLOAT, MPI_COMM_WORLD);
  CHECK(code != MPI_SUCCESS || pieces > 0);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  if (rank != 2) {
    get(&in);
    check_blocks(in.shadow, code == MPI_SUCCESS ? 3 : 2);
  }
  /* All go on with memory of the host. */
  CHECK_MPI(MPI_Allgather(host_out.data, count, MPI_FLOAT, host_in.data, count, MPI_FLOAT,
                          MPI_COMM_WORLD));
  check_blocks(host_in.data, 3);
  end(rank, rank == 2, &out, &in, &host_out, &host_in);
  return 0;
}
