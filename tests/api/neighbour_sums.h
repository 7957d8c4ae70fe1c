/* Random reductions of a neighbourhood. */
#ifndef MPRESS_TESTS_NEIGHBOUR_SUMS_H
#define MPRESS_TESTS_NEIGHBOUR_SUMS_H

#include "neighbour_case.h"

/* Reductions are of 64-bit integers, by operators that are exact: sums, the least, BXOR, in which
 * what comes twice cancels, and a function of the program's. */
static void add(void* from, void* into, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((uint64_t*)into)[i] += ((const uint64_t*)from)[i];
}
static MPI_Op own_op;

static uint64_t combined(int op, uint64_t a, uint64_t b) {
  return op == 1 ? (a < b ? a : b) : op == 2 ? a ^ b : a + b;
}

static uint64_t vector_element(int origin, int neighbour, int k, int epoch) {
  return mixed((uint64_t)origin + 5, (uint64_t)neighbour, (uint64_t)k, (uint64_t)epoch) >> 8;
}

static void reduce(const struct Case* c, int number, int has_devices) {
  const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_BXOR, own_op};
  const int form = up_to(2), op = up_to(3), scatters = chance(50), is_gapped = chance(40);
  const int count = chance(10) ? 0 : chance(10) ? 9000 : up_to(40);
  const unsigned shared = state;
  state += (unsigned)rank * 613u;
  const int out = has_devices && chance(60) ? up_to(sim_devices - 1) : -1;
  const int in = has_devices && chance(60) ? up_to(sim_devices - 1) : -1;
  state = shared;
  const size_t extent = scatters && is_gapped ? 16 : 8, block = (size_t)count * extent;
  struct Buffer sent = make_buffer(32 + (scatters ? (size_t)c->s : 1) * block + 32, out);
  struct Buffer received = make_buffer(32 + (size_t)count * 8 + 32, in);
  MPI_Datatype gapped;
  CHECK_MPI(MPI_Type_create_resized(MPI_UINT64_T, 0, 16, &gapped));
  CHECK_MPI(MPI_Type_commit(&gapped));
  MPI_Count counts[MOST];
  MPI_Aint places[MOST];
  MPI_Datatype kinds[MOST];
  for (int i = 0; i < c->s; ++i) {
    const int is_there = c->targets[i] != MPI_PROC_NULL;
    counts[i] = is_there ? count : -5;
    places[i] = is_there ? (MPI_Aint)((size_t)i * block) : (MPI_Aint)1 << 40;
    kinds[i] = !is_there ? MPI_DATATYPE_NULL : extent == 16 ? gapped : MPI_UINT64_T;
  }
  mpress_request request = MPRESS_REQUEST_NULL;
  const MPI_Info none = MPI_INFO_NULL;
  if (is_verbose && rank == 0) {
    fprintf(stderr, "  %s, form %d, op %d, %d items\n", scatters ? "scatter_reduce" : "reduce",
            form, op, count);
  }
#define SCATTERED                                                                              \
  sent.memory + 32, counts, places, kinds, received.memory + 32, count, MPI_UINT64_T, ops[op], \
      c->iso
#define REDUCED sent.memory + 32, received.memory + 32, count, MPI_UINT64_T, ops[op], c->iso
  if (form == 2 && scatters) {
    CHECK_MPI(mpress_iso_neighbor_scatter_reduce_init(SCATTERED, none, &request, NULL));
  } else if (form == 2) {
    CHECK_MPI(mpress_iso_neighbor_reduce_init(REDUCED, none, &request, NULL));
  }
  for (int epoch = 64 * number; epoch < 64 * number + (form == 2 ? STARTS : 1); ++epoch) {
    memset(sent.expected, CANARY, sent.bytes);
    for (int i = 0; i < (scatters ? c->s : 1); ++i) {
      for (int k = 0; k < count; ++k) {
        const uint64_t value = vector_element(rank, scatters ? i : 99, k, epoch);
        memcpy(sent.expected + 32 + (size_t)i * block + (size_t)k * extent, &value, 8);
      }
    }
    put(&sent, sent.expected);
    memset(received.expected, CANARY, received.bytes);
    put(&received, received.expected);
    if (form == 0 && scatters) {
      CHECK_MPI(mpress_iso_neighbor_scatter_reduce(SCATTERED, NULL));
    } else if (form == 0) {
      CHECK_MPI(mpress_iso_neighbor_reduce(REDUCED, NULL));
    } else if (form == 2) {
      CHECK_MPI(mpress_start(&request));
    } else if (scatters) {
      CHECK_MPI(mpress_iso_ineighbor_scatter_reduce(SCATTERED, &request, NULL));
    } else {
      CHECK_MPI(mpress_iso_ineighbor_reduce(REDUCED, &request, NULL));
    }
    if (form != 0) CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
    for (int k = 0; k < count; ++k) {
      int sources = 0;
      uint64_t value = 0;
      for (int i = 0; i < c->s; ++i) {
        if (c->sources[i] == MPI_PROC_NULL) continue;
        const uint64_t one = vector_element(c->sources[i], scatters ? i : 99, k, epoch);
        value = sources++ == 0 ? one : combined(op, one, value);
      }
      if (sources > 0) memcpy(received.expected + 32 + (size_t)k * 8, &value, 8);
    }
    check_buffer(&sent, "what was sent to be reduced");
    check_buffer(&received, "a reduction's result");
  }
  if (form == 2) CHECK_MPI(mpress_request_free(&request));
  CHECK_MPI(MPI_Type_free(&gapped));
  drop_buffer(&sent);
  drop_buffer(&received);
}

#endif
