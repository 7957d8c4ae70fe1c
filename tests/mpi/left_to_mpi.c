// Calls that MPI serves, each for another reason; two ranks, forced codec, threshold 64 KB.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { many = 1 << 16, few = 16 };

static float *in, *out;
static const int counts[] = {few, few}, begins[] = {0, few};

#if MPI_VERSION >= 4
enum { persistent_tags = 4096 };  // coll/call_order.hpp

static void make_and_free(int code, MPI_Request* request) {
  if (code != MPI_SUCCESS || MPI_Request_free(request) != MPI_SUCCESS) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void persistent_calls(void) {
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Request request;
  static MPI_Request kept[persistent_tags];
  make_and_free(MPI_Gather_init(in, few, MPI_FLOAT, out, few, MPI_FLOAT, 0, comm, info, &request),
                &request);
  make_and_free(
      MPI_Allgather_init(in, many, MPI_FLOAT, out, many, MPI_FLOAT, MPI_COMM_SELF, info, &request),
      &request);
  make_and_free(
      MPI_Gatherv_init(in, few, MPI_FLOAT, out, counts, begins, MPI_FLOAT, 0, comm, info, &request),
      &request);
  for (int i = 0; i < persistent_tags; ++i)
    MPI_Bcast_init(in, many, MPI_FLOAT, 0, comm, info, &kept[i]);
  make_and_free(
      MPI_Scatter_init(in, many / 2, MPI_FLOAT, out, many / 2, MPI_FLOAT, 0, comm, info, &request),
      &request);
  for (int i = 0; i < persistent_tags; ++i) MPI_Request_free(&kept[i]);
}
#endif

static void neighbourhood_calls(void) {
  int size, periodic = 1;
  MPI_Comm ring;
  MPI_Request request;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  const MPI_Aint places[] = {0, few * sizeof *in};
  const MPI_Datatype types[] = {MPI_FLOAT, MPI_FLOAT};
  MPI_Ineighbor_alltoallw(in, counts, places, types, out, counts, places, types, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Neighbor_alltoallv(in, counts, begins, MPI_FLOAT, out, counts, begins, MPI_FLOAT, ring);
  MPI_Neighbor_allgather(in, few, MPI_FLOAT, out, few, MPI_FLOAT, ring);
  MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  in = calloc(many, sizeof *in);
  out = calloc(many, sizeof *out);
  for (int i = 0; i < 3; ++i) MPI_Bcast(in, few, MPI_FLOAT, 0, MPI_COMM_WORLD);
  MPI_Bcast(in, many, MPI_FLOAT, 0, MPI_COMM_WORLD);  // is served
  MPI_Bcast(in, many, MPI_FLOAT, 0, MPI_COMM_SELF);
  MPI_Allreduce(in, out, many, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
  MPI_Allreduce(in, out, many, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, many / 2, MPI_FLOAT, MPI_COMM_WORLD);
  MPI_Alltoallv(in, counts, begins, MPI_FLOAT, out, counts, begins, MPI_FLOAT, MPI_COMM_WORLD);
  neighbourhood_calls();
#if MPI_VERSION >= 4
  persistent_calls();
  if (rank == 0) fputs("has persistent calls\n", stderr);
#endif
  if (rank == 0) puts("ok");
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
