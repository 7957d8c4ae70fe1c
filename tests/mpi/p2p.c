/* Point-to-point calls between neighbours of a ring: data, statuses, wildcards, order. */
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { N = 20000 };

static int rank, size, left, right;
static float out[N], in[N];

static void check_status(const MPI_Status* status, int source, int tag, int count) {
  int got = -1;
  MPI_Count elements = -1;
  CHECK(status->MPI_SOURCE == source);
  CHECK(status->MPI_TAG == tag);
  CHECK_MPI(MPI_Get_count(status, MPI_FLOAT, &got));
  CHECK(got == count);
  CHECK_MPI(MPI_Get_elements_x(status, MPI_FLOAT, &elements));
  CHECK(elements == count);
  CHECK_MPI(MPI_Get_count(status, MPI_BYTE, &got));
  CHECK(got == 4 * count);
}

static void blocking(void) {
  MPI_Status status;
  for (int round = 0; round < 3; ++round) {
    const int count = N - 7 * round;
    fill_f32(out, count, rank + round);
    memset(in, 0xff, sizeof in);
    if (rank % 2 == 0)
      CHECK_MPI(MPI_Send(out, count, MPI_FLOAT, right, 10 + round, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, round == 1 ? MPI_ANY_SOURCE : left,
                       round == 2 ? MPI_ANY_TAG : 10 + round, MPI_COMM_WORLD, &status));
    if (rank % 2 != 0)
      CHECK_MPI(MPI_Send(out, count, MPI_FLOAT, right, 10 + round, MPI_COMM_WORLD));
    check_status(&status, left, 10 + round, count);
    CHECK(same_f32(in, count, left + round));
    for (int i = count; i < N; ++i) CHECK(isnan(in[i])); /* beyond the message: untouched */
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void sendrecv(void) {
  MPI_Status status;
  fill_f32(out, N, rank);
  CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, right, 3, in, N, MPI_FLOAT, left, 3, MPI_COMM_WORLD,
                         &status));
  check_status(&status, left, 3, N);
  CHECK(same_f32(in, N, left));
  CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, right, 3, in, N, MPI_FLOAT, left, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, MPI_PROC_NULL, 3, in, N, MPI_FLOAT, MPI_PROC_NULL, 3,
                         MPI_COMM_WORLD, &status));
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
}

/* Seconds that a process of this host has computed. */
static double computed(int process) {
  clockid_t clock;
  struct timespec time;
  CHECK(clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &time) == 0);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Gives the sender the time to come back from its synchronous send and say so, by its own clock: on
 * a loaded machine it may not run for long. One that sleeps in MPI is given seconds. */
static void expect_no_end(int sender) {
  const double begin = MPI_Wtime(), computed_before = computed(sender);
  int over = 0, ended = 0;
  for (int more = 1000; more > 0; more -= over) {
    CHECK_MPI(MPI_Iprobe(0, 6, MPI_COMM_WORLD, &ended, MPI_STATUS_IGNORE));
    CHECK(!ended);
    over = over || computed(sender) - computed_before > 0.05 || MPI_Wtime() - begin > 5;
  }
}

