/* No GPU is shown to rank 1, which has its data in the host's memory, and rank 0 on a device. */
#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

/* Before MPI_Init: what a launcher tells. */
static int is_rank_1(void) {
  static const char* const names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"};
  for (int i = 0; i < 3; ++i) {
    const char* rank = getenv(names[i]);
    if (rank) return strcmp(rank, "1") == 0;
  }
  return 0;
}

int main(int argc, char** argv) {
  static const int counts[] = {1000, 100003, 600001, 4000000};
  if (is_rank_1()) setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const int devices = sim_count();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  CHECK((devices == 0) == (check_rank == 1));
  for (int c = 0; c < 4; ++c) {
    const int n = counts[c], device = devices > 0 ? 0 : -1;
    struct Memory out = memory_on(device, sizeof(float) * (size_t)n);
    struct Memory in = memory_on(device, out.bytes);
    MPI_Request requests[2];
    fill_f32((float*)out.shadow, n, check_rank);
    put(&out);
    CHECK_MPI(MPI_Irecv(in.data, n, MPI_FLOAT, 1 - check_rank, c, MPI_COMM_WORLD, &requests[0]));
    CHECK_MPI(MPI_Isend(out.data, n, MPI_FLOAT, 1 - check_rank, c, MPI_COMM_WORLD, &requests[1]));
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    get(&in);
    CHECK(same_f32((const float*)in.shadow, n, 1 - check_rank));
    drop(&out);
    drop(&in);
  }
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
