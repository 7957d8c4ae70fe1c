/* Device memory where calls are at their edges: receives that are too small, requests that outlive
 * their communicator, messages from nobody, of nothing, of odd sizes, between groups. Two ranks. */
#include "check.h"
#include "simulated_gpu.h"

enum { BYTES = 100000 };

static char *device, *host;

static int error_class(int code) {
  int result = MPI_SUCCESS;
  MPI_Error_class(code, &result);
  return result;
}

static void fill(int seed) {
  for (int i = 0; i < BYTES; ++i) host[i] = (char)(i * 3 + i / 256 + seed);
  sim_copy_in(device, host, BYTES);
}

static void clear(void) {
  memset(host, 0x5a, BYTES);
  sim_copy_in(device, host, BYTES);
}

static void check(int bytes, int seed) {
  sim_copy_out(host, device, BYTES);
  for (int i = 0; i < bytes; ++i) CHECK(host[i] == (char)(i * 3 + i / 256 + seed));
  for (int i = bytes; i < BYTES; ++i) CHECK(host[i] == 0x5a);
}

static int raised;

static void count_error(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++raised;
}

/* Rank 0's messages do not fit; the next one is right all the same. */
static void too_small(MPI_Comm comm, int way, int room) {
  MPI_Request request;
  MPI_Status status;
  MPI_Message message;
  int code = MPI_SUCCESS;
  if (check_rank == 0) {
    fill(room);
    CHECK_MPI(MPI_Send(device, BYTES, MPI_BYTE, 1, 1, comm));
    CHECK_MPI(MPI_Send(device, room, MPI_BYTE, 1, 2, comm));
    return;
  }
  clear();
  raised = 0;
  switch (way) {
    case 0: code = MPI_Recv(device, room, MPI_BYTE, 0, 1, comm, &status); break;
    case 1:
      MPI_Irecv(device, room, MPI_BYTE, 0, 1, comm, &request);
      code = MPI_Wait(&request, &status);
      break;
    case 2:
      MPI_Irecv(device, room, MPI_BYTE, 0, 1, comm, &request);
      for (int done = 0; !done && code == MPI_SUCCESS;) code = MPI_Test(&request, &done, &status);
      break;
    default:
      MPI_Mprobe(0, 1, comm, &message, &status);
      int bytes;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      CHECK(bytes == BYTES);
      code = MPI_Mrecv(device, room, MPI_BYTE, &message, &status);
  }
  /* MPICH returns success once a handler of the program's has returned. */
  CHECK(raised <= 1 && (raised == 1 || error_class(code) == MPI_ERR_TRUNCATE));
  sim_copy_out(host, device, BYTES);
  for (int i = room; i < BYTES; ++i) CHECK(host[i] == 0x5a);
  clear();
  CHECK_MPI(MPI_Recv(device, room, MPI_BYTE, 0, 2, comm, &status));
  check(room, room);
}

