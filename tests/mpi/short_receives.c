/* Receives that are shorter than what is compressed, unless a hint or a rank's own threshold asks
 * for more; the argument says who does. On two ranks, of which rank 0 sends. */
#include "check.h"

enum { N = 1024, LONG = 65536, WAYS = 12 };
static int rank;
static float out[LONG], in[2 * LONG];

static void check_came(const MPI_Status* status, int seed) {
  int count;
  MPI_Get_elements(status, MPI_FLOAT, &count);
  CHECK(count == N);
  CHECK(same_f32(in, N, seed));
}

/* Receives N floats in one of WAYS ways. */
static void receive(int way, MPI_Comm comm, int tag, int seed) {
  MPI_Request request, requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Message message;
  MPI_Datatype type;
  MPI_Status status, statuses[2];
  int flag = 0, count = 0;
  memset(in, 0, sizeof in);
  switch (way) {
    case 0: CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, 0, tag, comm, &status)); break;
    case 1: /* more room, which is still too little to expect anything */
      CHECK_MPI(MPI_Recv(in, 3 * N, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
      break;
    case 2:
      CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, tag, comm, &request));
      CHECK_MPI(MPI_Wait(&request, &status));
      break;
    case 3:
      CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, tag, comm, &request));
      while (!flag) CHECK_MPI(MPI_Test(&request, &flag, &status));
      break;
    case 4:
      CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, tag, comm, &requests[1]));
      CHECK_MPI(MPI_Waitall(2, requests, statuses));
      status = statuses[1];
      break;
    case 5:
      CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, in, N, MPI_FLOAT, 0, tag, comm,
                             &status));
      break;
    case 6: /* looked at before it is completed, twice */
      CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, tag, comm, &request));
      while (!flag) CHECK_MPI(MPI_Request_get_status(request, &flag, &status));
      check_came(&status, seed);
      CHECK_MPI(MPI_Request_get_status(request, &flag, &status));
      CHECK_MPI(MPI_Wait(&request, &status));
      break;
    case 7: /* a type that is freed before the message is there */
      CHECK_MPI(MPI_Type_contiguous(N, MPI_FLOAT, &type));
      CHECK_MPI(MPI_Type_commit(&type));
      CHECK_MPI(MPI_Irecv(in, 1, type, 0, tag, comm, &request));
      CHECK_MPI(MPI_Type_free(&type));
      CHECK_MPI(MPI_Wait(&request, &status));
      break;
    case 8: /* with gaps */
      CHECK_MPI(MPI_Type_vector(N, 1, 2, MPI_FLOAT, &type));
      CHECK_MPI(MPI_Type_commit(&type));
      CHECK_MPI(MPI_Irecv(in, 1, type, 0, tag, comm, &request));
      CHECK_MPI(MPI_Type_free(&type));
      CHECK_MPI(MPI_Wait(&request, &status));
      for (int i = 0; i < N; ++i) CHECK(in[2 * i + 1] == 0.0f);
      for (int i = 0; i < N; ++i) in[i] = in[2 * i];
      break;
    case 9:
      CHECK_MPI(MPI_Probe(0, tag, comm, &status));
      MPI_Get_count(&status, MPI_FLOAT, &count);
      CHECK(count == N);
      CHECK_MPI(MPI_Recv(in, count, MPI_FLOAT, 0, tag, comm, &status));
      break;
    case 10:
      CHECK_MPI(MPI_Mprobe(0, tag, comm, &message, &status));
      CHECK_MPI(MPI_Mrecv(in, N, MPI_FLOAT, &message, &status));
      break;
    case 11:
      CHECK_MPI(MPI_Recv_init(in, N, MPI_FLOAT, 0, tag, comm, &request));
      CHECK_MPI(MPI_Start(&request));
      CHECK_MPI(MPI_Wait(&request, &status));
      CHECK_MPI(MPI_Request_free(&request));
      break;
  }
  check_came(&status, seed);
}