/* A synchronous send ends no sooner than its receive begins, however small its frame is. */
static void synchronous(void) {
  MPI_Request request;
  int flag = 0;
  fill_f32(out, N, rank);
  CHECK_MPI(MPI_Issend(out, N, MPI_FLOAT, right, 5, MPI_COMM_WORLD, &request));
  for (int tries = 0; tries < 200; ++tries) {
    CHECK_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int count = N; count > 0 && size > 1; count = count == N ? 1000 : 0) {
    if (rank == 0) {
      const int process = getpid();
      CHECK_MPI(MPI_Send(&process, 1, MPI_INT, 1, 6, MPI_COMM_WORLD));
      CHECK_MPI(MPI_Ssend(out, count, MPI_FLOAT, 1, 5, MPI_COMM_WORLD));
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 1, 6, MPI_COMM_WORLD)); /* it is over */
    } else if (rank == 1) {
      int process;
      CHECK_MPI(MPI_Recv(&process, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      expect_no_end(process);
      CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Data that does not compress, in exchanges whose buffers are at once sent and overwritten. */
static void raw_exchanges(void) {
  enum { BYTES = 1 << 20 };
  char *mine = malloc(BYTES), *theirs = malloc(BYTES), *use = malloc(BYTES);
  const MPI_Datatype types[] = {MPI_FLOAT, MPI_INT};
  for (int t = 0; t < 2; ++t) {
    fill_noise(mine, BYTES, (unsigned)(rank + t));
    fill_noise(theirs, BYTES, (unsigned)(left + t));
    memcpy(use, mine, BYTES);
    CHECK_MPI(MPI_Sendrecv_replace(use, BYTES / 4, types[t], right, 1, left, 1, MPI_COMM_WORLD,
                                   MPI_STATUS_IGNORE));
    CHECK(memcmp(use, theirs, BYTES) == 0);
#if MPI_VERSION >= 4
    /* Both halves are over when the request is, though one of them was quick. */
    MPI_Request request;
    float quick = 0;
    memcpy(use, mine, BYTES);
    if (rank == 0 && size > 1) {
      CHECK_MPI(MPI_Isendrecv(use, BYTES / 4, types[t], 1, 2, &quick, 1, MPI_FLOAT, 1, 3,
                              MPI_COMM_WORLD, &request));
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      memset(use, 0, BYTES);
    } else if (rank == 1) {
      int flag;
      CHECK_MPI(MPI_Send(&quick, 1, MPI_FLOAT, 0, 3, MPI_COMM_WORLD));
      for (int tries = 0; tries < 1000; ++tries) {
        CHECK_MPI(MPI_Iprobe(0, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
      }
      CHECK_MPI(MPI_Recv(use, BYTES / 4, types[t], 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      fill_noise(theirs, BYTES, (unsigned)t);
      CHECK(memcmp(use, theirs, BYTES) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
#endif
  }
  free(mine);
  free(theirs);
  free(use);
}

/* Messages of one sender arrive in the order they were sent, whatever their sizes and kinds. */
static void order(void) {
  static const int counts[] = {N, 3, 500, N / 2, 0, 17, N - 1, 64};
  enum { K = sizeof counts / sizeof *counts };
  float* buffers[K];
  MPI_Request requests[2 * K];
  MPI_Status statuses[2 * K];
  float* arrived[K];
  for (int k = 0; k < K; ++k) {
    arrived[k] = malloc(sizeof(float) * N);
    buffers[k] = malloc(sizeof(float) * N);
    fill_f32(buffers[k], counts[k], rank * 100 + k);
    CHECK_MPI(MPI_Irecv(arrived[k], N, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                        &requests[k]));
  }
  for (int k = 0; k < K; ++k) {
    CHECK_MPI(
        MPI_Isend(buffers[k], counts[k], MPI_FLOAT, right, k, MPI_COMM_WORLD, &requests[K + k]));
  }
  CHECK_MPI(MPI_Waitall(2 * K, requests, statuses));
  for (int k = 0; k < K; ++k) {
    check_status(&statuses[k], left, k, counts[k]);
    CHECK(same_f32(arrived[k], counts[k], left * 100 + k));
    CHECK(requests[k] == MPI_REQUEST_NULL && requests[K + k] == MPI_REQUEST_NULL);
    free(arrived[k]);
    free(buffers[k]);
  }
}

/* Every completion call completes each request exactly once and fills its status. */
static void completion(int form) {
  enum { K = 6 };
  float *arrived = malloc(sizeof(float) * K * N), *sent = malloc(sizeof(float) * K * N);
  MPI_Request requests[K], sends[K];
  MPI_Status statuses[K];
  int seen[K] = {0}, indices[K], done, index, flag, left_over = K;
  for (int k = 0; k < K; ++k) {
    CHECK_MPI(MPI_Irecv(arrived + k * N, N, MPI_FLOAT, left, k, MPI_COMM_WORLD, &requests[k]));
  }
  for (int k = 0; k < K; ++k) {
    fill_f32(sent + k * N, N - k, rank + 10 * k);
    CHECK_MPI(MPI_Isend(sent + k * N, N - k, MPI_FLOAT, right, k, MPI_COMM_WORLD, &sends[k]));
  }
  while (left_over > 0) {
    switch (form) {
      case 0: /* Waitany */
        CHECK_MPI(MPI_Waitany(K, requests, &index, &statuses[0]));
        done = 1, indices[0] = index;
        break;
      case 1: /* Waitsome */ CHECK_MPI(MPI_Waitsome(K, requests, &done, indices, statuses)); break;
      case 2: /* Testany */
        CHECK_MPI(MPI_Testany(K, requests, &index, &flag, &statuses[0]));
        done = flag, indices[0] = index;
        break;
      case 3: /* Testsome */ CHECK_MPI(MPI_Testsome(K, requests, &done, indices, statuses)); break;
      case 4: /* Test */
        for (done = 0, index = 0; index < K; ++index) {
          if (requests[index] == MPI_REQUEST_NULL) continue;
          CHECK_MPI(MPI_Test(&requests[index], &flag, &statuses[done]));
          if (flag) indices[done++] = index;
        }
        break;
      case 5: /* Testall */
        CHECK_MPI(MPI_Testall(K, requests, &flag, statuses));
        for (done = 0; flag && done < K; ++done) indices[done] = done;
        break;
      default: /* Wait, last first */
        index = left_over - 1;
        CHECK_MPI(MPI_Wait(&requests[index], &statuses[0]));
        done = 1, indices[0] = index;
    }
    for (int d = 0; d < done; ++d) {
      const int k = indices[d];
      CHECK(k >= 0 && k < K && !seen[k]++);
      CHECK(requests[k] == MPI_REQUEST_NULL);
      check_status(&statuses[d], left, k, N - k);
      CHECK(same_f32(arrived + k * N, N - k, left + 10 * k));
      --left_over;
    }
  }
  if (form == 0) {
    CHECK_MPI(MPI_Waitany(K, requests, &index, MPI_STATUS_IGNORE));
    CHECK(index == MPI_UNDEFINED);
  }
  if (form == 1) {
    CHECK_MPI(MPI_Waitsome(K, requests, &done, indices, MPI_STATUSES_IGNORE));
    CHECK(done == MPI_UNDEFINED);
  }
  CHECK_MPI(MPI_Waitall(K, sends, MPI_STATUSES_IGNORE));
  free(arrived);
  free(sent);
}

/* Two communicators with the same ranks and tags do not mix. */
static void communicators(void) {
  MPI_Comm comms[4];
  MPI_Request requests[4];
  float* arrived[4];
  for (int c = 0; c < 4; ++c) {
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, c % 2 ? size - rank : rank, &comms[c]));
  }
  for (int c = 3; c >= 0; --c) {
    arrived[c] = malloc(sizeof(float) * N);
    CHECK_MPI(MPI_Irecv(arrived[c], N, MPI_FLOAT, MPI_ANY_SOURCE, 0, comms[c], &requests[c]));
  }
  for (int c = 0; c < 4; ++c) {
    int r;
    MPI_Comm_rank(comms[c], &r);
    fill_f32(out, N, 1000 * c + r);
    CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, (r + 1) % size, 0, comms[c]));
  }
  for (int c = 0; c < 4; ++c) {
    int r;
    MPI_Status status;
    MPI_Comm_rank(comms[c], &r);
    CHECK_MPI(MPI_Wait(&requests[c], &status));
    CHECK(status.MPI_SOURCE == (r + size - 1) % size);
    CHECK(same_f32(arrived[c], N, 1000 * c + (r + size - 1) % size));
    free(arrived[c]);
    MPI_Comm_free(&comms[c]);
  }
}

static void doubles_and_bytes(void) {
  static double d_out[N], d_in[N];
  static int i_out[N], i_in[N];
  MPI_Status status;
  int count;
  fill_f64(d_out, N, rank);
  CHECK_MPI(MPI_Sendrecv(d_out, N, MPI_DOUBLE, right, 1, d_in, N, MPI_DOUBLE, left, 1,
                         MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_DOUBLE, &count));
  CHECK(count == N && same_f64(d_in, N, left));
  for (int i = 0; i < N; ++i) i_out[i] = rank * N + i;
  CHECK_MPI(MPI_Sendrecv(i_out, N, MPI_INT, right, 2, i_in, N, MPI_INT, left, 2, MPI_COMM_WORLD,
                         &status));
  for (int i = 0; i < N; ++i) CHECK(i_in[i] == left * N + i);
}

/* A buffer that is only element-aligned, and NaN and infinity in it. */
static void unaligned_and_special(void) {
  float *from = malloc(sizeof(float) * (N + 1)), *to = malloc(sizeof(float) * (N + 1));
  fill_f32(from + 1, N, rank);
  from[1] = NAN, from[2] = INFINITY, from[3] = -INFINITY, from[4] = -0.0f, from[5] = 1e-42f;
  CHECK_MPI(MPI_Sendrecv(from + 1, N, MPI_FLOAT, right, 4, to + 1, N, MPI_FLOAT, left, 4,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK(memcmp(to + 1, from + 1, 5 * sizeof(float)) == 0);
  CHECK(same_f32(to + 6, 0, 0));
  free(from);
  free(to);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  if (size > 1) blocking();
  sendrecv();
  synchronous();
  raw_exchanges();
  order();
  for (int form = 0; form < 7; ++form) completion(form);
  communicators();
  doubles_and_bytes();
  unaligned_and_special();
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
