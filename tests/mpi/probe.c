/* Probes tell the program's sizes, not the wire's, and what was probed is received in order. */
#include "check.h"

enum { N = 30000 };

static int rank, size, left, right;
static float out[N], in[N], expected[N];

static void expect(const MPI_Status* status, int tag, int count) {
  int got = -1;
  CHECK(status->MPI_SOURCE == left && status->MPI_TAG == tag);
  CHECK_MPI(MPI_Get_count(status, MPI_FLOAT, &got));
  CHECK(got == count);
}

static void send_three(int base) {
  MPI_Request requests[3];
  static float buffers[3][N];
  for (int k = 0; k < 3; ++k) {
    fill_f32(buffers[k], N - k, base + 100 * rank + k);
    CHECK_MPI(MPI_Isend(buffers[k], N - k, MPI_FLOAT, right, 7, MPI_COMM_WORLD, &requests[k]));
  }
  /* Three messages of one tag: whoever probes must still receive them in order. */
  for (int k = 0; k < 3; ++k) {
    MPI_Status status;
    int count, flag = 0;
    if (base == 0) {
      CHECK_MPI(MPI_Probe(left, 7, MPI_COMM_WORLD, &status));
    } else {
      while (!flag)
        CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
    }
    expect(&status, 7, N - k);
    CHECK_MPI(
        MPI_Probe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &status)); /* probing twice changes nothing */
    expect(&status, 7, N - k);
    CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
    if (k == 1) {
      MPI_Request request;
      CHECK_MPI(MPI_Irecv(in, count, MPI_FLOAT, left, 7, MPI_COMM_WORLD, &request));
      CHECK_MPI(MPI_Wait(&request, &status));
      CHECK(request == MPI_REQUEST_NULL);
    } else if (k == 2) {
      CHECK_MPI(MPI_Sendrecv(out, 1, MPI_FLOAT, MPI_PROC_NULL, 0, in, count, MPI_FLOAT, left, 7,
                             MPI_COMM_WORLD, &status));
    } else {
      CHECK_MPI(MPI_Recv(in, count, MPI_FLOAT, left, 7, MPI_COMM_WORLD, &status));
    }
    expect(&status, 7, N - k);
    CHECK(same_f32(in, N - k, base + 100 * left + k));
  }
  CHECK_MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
}

/* Matched probes: the message is the caller's alone, even where others could match it. */
static void matched(void) {
  MPI_Message message;
  MPI_Status status;
  MPI_Request request, send;
  int flag = 0, none = 0;
  fill_f32(out, N, rank);
  for (int form = 0; form < 2; ++form) {
    CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 9, MPI_COMM_WORLD, &send));
    if (form == 0) {
      CHECK_MPI(MPI_Mprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &message, &status));
    } else {
      flag = 0;
      while (!flag)
        CHECK_MPI(MPI_Improbe(left, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
    }
    expect(&status, 9, N);
    CHECK_MPI(MPI_Iprobe(left, 9, MPI_COMM_WORLD, &none, MPI_STATUS_IGNORE));
    CHECK(!none);
    memset(in, 0, sizeof in);
    if (form == 0) {
      CHECK_MPI(MPI_Mrecv(in, N, MPI_FLOAT, &message, &status));
    } else {
      CHECK_MPI(MPI_Imrecv(in, N, MPI_FLOAT, &message, &request));
      CHECK_MPI(MPI_Wait(&request, &status));
    }
    CHECK(message == MPI_MESSAGE_NULL);
    expect(&status, 9, N);
    CHECK(same_f32(in, N, left));
    CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK_MPI(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
  CHECK(message == MPI_MESSAGE_NO_PROC);
  CHECK_MPI(MPI_Mrecv(in, N, MPI_FLOAT, &message, &status));
}

/* Probed, then received into a smaller buffer, and into one with gaps. */
static void misfits(void) {
  MPI_Status status;
  MPI_Request send;
  MPI_Datatype every_other;
  int error_class;
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 11, MPI_COMM_WORLD, &send));
  CHECK_MPI(MPI_Probe(left, 11, MPI_COMM_WORLD, &status));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Recv(in, N / 2, MPI_FLOAT, left, 11, MPI_COMM_WORLD, &status), &error_class);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CHECK(error_class == MPI_ERR_TRUNCATE);
  CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));

  fill_f32(out, N / 2, rank);
  CHECK_MPI(MPI_Isend(out, N / 2, MPI_FLOAT, right, 12, MPI_COMM_WORLD, &send));
  MPI_Type_vector(N / 2, 1, 2, MPI_FLOAT, &every_other);
  MPI_Type_commit(&every_other);
  for (int i = 0; i < N; ++i) in[i] = -1;
  CHECK_MPI(MPI_Probe(left, 12, MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Recv(in, 1, every_other, left, 12, MPI_COMM_WORLD, &status));
  fill_f32(expected, N / 2, left);
  for (int i = 0; i < N; ++i) CHECK(in[i] == (i % 2 ? -1 : expected[i / 2]));
  CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  MPI_Type_free(&every_other);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  send_three(0);
  MPI_Barrier(MPI_COMM_WORLD);
  send_three(50);
  MPI_Barrier(MPI_COMM_WORLD);
  matched();
  MPI_Barrier(MPI_COMM_WORLD);
  misfits();
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
