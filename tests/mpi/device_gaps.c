/* Types with gaps in memory of devices, in every kind of call. MPI gets their data packed: with the
 * argument "alone", no other data lie on devices, and MPI must not touch those. */
#include <stddef.h>

#include "check.h"
#include "simulated_gpu.h"

/* Items of the type: `runs` runs of two floats, and four of gap behind each. */
enum { RUNS = 700, RUN = 2, STRIDE = 6, ITEMS = 2, FLOATS = ITEMS * RUNS * STRIDE };
enum { DATA = ITEMS * RUNS * RUN };

static int rank, size;
static MPI_Datatype gaps;
static float shadow[FLOATS];

static int is_data(int i) { return i % STRIDE < RUN; }

static float value(int source, int i) { return (float)(source * 3 + i % 1009); }

/* A buffer of `blocks` parts of FLOATS floats, with the data of rank `from` in each where it is not
 * negative. */
static float* make(int blocks, int from) {
  float* const data = sim_malloc(rank % 2, sizeof(shadow) * (size_t)blocks);
  for (int i = 0; i < FLOATS; ++i) shadow[i] = from >= 0 && is_data(i) ? value(from, i) : -1;
  for (int b = 0; b < blocks; ++b) sim_copy_in(data + b * FLOATS, shadow, sizeof(shadow));
  return data;
}

/* Does a part hold the data of rank `from`, times `factor`, and its gaps what they did? */
static void check(const float* part, int from, float factor) {
  sim_copy_out(shadow, part, sizeof(shadow));
  for (int i = 0; i < FLOATS; ++i) {
    CHECK(shadow[i] == (is_data(i) ? factor * value(from, i) : -1));
  }
}

static void check_count(const MPI_Status* status) {
  int count;
  MPI_Get_count(status, gaps, &count);
  CHECK(count == ITEMS);
}

