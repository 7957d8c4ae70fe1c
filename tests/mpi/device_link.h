/* For test programs whose messages go from GPU to GPU: values that tell where they come from, and
 * two ranks that have met. */
#ifndef MPRESS_TESTS_DEVICE_LINK_H
#define MPRESS_TESTS_DEVICE_LINK_H

#include "device_memory.h"

#ifndef FLOATS
#define FLOATS 10000
#endif

#ifndef SYNCHRONIZED
#define SYNCHRONIZED 0
#endif

/* Floats of 32 KiB and more, which go from GPU to GPU also by default; ROOM has some besides. */
enum { N = FLOATS, ROOM = N + 64 };

static int rank, size;

/* Memory of ROOM floats, which nothing has been sent to. */
static inline struct Memory room_on(int device) {
  struct Memory m = memory_on(device, sizeof(float) * ROOM);
  memset(m.shadow, 0x5a, m.bytes);
  put(&m);
  return m;
}

static inline void set_values(struct Memory* m, int count, int seed) {
  memset(m->shadow, 0x5a, m->bytes);
  fill_f32((float*)m->shadow, count, seed);
  put(m);
  if (SYNCHRONIZED && m->device >= 0) sim_synchronize();
}

/* Do `count` floats of this seed lie there, and nothing behind them? */
static inline void check_values(struct Memory* m, int count, int seed) {
  get(m);
  const int same = same_f32((const float*)m->shadow, count, seed);
  if (!same) fprintf(stderr, "rank %d: not the %d values of %d\n", rank, count, seed);
  CHECK(same);
  for (size_t i = sizeof(float) * (size_t)count; i < m->bytes; ++i) CHECK(m->shadow[i] == 0x5a);
  memset(m->shadow, 0x5a, m->bytes);
  put(m);
}

static inline void check_status(const MPI_Status* status, int source, int tag, int count) {
  int got;
  CHECK(status->MPI_SOURCE == source && status->MPI_TAG == tag);
  CHECK_MPI(MPI_Get_count(status, MPI_FLOAT, &got));
  CHECK(got == count);
}

static inline int class_of(int code) {
  int result = MPI_SUCCESS;
  MPI_Error_class(code, &result);
  return result;
}

/* One message between GPUs, which has come when both return. */
static inline void one_message(struct Memory* from, int sender, struct Memory* to, int receiver,
                               int seed) {
  if (rank == sender) {
    set_values(from, N, seed);
    CHECK_MPI(MPI_Send(from->data, N, MPI_FLOAT, receiver, seed, MPI_COMM_WORLD));
  }
  if (rank == receiver) {
    MPI_Status status;
    CHECK_MPI(MPI_Recv(to->data, ROOM, MPI_FLOAT, sender, seed, MPI_COMM_WORLD, &status));
    check_status(&status, sender, seed, N);
    check_values(to, N, seed);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Messages from each of the first two ranks to the other, of which the first makes the receiver
 * look at what its sender shares, and the second makes that share something: later ones go from GPU
 * to GPU. */
static inline void meet(void) {
  struct Memory from = room_on(rank % sim_devices), to = room_on(rank % sim_devices);
  for (int i = 0; i < 4; ++i) one_message(&from, i % 2, &to, 1 - i % 2, 9);
  drop(&from);
  drop(&to);
}

#endif