/* A message in each way; of every second the receive is posted first, if it can be. */
static void pass_on(MPI_Comm comm) {
  for (int i = 0; i < 2 * WAYS; ++i) {
    if (rank == 0) {
      fill_f32(out, N, i);
      if (i % 2) MPI_Recv(NULL, 0, MPI_INT, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, i, comm));
    } else {
      if (i % 2) MPI_Send(NULL, 0, MPI_INT, 0, 99, MPI_COMM_WORLD);
      receive(i / 2, comm, i, i);
    }
  }
}

/* The receive outlives its communicator's handle. */
static void outlive(MPI_Comm* comm) {
  MPI_Request request;
  MPI_Status status;
  memset(in, 0, sizeof in);
  fill_f32(out, N, 5);
  if (rank == 0) CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, 1, 7, *comm, &request));
  if (rank == 1) CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, 7, *comm, &request));
  CHECK_MPI(MPI_Comm_free(comm));
  CHECK_MPI(MPI_Wait(&request, &status));
  if (rank == 1) check_came(&status, 5);
}

static void hinted(const char* call, int gives) {
  MPI_Comm comm, child;
  MPI_Request request;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (gives) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpress_threshold", "1K");
  }
  pass_on(comm); /* as without a hint */
  if (!strcmp(call, "set_info")) {
    if (gives) CHECK_MPI(MPI_Comm_set_info(comm, info));
    CHECK_MPI(MPI_Comm_dup(comm, &child)); /* inherits it */
  } else if (!strcmp(call, "dup_with_info")) {
    CHECK_MPI(MPI_Comm_dup_with_info(comm, info, &child));
  } else {
    CHECK_MPI(MPI_Comm_idup_with_info(comm, info, &child, &request));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  pass_on(child);
  outlive(&child);
  MPI_Comm_free(&comm);
  if (gives) MPI_Info_free(&info);
}

static int class_of(int code) {
  int class;
  MPI_Error_class(code, &class);
  return class;
}

/* Messages that are compressed, for which there is no room, in any kind of receive. */
static void truncated(void) {
  MPI_Comm quiet;
  MPI_Request request;
  MPI_Status status;
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
  static const int rooms[] = {8, 100, 1024, 4000};
  fill_f32(out, LONG, 1);
  for (int i = 0; i < 16; ++i) {
    const int room = rooms[i % 4];
    int code = MPI_SUCCESS, flag = 0;
    if (rank == 0) {
      MPI_Recv(NULL, 0, MPI_INT, 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_MPI(MPI_Send(out, LONG, MPI_FLOAT, 1, i, quiet));
      continue;
    }
    if (i / 4 == 0 || i / 4 == 1) {
      CHECK_MPI(MPI_Irecv(in, room, MPI_FLOAT, 0, i, quiet, &request));
    }
    MPI_Send(NULL, 0, MPI_INT, 0, 99, MPI_COMM_WORLD);
    switch (i / 4) {
      case 0: code = MPI_Wait(&request, MPI_STATUS_IGNORE); break;
      case 1:
        while (!flag && code == MPI_SUCCESS) code = MPI_Test(&request, &flag, &status);
        break;
      case 2: code = MPI_Recv(in, room, MPI_FLOAT, 0, i, quiet, MPI_STATUS_IGNORE); break;
      case 3:
        code = MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, in, room, MPI_FLOAT, 0, i, quiet,
                            &status);
        break;
    }
    CHECK(class_of(code) == MPI_ERR_TRUNCATE);
  }
  MPI_Comm_free(&quiet);
}

int main(int argc, char** argv) {
  const char* part = argc > 1 ? argv[1] : "environment";
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  if (!strcmp(part, "environment")) pass_on(MPI_COMM_WORLD);
  if (!strcmp(part, "truncated")) truncated();
  if (!strcmp(part, "both")) hinted(argv[2], 1);
  if (!strcmp(part, "one")) hinted(argv[2], rank == 0);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
