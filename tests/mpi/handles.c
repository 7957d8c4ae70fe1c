/* Handles and statuses keep their meaning in the integer form that other languages use. */
#include "check.h"

#if defined(MPI_ABI_VERSION)
#define REQUEST_TO_INTEGER MPI_Request_toint
#define REQUEST_FROM_INTEGER MPI_Request_fromint
#define MESSAGE_TO_INTEGER MPI_Message_toint
#define MESSAGE_FROM_INTEGER MPI_Message_fromint
typedef int Integer;
#else
#define REQUEST_TO_INTEGER MPI_Request_c2f
#define REQUEST_FROM_INTEGER MPI_Request_f2c
#define MESSAGE_TO_INTEGER MPI_Message_c2f
#define MESSAGE_FROM_INTEGER MPI_Message_f2c
typedef MPI_Fint Integer;
#endif

enum { N = 20000, MESSAGES = 3 };

static int rank, left, right;
static float out[N], in[MESSAGES][N];

static void expect(MPI_Status status, int tag) {
  int count;
#if !defined(MPI_ABI_VERSION)
  MPI_Fint converted[100];
  MPI_Status_c2f(&status, converted);
  memset(&status, 0, sizeof status);
  MPI_Status_f2c(converted, &status);
#endif
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(status.MPI_SOURCE == left && status.MPI_TAG == tag && count == N);
  CHECK(same_f32(in[tag], N, left));
}

static void requests(void) {
  Integer handles[MESSAGES + 1];
  MPI_Request request;
  MPI_Status status;
  for (int tag = 0; tag < MESSAGES; ++tag) {
    CHECK_MPI(MPI_Irecv(in[tag], N, MPI_FLOAT, left, tag, MPI_COMM_WORLD, &request));
    handles[tag] = REQUEST_TO_INTEGER(request);
    CHECK(REQUEST_FROM_INTEGER(handles[tag]) == request);
  }
  CHECK_MPI(MPI_Send_init(out, N, MPI_FLOAT, right, MESSAGES - 1, MPI_COMM_WORLD, &request));
  handles[MESSAGES] = REQUEST_TO_INTEGER(request);
  CHECK_MPI(MPI_Start(&request));
  CHECK(REQUEST_TO_INTEGER(request) == handles[MESSAGES]);
  for (int tag = 0; tag < MESSAGES - 1; ++tag) {
    MPI_Request send;
    CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, tag, MPI_COMM_WORLD, &send));
    send = REQUEST_FROM_INTEGER(REQUEST_TO_INTEGER(send));
    CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  for (int tag = 0; tag < MESSAGES; ++tag) {
    request = REQUEST_FROM_INTEGER(handles[tag]);
    CHECK_MPI(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(REQUEST_TO_INTEGER(request) == REQUEST_TO_INTEGER(MPI_REQUEST_NULL));
    expect(status, tag);
  }
  request = REQUEST_FROM_INTEGER(handles[MESSAGES]);
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Request_free(&request));
}

/* Several matched messages are held at once, each by its integer. */
static void messages(void) {
  Integer handles[MESSAGES];
  MPI_Request sends[MESSAGES], request;
  MPI_Message message;
  MPI_Status status;
  for (int tag = 0; tag < MESSAGES; ++tag) {
    CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, tag, MPI_COMM_WORLD, &sends[tag]));
  }
  for (int tag = 0; tag < MESSAGES; ++tag) {
    CHECK_MPI(MPI_Mprobe(left, tag, MPI_COMM_WORLD, &message, &status));
    handles[tag] = MESSAGE_TO_INTEGER(message);
    CHECK(MESSAGE_FROM_INTEGER(handles[tag]) == message);
    memset(in[tag], 0, sizeof in[tag]);
  }
  for (int tag = MESSAGES - 1; tag >= 0; --tag) {
    message = MESSAGE_FROM_INTEGER(handles[tag]);
    if (tag % 2) {
      CHECK_MPI(MPI_Imrecv(in[tag], N, MPI_FLOAT, &message, &request));
      CHECK_MPI(MPI_Wait(&request, &status));
    } else {
      CHECK_MPI(MPI_Mrecv(in[tag], N, MPI_FLOAT, &message, &status));
    }
    CHECK(message == MPI_MESSAGE_NULL);
    CHECK(MESSAGE_TO_INTEGER(message) == MESSAGE_TO_INTEGER(MPI_MESSAGE_NULL));
    expect(status, tag);
  }
  CHECK_MPI(MPI_Waitall(MESSAGES, sends, MPI_STATUSES_IGNORE));
  /* A message that is none of mpress's. */
  CHECK_MPI(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
  CHECK(MESSAGE_FROM_INTEGER(MESSAGE_TO_INTEGER(message)) == MPI_MESSAGE_NO_PROC);
  CHECK_MPI(MPI_Mrecv(in[0], N, MPI_FLOAT, &message, &status));
}

int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  fill_f32(out, N, rank);
  requests();
  messages();
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
