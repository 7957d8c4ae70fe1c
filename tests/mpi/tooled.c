/* Messages for tool.c; their receives have more room than they need. */
#include "check.h"

enum { N = 3000, ROOM = 5000 };

int main(int argc, char** argv) {
  static float out[N], in[ROOM];
  int rank, count;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  const int peer = 1 - rank;
  fill_f32(out, N, rank);
  for (int round = 0; round < 3; ++round) {
    MPI_Irecv(in, ROOM, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(out, N, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
    MPI_Wait(&requests[0], &status);
    MPI_Get_count(&status, MPI_FLOAT, &count);
    CHECK(count == N && same_f32(in, N, peer));

    MPI_Isend(out, N, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Probe(peer, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_FLOAT, &count);
    CHECK(count == N);
    memset(in, 0, sizeof in);
    MPI_Recv(in, ROOM, MPI_FLOAT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, peer));
    MPI_Irecv(in, ROOM, MPI_FLOAT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
