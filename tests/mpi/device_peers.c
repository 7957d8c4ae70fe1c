/* Which messages between memory of GPUs go from one to the other: with which devices, from and to
 * the host, and where a rank cannot open what another shares. Two ranks and more; the first
 * argument says what to do, others which ranks reach no GPU of another process. */
#include "device_link.h"
#include "simulated_gpu.h"

enum { ROUNDS = 4 };

/* Every rank to every other, from every device to every device. */
static void every_device(void) {
  for (int devices = 0; devices < sim_devices * sim_devices; ++devices) {
    struct Memory from = room_on(devices / sim_devices), to = room_on(devices % sim_devices);
    for (int round = 0; round < ROUNDS; ++round) {
      for (int sender = 0; sender < size; ++sender) {
        for (int step = 1; step < size; ++step) {
          one_message(&from, sender, &to, (sender + step) % size, round);
        }
      }
    }
    drop(&from);
    drop(&to);
  }
}

/* Messages that are all sent before the first is received, which only then finds out whether the
 * link can be used. */
static void at_once(void) {
  enum { MANY = 40 };
  struct Memory from[MANY], to = room_on(0);
  MPI_Request requests[MANY];
  for (int i = 0; i < MANY; ++i) {
    from[i] = room_on(rank % sim_devices);
    set_values(&from[i], N - i, i);
    if (rank > 0) continue;
    CHECK_MPI(MPI_Isend(from[i].data, N - i, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, &requests[i]));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < MANY && rank == 1; ++i) {
    MPI_Status status;
    CHECK_MPI(
        MPI_Recv(to.data, ROOM, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    check_status(&status, 0, 0, N - i);
    check_values(&to, N - i, i);
  }
  if (rank == 0) CHECK_MPI(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < MANY; ++i) drop(&from[i]);
  drop(&to);
}

/* The link breaks while messages are under way that use what the receiver has opened. */
static void while_under_way(void) {
  struct Memory first = room_on(0), second = room_on(1), to = room_on(1);
  MPI_Request requests[2];
  meet();
  if (rank == 0) {
    set_values(&first, N, 1);
    set_values(&second, N, 2);
    CHECK_MPI(MPI_Isend(first.data, N, MPI_FLOAT, 1, 1, MPI_COMM_WORLD, &requests[0]));
    /* Nothing of this device's has been shared yet. */
    CHECK_MPI(MPI_Isend(second.data, N, MPI_FLOAT, 1, 2, MPI_COMM_WORLD, &requests[1]));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    setenv("SIMULATED_GPU_PEERS", "0", 1);
    for (int tag = 2; tag > 0; --tag) {
      CHECK_MPI(MPI_Recv(to.data, ROOM, MPI_FLOAT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      check_values(&to, N, tag);
    }
  } else if (rank == 0) {
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < ROUNDS; ++round) one_message(&first, 0, &to, 1, round);
  drop(&first);
  drop(&second);
  drop(&to);
}

/* From a device to the host and back, in types with and without gaps. */
static void host(void) {
  MPI_Datatype columns, pairs;
  MPI_Type_vector(N / 10, 5, 10, MPI_FLOAT, &columns);
  const int lengths[] = {3, 1};
  const MPI_Aint places[] = {0, 20};
  const MPI_Datatype kinds[] = {MPI_FLOAT, MPI_INT};
  MPI_Type_create_struct(2, lengths, places, kinds, &pairs);
  MPI_Type_commit(&columns);
  MPI_Type_commit(&pairs);
  const MPI_Datatype types[] = {MPI_FLOAT, MPI_BYTE, columns, pairs};
  const int counts[] = {N, 4 * N, 1, N / 6};
  const int devices[][2] = {{0, -1}, {1, -1}, {-1, 0}, {-1, 1}, {1, 0}, {0, -1}};
  meet();
  for (int d = 0; d < 6; ++d) {
    for (int t = 0; t < 4; ++t) {
      struct Memory from = room_on(devices[d][0]), to = room_on(devices[d][1]);
      MPI_Status status;
      int got;
      set_values(&from, N, d + t);
      if (rank == 0) CHECK_MPI(MPI_Send(from.data, counts[t], types[t], 1, 3, MPI_COMM_WORLD));
      if (rank == 1) {
        CHECK_MPI(MPI_Recv(to.data, counts[t], types[t], 0, 3, MPI_COMM_WORLD, &status));
        CHECK_MPI(MPI_Get_count(&status, types[t], &got));
        CHECK(got == counts[t]);
        get(&to);
        /* What it should be, by MPI. */
        char* expected = malloc(to.bytes);
        memset(expected, 0x5a, to.bytes);
        MPI_Sendrecv(from.shadow, counts[t], types[t], 0, 0, expected, counts[t], types[t], 0, 0,
                     MPI_COMM_SELF, MPI_STATUS_IGNORE);
        CHECK(memcmp(expected, to.shadow, to.bytes) == 0);
        free(expected);
      }
      drop(&from);
      drop(&to);
    }
  }
  MPI_Type_free(&columns);
  MPI_Type_free(&pairs);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const char* part = argv[1];
  for (int i = 2; i < argc; ++i) {
    if (atoi(argv[i]) == rank) setenv("SIMULATED_GPU_PEERS", "0", 1);
  }
  if (!strcmp(part, "every device")) every_device();
  if (!strcmp(part, "at once")) at_once();
  if (!strcmp(part, "while under way")) while_under_way();
  if (!strcmp(part, "host")) host();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
