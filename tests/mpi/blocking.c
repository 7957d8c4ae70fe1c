/* A large message under way while both ranks enter a call that waits for the other: rank 1 enters
   it only when it has the message. MPI_Intercomm_create is not among them: while it waits,
   MPICH 5.0 lets sends by shared memory wait too, and such a program hangs without mpress. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { count = 1 << 20 };

static float* data;
static int rank;
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
  const int two = 2, no = 0, yes = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &no, 0, &made);
  MPI_Cart_sub(made, &yes, &part);
  MPI_Comm_free(&part);
  MPI_Comm_free(&made);
}

static void graph(void) {
  MPI_Comm made;
  const int ends[] = {1, 2}, edges[] = {1, 0};
  MPI_Graph_create(MPI_COMM_WORLD, 2, ends, edges, 0, &made);
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
  MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
  MPI_Accumulate(&value, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, MPI_SUM, win);
  MPI_Win_flush(1 - rank, win);
  MPI_Win_unlock(1 - rank, win);
}

static void window(void) {
  int* memory;
  MPI_Win made;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &made);
  MPI_Win_free(&made);
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

int main(int argc, char** argv) {
  static void (*const calls[])(void) = {dup,   split, create, cart,      graph, barrier,  reduce,
                                        fence, lock,  window, sync_file, view,  write_all};
  int* memory;
  int wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  data = malloc(count * sizeof *data);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  for (int call = 0; call < (int)(sizeof calls / sizeof *calls); ++call) {
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < count; ++i) data[i] = rank == 0 ? (float)(i % 1000 + call) : -1;
    if (rank == 0) {
      MPI_Isend(data, count, MPI_FLOAT, 1, 3, MPI_COMM_WORLD, &request);
    } else {
      MPI_Recv(data, count, MPI_FLOAT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    calls[call]();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) wrong += data[i] != (float)(i % 1000 + call);
  }
  MPI_File_close(&file);
  MPI_Win_free(&win);
  free(data);
  MPI_Finalize();
  if (wrong == 0) printf("rank %d is content\n", rank);
  return wrong != 0;
}
