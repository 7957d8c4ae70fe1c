/* MPI frees a request that fails before it calls the error handler. A handler that receives again
 * gets its handle, most likely, while the call that completed the first is still at work. */
#include "check.h"

enum { N = 20000, ROOM = 2000, WAYS = 4 };

static float smooth[N], noise[N], cut[ROOM], in[N];
static MPI_Request again;
static MPI_Comm comm;

static void receive_again(MPI_Comm* raised_on, int* code, ...) {
  (void)raised_on, (void)code;
  if (again == MPI_REQUEST_NULL) {
    CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, 1, comm, &again));
  }
}

static void complete(int way, MPI_Request* request) {
  MPI_Status status;
  int flag = 0, index, done;
  switch (way) {
    case 0: MPI_Wait(request, &status); break;
    case 1:
      while (!flag && again == MPI_REQUEST_NULL) MPI_Test(request, &flag, &status);
      break;
    case 2: MPI_Waitany(1, request, &index, &status); break;
    default: MPI_Waitsome(1, request, &done, &index, &status);
  }
}

int main(int argc, char** argv) {
  int rank;
  MPI_Errhandler own;
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(receive_again, &own);
  MPI_Comm_set_errhandler(comm, own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
  fill_f32(smooth, N, 3);
  fill_noise(noise, sizeof noise, 4);
  for (int way = 0; way < WAYS; ++way) {
    if (rank == 0) {
      MPI_Recv(NULL, 0, MPI_INT, 1, 100, comm, MPI_STATUS_IGNORE); /* the receive is posted */
      CHECK_MPI(MPI_Send(noise, N, MPI_FLOAT, 1, 0, comm));
      CHECK_MPI(MPI_Send(smooth, N, MPI_FLOAT, 1, 1, comm));
    } else if (rank == 1) {
      MPI_Request request;
      memset(in, 0, sizeof in);
      again = MPI_REQUEST_NULL;
      CHECK_MPI(MPI_Irecv(cut, ROOM, MPI_FLOAT, 0, 0, comm, &request));
      MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
      complete(way, &request);
      CHECK(again != MPI_REQUEST_NULL);
      CHECK_MPI(MPI_Wait(&again, MPI_STATUS_IGNORE));
      CHECK(same_f32(in, N, 3));
    }
  }
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&own);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
