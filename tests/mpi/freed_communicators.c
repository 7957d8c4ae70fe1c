/* Persistent requests on communicators that are freed before they are started, and the next
 * communicators, with the ranks in another order, which may get their handles. */
#include "check.h"

enum { N = 100000, ROUNDS = 20 };
static float out[N], in[N];

#if defined(MPICH_VERSION)
static void ignore(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code; }

/* A call with a communicator that is no more, which the program's handler lets pass. What comes
 * next with that handle is not taken for what was not there. Other MPIs may crash. */
static void use_freed(int rank, int next, int previous) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const MPI_Comm freed = comm;
  MPI_Comm_free(&comm);
  if (rank != 0) {
    int flag;
    MPI_Comm_create_errhandler(ignore, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Iprobe(0, 0, freed, &flag, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Sendrecv(out, N, MPI_FLOAT, next, 2, in, N, MPI_FLOAT, previous, 2, comm, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, ROUNDS));
  MPI_Comm_free(&comm);
}
#endif

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Comm comm, reversed;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Ssend_init(out, N, MPI_FLOAT, next, 0, comm, &requests[0]);
    MPI_Recv_init(in, N, MPI_FLOAT, previous, 0, comm, &requests[1]);
    MPI_Comm_free(&comm);
    for (int start = 0; start < 2; ++start) {
      fill_f32(out, N, round + start);
      MPI_Startall(2, requests);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      CHECK(same_f32(in, N, round + start));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    /* Everyone to the last rank of MPI_COMM_WORLD, which is the first here. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Isend(out, N, MPI_FLOAT, 0, 1, reversed, &requests[0]);
    for (int peer = 0; peer < size && rank == size - 1; ++peer) {
      MPI_Recv(in, N, MPI_FLOAT, peer, 1, reversed, MPI_STATUS_IGNORE);
      CHECK(same_f32(in, N, round + 1));
    }
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Comm_free(&reversed);
  }
#if defined(MPICH_VERSION)
  use_freed(rank, next, previous);
#endif
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
