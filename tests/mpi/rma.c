/* One-sided communication, beside messages that travel compressed. */
#include "check.h"

enum { N = 20000 };

int main(int argc, char** argv) {
  static float window_data[N], out[N], in[N];
  int rank, size;
  MPI_Win window;
  MPI_Group all, others;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  fill_f32(out, N, rank);
  MPI_Win_create(window_data, sizeof window_data, sizeof(float), MPI_INFO_NULL, MPI_COMM_WORLD,
                 &window);

  MPI_Win_fence(0, window);
  MPI_Put(out, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, window);
  MPI_Sendrecv(out, N, MPI_FLOAT, next, 0, in, N, MPI_FLOAT, previous, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, previous));
  MPI_Win_fence(0, window);
  CHECK(same_f32(window_data, N, previous));

  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
  MPI_Get(in, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, window);
  MPI_Win_unlock(next, window);
  CHECK(same_f32(in, N, rank));
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_Win_fence(0, window);
  MPI_Accumulate(out, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, MPI_REPLACE, window);
  MPI_Win_fence(0, window);
  CHECK(same_f32(window_data, N, previous));

  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &next, &others);
  memset(in, 0, sizeof in);
  MPI_Group sources;
  MPI_Group_incl(all, 1, &previous, &sources);
  MPI_Win_post(sources, 0, window);
  MPI_Win_start(others, 0, window);
  MPI_Put(out, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  CHECK(same_f32(window_data, N, previous));

  MPI_Group_free(&sources);
  MPI_Group_free(&others);
  MPI_Group_free(&all);
  MPI_Win_free(&window);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
