/* A device refuses to work in the midst of a reduction: it is an error on that rank, and on those
 * that lack what it should have brought or combined; no rank waits for ever, and the communicator
 * still works.
 *
 * reductions_failing FORM PIECES COUNT RANKS [CALLS]: how the call is made (immediate, persistent,
 * or any other word), what the devices do of it before they refuse, of how many elements it is, and
 * a bit for each rank whose device does. CALLS: after so many, in all of which a rank brings
 * elements that are much larger than the others. */
#include "failing.h"
#include "simulated_gpu.h"

static int count;

static int add_up(const char* out, char* in) {
  return MPI_Allreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int begin(const char* out, char* in, MPI_Request* request) {
  return MPI_Iallreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request);
}

int main(int argc, char** argv) {
  int rank, size;
  CHECK(argc > 4);
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  form = argv[1];
  const unsigned pieces = (unsigned)atoi(argv[2]);
  count = atoi(argv[3]);
  const int fails = atoi(argv[4]) >> rank & 1;
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const size_t bytes = sizeof(float) * count;
  struct Memory out = memory_on(rank % sim_devices, bytes);
  struct Memory in = memory_on(rank % sim_devices, bytes);
  struct Memory host_in = memory_on(-1, bytes), host_out = memory_on(-1, bytes);
  fill_f32((float*)out.shadow, count, rank);
  memcpy(host_out.data, out.shadow, bytes);
  const int calls = argc > 5 ? atoi(argv[5]) : 3;
  for (int k = 77; argc > 5 && rank == 2 && k < count; k += 50000) ((float*)out.shadow)[k] = 1e7f;
  put(&out);
  if (strcmp(form, "persistent") == 0) {
    CHECK_MPI(MPI_Allreduce_init(out.data, in.data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, &persistent));
  }
  for (int i = 0; i < calls; ++i) CHECK_MPI(make_call(add_up, begin, out.data, in.data));
  if (fails) sim_set_failing(rank % sim_devices, pieces);
  const int code = make_call(add_up, begin, out.data, in.data);
  CHECK(code == MPI_SUCCESS || is_device_error(code));
  CHECK(code != MPI_SUCCESS || !fails || pieces > 0);
  /* All go on with memory of the host. */
  CHECK_MPI(MPI_Allreduce(host_out.data, host_in.data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
  const float* const got = (const float*)host_in.data;
  for (int k = 0; k < count; ++k) {
    const float expected = (float)(size * (size + 1) / 2) + 1e-3f * (float)(size * k);
    CHECK(fabsf(got[k] - expected) < 1e-7f * (float)size * (float)count);
  }
  end(rank, fails, &out, &in, &host_out, &host_in);
  return 0;
}
