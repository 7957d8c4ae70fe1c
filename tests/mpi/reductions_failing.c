/* A device refuses to work in the midst of a reduction: it is an error on that rank, and on those
 * that lack what it should have brought or combined; no rank waits for ever, and the communicator
 * still works.
 *
 * reductions_failing FORM PIECES: how the call is made (immediate, persistent, or any other word),
 * and what the device does of it before it refuses. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { count = 150000 };

static const char* form = "";
static MPI_Request persistent = MPI_REQUEST_NULL;

/* Returns what the call does that completes it. */
static int add_up(const char* out, char* in) {
  MPI_Request request;
  if (strcmp(form, "persistent") == 0) {
    CHECK_MPI(MPI_Start(&persistent));
    return MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  }
  if (strcmp(form, "immediate") == 0) {
    CHECK_MPI(MPI_Iallreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return MPI_Allreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank, size;
  CHECK(argc > 2);
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  form = argv[1];
  const unsigned pieces = (unsigned)atoi(argv[2]);
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const size_t bytes = sizeof(float) * count;
  struct Memory out = memory_on(rank % sim_devices, bytes);
  struct Memory in = memory_on(rank % sim_devices, bytes);
  struct Memory host_in = memory_on(-1, bytes), host_out = memory_on(-1, bytes);
  fill_f32((float*)out.shadow, count, rank);
  put(&out);
  memcpy(host_out.data, out.shadow, bytes);
  if (strcmp(form, "persistent") == 0) {
    CHECK_MPI(MPI_Allreduce_init(out.data, in.data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, &persistent));
  }
  for (int i = 0; i < 3; ++i) CHECK_MPI(add_up(out.data, in.data));
  /* Rank 0's device; the others' work. */
  if (rank == 0) sim_set_failing(0, pieces);
  const int code = add_up(out.data, in.data);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  CHECK(code != MPI_SUCCESS || rank != 0 || pieces > 0);
  /* All go on with memory of the host. */
  CHECK_MPI(MPI_Allreduce(host_out.data, host_in.data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  const float* const got = (const float*)host_in.data;
  for (int k = 0; k < count; ++k) {
    const float expected = (float)(size * (size + 1) / 2) + 1e-3f * (float)(size * k);
    CHECK(fabsf(got[k] - expected) < 1e-2f * (float)size);
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
