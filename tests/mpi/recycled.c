/* MPI hands a completed request's handle to the next that asks, be it another thread: requests that
 * nobody watches must not find what a watched one left. */
#include <pthread.h>

#include "check.h"

enum { N = 700, ROUNDS = 10000 };
static MPI_Comm watched, other;
static int rank, size;

static void* exchange_floats(void* unused) {
  static float out[N], in[N];
  fill_f32(out, N, 1);
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request requests[2];
    memset(in, 0, sizeof in);
    MPI_Irecv(in, N, MPI_FLOAT, (rank + size - 1) % size, 0, watched, &requests[0]);
    MPI_Isend(out, N, MPI_FLOAT, (rank + 1) % size, 0, watched, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, 1));
  }
  return unused;
}

static void* add_integers(void* unused) {
  for (int i = 0; i < ROUNDS; ++i) {
    MPI_Request request;
    int sum = 0;
    MPI_Iallreduce(&i, &sum, 1, MPI_INT, MPI_SUM, other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == size * i);
  }
  return unused;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  MPI_Comm_dup(MPI_COMM_WORLD, &watched);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  pthread_create(&threads[0], NULL, exchange_floats, NULL);
  pthread_create(&threads[1], NULL, add_integers, NULL);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
