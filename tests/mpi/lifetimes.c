/* Types freed while receives use them, communicators freed with requests pending, requests freed
 * before MPI_Finalize, and messages from an exit handler. */
#include "check.h"

enum { N = 4000, ORPHANS = 50 };
static int rank, size, next, previous;

static MPI_Datatype every_second(void) {
  MPI_Datatype type;
  MPI_Type_vector(N, 1, 2, MPI_FLOAT, &type);
  MPI_Type_commit(&type);
  return type;
}

static void clear(float* values) {
  for (int i = 0; i < 2 * N; ++i) values[i] = -1;
}

static int spread_f32(const float* values, int seed) {
  for (int i = 0; i < N; ++i) {
    if (values[2 * i] != (float)(seed + 1) + 1e-3f * (float)i || values[2 * i + 1] != -1) return 0;
  }
  return 1;
}

static void freed_types(void) {
  static float out[N], in[2 * N];
  MPI_Request requests[2];
  MPI_Datatype other, type = every_second();
  fill_f32(out, N, 1);
  clear(in);
  MPI_Irecv(in, 1, type, previous, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_free(&type);
  MPI_Type_contiguous(3, MPI_INT, &other); /* takes the handle */
  MPI_Type_commit(&other);
  MPI_Isend(out, N, MPI_FLOAT, next, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(spread_f32(in, 1));
  static int numbers[3 * N], got[3 * N];
  for (int i = 0; i < 3 * N; ++i) numbers[i] = 7 * i + rank;
  MPI_Sendrecv(numbers, N, other, next, 1, got, N, other, previous, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < 3 * N; ++i) CHECK(got[i] == 7 * i + previous);
  MPI_Type_free(&other);

  type = every_second();
  MPI_Recv_init(in, 1, type, previous, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_free(&type);
  for (int probed = 0; probed < 2; ++probed) {
    clear(in);
    MPI_Isend(out, N, MPI_FLOAT, next, 2, MPI_COMM_WORLD, &requests[1]);
    if (probed) MPI_Probe(previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(spread_f32(in, 1));
  }
  MPI_Request_free(&requests[0]);
}

/* Types of persistent sends, which others take the handles of before the sends start. */
static void freed_types_of_sends(void) {
  static float out[2 * N], in[2 * N];
  static int numbers[3 * N], got[3 * N];
  MPI_Datatype spread = every_second(), triple, others[2];
  MPI_Request requests[4];
  MPI_Type_contiguous(3, MPI_INT, &triple);
  MPI_Type_commit(&triple);
  MPI_Send_init(out, 1, spread, next, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(numbers, N, triple, next, 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&spread);
  MPI_Type_free(&triple);
  for (int i = 0; i < 2; ++i) {
    MPI_Type_contiguous(2, MPI_DOUBLE, &others[i]);
    MPI_Type_commit(&others[i]);
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2 * N; ++i) out[i] = (float)(i + round + rank);
    for (int i = 0; i < 3 * N; ++i) numbers[i] = 7 * i + round + rank;
    clear(in);
    MPI_Irecv(in, N, MPI_FLOAT, previous, 3, MPI_COMM_WORLD, &requests[2]);
    MPI_Irecv(got, 3 * N, MPI_INT, previous, 4, MPI_COMM_WORLD, &requests[3]);
    MPI_Startall(2, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; ++i) CHECK(in[i] == (float)(2 * i + round + previous));
    for (int i = 0; i < 3 * N; ++i) CHECK(got[i] == 7 * i + round + previous);
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Request_free(&requests[i]);
    MPI_Type_free(&others[i]);
  }
}

static void freed_communicators(void) {
  static float out[N], in[N];
  for (int i = 0; i < 500; ++i) {
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    fill_f32(out, N, i);
    MPI_Irecv(in, N, MPI_FLOAT, previous, 0, comm, &requests[0]);
    MPI_Isend(out, N, MPI_FLOAT, next, 0, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(same_f32(in, N, i));
  }
}

/* A communicator takes the handle of one that ended, with its ranks in another order. */
static void recycled_communicators(void) {
  static float out[N], in[N];
  for (int i = 0; i < 20; ++i) {
    MPI_Comm comm;
    int here, from, to;
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? rank : -rank, &comm);
    MPI_Comm_rank(comm, &here);
    to = (here + 1) % size;
    from = (here + size - 1) % size;
    fill_f32(out, N, here);
    memset(in, 0, sizeof in);
    MPI_Sendrecv(out, N, MPI_FLOAT, to, 0, in, N, MPI_FLOAT, from, 0, comm, MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, from));
    MPI_Comm_free(&comm);
  }
}

/* Thread-local objects of the main thread are gone by now. */
static void at_exit(void) {
  static float out[ORPHANS][N], in[ORPHANS][N];
  MPI_Request request;
  freed_types();
  freed_types_of_sends();
  freed_communicators();
  for (int i = 0; i < ORPHANS; ++i) {
    MPI_Irecv(in[i], N, MPI_FLOAT, previous, 7, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  for (int i = 0; i < ORPHANS; ++i) {
    fill_f32(out[i], N, i);
    MPI_Issend(out[i], N, MPI_FLOAT, next, 7, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  for (int i = 0; i < ORPHANS; ++i) {
    if (!same_f32(in[i], N, i)) abort();
  }
  if (rank == 0) puts("ok");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  freed_types();
  freed_types_of_sends();
  freed_communicators();
  recycled_communicators();
  atexit(at_exit);
  return 0;
}
