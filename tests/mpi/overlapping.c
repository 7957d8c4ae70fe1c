// Receives under way that share a buffer, or parts of one: MPI forbids it, every MPI tolerates it,
// and benchmarks do it. None aborts, none hangs, each status tells its own message's size, and the
// data of the message that is completed last is there whole.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { WINDOW = 24 };

static double value(int message, int i) { return message + 1 + 1e-3 * (i % 1000); }

static void fill(double* to, int message, int count) {
  for (int i = 0; i < count; i++) to[i] = value(message, i);
}

static void send_window(int count, int rounds, int shrinks) {
  double* all = malloc(sizeof(double) * (size_t)count * WINDOW);
  MPI_Request requests[WINDOW];
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < WINDOW; k++) {
      const int n = shrinks ? count - k : count;
      fill(all + (size_t)k * count, k, n);
      CHECK_MPI(MPI_Isend(all + (size_t)k * count, n, MPI_DOUBLE, 1, k % 3, MPI_COMM_WORLD,
                          &requests[k]));
    }
    CHECK_MPI(MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE));
    CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  free(all);
}

static void check_size(const MPI_Status* status, int expected) {
  int got = 0;
  CHECK_MPI(MPI_Get_count(status, MPI_DOUBLE, &got));
  CHECK(got == expected);
}

// Which message is left is MPI's business, but it is elements of messages, and nothing else.
static void check_elements(const double* buffer, int count, int messages) {
  for (int i = 0; i < count; i++) {
    const double message = buffer[i] - 1e-3 * (i % 1000);
    CHECK(message > 0.5 && message < messages + 0.5 && fabs(message - rint(message)) < 1e-9);
  }
}

// `stride`: from one receive's buffer to the next, in elements.
static void receive_window(int count, int rounds, int stride, int shrinks, int how) {
  double* buffer = malloc(sizeof(double) * ((size_t)count + (size_t)stride * WINDOW));
  MPI_Request requests[WINDOW];
  MPI_Status statuses[WINDOW];
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < WINDOW; k++) {
      CHECK_MPI(MPI_Irecv(buffer + (size_t)stride * k, count, MPI_DOUBLE, 0, k % 3, MPI_COMM_WORLD,
                          &requests[k]));
    }
    if (how == 0) {
      CHECK_MPI(MPI_Waitall(WINDOW, requests, statuses));
    } else if (how == 1) {
      for (int k = 0; k < WINDOW; k++) CHECK_MPI(MPI_Wait(&requests[k], &statuses[k]));
    } else if (how == 2) {
      for (int k = WINDOW; k-- > 0;) CHECK_MPI(MPI_Wait(&requests[k], &statuses[k]));
    } else {
      for (int left = WINDOW; left > 0; left--) {
        MPI_Status status;
        int one = 0;
        CHECK_MPI(MPI_Waitany(WINDOW, requests, &one, &status));
        statuses[one] = status;
      }
    }
    for (int k = 0; k < WINDOW; k++) check_size(&statuses[k], shrinks ? count - k : count);
    if (stride == 0) check_elements(buffer, shrinks ? count - WINDOW : count, WINDOW);
    CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD));
  }
  free(buffer);
}

// A receive that waits for ever shares the buffer with others that are served.
static void beside_one_that_waits(int rank, int count) {
  double* buffer = malloc(sizeof(double) * (size_t)count);
  for (int k = 0; k < 3; k++) {
    if (rank == 0) {
      fill(buffer, k, count);
      CHECK_MPI(MPI_Send(buffer, count, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD));
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      continue;
    }
    MPI_Request waits;
    CHECK_MPI(MPI_Irecv(buffer, count, MPI_DOUBLE, 0, 77, MPI_COMM_WORLD, &waits));
    MPI_Status status;
    CHECK_MPI(MPI_Recv(buffer, count, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, &status));
    check_size(&status, count);
    for (int i = 0; i < count; i++) CHECK(buffer[i] == value(k, i));
    CHECK_MPI(MPI_Cancel(&waits));
    CHECK_MPI(MPI_Wait(&waits, &status));
    int cancelled = 0;
    CHECK_MPI(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
    CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD));
  }
  free(buffer);
}

