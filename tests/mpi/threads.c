/* MPI_THREAD_MULTIPLE: threads exchange over their own tags and over communicators of their own,
 * with blocking and non-blocking calls at once. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 60, N = 9000 };

static int rank, size;
static MPI_Comm comms[THREADS];

static void* exchange(void* argument) {
  const int thread = (int)(size_t)argument;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  float *out = malloc(sizeof(float) * N), *in = malloc(sizeof(float) * N);
  for (int round = 0; round < ROUNDS; ++round) {
    const int count = 1 + (round * 977 + thread * 131) % N;
    const int tag = thread * ROUNDS + round;
    const MPI_Comm comm = round % 2 ? comms[thread] : MPI_COMM_WORLD;
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    int got, flag = 0;
    fill_f32(out, count, rank * 31 + tag);
    switch (round % 3) {
      case 0:
        CHECK_MPI(MPI_Sendrecv(out, count, MPI_FLOAT, right, tag, in, N, MPI_FLOAT, left, tag, comm,
                               &status));
        break;
      case 1:
        CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, tag, comm, &requests[0]));
        CHECK_MPI(MPI_Isend(out, count, MPI_FLOAT, right, tag, comm, &requests[1]));
        CHECK_MPI(MPI_Waitall(2, requests, statuses));
        status = statuses[0];
        break;
      default:
        CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, tag, comm, &requests[0]));
        CHECK_MPI(MPI_Send(out, count, MPI_FLOAT, right, tag, comm));
        while (!flag) CHECK_MPI(MPI_Test(&requests[0], &flag, &status));
    }
    CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &got));
    CHECK(got == count);
    CHECK(same_f32(in, count, left * 31 + tag));
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(provided == MPI_THREAD_MULTIPLE);
  for (int t = 0; t < THREADS; ++t) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  for (int t = 0; t < THREADS; ++t) pthread_create(&threads[t], NULL, exchange, (void*)(size_t)t);
  for (int t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
  for (int t = 0; t < THREADS; ++t) MPI_Comm_free(&comms[t]);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
