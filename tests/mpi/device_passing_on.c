/* A broadcast of device memory from rank 0, in which the device of HOLDER has no time to decode
 * until READER, to whom it passes chunks on, has all of them.
 *
 * device_passing_on HOLDER READER COUNT */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { warm = 6, tag = 3 };

static float value(int call, int i) { return (float)wave_at(i + 1000 * call); }

int main(int argc, char** argv) {
  static int may_decode = 0;
  int rank;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_rank = rank;
  const int holder = atoi(argv[1]), reader = atoi(argv[2]), count = atoi(argv[3]);
  struct Memory data = memory_on(rank % sim_devices, sizeof(float) * (size_t)count);
  float* const values = (float*)data.shadow;
  for (int call = 0; call <= warm; ++call) {
    const int is_held = call == warm && rank == holder;
    for (int i = 0; i < count; ++i) values[i] = rank == 0 ? value(call, i) : 0;
    put(&data);
    MPI_Request broadcast, told;
    int done = 0;
    if (is_held) {
      sim_hold_decoders(&may_decode);
      CHECK_MPI(MPI_Irecv(NULL, 0, MPI_INT, reader, tag, MPI_COMM_WORLD, &told));
    }
    CHECK_MPI(MPI_Ibcast(data.data, count, MPI_FLOAT, 0, MPI_COMM_WORLD, &broadcast));
    if (is_held) {
      while (!done) {
        int is_over = 0;
        CHECK_MPI(MPI_Test(&told, &done, MPI_STATUS_IGNORE));
        CHECK_MPI(MPI_Request_get_status(broadcast, &is_over, MPI_STATUS_IGNORE));
        CHECK(!is_over);
      }
      __atomic_store_n(&may_decode, 1, __ATOMIC_SEQ_CST);
      sim_hold_decoders(NULL);
    }
    CHECK_MPI(MPI_Wait(&broadcast, MPI_STATUS_IGNORE));
    if (call == warm && rank == reader) {
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, holder, tag, MPI_COMM_WORLD));
    }
    get(&data);
    for (int i = 0; i < count; ++i) CHECK(fabs(values[i] - value(call, i)) <= 1e-3);
  }
  drop(&data);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
