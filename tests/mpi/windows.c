/* One-sided communication beside messages: fences, locks, post-start-complete-wait, accumulates,
 * shared windows. Every rank writes to its neighbour. */
#include "check.h"

enum { N = 3000 };

static int rank, size, next, previous;
static double mine[N], got[N];

static void message(int tag) {
  fill_f64(mine, N, rank);
  MPI_Sendrecv(mine, N, MPI_DOUBLE, next, tag, got, N, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK(same_f64(got, N, previous));
}

static void fences(void) {
  double* base;
  MPI_Win win;
  CHECK_MPI(MPI_Win_allocate(N * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD,
                             &base, &win));
  fill_f64(mine, N, rank);
  MPI_Win_fence(0, win);
  MPI_Put(mine, N, MPI_DOUBLE, next, 0, N, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  CHECK(same_f64(base, N, previous));
  MPI_Get(got, N, MPI_DOUBLE, next, 0, N, MPI_DOUBLE, win);
  MPI_Win_fence(0, win);
  CHECK(same_f64(got, N, rank));
  MPI_Accumulate(mine, N, MPI_DOUBLE, next, 0, N, MPI_DOUBLE, MPI_SUM, win);
  message(1);
  MPI_Win_fence(0, win);
  fill_f64(got, N, previous);
  for (int i = 0; i < N; ++i) CHECK(base[i] == 2 * got[i]);
  MPI_Win_free(&win);
}

static void locks(void) {
  static float values[N], fetched[N];
  float* base;
  MPI_Win win;
  MPI_Request request;
  CHECK_MPI(MPI_Alloc_mem(N * sizeof(float), MPI_INFO_NULL, &base));
  CHECK_MPI(
      MPI_Win_create(base, N * sizeof(float), sizeof(float), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  fill_f32(values, N, rank);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
  MPI_Put(values, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, win);
  MPI_Win_unlock(next, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  MPI_Rget(fetched, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, win, &request);
  message(2);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_f32(fetched, N, rank));
  MPI_Win_flush_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  float one = 1, before = 0;
  MPI_Fetch_and_op(&one, &before, MPI_FLOAT, 0, 0, MPI_SUM, win);
  MPI_Win_flush(0, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    fill_f32(values, N, previous);
    CHECK(base[0] == values[0] + (float)size);
  }
  MPI_Win_free(&win);
  MPI_Free_mem(base);
}

static void epochs(void) {
  static float base[N], values[N];
  MPI_Win win;
  MPI_Group all, to, from;
  CHECK_MPI(MPI_Win_create(base, sizeof base, sizeof(float), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Group_incl(all, 1, &previous, &from);
  fill_f32(values, N, rank);
  MPI_Win_post(from, 0, win);
  MPI_Win_start(to, 0, win);
  MPI_Put(values, N, MPI_FLOAT, next, 0, N, MPI_FLOAT, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  CHECK(same_f32(base, N, previous));
  MPI_Group_free(&all);
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Win_free(&win);
}

static void shared(void) {
  MPI_Comm host;
  MPI_Win win;
  double *own, *theirs;
  MPI_Aint bytes;
  int host_rank, host_size, unit;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &host_rank);
  MPI_Comm_size(host, &host_size);
  CHECK_MPI(
      MPI_Win_allocate_shared(N * sizeof(double), sizeof(double), MPI_INFO_NULL, host, &own, &win));
  MPI_Win_fence(0, win);
  fill_f64(own, N, host_rank);
  MPI_Win_fence(0, win);
  const int other = (host_rank + 1) % host_size;
  MPI_Win_shared_query(win, other, &bytes, &unit, &theirs);
  CHECK(bytes == N * (MPI_Aint)sizeof(double) && same_f64(theirs, N, other));
  /* A message straight out of another rank's part. */
  MPI_Sendrecv(theirs, N, MPI_DOUBLE, (host_rank + host_size - 1) % host_size, 3, got, N,
               MPI_DOUBLE, other, 3, host, MPI_STATUS_IGNORE);
  CHECK(same_f64(got, N, (other + 1) % host_size));
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  MPI_Comm_free(&host);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  next = (rank + 1) % size;
  previous = (rank + size - 1) % size;
  fences();
  locks();
  epochs();
  shared();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
