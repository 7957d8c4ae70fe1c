/* Ranks exchange runs of doubles with their neighbours, every time others: BYTES ROUNDS [WAY]. WAY
 * is isend, sendrecv, oneway, where even ranks send and odd ones receive, late, the same with
 * receivers that do something else first, or barrier, the same with senders that wait in a barrier
 * while their messages leave. */
#include <unistd.h>

#include "check.h"

static void set_values(double* values, int count, int seed) {
  for (int i = 0; i < count; ++i) values[i] = 1 + seed + i * 1e-6 * (count - i);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int count = (int)(strtoul(argv[1], NULL, 0) / sizeof(double)), rounds = atoi(argv[2]);
  const char* way = argc > 3 ? argv[3] : "isend";
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  double* out = malloc(sizeof(double) * (size_t)count);
  double* in = malloc(sizeof(double) * (size_t)count);
  double* expected = malloc(sizeof(double) * (size_t)count);
  for (int round = 0; round < rounds; ++round) {
    set_values(out, count, rank + round);
    set_values(expected, count, left + round);
    if (strcmp(way, "isend") == 0) {
      MPI_Request requests[2];
      CHECK_MPI(MPI_Irecv(in, count, MPI_DOUBLE, left, round, MPI_COMM_WORLD, &requests[0]));
      CHECK_MPI(MPI_Isend(out, count, MPI_DOUBLE, right, round, MPI_COMM_WORLD, &requests[1]));
      CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    } else if (strcmp(way, "sendrecv") == 0) {
      CHECK_MPI(MPI_Sendrecv(out, count, MPI_DOUBLE, right, round, in, count, MPI_DOUBLE, left,
                             round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (strcmp(way, "barrier") == 0 && rank % 2 == 0) {
      MPI_Request request;
      CHECK_MPI(MPI_Isend(out, count, MPI_DOUBLE, right, round, MPI_COMM_WORLD, &request));
      CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      continue;
    } else if (rank % 2 == 0) {
      CHECK_MPI(MPI_Send(out, count, MPI_DOUBLE, right, round, MPI_COMM_WORLD));
      continue;
    } else {
      if (strcmp(way, "late") == 0) usleep(20000);
      CHECK_MPI(MPI_Recv(in, count, MPI_DOUBLE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      if (strcmp(way, "barrier") == 0) CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(memcmp(in, expected, sizeof(double) * (size_t)count) == 0);
  }
  free(out);
  free(in);
  free(expected);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
