/* A large message, or with a second argument broadcasts, under way while all ranks enter a call
   that waits for the others: rank 1 enters it only when it has what it gets. MPI_Intercomm_create
   is not among them: while it waits, MPICH 5.0 lets sends by shared memory wait too, and such a
   program hangs without mpress. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 1 << 20 };

static float* data;
static int rank, size;
static MPI_Win win;
static MPI_File file;

static void dup(void) {
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_free(&made);
}

static void split(void) {
  MPI_Comm made;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made);
  MPI_Comm_disconnect(&made);
}

static void create(void) {
  MPI_Comm made;
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Comm_create(MPI_COMM_WORLD, group, &made);
  MPI_Comm_free(&made);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &made);
  MPI_Comm_free(&made);
  MPI_Group_free(&group);
}

static void cart(void) {
  MPI_Comm made, part;
  const int no = 0, yes = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &no, 0, &made);
  MPI_Cart_sub(made, &yes, &part);
  MPI_Comm_free(&part);
  MPI_Comm_free(&made);
}

static void graph(void) {
  MPI_Comm made;
  const int ends[] = {1, 2}, edges[] = {1, 0};
  MPI_Graph_create(MPI_COMM_WORLD, 2, ends, edges, 0, &made);
  if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

static void by_type(void) {
  MPI_Comm made, again;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &made);
  MPI_Comm_dup_with_info(made, MPI_INFO_NULL, &again);
  MPI_Comm_free(&again);
  MPI_Comm_free(&made);
}

static void neighbours(void) {
  MPI_Comm made;
  const int degree = 1, next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  MPI_Comm_free(&made);
  MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                        &made);
  MPI_Comm_free(&made);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void reduce(void) {
  int one = 1, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void fence(void) { MPI_Win_fence(0, win); }

static void lock(void) {
  const int value = rank;
  const int next = (rank + 1) % size;
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
  MPI_Accumulate(&value, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_flush(next, win);
  MPI_Win_unlock(next, win);
}

static void window(void) {
  int* memory;
  MPI_Win made;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made);
  MPI_Win_free(&made);
}

/* The message comes when all is there that its sender gets. */
static void receive(void) {
  int word = rank;
  if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void probe(void) {
  if (rank == 0) MPI_Probe(1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  receive();
}

static void wait_for_another(void) {
  int word = rank;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Irecv(&word, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void sync_file(void) { MPI_File_sync(file); }

static void view(void) {
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  MPI_File_set_size(file, 64);
}

static void write_all(void) {
  char byte = 'x';
  MPI_File_write_at_all_begin(file, rank, &byte, 1, MPI_BYTE);
  MPI_File_write_at_all_end(file, &byte, MPI_STATUS_IGNORE);
}

static float value(int call, int i) { return (float)(i % 1000 + call); }

/* Returns how many are wrong. */
static int with_message(int call, void (*block)(void)) {
  int wrong = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  for (int i = 0; i < count; ++i) data[i] = rank == 0 ? value(call, i) : -1;
  if (rank == 0) {
    MPI_Isend(data, count, MPI_FLOAT, 1, 3, MPI_COMM_WORLD, &request);
  } else if (rank == 1) {
    MPI_Recv(data, count, MPI_FLOAT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  block();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; rank < 2 && i < count; ++i) wrong += data[i] != value(call, i);
  return wrong;
}

/* Each rank passes on what it gets. */
static int with_broadcasts(int call, void (*block)(void)) {
  int wrong = 0;
  MPI_Request requests[2];
  MPI_Comm fresh;
  const int half = count / 2;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  for (int i = 0; i < count; ++i) data[i] = rank == size - 1 ? value(call, i) : -1;
  MPI_Ibcast(data, half, MPI_FLOAT, size - 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(data + half, half, MPI_FLOAT, size - 1, fresh, &requests[1]);
  if (rank == 1) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  block();
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i) wrong += data[i] != value(call, i);
  MPI_Comm_free(&fresh);
  return wrong;
}

int main(int argc, char** argv) {
  static void (*const calls[])(void) = {
      dup,   split, create, cart,      graph, by_type,   neighbours, barrier, reduce,
      fence, lock,  window, sync_file, view,  write_all, receive,    probe,   wait_for_another};
  int* memory;
  int wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  data = malloc(count * sizeof *data);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  for (int call = 0; call < (int)(sizeof calls / sizeof *calls); ++call) {
    wrong += argc > 2 ? with_broadcasts(call, calls[call]) : with_message(call, calls[call]);
  }
  MPI_File_close(&file);
  MPI_Win_free(&win);
  free(data);
  MPI_Finalize();
  if (wrong == 0) printf("rank %d is content\n", rank);
  return wrong != 0;
}
