/* Broadcasts along a chain of devices, rank 0 to 1 to 2, in whose midst the device of rank 1, which
 * passes the block on as it comes, refuses to work: that is an error of its own and of rank 2,
 * which lacks what did not come. No rank waits for ever, and the communicator still works.
 *
 * passing_failing PIECES: of work that the device does before it refuses. */
#include "failing.h"
#include "simulated_gpu.h"

enum { count = 400000, warm = 6 };

static void check_block(const char* data, int call) {
  const float* const got = (const float*)data;
  for (int i = 0; i < count; ++i) CHECK(fabs(got[i] - wave_at(i + 1000 * call)) <= 1e-3);
}

static int broadcast(int rank, int call, struct Memory* out, struct Memory* in) {
  for (int i = 0; i < count; ++i) ((float*)out->shadow)[i] = (float)wave_at(i + 1000 * call);
  if (rank == 0) put(out);
  return MPI_Bcast(rank == 0 ? out->data : in->data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_rank = rank;
  const int pieces = atoi(argv[1]);
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const size_t bytes = sizeof(float) * count;
  struct Memory out = memory_on(rank % sim_devices, bytes);
  struct Memory in = memory_on(rank % sim_devices, bytes);
  struct Memory host_out = memory_on(-1, bytes), host_in = memory_on(-1, bytes);
  for (int call = 0; call < warm; ++call) {
    CHECK_MPI(broadcast(rank, call, &out, &in));
    get(&in);
    if (rank > 0) check_block(in.shadow, call);
  }
  if (rank == 1) sim_set_failing(1 % sim_devices, (unsigned)pieces);
  const int code = broadcast(rank, warm, &out, &in);
  CHECK(rank > 0 || code == MPI_SUCCESS);
  CHECK(rank != 1 || pieces > 0 || code != MPI_SUCCESS);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  if (rank == 2 && code == MPI_SUCCESS) {
    get(&in);
    check_block(in.shadow, warm);
  }
  /* All go on with memory of the host. */
  CHECK_MPI(broadcast(rank, warm + 1, &host_out, &host_in));
  if (rank > 0) check_block(host_in.data, warm + 1);
  if (rank == 2) printf("%s\n", code == MPI_SUCCESS ? "came" : "did not come");
  end(rank, rank == 1, &out, &in, &host_out, &host_in);
  return 0;
}
