/* A device refuses to work in the midst of a reduction: it is an error on that rank, and on those
 * that lack what it should have brought or combined; no rank waits for ever, and the communicator
 * still works.
 *
 * reductions_failing FORM PIECES: how the call is made (immediate, persistent, or any other word),
 * and what the device does of it before it refuses. */
#include "failing.h"
#include "simulated_gpu.h"

enum { count = 150000 };

static int add_up(const char* out, char* in) {
  return MPI_Allreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int begin(const char* out, char* in, MPI_Request* request) {
  return MPI_Iallreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
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
  for (int i = 0; i < 3; ++i) CHECK_MPI(make_call(add_up, begin, out.data, in.data));
  /* Rank 0's device; the others' work. */
  if (rank == 0) sim_set_failing(0, pieces);
  const int code = make_call(add_up, begin, out.data, in.data);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  CHECK(code != MPI_SUCCESS || rank != 0 || pieces > 0);
  /* All go on with memory of the host. */
  CHECK_MPI(MPI_Allreduce(host_out.data, host_in.data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  const float* const got = (const float*)host_in.data;
  for (int k = 0; k < count; ++k) {
    const float expected = (float)(size * (size + 1) / 2) + 1e-3f * (float)(size * k);
    CHECK(fabsf(got[k] - expected) < 1e-2f * (float)size);
  }
  end(rank, rank == 0, &out, &in, &host_out, &host_in);
  return 0;
}