// Persistent receives that are not started, before their first round and behind it, are in no
// receive's way: this is no overlap, and MPI allows it.
static void beside_inactive_ones(int rank, int count) {
  double* buffer = malloc(sizeof(double) * (size_t)count);
  MPI_Request kept[2];
  if (rank == 0) {
    for (int message = 0; message < 4; message++) {
      fill(buffer, message, count);
      CHECK_MPI(MPI_Send(buffer, count, MPI_DOUBLE, 1, message, MPI_COMM_WORLD));
    }
  } else if (rank == 1) {
    for (int k = 0; k < 2; k++) {
      CHECK_MPI(MPI_Recv_init(buffer, count, MPI_DOUBLE, 0, k, MPI_COMM_WORLD, &kept[k]));
    }
    CHECK_MPI(MPI_Start(&kept[0]));
    CHECK_MPI(MPI_Wait(&kept[0], MPI_STATUS_IGNORE));
    MPI_Request request;
    CHECK_MPI(MPI_Irecv(buffer, count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &request));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_MPI(MPI_Recv(buffer, count, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_MPI(MPI_Request_free(&kept[1]));
    CHECK_MPI(MPI_Recv_init(buffer, count, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, &kept[1]));
    CHECK_MPI(MPI_Start(&kept[1]));
    CHECK_MPI(MPI_Wait(&kept[1], MPI_STATUS_IGNORE));
    for (int i = 0; i < count; i++) CHECK(buffer[i] == value(3, i));
    for (int k = 0; k < 2; k++) CHECK_MPI(MPI_Request_free(&kept[k]));
  }
  free(buffer);
}

// Persistent receives under way that share a buffer with each other, and with one that is not: the
// message of the first is there when the last one's data are laid out.
static void beside_persistent_ones(int rank, int count) {
  double* buffer = malloc(sizeof(double) * (size_t)count);
  MPI_Request kept[2], other;
  MPI_Status status;
  if (rank == 1) {
    for (int k = 0; k < 2; k++) {
      CHECK_MPI(MPI_Recv_init(buffer, count, MPI_DOUBLE, 0, k, MPI_COMM_WORLD, &kept[k]));
    }
  }
  for (int round = 0; round < 6; round++) {
    if (rank == 0) {
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int k = 0; k < 3; k++) {
        fill(buffer, k, count - k);
        CHECK_MPI(MPI_Send(buffer, count - k, MPI_DOUBLE, 1, k, MPI_COMM_WORLD));
      }
      continue;
    }
    CHECK_MPI(MPI_Startall(2, kept));
    CHECK_MPI(MPI_Irecv(buffer, count, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &other));
    CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD));
    // All six orders.
    const int orders[6][3] = {{2, 1, 0}, {1, 2, 0}, {1, 0, 2}, {2, 0, 1}, {0, 1, 2}, {0, 2, 1}};
    for (int i = 0; i < 3; i++) {
      const int k = orders[round][i];
      CHECK_MPI(MPI_Wait(k == 2 ? &other : &kept[k], &status));
      check_size(&status, count - k);
    }
    check_elements(buffer, count - 2, 3);
  }
  if (rank == 1) {
    for (int k = 0; k < 2; k++) CHECK_MPI(MPI_Request_free(&kept[k]));
  }
  free(buffer);
}

// A message in one piece has come, and calls have looked at it, as data might follow, before
// another receive shares its buffer.
static void behind_one_that_has_come(int rank, int count) {
  const int sent = count / 100 + 200;
  double* buffer = malloc(sizeof(double) * (size_t)count);
  for (int round = 0; round < 2; round++) {
    if (rank == 0) {
      for (int k = 0; k < 2; k++) {
        CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        fill(buffer, k, sent - k);
        CHECK_MPI(MPI_Send(buffer, sent - k, MPI_DOUBLE, 1, k, MPI_COMM_WORLD));
        CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 1, 8, MPI_COMM_WORLD));
      }
      continue;
    }
    MPI_Request requests[2];
    MPI_Status status;
    for (int k = 0; k < 2; k++) {
      CHECK_MPI(MPI_Irecv(buffer, count, MPI_DOUBLE, 0, k, MPI_COMM_WORLD, &requests[k]));
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD));
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int look = 0; look < 20; look++) {
        int flag = 0;
        CHECK_MPI(MPI_Iprobe(0, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
      }
    }
    for (int i = 0; i < 2; i++) {
      const int k = round == 0 ? 1 - i : i;
      CHECK_MPI(MPI_Wait(&requests[k], &status));
      check_size(&status, sent - k);
    }
    check_elements(buffer, sent - 1, 2);
  }
  free(buffer);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int counts[] = {300, 5000, 40000, 150000};
  for (int c = 0; c < 4; c++) {
    for (int how = 0; how < 4; how++) {
      const int strides[] = {0, counts[c] / 3};
      for (int s = 0; s < 2; s++) {
        for (int shrinks = 0; shrinks < 2; shrinks++) {
          if (rank == 0) send_window(counts[c], 2, shrinks);
          if (rank == 1) receive_window(counts[c], 2, strides[s], shrinks, how);
        }
      }
    }
    beside_one_that_waits(rank, counts[c]);
    beside_inactive_ones(rank, counts[c]);
    if (rank < 2) beside_persistent_ones(rank, counts[c]);
    if (rank < 2) behind_one_that_has_come(rank, counts[c]);
  }
  MPI_Finalize();
  return 0;
}
