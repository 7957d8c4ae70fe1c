/* A device refuses to work in the midst of collective calls: the call is an error, on the ranks
 * that lack its blocks too; no rank waits for ever, and the communicator still works.
 *
 * blocks_failing FORM [PIECES]: how the call is made (immediate, persistent, or any other word),
 * and what the device does of it before it refuses. */
#include "failing.h"
#include "simulated_gpu.h"

enum { count = 50000 };

static int all_at_once(const char* out, char* in) {
  return MPI_Alltoall(out, count, MPI_FLOAT, in, count, MPI_FLOAT, MPI_COMM_WORLD);
}

static int begin(const char* out, char* in, MPI_Request* request) {
  return MPI_Ialltoall(out, count, MPI_FLOAT, in, count, MPI_FLOAT, MPI_COMM_WORLD, request);
}

int main(int argc, char** argv) {
  int rank, size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  if (argc > 1) form = argv[1];
  const unsigned pieces = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const size_t bytes = sizeof(float) * count * (size_t)size;
  struct Memory out = memory_on(rank % sim_devices, bytes);
  struct Memory in = memory_on(rank % sim_devices, bytes);
  struct Memory host_in = memory_on(-1, bytes), host_out = memory_on(-1, bytes);
  fill_f32((float*)out.shadow, count * size, rank);
  put(&out);
  memcpy(host_out.data, out.shadow, bytes);
  if (strcmp(form, "persistent") == 0) {
    CHECK_MPI(MPI_Alltoall_init(out.data, count, MPI_FLOAT, in.data, count, MPI_FLOAT,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
  }
  for (int i = 0; i < 3; ++i) CHECK_MPI(make_call(all_at_once, begin, out.data, in.data));
  /* Rank 0's device; the others' work. */
  if (rank == 0) sim_set_failing(0, pieces);
  const int code = make_call(all_at_once, begin, out.data, in.data);
  /* What is not encoded the others' devices may have from there all the same. */
  CHECK(code != MPI_SUCCESS || rank != 0);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  /* All go on with memory of the host. */
  CHECK_MPI(MPI_Alltoall(host_out.data, count, MPI_FLOAT, host_in.data, count, MPI_FLOAT,
                         MPI_COMM_WORLD));
  const float* const got = (const float*)host_in.data;
  for (int i = 0; i < size; ++i) {
    for (int k = 0; k < count; ++k) {
      CHECK(got[i * count + k] == (float)(i + 1) + 1e-3f * (float)(rank * count + k));
    }
  }
  end(rank, rank == 0, &out, &in, &host_out, &host_in);
  return 0;
}
