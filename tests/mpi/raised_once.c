/* A request that fails is told to the error handler once, by the call that completes it: whether
 * MPI itself found the message too long (noise travels raw, and what is mostly noise in a frame
 * that does not fit either) or its frame tells so, and however the request was made and is
 * completed. What the calls return is left alone: MPICH returns success
 * from some once a handler of the program's was called. */
#include "check.h"

/* The room has a size that frames have, too (docs/wire-format.md). */
enum { N = 50000, ROOM = 42 + 64 * 468, WAYS = 5, KINDS = 3 };

static float smooth[N], noise[N], mixed[N], in[2][ROOM];
static int handled = 0;
static MPI_Comm comm;

static void handler(MPI_Comm* raised_on, int* code, ...) {
  int error_class;
  (void)raised_on;
  MPI_Error_class(*code, &error_class);
  if (error_class != MPI_ERR_IN_STATUS) CHECK(error_class == MPI_ERR_TRUNCATE);
  ++handled;
}

/* Only after this does rank 0 send the messages of a round: the receives are posted. */
static void ask(void) { MPI_Send(NULL, 0, MPI_INT, 0, 100, comm); }

/* How often the handler was called since this was asked last. */
static int calls(void) {
  const int count = handled;
  handled = 0;
  return count;
}

static void complete(int way, MPI_Request* request) {
  MPI_Status status;
  int flag = 0, index, looked;
  switch (way) {
    case 0: MPI_Wait(request, &status); break;
    case 1:
      while (!flag && !handled) MPI_Test(request, &flag, &status);
      break;
    case 2: MPI_Waitall(1, request, &status); break;
    case 3: MPI_Waitany(1, request, &index, &status); break;
    default: /* MPIs differ in whether this call tells of the error, too. */
      while (!flag && !handled) MPI_Request_get_status(*request, &flag, &status);
      looked = calls();
      MPI_Wait(request, &status);
      CHECK(looked <= 1 && handled <= 1 && looked + handled >= 1);
      handled = 1;
  }
  CHECK(calls() == 1);
}

static MPI_Request post(int persistent) {
  MPI_Request request;
  if (persistent) {
    CHECK_MPI(MPI_Recv_init(in[0], ROOM, MPI_FLOAT, 0, 0, comm, &request));
    CHECK_MPI(MPI_Start(&request));
  } else {
    CHECK_MPI(MPI_Irecv(in[0], ROOM, MPI_FLOAT, 0, 0, comm, &request));
  }
  return request;
}

static void receive(int way, int persistent) {
  MPI_Request request = post(persistent);
  ask();
  complete(way, &request);
  if (persistent) CHECK_MPI(MPI_Request_free(&request));
}

static void give_up(int persistent) {
  MPI_Request request = post(persistent);
  CHECK_MPI(MPI_Request_free(&request));
  ask();
}

int main(int argc, char** argv) {
  const float* const values[KINDS] = {smooth, noise, mixed};
  int rank;
  MPI_Errhandler own;
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(comm, own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, own);
  fill_f32(smooth, N, 3);
  fill_noise(noise, sizeof noise, 4);
  fill_f32(mixed, N, 5);
  fill_noise(mixed + N / 5, sizeof mixed - sizeof(float) * (N / 5), 5);

  for (int way = 0; way < WAYS; ++way) {
    for (int persistent = 0; persistent < 2; ++persistent) {
      for (int kind = 0; kind < KINDS; ++kind) {
        if (rank == 1) receive(way, persistent);
        if (rank != 0) continue;
        MPI_Recv(NULL, 0, MPI_INT, 1, 100, comm, MPI_STATUS_IGNORE);
        CHECK_MPI(MPI_Send(values[kind], N, MPI_FLOAT, 1, 0, comm));
      }
    }
  }

#if defined(OPEN_MPI)
  /* One of either kind: one call, and so one error. MPICH's MPI_Waitall returns success here once
   * the handler was called, and so nobody beneath the program can tell that it was. */
  if (rank == 0) {
    MPI_Recv(NULL, 0, MPI_INT, 1, 100, comm, MPI_STATUS_IGNORE);
    CHECK_MPI(MPI_Send(smooth, N, MPI_FLOAT, 1, 1, comm));
    CHECK_MPI(MPI_Send(noise, N, MPI_FLOAT, 1, 2, comm));
  } else if (rank == 1) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    CHECK_MPI(MPI_Irecv(in[0], ROOM, MPI_FLOAT, 0, 1, comm, &requests[0]));
    CHECK_MPI(MPI_Irecv(in[1], ROOM, MPI_FLOAT, 0, 2, comm, &requests[1]));
    ask();
    MPI_Waitall(2, requests, statuses);
    CHECK(calls() == 1);
  }
#endif

  /* Nobody asks what became of a freed request, so its error is told once or not at all. */
  for (int persistent = 0; persistent < 2; ++persistent) {
    if (rank == 0) {
      MPI_Recv(NULL, 0, MPI_INT, 1, 100, comm, MPI_STATUS_IGNORE);
      CHECK_MPI(MPI_Send(noise, N, MPI_FLOAT, 1, 0, comm));
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 1, 101, comm));
    } else if (rank == 1) {
      int flag;
      give_up(persistent);
      MPI_Recv(NULL, 0, MPI_INT, 0, 101, comm, MPI_STATUS_IGNORE);
      for (int i = 0; i < 100; ++i) MPI_Iprobe(0, 101, comm, &flag, MPI_STATUS_IGNORE);
      CHECK(calls() <= 1);
    }
  }
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&own);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
