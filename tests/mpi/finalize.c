/* The end of MPI: what freed requests leave behind, and messages from delete callbacks on
 * MPI_COMM_SELF. Which part is the first argument; with "PMPI" as the second, MPI_Finalize is
 * called as a tool would. */
#include <dirent.h>

#include "check.h"

enum { N = 200000, MANY = 64, FEW = 2000 };
static int rank, size, next, previous;
static float out[N], in[N], many[MANY][FEW];

static void exchange(int seed) {
  MPI_Request request;
  fill_f32(out, N, seed);
  MPI_Isend(out, N, MPI_FLOAT, next, 1, MPI_COMM_WORLD, &request);
  MPI_Recv(in, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, seed));
}

/* Has mpress a thread? None may be in MPI when MPI_Finalize begins. */
static int has_thread(void) {
  DIR* const tasks = opendir("/proc/self/task");
  const struct dirent* task;
  int found = 0;
  CHECK(tasks);
  while ((task = readdir(tasks))) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* const file = fopen(path, "r");
    if (!file) continue;
    found = found || (fgets(name, sizeof name, file) && !strcmp(name, "mpress\n"));
    fclose(file);
  }
  closedir(tasks);
  return found;
}

static int last_words(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  CHECK(!has_thread());
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

/* The sender is in MPI_Finalize when the others receive. What they have sent before, in chunks of
 * 64 KiB that no receive takes since it has no room for their header, would find room where a
 * message of SOME floats waits. */
static void late_receivers(void) {
  enum { SOME = 14000 };
  static float some[SOME];
  MPI_Request request;
  MPI_Comm quiet;
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
  fill_f32(out, N, 4);
  fill_f32(some, SOME / 4, 4);
  fill_noise(some + SOME / 4, sizeof(float) * (SOME - SOME / 4), 4);
  if (rank == 0) {
    for (int peer = 1; peer < size; ++peer) {
      MPI_Isend(out, N, MPI_FLOAT, peer, 4, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      MPI_Issend(some, SOME, MPI_FLOAT, peer, 7, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      MPI_Recv(in, 20, MPI_FLOAT, peer, 8, quiet, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&quiet);
    return;
  }
  fill_noise(out + N / 4, sizeof(float) * (N - N / 4), 4);
  MPI_Send(out, N, MPI_FLOAT, 0, 8, quiet);
  MPI_Comm_free(&quiet);
  for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < 0.5;) {
    int flag;
    MPI_Iprobe(0, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  MPI_Recv(in, N, MPI_FLOAT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, 4));
  MPI_Recv(in, SOME, MPI_FLOAT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(memcmp(in, some, sizeof some) == 0);
}

/* Freed receives whose messages, the last a large one, have come before MPI_Finalize: MPI has them
 * since it has the one behind them, and the calls in between are too few to look at all. */
static void freed_receives(void) {
  MPI_Request request;
  int token = 0;
  if (rank == 1) {
    for (int i = 0; i < MANY; ++i) {
      MPI_Irecv(many[i], FEW, MPI_FLOAT, 0, 5, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
    }
    MPI_Irecv(in, N, MPI_FLOAT, 0, 6, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  MPI_Bcast(&token, 1, MPI_INT, 1, MPI_COMM_WORLD);
  if (rank == 0) {
    for (int i = 0; i < MANY; ++i) {
      fill_f32(out, FEW, i);
      MPI_Send(out, FEW, MPI_FLOAT, 1, 5, MPI_COMM_WORLD);
    }
    fill_f32(out, N, 5);
    MPI_Send(out, N, MPI_FLOAT, 1, 6, MPI_COMM_WORLD);
  }
  MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

/* After MPI_Finalize: MPI_Abort is no more. */
static int has_received_all(void) {
  for (int i = 0; i < MANY; ++i) {
    if (!same_f32(many[i], FEW, i)) return 0;
  }
  return same_f32(in, N, 5);
}

int main(int argc, char** argv) {
  forbid_own_copies();
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
  if (!strcmp(part, "freed_receives")) freed_receives();
  CHECK(has_thread() == (getenv("MPRESS_PROGRESS") != NULL));
  if (argc > 2 && !strcmp(argv[2], "PMPI")) {
    PMPI_Finalize();
  } else {
    MPI_Finalize();
  }
  if (!strcmp(part, "freed_receives") && rank == 1 && !has_received_all()) {
    fprintf(stderr, "a freed receive has no data\n");
    return 1;
  }
  if (rank == 0) puts("ok");
  return 0;
}
