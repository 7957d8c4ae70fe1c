/* Parents and the processes that they spawn exchange messages over a merged communicator. */
#include "check.h"

enum { N = 4000 };

int main(int argc, char** argv) {
  static float out[N], in[N];
  MPI_Comm inter, all;
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&inter);
  const int child = inter != MPI_COMM_NULL;
  if (!child) {
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
  }
  MPI_Intercomm_merge(inter, child, &all);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  check_rank = rank;
  fill_f32(out, N, rank);
  for (int peer = 0; peer < size; ++peer) {
    MPI_Sendrecv(out, N, MPI_FLOAT, peer, 1, in, N, MPI_FLOAT, peer, 1, all, MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, peer));
  }
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
