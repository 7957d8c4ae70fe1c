/* The end of MPI: what freed requests leave behind, and messages from delete callbacks on
 * MPI_COMM_SELF. Which part is the first argument; with "PMPI" as the second, MPI_Finalize is
 * called as a tool would. */
#include <unistd.h>

#include "check.h"

enum { N = 200000 };
static int rank, size, next, previous;
static float out[N], in[N];

static void exchange(int seed) {
  MPI_Request request;
  fill_f32(out, N, seed);
  MPI_Isend(out, N, MPI_FLOAT, next, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(in, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, seed));
}

static int last_words(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  exchange((int)(size_t)value);
  return MPI_SUCCESS;
}

static void callbacks(void) {
  for (size_t i = 0; i < 3; ++i) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, (void*)i);
    MPI_Comm_free_keyval(&key);
  }
}

/* A receive that nobody sends to and sends that nobody receives: an error of the program, but MPI
 * does not wait for them. */
static void unmatched(void) {
  MPI_Request request;
  MPI_Irecv(in, N, MPI_FLOAT, previous, 2, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  fill_f32(out, N, 0);
  MPI_Issend(out, N, MPI_FLOAT, next, 3, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
}

/* The sender is in MPI_Finalize when the others receive. */
static void late_receivers(void) {
  MPI_Request request;
  if (rank == 0) {
    for (int peer = 1; peer < size; ++peer) {
      fill_f32(out, N, 4);
      MPI_Isend(out, N, MPI_FLOAT, peer, 4, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
  } else {
    usleep(1500000);
    MPI_Recv(in, N, MPI_FLOAT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, 4));
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  const char* part = argc > 1 ? argv[1] : "callbacks";
  if (!strcmp(part, "callbacks")) callbacks();
  if (!strcmp(part, "unmatched")) unmatched();
  if (!strcmp(part, "late_receivers")) late_receivers();
  if (argc > 2 && !strcmp(argv[2], "PMPI")) {
    PMPI_Finalize();
  } else {
    MPI_Finalize();
  }
  if (rank == 0) puts("ok");
  return 0;
}
