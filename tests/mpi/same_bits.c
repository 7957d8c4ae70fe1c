/* Random broadcasts and all-gathers with a lossy codec, on memory of the host and of devices, each
 * rank's its own: all ranks that get a block have the same bits of it, an all-gather's origin
 * included; every element is within the bound; what is not finite stays what it is; a broadcast's
 * root (unless MPRESS_SAME_BITS=1), send buffers and gaps stay as they were.
 *
 * same_bits BOUND SEED ROUNDS [host]: BOUND abs=E, rel=E, exact, or loose, of which only what is
 * not finite is known. */
#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { most_ranks = 16, guard = 0x5A };

static uint64_t state;

/* The same on all ranks. */
static unsigned below(unsigned n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % n);
}

/* Often little, sometimes much. */
static int some(unsigned most) {
  const unsigned size = below(8);
  return (int)below(size == 0 ? most : size < 4 ? 100 : most / 8);
}

/* Elements of `width` bytes; with gaps, two of every three. */
struct Kind {
  MPI_Datatype type;
  int width;
  int in_item; /* elements */
  int extent;  /* bytes from an item to the next */
  int has_gaps;
};
static struct Kind kinds[4];

static struct Kind strewn(MPI_Datatype of, int width) {
  struct Kind kind = {MPI_DATATYPE_NULL, width, 4, 6 * width, 1};
  MPI_Datatype column;
  CHECK_MPI(MPI_Type_vector(2, 2, 3, of, &column));
  CHECK_MPI(MPI_Type_create_resized(column, 0, kind.extent, &kind.type));
  CHECK_MPI(MPI_Type_commit(&kind.type));
  CHECK_MPI(MPI_Type_free(&column));
  return kind;
}

/* Where element `i` of the items at `block` lies. */
static char* element(char* block, const struct Kind* kind, int i) {
  const int place = kind->has_gaps ? i % 4 + (i % 4 >= 2) : 0;
  return block + i / kind->in_item * kind->extent + place * kind->width;
}

enum Data { smooth, wild, constant, noise, data_count };

/* Element `i` of what `from` has. */
static double value(enum Data data, int round, int from, int i) {
  const unsigned mixed = ((unsigned)i * 2654435761u) ^ ((unsigned)(round * 31 + from) * 40503u);
  switch (data) {
    case constant: return 3.25 + from;
    case noise: return ldexp((double)(mixed * 2246822519u), -20) - 2000.;
    case wild:
      if (mixed % 97 == 0) return NAN;
      if (mixed % 101 == 0) return INFINITY;
      if (mixed % 103 == 0) return -INFINITY;
      break;
    default: break;
  }
  return 100. * (from + 1) + 10. * sin(1e-2 * i + round);
}

static void store(char* at, int width, double x) {
  const float f = (float)x;
  memcpy(at, width == 4 ? (const void*)&f : (const void*)&x, (size_t)width);
}

static double load(const char* at, int width) {
  float f;
  double x;
  memcpy(width == 4 ? (void*)&f : (void*)&x, at, (size_t)width);
  return width == 4 ? f : x;
}

/* What is left of the value of an f32. */
static double kept(double x, int width) { return width == 4 ? (float)x : x; }

static double bound, bound_of_range;
static int is_exact, is_loose, is_root_too;

/* Checks a block, and returns a hash of its bits. */
static uint64_t checked(char* block, const struct Kind* kind, int items, enum Data data, int round,
                        int from, int has_loss) {
  const int count = items * kind->in_item;
  double least = INFINITY, most = -INFINITY;
  for (int i = 0; i < count; ++i) {
    const double x = kept(value(data, round, from, i), kind->width);
    if (isfinite(x) && x < least) least = x;
    if (isfinite(x) && x > most) most = x;
  }
  const double error = bound + (most >= least ? bound_of_range * (most - least) : 0);
  uint64_t hash = 1469598103934665603u;
  for (int i = 0; i < count; ++i) {
    const char* const at = element(block, kind, i);
    const double x = load(at, kind->width), was = kept(value(data, round, from, i), kind->width);
    if (!has_loss || is_exact) {
      CHECK(isnan(was) ? isnan(x) : x == was);
    } else if (!isfinite(was)) {
      CHECK(isnan(was) ? isnan(x) : x == was);
    } else {
      CHECK(isfinite(x));
      CHECK(is_loose || fabs(x - was) <= error);
    }
    for (int k = 0; k < kind->width; ++k) hash = (hash ^ (unsigned char)at[k]) * 1099511628211u;
  }
  for (int i = 0; kind->has_gaps && i < items; ++i) {
    for (int k = 0; k < kind->extent; ++k) {
      if (k / kind->width % 3 == 2) CHECK(block[i * kind->extent + k] == guard);
    }
  }
  return hash;
}

/* All ranks but one have the same of what `hash` tells; `without`: -1 for all. */
static void compare(uint64_t hash, int without, MPI_Comm comm) {
  int rank;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  uint64_t least = rank == without ? UINT64_MAX : hash, most = rank == without ? 0 : hash;
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, comm));
  CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, comm));
  CHECK(least == most || (least == UINT64_MAX && most == 0));
}

static struct Memory room(int items, const struct Kind* kind, int device) {
  struct Memory memory = memory_on(device, (size_t)(items + 1) * (size_t)kind->extent);
  memset(memory.shadow, guard, memory.bytes);
  return memory;
}

static void fill(char* block, const struct Kind* kind, int items, enum Data data, int round,
                 int from) {
  for (int i = 0; i < items * kind->in_item; ++i) {
    store(element(block, kind, i), kind->width, value(data, round, from, i));
  }
}

