/* Random neighbourhoods, and buffers whose every byte is known: for the programs that test
 * include/mpress/iso.h. */
#ifndef MPRESS_TESTS_NEIGHBOUR_CASE_H
#define MPRESS_TESTS_NEIGHBOUR_CASE_H

#include <mpress/iso.h>
#include <stdint.h>

#include "../mpi/check.h"
#include "simulated_gpu.h"

enum { MOST_DIMS = 4, MOST = 24, AT_ONCE = 3, STARTS = 3, CANARY = 0xa5 };

static int rank, size;
static unsigned state;
static int is_verbose;

static int up_to(int most) {
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 8) % (unsigned)(most + 1));
}
static int chance(int percent) { return up_to(99) < percent; }

static uint64_t mixed(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t x = a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu ^ c * 0x165667b19e3779f9u ^ d;
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 27;
}

/* A datatype: `items` elements at these bytes of one. */
struct Type {
  MPI_Datatype type;
  int bytes; /* of an element: 4, of int or float, or 8, of double */
  int is_int, items, at[2], extent;
};

enum { TYPES = 5 };
static struct Type types[TYPES];

static void make_types(void) {
  types[0] = (struct Type){MPI_INT, 4, 1, 1, {0}, 4};
  types[1] = (struct Type){MPI_FLOAT, 4, 0, 1, {0}, 4};
  types[2] = (struct Type){MPI_DOUBLE, 8, 0, 1, {0}, 8};
  types[3] = (struct Type){MPI_DATATYPE_NULL, 8, 0, 2, {0, 16}, 24};
  types[4] = (struct Type){MPI_DATATYPE_NULL, 4, 0, 1, {0}, 16}; /* begins 8 bytes before it */
  CHECK_MPI(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &types[3].type));
  CHECK_MPI(MPI_Type_create_resized(MPI_FLOAT, -8, 16, &types[4].type));
  for (int i = 3; i < TYPES; ++i) CHECK_MPI(MPI_Type_commit(&types[i].type));
}

struct Grid {
  MPI_Comm comm;
  int dims, sizes[MOST_DIMS], periodic[MOST_DIMS], at[MOST_DIMS];
};

static int rank_at(const struct Grid* grid, const int* relative, int sign) {
  int found = 0;
  for (int j = 0; j < grid->dims; ++j) {
    int place = grid->at[j] + sign * relative[j];
    if (grid->periodic[j]) place = (place % grid->sizes[j] + grid->sizes[j]) % grid->sizes[j];
    if (place < 0 || place >= grid->sizes[j]) return MPI_PROC_NULL;
    found = found * grid->sizes[j] + place;
  }
  return found;
}

/* Of a neighbourhood, the same on all processes but for what follows from coordinates. */
struct Case {
  struct Grid grid;
  MPI_Comm iso;
  int s, list[MOST * MOST_DIMS], sources[MOST], targets[MOST];
  int is_uniform; /* asserted */
};

/* One buffer, as it should be, and where the program has it. */
struct Buffer {
  char *expected, *found, *memory;
  size_t bytes;
  int is_on_device;
};

static struct Buffer make_buffer(size_t bytes, int device) {
  struct Buffer one = {malloc(bytes + 1), malloc(bytes + 1), NULL, bytes, device >= 0};
  one.memory = one.is_on_device ? sim_malloc(device, bytes + 1) : malloc(bytes + 1);
  CHECK(one.expected && one.found && one.memory);
  memset(one.expected, CANARY, bytes);
  return one;
}
static void put(struct Buffer* one, const char* from) {
  if (one->is_on_device)
    sim_copy_in(one->memory, from, one->bytes);
  else
    memcpy(one->memory, from, one->bytes);
}
static void check_buffer(struct Buffer* one, const char* what) {
  if (one->is_on_device)
    sim_copy_out(one->found, one->memory, one->bytes);
  else
    memcpy(one->found, one->memory, one->bytes);
  for (size_t i = 0; i < one->bytes; ++i) {
    if (one->found[i] == one->expected[i]) continue;
    fprintf(stderr, "rank %d: %s: byte %zu of %zu is %02x, expected %02x\n", rank, what, i,
            one->bytes, (unsigned char)one->found[i], (unsigned char)one->expected[i]);
    CHECK(!"a buffer");
  }
}
static void drop_buffer(struct Buffer* one) {
  free(one->expected);
  free(one->found);
  one->is_on_device ? sim_free(one->memory) : free(one->memory);
}

#endif
