/* Collectives with floats, blocking, non-blocking and persistent, and those of neighbourhoods,
 * with messages under way at the same time. */
#include "check.h"

enum { N = 2000, MOST = 8 };

static int rank, size;
static float one[N], all[MOST * N], spread[MOST * N];
static int counts[MOST], places[MOST];

static void check_all(void) {
  for (int r = 0; r < size; ++r) CHECK(same_f32(all + r * N, N, r));
  memset(all, 0, sizeof all);
}

/* Every element times the number of ranks and what their numbers add. */
static void check_sum(const float* sum) {
  float expected[N];
  memset(expected, 0, sizeof expected);
  for (int r = 0; r < size; ++r) {
    float term[N];
    fill_f32(term, N, r);
    for (int i = 0; i < N; ++i) expected[i] += term[i];
  }
  for (int i = 0; i < N; ++i) CHECK(fabsf(sum[i] - expected[i]) < 1e-5f * expected[i]);
}

static void blocking(void) {
  static float sum[MOST * N];
  MPI_Comm comm = MPI_COMM_WORLD;
  CHECK_MPI(MPI_Allgather(one, N, MPI_FLOAT, all, N, MPI_FLOAT, comm));
  check_all();
  CHECK_MPI(MPI_Allgatherv(one, N, MPI_FLOAT, all, counts, places, MPI_FLOAT, comm));
  check_all();
  CHECK_MPI(MPI_Gather(one, N, MPI_FLOAT, all, N, MPI_FLOAT, 0, comm));
  if (rank == 0) check_all();
  CHECK_MPI(MPI_Alltoall(spread, N, MPI_FLOAT, all, N, MPI_FLOAT, comm));
  check_all();
  CHECK_MPI(MPI_Alltoallv(spread, counts, places, MPI_FLOAT, all, counts, places, MPI_FLOAT, comm));
  check_all();
  CHECK_MPI(MPI_Scatter(spread, N, MPI_FLOAT, sum, N, MPI_FLOAT, size - 1, comm));
  CHECK(same_f32(sum, N, size - 1));
  CHECK_MPI(MPI_Allreduce(one, sum, N, MPI_FLOAT, MPI_SUM, comm));
  check_sum(sum);
  CHECK_MPI(MPI_Reduce(one, sum, N, MPI_FLOAT, MPI_SUM, 0, comm));
  if (rank == 0) check_sum(sum);
  CHECK_MPI(MPI_Reduce_scatter_block(spread, sum, N, MPI_FLOAT, MPI_SUM, comm));
  check_sum(sum);
  CHECK_MPI(MPI_Reduce_scatter(spread, sum, counts, MPI_FLOAT, MPI_SUM, comm));
  check_sum(sum);
  CHECK_MPI(MPI_Scan(one, sum, N, MPI_FLOAT, MPI_MAX, comm));
  CHECK(same_f32(sum, N, rank));
  CHECK_MPI(MPI_Exscan(one, sum, N, MPI_FLOAT, MPI_MAX, comm));
  CHECK(rank == 0 || same_f32(sum, N, rank - 1));
  memcpy(sum, one, sizeof one);
  CHECK_MPI(MPI_Bcast(sum, N, MPI_FLOAT, size - 1, comm));
  CHECK(same_f32(sum, N, size - 1));
}

static void started(void) {
  static float sum[N], got[N];
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Request requests[4];
  MPI_Irecv(got, N, MPI_FLOAT, previous, 1, comm, &requests[0]);
  MPI_Iallgather(one, N, MPI_FLOAT, all, N, MPI_FLOAT, comm, &requests[1]);
  MPI_Isend(one, N, MPI_FLOAT, next, 1, comm, &requests[2]);
  MPI_Iallreduce(one, sum, N, MPI_FLOAT, MPI_SUM, comm, &requests[3]);
  for (int left = 4, index; left > 0; --left) {
    CHECK_MPI(MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index != MPI_UNDEFINED);
  }
  CHECK(same_f32(got, N, previous));
  check_all();
  check_sum(sum);
#if MPI_VERSION >= 4
  CHECK_MPI(MPI_Allreduce_init(one, sum, N, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]));
  CHECK_MPI(MPI_Send_init(one, N, MPI_FLOAT, next, 2, comm, &requests[1]));
  CHECK_MPI(MPI_Recv_init(got, N, MPI_FLOAT, previous, 2, comm, &requests[2]));
  for (int round = 0; round < 2; ++round) {
    memset(got, 0, sizeof got);
    memset(sum, 0, sizeof sum);
    MPI_Startall(3, requests);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(same_f32(got, N, previous));
    check_sum(sum);
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
#endif
}

static void neighbourhoods(void) {
  static float in[2 * N], out[2 * N];
  MPI_Comm ring, graph;
  MPI_Request request;
  int periodic = 1, left, right;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  MPI_Cart_shift(ring, 0, 1, &left, &right);
  CHECK_MPI(MPI_Neighbor_allgather(one, N, MPI_FLOAT, in, N, MPI_FLOAT, ring));
  CHECK(same_f32(in, N, left) && same_f32(in + N, N, right));
  const int ends[2] = {left, right}, ones[2] = {1, 1}, two[2] = {N, N}, where[2] = {0, N};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, ends, ones, 2, ends, ones, MPI_INFO_NULL, 0,
                                 &graph);
  fill_f32(out, N, rank);
  fill_f32(out + N, N, rank);
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Ineighbor_alltoallv(out, two, where, MPI_FLOAT, in, two, where, MPI_FLOAT, graph,
                                    &request));
  MPI_Sendrecv_replace(one, N, MPI_FLOAT, right, 5, left, 5, graph, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, left) && same_f32(in + N, N, right) && same_f32(one, N, left));
  MPI_Comm_free(&graph);
  MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(size <= MOST);
  fill_f32(one, N, rank);
  for (int r = 0; r < size; ++r) {
    memcpy(spread + r * N, one, sizeof one);
    counts[r] = N;
    places[r] = r * N;
  }
  blocking();
  started();
  neighbourhoods();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
