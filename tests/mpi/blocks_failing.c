/* A device refuses to work in the midst of collective calls: the call is an error, on the ranks
 * that lack its blocks too; no rank waits for ever, and the communicator still works.
 *
 * blocks_failing FORM [PIECES]: how the call is made (immediate, persistent, or any other word),
 * and what the device does of it before it refuses. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { count = 50000 };

static const char* form = "";
static MPI_Request persistent = MPI_REQUEST_NULL;

/* Returns what the call does that completes it. */
static int exchange(const char* out, char* in) {
  MPI_Request request;
  if (strcmp(form, "persistent") == 0) {
    CHECK_MPI(MPI_Start(&persistent));
    return MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  }
  if (strcmp(form, "immediate") == 0) {
    CHECK_MPI(MPI_Ialltoall(out, count, MPI_FLOAT, in, count, MPI_FLOAT, MPI_COMM_WORLD, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return MPI_Alltoall(out, count, MPI_FLOAT, in, count, MPI_FLOAT, MPI_COMM_WORLD);
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
  for (int i = 0; i < 3; ++i) CHECK_MPI(exchange(out.data, in.data));
  /* Rank 0's device; the others' work. */
  if (rank == 0) sim_set_failing(0, pieces);
  const int code = exchange(out.data, in.data);
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
  if (persistent != MPI_REQUEST_NULL) CHECK_MPI(MPI_Request_free(&persistent));
  if (rank != 0) {
    drop(&out);
    drop(&in);
  }
  drop(&host_out);
  drop(&host_in);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