static void broadcast(MPI_Comm comm, int round, int width, enum Data data, int device) {
  int rank, size;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  CHECK_MPI(MPI_Comm_size(comm, &size));
  const int root = (int)below((unsigned)size);
  const int fours = some(120000);
  const unsigned layouts = below(1u << most_ranks);
  const struct Kind* const kind = &kinds[(width == 8) + 2 * (int)(layouts >> rank & 1)];
  const int items = 4 * fours / kind->in_item;
  struct Memory memory = room(items, kind, device);
  if (rank == root) fill(memory.shadow, kind, items, data, round, root);
  put(&memory);
  CHECK_MPI(MPI_Bcast(memory.data, items, kind->type, root, comm));
  get(&memory);
  const int has_loss = rank != root || is_root_too;
  const uint64_t hash = checked(memory.shadow, kind, items, data, round, root, has_loss);
  compare(hash, is_root_too ? -1 : root, comm);
  drop(&memory);
}

static void allgather(MPI_Comm comm, int round, int width, enum Data data, int out_device,
                      int in_device) {
  int rank, size;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  CHECK_MPI(MPI_Comm_size(comm, &size));
  const int is_even = (int)below(2), in_place = below(4) == 0;
  /* Where ranks receive in different layouts MPICH cuts differently on each, and fails. */
  const struct Kind* const out_kind = &kinds[(width == 8) + 2 * (int)below(2)];
  const struct Kind* const in_kind = &kinds[(width == 8) + 2 * (int)below(2)];
  const unsigned most = 2 + (unsigned)some(50000);
  int fours[most_ranks], counts[most_ranks], places[most_ranks];
  int items = 0;
  const int all = (int)below(most);
  for (int i = 0; i < size; ++i) {
    fours[i] = is_even ? all : below(5) == 0 ? 0 : (int)below(most);
    counts[i] = 4 * fours[i] / in_kind->in_item;
    places[i] = items;
    items += counts[i] + (is_even ? 0 : i % 3);
  }
  const int own = 4 * fours[rank] / out_kind->in_item;
  struct Memory out = room(own, out_kind, out_device), in = room(items, in_kind, in_device);
  fill(out.shadow, out_kind, own, data, round, rank);
  char* const slot = in.shadow + places[rank] * in_kind->extent;
  if (in_place) fill(slot, in_kind, counts[rank], data, round, rank);
  put(&out);
  put(&in);
  const void* const from = in_place ? MPI_IN_PLACE : out.data;
  if (is_even) {
    CHECK_MPI(MPI_Allgather(from, own, out_kind->type, in.data, counts[0], in_kind->type, comm));
  } else {
    CHECK_MPI(
        MPI_Allgatherv(from, own, out_kind->type, in.data, counts, places, in_kind->type, comm));
  }
  get(&out);
  get(&in);
  checked(out.shadow, out_kind, own, data, round, rank, 0);
  for (int i = 0; i < size; ++i) {
    char* const block = in.shadow + places[i] * in_kind->extent;
    compare(checked(block, in_kind, counts[i], data, round, i, 1), -1, comm);
  }
  drop(&out);
  drop(&in);
}

int main(int argc, char** argv) {
  int world, size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = world;
  is_exact = strcmp(argv[1], "exact") == 0;
  is_loose = strcmp(argv[1], "loose") == 0;
  const char* const same_bits = getenv("MPRESS_SAME_BITS");
  is_root_too = same_bits && strcmp(same_bits, "1") == 0;
  if (strncmp(argv[1], "abs=", 4) == 0) bound = atof(argv[1] + 4);
  if (strncmp(argv[1], "rel=", 4) == 0) bound_of_range = atof(argv[1] + 4);
  state = strtoull(argv[2], NULL, 10) * 2654435761u + 1;
  const int rounds = atoi(argv[3]);
  const int is_on_host = argc > 4 && strcmp(argv[4], "host") == 0;
  kinds[0] = (struct Kind){MPI_FLOAT, 4, 1, 4, 0};
  kinds[1] = (struct Kind){MPI_DOUBLE, 8, 1, 8, 0};
  kinds[2] = strewn(MPI_FLOAT, 4);
  kinds[3] = strewn(MPI_DOUBLE, 8);
  MPI_Comm comms[3] = {MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &comms[1])); /* the other way round */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[2]));
  for (int round = 0; round < rounds; ++round) {
    const int comm = (int)below(3), width = below(2) ? 8 : 4;
    const enum Data data = (enum Data)below(data_count);
    const int is_broadcast = (int)below(2);
    /* What follows from the round has to be the same everywhere, also in halves. */
    const uint64_t before = state;
    int devices[2 * most_ranks];
    for (int i = 0; i < 2 * size; ++i) devices[i] = is_on_host ? -1 : (int)below(3) - 1;
    if (is_broadcast) {
      broadcast(comms[comm], round, width, data, devices[2 * world]);
    } else {
      allgather(comms[comm], round, width, data, devices[2 * world], devices[2 * world + 1]);
    }
    state = before + 977u * (unsigned)(round + 1);
  }
  CHECK_MPI(MPI_Comm_free(&comms[1]));
  CHECK_MPI(MPI_Comm_free(&comms[2]));
  CHECK_MPI(MPI_Type_free(&kinds[2].type));
  CHECK_MPI(MPI_Type_free(&kinds[3].type));
  CHECK_MPI(MPI_Finalize());
  if (world == 0) puts("ok");
  return 0;
}
