/* A message larger than its buffer is an error even where its frame would fit: reported as MPI
 * reports it, with nothing written beyond the buffer, and later messages unharmed. */
#include "check.h"

enum { N = 50000, ROOM = 30000 };

static float out[N], in[N];

static int class_of(int code) {
  int error_class;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static int handled = 0;
static MPI_Comm handled_on;

static void handler(MPI_Comm* comm, int* code, ...) {
  CHECK(class_of(*code) == MPI_ERR_TRUNCATE);
  handled_on = *comm;
  ++handled;
}

/* The program's own error handler is told, once, with its communicator; where that is no more,
 * the handler of MPI_COMM_WORLD is. */
static void own_handlers(int rank) {
  MPI_Comm comm;
  MPI_Errhandler own;
  MPI_Request request;
  CHECK_MPI(MPI_Comm_create_errhandler(handler, &own));
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  if (rank == 0) {
    CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, 0, comm));
    MPI_Recv(NULL, 0, MPI_INT, 1, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, 1, comm));
  } else if (rank == 1) {
    MPI_Comm_set_errhandler(comm, own);
    MPI_Recv(in, ROOM, MPI_FLOAT, 0, 0, comm, MPI_STATUS_IGNORE);
    CHECK(handled == 1 && handled_on == comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    CHECK_MPI(MPI_Irecv(in, ROOM, MPI_FLOAT, 0, 1, comm, &request));
    MPI_Send(NULL, 0, MPI_INT, 0, 100, MPI_COMM_WORLD);
  }
  CHECK_MPI(MPI_Comm_free(&comm));
  if (rank == 1) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(handled == 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  CHECK_MPI(MPI_Errhandler_free(&own));
}

static void untouched_beyond(int from) {
  for (int i = from; i < N; ++i) CHECK(in[i] == -7.0f);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Comm comm;
  MPI_Status status, statuses[2];
  MPI_Request requests[2];
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  /* MPIs differ in where they raise the errors of calls that complete several requests. */
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  fill_f32(out, N, 5);
  for (int i = 0; i < N; ++i) in[i] = -7.0f;

  if (rank == 0) {
    for (int tag = 0; tag < 4; ++tag) {
      MPI_Recv(NULL, 0, MPI_INT, 1, 100, comm, MPI_STATUS_IGNORE); /* the receive is posted */
      CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, tag, comm));
    }
    CHECK_MPI(MPI_Send(out, ROOM, MPI_FLOAT, 1, 4, comm));
  } else if (rank == 1) {
    MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
    CHECK(class_of(MPI_Recv(in, ROOM, MPI_FLOAT, 0, 0, comm, &status)) == MPI_ERR_TRUNCATE);
    untouched_beyond(ROOM);

    CHECK_MPI(MPI_Irecv(in, ROOM, MPI_FLOAT, 0, 1, comm, &requests[0]));
    MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
    CHECK(class_of(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE);
    untouched_beyond(ROOM);

    /* Among several: the good one is delivered, the statuses tell which failed. */
    static float good[N];
    for (int k = 0; k < 2; ++k) statuses[k].MPI_ERROR = 12345;
    CHECK_MPI(MPI_Irecv(good, N, MPI_FLOAT, 0, 2, comm, &requests[0]));
    CHECK_MPI(MPI_Irecv(in, ROOM, MPI_FLOAT, 0, 3, comm, &requests[1]));
    MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
    MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
    CHECK(class_of(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
    CHECK(class_of(statuses[1].MPI_ERROR) == MPI_ERR_TRUNCATE);
    CHECK(same_f32(good, N, 5));
    untouched_beyond(ROOM);

    CHECK_MPI(MPI_Recv(in, ROOM, MPI_FLOAT, 0, 4, comm, &status));
    CHECK(same_f32(in, ROOM, 5));
    untouched_beyond(ROOM);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  own_handlers(rank);
  MPI_Comm_free(&comm);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
