/* Messages in device memory between ranks that cut them differently, as their profiles say. Each
 * receive takes what comes, in whatever chunks, and no test of one waits for them. The argument is
 * a folder of this run's own. */
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { ROUNDS = 3, SIZES = 4, LONG = 100000 };
static const int counts[SIZES] = {40000, LONG, 250000, 750000};

static int rank, other;
static const char* folder;

static void fill(struct Memory* memory, int n, int seed) {
  fill_f32((float*)memory->shadow, n, seed);
  /* Chunks that do not compress are large on the wire: MPI does not take them beforehand. */
  fill_noise(memory->shadow + memory->bytes / 4, memory->bytes - memory->bytes / 4, (unsigned)seed);
  put(memory);
}

static int is_right(struct Memory* memory, int n, int seed) {
  struct Memory expected = memory_on(-1, memory->bytes);
  fill(&expected, n, seed);
  get(memory);
  const int right = memcmp(memory->shadow, expected.shadow, memory->bytes) == 0;
  drop(&expected);
  return right;
}

/* One rank tells the other something without MPI. */
static void signal_file(char* path, size_t room, int sender, int round) {
  snprintf(path, room, "%s/tested-%d-%d", folder, sender, round);
}

static void tell(int sender, int round) {
  char path[4096];
  signal_file(path, sizeof path, sender, round);
  FILE* file = fopen(path, "w");
  CHECK(file && fclose(file) == 0);
}

static void hear(int sender, int round) {
  char path[4096];
  signal_file(path, sizeof path, sender, round);
  const struct timespec pause = {0, 1000000};
  while (access(path, F_OK) != 0) { /* for ever, where the other rank waits in its test */
    nanosleep(&pause, NULL);
  }
}

/* The sender leaves MPI when the header has come and chunks have not: what tests the receive must
 * come back and say so. */
static void tests_do_not_wait(int sender, int device) {
  struct Memory memory = memory_on(rank == sender ? rank : device, sizeof(float) * LONG);
  MPI_Request request;
  for (int round = 0; round < ROUNDS; ++round) {
    const int seed = 10 * sender + round;
    int flag = 0, index = 0;
    char token = 1;
    MPI_Barrier(MPI_COMM_WORLD); /* chunks of the round before move while the sender waits in MPI */
    if (rank == sender) {
      fill(&memory, LONG, seed);
      CHECK_MPI(MPI_Isend(memory.data, LONG, MPI_FLOAT, other, 1, MPI_COMM_WORLD, &request));
      CHECK_MPI(MPI_Send(&token, 1, MPI_CHAR, other, 2, MPI_COMM_WORLD));
      hear(sender, 2 * round + (device >= 0));
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      continue;
    }
    CHECK_MPI(MPI_Irecv(memory.data, LONG, MPI_FLOAT, other, 1, MPI_COMM_WORLD, &request));
    CHECK_MPI(MPI_Recv(&token, 1, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 10 && !flag; ++i) {
      if (round == 0) CHECK_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
      if (round == 1) CHECK_MPI(MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE));
      if (round == 2) CHECK_MPI(MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE));
    }
    tell(sender, 2 * round + (device >= 0));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(is_right(&memory, LONG, seed));
  }
  drop(&memory);
}

/* Messages of all sizes both ways at once; how they are completed is `way`. */
static void both_ways(int way) {
  for (int s = 0; s < SIZES; ++s) {
    const int n = counts[s];
    struct Memory out[2], in[2];
    MPI_Request sends[2], receives[2];
    for (int i = 0; i < 2; ++i) {
      const int device = i == 0 ? rank : -1; /* where it is received */
      out[i] = memory_on(rank, sizeof(float) * (size_t)n);
      in[i] = memory_on(device, out[i].bytes);
      fill(&out[i], n, 2 * rank + i);
      if (way > 0) {
        CHECK_MPI(MPI_Irecv(in[i].data, n, MPI_FLOAT, other, i, MPI_COMM_WORLD, &receives[i]));
      }
    }
    for (int i = 0; i < 2; ++i) {
      CHECK_MPI(MPI_Isend(out[i].data, n, MPI_FLOAT, other, i, MPI_COMM_WORLD, &sends[i]));
    }
    for (int i = 0; i < 2; ++i) {
      int flag = 0, index = i;
      if (way == 0) {
        CHECK_MPI(MPI_Recv(in[i].data, n, MPI_FLOAT, other, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      }
      while (way == 1 && !flag) CHECK_MPI(MPI_Test(&receives[i], &flag, MPI_STATUS_IGNORE));
      if (way == 2) CHECK_MPI(MPI_Waitany(2, receives, &index, MPI_STATUS_IGNORE));
      CHECK(is_right(&in[index], n, 2 * other + index));
    }
    CHECK_MPI(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; ++i) {
      drop(&out[i]);
      drop(&in[i]);
    }
  }
}

int main(int argc, char** argv) {
  /* A receiver that copies from the sender's memory needs no call of the sender's. */
  forbid_own_copies();
  setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0", 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  other = 1 - rank;
  folder = argv[1];
  for (int sender = 0; sender < 2; ++sender) {
    tests_do_not_wait(sender, 1 - sender);
    tests_do_not_wait(sender, -1);
  }
  for (int way = 0; way < 3; ++way) both_ways(way);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