/* A message to the next rank and one from that before, by way `way`. */
static void messages(int way) {
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  float *const out = make(1, rank), *const in = make(1, -1);
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Message message;
  switch (way) {
    case 0:
      CHECK_MPI(
          MPI_Sendrecv(out, ITEMS, gaps, to, 1, in, ITEMS, gaps, from, 1, MPI_COMM_WORLD, &status));
      break;
    case 1:
      CHECK_MPI(MPI_Irecv(in, ITEMS, gaps, from, 1, MPI_COMM_WORLD, &requests[0]));
      CHECK_MPI(MPI_Isend(out, ITEMS, gaps, to, 1, MPI_COMM_WORLD, &requests[1]));
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      CHECK_MPI(MPI_Wait(&requests[0], &status));
      break;
    case 2: /* persistent, started twice */
      CHECK_MPI(MPI_Recv_init(in, ITEMS, gaps, from, 1, MPI_COMM_WORLD, &requests[0]));
      CHECK_MPI(MPI_Send_init(out, ITEMS, gaps, to, 1, MPI_COMM_WORLD, &requests[1]));
      for (int i = 0; i < 2; ++i) {
        CHECK_MPI(MPI_Startall(2, requests));
        CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        CHECK_MPI(MPI_Wait(&requests[0], &status));
      }
      for (int i = 0; i < 2; ++i) CHECK_MPI(MPI_Request_free(&requests[i]));
      break;
    case 3:
      CHECK_MPI(MPI_Isend(out, ITEMS, gaps, to, 1, MPI_COMM_WORLD, &requests[1]));
      CHECK_MPI(MPI_Mprobe(from, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
      CHECK_MPI(MPI_Mrecv(in, ITEMS, gaps, &message, &status));
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      break;
    case 4:
      CHECK_MPI(MPI_Isend(out, ITEMS, gaps, to, 1, MPI_COMM_WORLD, &requests[1]));
      CHECK_MPI(MPI_Recv(in, ITEMS, gaps, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
      break;
    default: /* of one rank, in place */
      sim_free(in);
      CHECK_MPI(MPI_Sendrecv_replace(out, ITEMS, gaps, to, 1, from, 1, MPI_COMM_WORLD, &status));
      check(out, from, 1);
      check_count(&status);
      sim_free(out);
      return;
  }
  check(in, from, 1);
  check_count(&status);
  sim_free(in);
  sim_free(out);
}

/* One side has gaps, the other none; the message is shorter than there is room. */
static void halves(void) {
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  float *const data = make(1, rank), *const in = make(1, -1);
  float* const packed = sim_malloc(rank % 2, sizeof(float) * DATA);
  MPI_Request request;
  MPI_Status status;
  int count;
  CHECK_MPI(MPI_Isend(data, ITEMS - 1, gaps, to, 2, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Recv(packed, DATA, MPI_FLOAT, from, 2, MPI_COMM_WORLD, &status));
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == DATA / ITEMS);
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Irecv(in, ITEMS, gaps, to, 3, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Send(packed, DATA / ITEMS, MPI_FLOAT, from, 3, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Wait(&request, &status));
  MPI_Get_count(&status, gaps, &count);
  CHECK(count == ITEMS - 1);
  sim_copy_out(shadow, in, sizeof(shadow));
  for (int i = 0; i < FLOATS; ++i) {
    CHECK(shadow[i] == (is_data(i) && i < FLOATS / ITEMS ? value(rank, i) : -1));
  }
  sim_free(packed);
  sim_free(in);
  sim_free(data);
}

static void collectives(void) {
  float *const one = make(1, rank), *const each = make(size, rank), *const all = make(size, -1);
  float* const result = make(1, -1);
  MPI_Request request;
  CHECK_MPI(MPI_Allgather(one, ITEMS, gaps, all, ITEMS, gaps, MPI_COMM_WORLD));
  for (int r = 0; r < size; ++r) check(all + r * FLOATS, r, 1);
  sim_free(all);
  float* const others = make(size, -1);
  CHECK_MPI(MPI_Ialltoall(each, ITEMS, gaps, others, ITEMS, gaps, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int r = 0; r < size; ++r) check(others + r * FLOATS, r, 1);
  /* From memory of the host: MPI's local copies see one kind of memory. */
  float* const host = malloc(sizeof(shadow));
  for (int i = 0; i < FLOATS; ++i) host[i] = value(rank, i);
  CHECK_MPI(MPI_Gather(host, ITEMS, gaps, others, ITEMS, gaps, 0, MPI_COMM_WORLD));
  for (int r = 0; rank == 0 && r < size; ++r) check(others + r * FLOATS, r, 1);
  free(host);
  CHECK_MPI(MPI_Bcast(one, ITEMS, gaps, size - 1, MPI_COMM_WORLD));
  check(one, size - 1, 1);
  CHECK_MPI(MPI_Sendrecv(one, ITEMS, gaps, 0, 4, result, ITEMS, gaps, 0, 4, MPI_COMM_SELF,
                         MPI_STATUS_IGNORE));
  check(result, size - 1, 1);
  sim_free(result);
  sim_free(others);
  sim_free(each);
  sim_free(one);
}

static void pack(void) {
  float *const data = make(1, rank), *const back = make(1, -1);
  char* const packed = sim_malloc(rank % 2, sizeof(float) * DATA);
  int position = 0;
  CHECK_MPI(MPI_Pack(data, ITEMS, gaps, packed, sizeof(float) * DATA, &position, MPI_COMM_WORLD));
  CHECK(position == (int)(sizeof(float) * DATA));
  position = 0;
  CHECK_MPI(MPI_Unpack(packed, sizeof(float) * DATA, &position, back, ITEMS, gaps, MPI_COMM_WORLD));
  check(back, rank, 1);
  sim_free(packed);
  sim_free(back);
  sim_free(data);
}

int main(int argc, char** argv) {
  int provided;
  CHECK_MPI(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  /* Floats, and others of their size that no codec takes. */
  for (int floats = 0; floats < 2; ++floats) {
    MPI_Datatype runs;
    CHECK_MPI(MPI_Type_vector(RUNS, RUN, STRIDE, floats ? MPI_FLOAT : MPI_INT, &runs));
    CHECK_MPI(MPI_Type_create_resized(runs, 0, sizeof(float) * RUNS * STRIDE, &gaps));
    CHECK_MPI(MPI_Type_commit(&gaps));
    for (int way = 0; way < 6; ++way) messages(way);
    if (floats && argc == 1) halves();
    collectives();
    pack();
    CHECK_MPI(MPI_Type_free(&gaps));
    CHECK_MPI(MPI_Type_free(&runs));
  }
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