static void outlived(void) {
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (check_rank == 0) {
    CHECK_MPI(MPI_Send_init(device, BYTES, MPI_BYTE, 1, 3, comm, &request));
  } else {
    CHECK_MPI(MPI_Recv_init(device, BYTES, MPI_BYTE, 0, 3, comm, &request));
  }
  check_rank == 0 ? fill(3) : clear();
  CHECK_MPI(MPI_Start(&request));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (check_rank == 1) check(BYTES, 3);
  MPI_Comm_free(&comm);
  /* Where MPI gives the communicator up, nothing can be sent from a device any more. */
  int works;
  clear();
  if (check_rank == 0) {
    const int code = MPI_Start(&request);
    CHECK(code == MPI_SUCCESS || error_class(code) == MPI_ERR_COMM);
    works = code == MPI_SUCCESS;
    CHECK_MPI(MPI_Send(&works, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
  } else {
    CHECK_MPI(MPI_Recv(&works, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (works) CHECK_MPI(MPI_Start(&request));
  }
  if (works) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Request_free(&request));
}

static void from_nobody(void) {
  MPI_Request requests[3];
  MPI_Status statuses[3];
  for (int i = 0; i < 3; ++i) {
    MPI_Message message;
    CHECK_MPI(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &statuses[0]));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    CHECK_MPI(MPI_Imrecv(device, BYTES, MPI_BYTE, &message, &requests[i]));
  }
  CHECK_MPI(MPI_Waitall(3, requests, statuses));
  for (int i = 0; i < 3; ++i) CHECK(statuses[i].MPI_SOURCE == MPI_PROC_NULL);
  for (int i = 0; i < 3; ++i) {
    CHECK_MPI(MPI_Irecv(device, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[i]));
  }
  CHECK_MPI(MPI_Waitall(3, requests, statuses));
  CHECK_MPI(MPI_Recv_init(device, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, requests));
  CHECK_MPI(MPI_Start(requests));
  CHECK_MPI(MPI_Wait(requests, statuses));
  MPI_Request_free(requests);
  CHECK_MPI(MPI_Send(device, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
  fill(7);
  CHECK_MPI(MPI_Sendrecv_replace(device, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0,
                                 MPI_COMM_WORLD, statuses));
  check(BYTES, 7);
}

/* Sizes that are no whole number of floats, and types of odd sizes. */
static void odd(int bytes, int unit) {
  MPI_Datatype type;
  MPI_Status status;
  int count;
  MPI_Type_contiguous(unit, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  if (check_rank == 0) {
    fill(bytes);
    CHECK_MPI(MPI_Ssend(device + 1, bytes / unit, type, 1, 5, MPI_COMM_WORLD));
  } else {
    clear();
    CHECK_MPI(MPI_Probe(0, 5, MPI_COMM_WORLD, &status));
    MPI_Get_count(&status, type, &count);
    CHECK(count == bytes / unit);
    CHECK_MPI(MPI_Recv(device + 1, bytes / unit, type, 0, 5, MPI_COMM_WORLD, &status));
    sim_copy_out(host, device, BYTES);
    for (int i = 1; i <= bytes / unit * unit; ++i) {
      CHECK(host[i] == (char)(i * 3 + i / 256 + bytes));
    }
    CHECK(host[0] == 0x5a && host[bytes / unit * unit + 1] == 0x5a);
  }
  MPI_Type_free(&type);
}

static void nothing(void) {
  MPI_Datatype empty;
  MPI_Status status;
  MPI_Type_contiguous(0, MPI_FLOAT, &empty);
  MPI_Type_commit(&empty);
  CHECK_MPI(MPI_Sendrecv(device, 5, empty, !check_rank, 6, device, 5, empty, !check_rank, 6,
                         MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Sendrecv_replace(device, 5, empty, !check_rank, 6, !check_rank, 6, MPI_COMM_WORLD,
                                 &status));
  CHECK_MPI(MPI_Sendrecv(device, 0, MPI_FLOAT, !check_rank, 6, device, 100, MPI_FLOAT, !check_rank,
                         6, MPI_COMM_WORLD, &status));
  MPI_Type_free(&empty);
}

static void between_groups(void) {
  MPI_Comm inter;
  MPI_Status status;
  MPI_Message message;
  CHECK_MPI(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, !check_rank, 8, &inter));
  for (int way = 0; way < 2; ++way) {
    if (check_rank == 0) {
      fill(way);
      CHECK_MPI(MPI_Send(device, BYTES / 4, MPI_FLOAT, 0, 9, inter));
    } else {
      clear();
      if (way == 0) CHECK_MPI(MPI_Recv(device, BYTES / 4, MPI_FLOAT, 0, 9, inter, &status));
      if (way == 1) CHECK_MPI(MPI_Mprobe(0, 9, inter, &message, &status));
      if (way == 1) CHECK_MPI(MPI_Mrecv(device, BYTES / 4, MPI_FLOAT, &message, &status));
      check(BYTES, way);
    }
  }
  MPI_Comm_free(&inter);
}

/* Both send before they receive, as much as MPI takes without a receiver: 32 messages of 1 KB. */
static void head_to_head(void) {
  for (int i = 0; i < 32; ++i) {
    CHECK_MPI(MPI_Send(device, 256, MPI_FLOAT, !check_rank, i, MPI_COMM_WORLD));
  }
  for (int i = 31; i >= 0; --i) {
    CHECK_MPI(
        MPI_Recv(device + 4096, 256, MPI_FLOAT, !check_rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  MPI_Request requests[2];
  fill(check_rank);
  CHECK_MPI(MPI_Isend(device, BYTES / 8, MPI_FLOAT, !check_rank, 77, MPI_COMM_WORLD, requests));
  CHECK_MPI(MPI_Irecv(device + BYTES / 2, BYTES / 8, MPI_FLOAT, !check_rank, 77, MPI_COMM_WORLD,
                      requests + 1));
  CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  host = malloc(BYTES);
  device = sim_malloc(check_rank, BYTES);
  MPI_Comm tolerant;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &tolerant);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
#if defined(OPEN_MPI)
  const int may_be_too_small = 0; /* by itself it writes beyond such a buffer */
#else
  const int may_be_too_small = 1;
#endif
  for (int handled = 0; handled < 2 && may_be_too_small; ++handled) {
    MPI_Comm_set_errhandler(tolerant, handled ? handler : MPI_ERRORS_RETURN);
    for (int way = 0; way < 4; ++way) {
      static const int rooms[] = {40, 168, 5000, 50001};
      for (int r = 0; r < 4; ++r) too_small(tolerant, way, rooms[r]);
    }
  }
  odd(99997, 1);
  odd(99996, 3);
  odd(65536, 8);
  odd(99998, 2);
  nothing();
  if (check_rank == 0) from_nobody();
  between_groups();
  head_to_head();
  outlived();
  MPI_Comm_free(&tolerant);
  MPI_Errhandler_free(&handler);
  sim_free(device);
  free(host);
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
