// Calls that MPI serves, each for another reason; two ranks, forced codec, threshold 64 KB.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { many = 1 << 16, few = 16 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* const in = calloc(many, sizeof *in);
  float* const out = calloc(many, sizeof *out);
  for (int i = 0; i < 3; ++i) MPI_Bcast(in, few, MPI_FLOAT, 0, MPI_COMM_WORLD);
  MPI_Bcast(in, many, MPI_FLOAT, 0, MPI_COMM_WORLD);  // is served
  MPI_Bcast(in, many, MPI_FLOAT, 0, MPI_COMM_SELF);
  MPI_Allreduce(in, out, many, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  MPI_Allreduce(in, out, many, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, many / 2, MPI_FLOAT, MPI_COMM_WORLD);
  const int counts[] = {few, few}, begins[] = {0, few};
  MPI_Alltoallv(in, counts, begins, MPI_FLOAT, out, counts, begins, MPI_FLOAT, MPI_COMM_WORLD);
  if (rank == 0) puts("ok");
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
