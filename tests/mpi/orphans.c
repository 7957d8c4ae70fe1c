/* Requests freed while they are active: many that stay so, and some that end with an error. */
#include "check.h"

enum { N = 20000, MANY = 3000, CALLS = 1000 };
static int rank, size, next, previous;
static float out[N], in[N];
static int handled = 0;

static void exchange(void) {
  MPI_Request request;
  fill_f32(out, N, 1);
  MPI_Isend(out, N, MPI_FLOAT, next, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(in, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, 1));
}

/* Many receives that wait, and calls that have nothing to do with them. */
static void many(void) {
  static float waiting[MANY][1000];
  MPI_Request request;
  for (int i = 0; i < MANY; ++i) {
    MPI_Irecv(waiting[i], 1000, MPI_FLOAT, previous, 2, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  for (int i = 0; i < CALLS; ++i) {
    int flag;
    MPI_Iprobe(previous, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < MANY; ++i) {
    fill_f32(out, 1000, i);
    MPI_Ssend_init(out, 1000, MPI_FLOAT, next, 2, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < MANY; ++i) CHECK(same_f32(waiting[i], 1000, i));
}

/* The handler calls MPI, and so comes back to where it was called. */
static void handle(MPI_Comm* comm, int* code, ...) {
  int flag;
  (void)comm, (void)code;
  ++handled;
  MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Recv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void errors(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (int i = 0; i < 20; ++i) {
    MPI_Irecv(in, N / 2, MPI_FLOAT, previous, 4, comm, &request); /* too short */
    MPI_Request_free(&request);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  fill_f32(out, N, 5);
  for (int i = 0; i < 20; ++i) MPI_Send(out, N, MPI_FLOAT, next, 4, comm);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 20; ++i) exchange();
  if (rank == 0) printf("%d errors\n", handled);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  exchange();
  if (argc > 1 && !strcmp(argv[1], "many")) many();
  if (argc > 1 && !strcmp(argv[1], "errors")) errors();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
