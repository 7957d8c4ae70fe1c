/* An MPI that takes memory of devices gets all messages of this program as they are. The first one
 * of a device's memory lets mpress open a queue there all the same: later ones may need it while a
 * kernel of the program's waits for them, and the first queue of a device waits until that is idle.
 *
 * device_met, two ranks; with SIMULATED_GPU_OPEN=1, MPRESS_GPU_AWARE=1, MPRESS_CODEC=none. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

int main(int argc, char** argv) {
  int rank;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_rank = rank;
  const int count = 30000;
  struct Memory host = memory_on(-1, (size_t)count * 4);
  struct Memory device = memory_on(rank, (size_t)count * 4);
  struct Memory got = memory_on(rank, (size_t)count * 4);
  memset(host.data, 1, host.bytes);
  for (int i = 0; i < count; ++i) ((float*)device.shadow)[i] = (float)(i + rank);
  put(&device);
  const int peer = 1 - rank;
  /* Of the host's memory a message of each kind that follows, for which decisions may stand. */
  for (int k = 0; k < 3; ++k) {
    if (rank == 0) {
      CHECK_MPI(MPI_Send(host.data, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD));
    } else {
      CHECK_MPI(MPI_Recv(host.data, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
  CHECK(sim_queues() == 0);
  /* One rank only sends, the other only receives. */
  if (rank == 0) {
    CHECK_MPI(MPI_Send(device.data, count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD));
  } else {
    CHECK_MPI(MPI_Recv(got.data, count, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  const size_t queues = sim_queues();
  CHECK(queues > 0);
  if (rank == 1) {
    get(&got);
    for (int i = 0; i < count; ++i) CHECK(((float*)got.shadow)[i] == (float)(i + peer));
  }
  /* Every second element, which mpress packs and unpacks. */
  MPI_Datatype strided;
  CHECK_MPI(MPI_Type_vector(count / 2, 1, 2, MPI_FLOAT, &strided));
  CHECK_MPI(MPI_Type_commit(&strided));
  CHECK_MPI(MPI_Sendrecv(device.data, 1, strided, peer, 2, got.data, 1, strided, peer, 2,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  get(&got);
  for (int i = 0; i < count; i += 2) CHECK(((float*)got.shadow)[i] == (float)(i + peer));
  CHECK_MPI(MPI_Type_free(&strided));
  drop(&host);
  drop(&device);
  drop(&got);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) printf("ok\n");
  return 0;
}
