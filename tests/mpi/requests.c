/* Persistent requests, and requests that are freed, cancelled or looked at. */
#include "check.h"

enum { N = 20000 };

static int rank, size, left, right;
static float out[N], in[N];

static void persistent(void) {
  MPI_Request requests[2];
  MPI_Status statuses[2], status;
  int count, flag;
  CHECK_MPI(MPI_Recv_init(in, N, MPI_FLOAT, left, 5, MPI_COMM_WORLD, &requests[0]));
  CHECK_MPI(MPI_Send_init(out, N, MPI_FLOAT, right, 5, MPI_COMM_WORLD, &requests[1]));
  const MPI_Request handles[2] = {requests[0], requests[1]};
  CHECK_MPI(MPI_Wait(&requests[0], &status)); /* inactive: an empty status */
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
  CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && count == 0);
  for (int round = 0; round < 6; ++round) {
    fill_f32(out, N, rank + 10 * round);
    memset(in, 0, sizeof in);
    if (round % 2) {
      CHECK_MPI(MPI_Startall(2, requests));
    } else {
      CHECK_MPI(MPI_Start(&requests[0]));
      CHECK_MPI(MPI_Start(&requests[1]));
    }
    if (round == 3) { /* what a probe has seen can still be received by a started request */
      int seen = 0;
      CHECK_MPI(MPI_Iprobe(left, 5, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE));
    }
    if (round < 4) {
      CHECK_MPI(MPI_Waitall(2, requests, statuses));
    } else {
      for (flag = 0; !flag;) CHECK_MPI(MPI_Testall(2, requests, &flag, statuses));
    }
    CHECK(requests[0] == handles[0] && requests[1] == handles[1]);
    CHECK(statuses[0].MPI_SOURCE == left && statuses[0].MPI_TAG == 5);
    CHECK_MPI(MPI_Get_count(&statuses[0], MPI_FLOAT, &count));
    CHECK(count == N && same_f32(in, N, left + 10 * round));
  }
  CHECK_MPI(MPI_Waitall(2, requests, statuses)); /* inactive again: nothing is told twice */
  CHECK_MPI(MPI_Get_count(&statuses[0], MPI_FLOAT, &count));
  CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && count == 0);
  CHECK_MPI(MPI_Request_get_status(requests[0], &flag, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
  CHECK(flag && count == 0);
  /* A message that a probe took is delivered by the next start. */
  MPI_Request extra;
  fill_f32(out, N, rank + 77);
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 5, MPI_COMM_WORLD, &extra));
  CHECK_MPI(MPI_Probe(left, 5, MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Start(&requests[0]));
  CHECK_MPI(MPI_Wait(&requests[0], &status));
  CHECK(requests[0] == handles[0] && status.MPI_SOURCE == left);
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
  CHECK(count == N && same_f32(in, N, left + 77));
  CHECK_MPI(MPI_Wait(&extra, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Request_free(&requests[0]));
  CHECK_MPI(MPI_Request_free(&requests[1]));
  CHECK(requests[0] == MPI_REQUEST_NULL);
}

static void modes(void) {
  MPI_Request requests[3];
  int bytes;
  MPI_Pack_size(N, MPI_FLOAT, MPI_COMM_WORLD, &bytes);
  bytes += MPI_BSEND_OVERHEAD;
  void* buffer = malloc((size_t)bytes * 3);
  MPI_Buffer_attach(buffer, bytes * 3);
  fill_f32(out, N, rank);
  float* arrived[3];
  for (int k = 0; k < 3; ++k) {
    arrived[k] = malloc(sizeof(float) * N);
    CHECK_MPI(MPI_Irecv(arrived[k], N, MPI_FLOAT, left, k, MPI_COMM_WORLD, &requests[k]));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_MPI(MPI_Bsend(out, N, MPI_FLOAT, right, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Rsend(out, N, MPI_FLOAT, right, 1, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Ssend(out, N, MPI_FLOAT, right, 2, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
  for (int k = 0; k < 3; ++k) {
    CHECK(same_f32(arrived[k], N, left));
    free(arrived[k]);
  }
  MPI_Buffer_detach(&buffer, &bytes);
  free(buffer);
}

static void replace(void) {
  MPI_Status status;
  MPI_Datatype column;
  int count;
  fill_f32(out, N, rank);
  CHECK_MPI(MPI_Sendrecv_replace(out, N, MPI_FLOAT, right, 1, left, 1, MPI_COMM_WORLD, &status));
  CHECK(same_f32(out, N, left) && status.MPI_SOURCE == left);
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
  CHECK(count == N);
  MPI_Type_vector(N / 4, 1, 4, MPI_FLOAT, &column);
  MPI_Type_commit(&column);
  for (int i = 0; i < N; ++i) out[i] = (float)(i % 4 ? -1 : rank + i);
  CHECK_MPI(MPI_Sendrecv_replace(out, 1, column, right, 1, left, 1, MPI_COMM_WORLD, &status));
  for (int i = 0; i < N; ++i) CHECK(out[i] == (float)(i % 4 ? -1 : left + i));
  MPI_Type_free(&column);
}

/* Looking at a request makes its data readable and leaves it to be completed. */
static void looked_at(void) {
  MPI_Request request, send;
  MPI_Status status;
  int flag = 0, count;
  fill_f32(out, N, rank);
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, 6, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 6, MPI_COMM_WORLD, &send));
  while (!flag) CHECK_MPI(MPI_Request_get_status(request, &flag, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
  CHECK(count == N && same_f32(in, N, left));
  CHECK_MPI(MPI_Request_get_status(request, &flag, &status));
  CHECK(flag);
  CHECK_MPI(MPI_Wait(&request, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
  CHECK(count == N && request == MPI_REQUEST_NULL && same_f32(in, N, left));
  CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

static void freed(void) {
  MPI_Request request;
  static float sent[N];
  fill_f32(sent, N, rank);
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, 8, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_MPI(MPI_Isend(sent, N, MPI_FLOAT, right, 8, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  /* The next message of the same sender tells that the freed one has come. */
  CHECK_MPI(MPI_Sendrecv(out, 1, MPI_FLOAT, right, 8, out + 1, 1, MPI_FLOAT, left, 8,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  for (int tries = 0; tries < 1000 && !same_f32(in, N, left); ++tries) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  CHECK(same_f32(in, N, left));
}

/* A started persistent send is cancelled, or else received: MPIs need not cancel sends. */
static void cancelled_start(void) {
  MPI_Request request;
  MPI_Status status;
  int done = 0, gone = 0;
  CHECK_MPI(MPI_Ssend_init(out, N, MPI_FLOAT, right, 9, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Start(&request));
  CHECK_MPI(MPI_Cancel(&request));
  for (int tries = 0; tries < 1000 && !done; ++tries) {
    int flag;
    CHECK_MPI(MPI_Test(&request, &done, &status));
    CHECK_MPI(MPI_Iprobe(left, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  }
  if (done) CHECK_MPI(MPI_Test_cancelled(&status, &gone));
  CHECK_MPI(MPI_Sendrecv(&gone, 1, MPI_INT, right, 10, &done, 1, MPI_INT, left, 10, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));
  if (!done) CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Request_free(&request));
}

static void cancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int flag;
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, 12345, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Cancel(&request));
  CHECK_MPI(MPI_Wait(&request, &status));
  CHECK_MPI(MPI_Test_cancelled(&status, &flag));
  CHECK(flag && request == MPI_REQUEST_NULL);
  for (int i = 0; i < N; ++i) CHECK(in[i] == 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  persistent();
  MPI_Barrier(MPI_COMM_WORLD);
  if (size > 1) modes();
  replace();
  looked_at();
  MPI_Barrier(MPI_COMM_WORLD);
  freed();
  cancelled();
  MPI_Barrier(MPI_COMM_WORLD);
  cancelled_start();
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
