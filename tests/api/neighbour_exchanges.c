/* The exchanges of include/mpress/iso.h in random cases: each element of a block is a function of
 * its origin, its neighbour, its place and the exchange, so what a process has to get follows from
 * its coordinates alone. Everything around the blocks stays as it was.
 *
 * neighbour_exchanges SEED CASES [devices]: on any number of processes. */
#include <mpress/iso.h>
#include <stdint.h>

#include "../mpi/check.h"
#include "simulated_gpu.h"

enum { MOST_DIMS = 4, MOST = 24, AT_ONCE = 3, STARTS = 3, CANARY = 0xa5 };

static int rank, size;
static unsigned state;

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

enum Kind { EVEN, COUNTS, KINDS };

/* A call's arguments on one side. */
struct Side {
  struct Buffer buffer;
  MPI_Count count, counts[MOST];
  MPI_Aint displacements[MOST];
  MPI_Datatype kinds[MOST];
  int type_of[MOST];
  size_t begin; /* of the address that the call gets */
  size_t at[MOST];
};

struct Exchange {
  int is_gather; /* one block goes to all */
  enum Kind kind;
  struct Side sent, received;
  int number;
  mpress_request request;
};

static int count_of(const struct Case* c, int seed, enum Kind kind, int origin, int i) {
  const int by = kind == EVEN ? 0 : c->is_uniform ? i + 1 : (origin * 31 + i + 1);
  const unsigned draw = (unsigned)mixed((uint64_t)seed, (uint64_t)by, 7, 9);
  const int most = draw % 16 == 0 ? 3000 : 7;
  return kind != EVEN && draw % 5 == 0 ? 0 : (int)(draw >> 8) % (most + 1);
}

/* Lays out one side: blocks in the order of the list, with gaps between them where they may be. */
static void lay_out(const struct Case* c, const struct Exchange* e, int seed, int type,
                    int is_received, int device, struct Side* side) {
  const enum Kind kind = e->kind;
  const int* partners = is_received ? c->sources : c->targets;
  const int is_one = e->is_gather && !is_received;
  size_t end = 64;
  side->begin = end;
  side->count = count_of(c, seed, EVEN, 0, 0);
  for (int i = 0; i < (is_one ? 1 : c->s); ++i) {
    /* Types of one signature, with layouts of several kinds. */
    const int is_float = type == 1 || type == 4;
    const int own = kind == KINDS && is_float ? ((i + is_received) % 2 ? 4 : 1) : type;
    const struct Type* const one = &types[own];
    const int origin = is_received ? partners[i] : rank;
    side->type_of[i] = own;
    side->counts[i] =
        kind == EVEN ? side->count : count_of(c, seed, kind, origin, e->is_gather ? 0 : i);
    if (is_one) side->count = side->counts[0];
    if (!is_one && partners[i] == MPI_PROC_NULL && !(c->is_uniform && !is_received)) {
      side->counts[i] = kind == EVEN ? side->count : -77;
      side->displacements[i] = (MPI_Aint)1 << 40;
      side->kinds[i] = MPI_DATATYPE_NULL;
      if (kind != EVEN) continue;
    }
    const size_t extent = (size_t)one->extent;
    if (kind == EVEN || is_one) {
      side->at[i] = side->begin + (size_t)i * (size_t)side->count * extent;
      end = side->at[i] + (size_t)side->count * extent;
    } else {
      const size_t gap = (size_t)up_to(2) * extent;
      side->at[i] = side->begin + (end - side->begin + extent - 1) / extent * extent + gap;
      side->displacements[i] =
          (MPI_Aint)((side->at[i] - side->begin) / (kind == COUNTS ? extent : 1));
      end = side->at[i] + (size_t)side->counts[i] * extent;
    }
    side->kinds[i] = one->type;
  }
  side->buffer = make_buffer(end + 64, device);
}

static void fill(const struct Case* c, const struct Exchange* e, struct Side* side, int is_received,
                 int epoch) {
  memset(side->buffer.expected, CANARY, side->buffer.bytes);
  const int* partners = is_received ? c->sources : c->targets;
  const int is_one = e->is_gather && !is_received;
  for (int i = 0; i < (is_one ? 1 : c->s); ++i) {
    if (!is_one && partners[i] == MPI_PROC_NULL) continue;
    const struct Type* const one = &types[side->type_of[i]];
    const int origin = is_received ? partners[i] : rank;
    for (MPI_Count k = 0; k < side->counts[i] * one->items; ++k) {
      const uint64_t value = mixed((uint64_t)origin + 1, e->is_gather ? 99 : (uint64_t)i,
                                   (uint64_t)k, (uint64_t)(e->number * STARTS + epoch));
      char* to = side->buffer.expected + side->at[i] +
                 (size_t)(k / one->items) * (size_t)one->extent + one->at[k % one->items];
      const float narrow = (float)(value & 0xfffff);
      const double wide = (double)(value & 0xffffffffffff);
      if (one->is_int)
        memcpy(to, &value, 4);
      else
        memcpy(to, one->bytes == 4 ? (const void*)&narrow : (const void*)&wide, (size_t)one->bytes);
    }
  }
}

#define ARGUMENTS_EVEN(e)                                                               \
  e->sent.buffer.memory + e->sent.begin, e->sent.count, types[e->sent.type_of[0]].type, \
      e->received.buffer.memory + e->received.begin, e->received.count,                 \
      types[e->received.type_of[0]].type, c->iso
#define ARGUMENTS_COUNTS(e)                                                          \
  e->sent.buffer.memory + e->sent.begin, e->sent.counts, e->sent.displacements,      \
      types[e->sent.type_of[0]].type, e->received.buffer.memory + e->received.begin, \
      e->received.counts, e->received.displacements, types[e->received.type_of[0]].type, c->iso
#define ARGUMENTS_KINDS(e)                                                                     \
  e->sent.buffer.memory + e->sent.begin, e->sent.counts, e->sent.displacements, e->sent.kinds, \
      e->received.buffer.memory + e->received.begin, e->received.counts,                       \
      e->received.displacements, e->received.kinds, c->iso

#define GATHER_EVEN(e) ARGUMENTS_EVEN(e)
#define GATHER_COUNTS(e)                                                                \
  e->sent.buffer.memory + e->sent.begin, e->sent.count, types[e->sent.type_of[0]].type, \
      e->received.buffer.memory + e->received.begin, e->received.counts,                \
      e->received.displacements, types[e->received.type_of[0]].type, c->iso
#define GATHER_KINDS(e)                                                                 \
  e->sent.buffer.memory + e->sent.begin, e->sent.count, types[e->sent.type_of[0]].type, \
      e->received.buffer.memory + e->received.begin, e->received.counts,                \
      e->received.displacements, e->received.kinds, c->iso

/* CALL(name, arguments) for the exchange. */
#define FOR_KIND(CALL)                                                      \
  switch (e->kind + 3 * e->is_gather) {                                     \
    case EVEN: CHECK_MPI(CALL(alltoall, ARGUMENTS_EVEN(e))); return;        \
    case COUNTS: CHECK_MPI(CALL(alltoallv, ARGUMENTS_COUNTS(e))); return;   \
    case KINDS: CHECK_MPI(CALL(alltoallw, ARGUMENTS_KINDS(e))); return;     \
    case 3 + EVEN: CHECK_MPI(CALL(allgather, GATHER_EVEN(e))); return;      \
    case 3 + COUNTS: CHECK_MPI(CALL(allgatherv, GATHER_COUNTS(e))); return; \
    case 3 + KINDS: CHECK_MPI(CALL(allgatherw, GATHER_KINDS(e))); return;   \
  }

static void block(const struct Case* c, struct Exchange* e) {
#define BLOCKING(name, ...) mpress_iso_neighbor_##name(__VA_ARGS__, NULL)
  FOR_KIND(BLOCKING)
}
static void begin(const struct Case* c, struct Exchange* e) {
#define IMMEDIATE(name, ...) mpress_iso_ineighbor_##name(__VA_ARGS__, &e->request, NULL)
  FOR_KIND(IMMEDIATE)
}
static void make(const struct Case* c, struct Exchange* e) {
#define PERSISTENT(name, ...) \
  mpress_iso_neighbor_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &e->request, NULL)
  FOR_KIND(PERSISTENT)
}

static void prepare(const struct Case* c, struct Exchange* e, int epoch) {
  fill(c, e, &e->sent, 0, epoch);
  put(&e->sent.buffer, e->sent.buffer.expected);
  memset(e->received.buffer.expected, CANARY, e->received.buffer.bytes);
  put(&e->received.buffer, e->received.buffer.expected);
}
static void check_exchange(const struct Case* c, struct Exchange* e, int epoch) {
  check_buffer(&e->sent.buffer, "what was sent");
  fill(c, e, &e->received, 1, epoch);
  check_buffer(&e->received.buffer, "what was received");
}

static int is_verbose;

static void exchange(const struct Case* c, int first, int has_devices) {
  struct Exchange all[AT_ONCE];
  const int form = up_to(2), number = form == 1 ? 1 + up_to(AT_ONCE - 1) : 1;
  for (int i = 0; i < number; ++i) {
    struct Exchange* const e = &all[i];
    memset(e, 0, sizeof *e);
    e->number = first + i;
    e->kind = (enum Kind)up_to(2);
    e->is_gather = chance(40);
    const int seed = up_to(1 << 20), type = up_to(TYPES - 1);
    const int received = type == 4 && e->kind == EVEN ? 1 : type; /* one signature, two layouts */
    const unsigned shared = state; /* what follows differs between processes */
    state += (unsigned)rank * 977u;
    const int out = has_devices && chance(60) ? up_to(sim_devices - 1) : -1;
    const int in = has_devices && chance(60) ? up_to(sim_devices - 1) : -1;
    lay_out(c, e, seed, type, 0, out, &e->sent);
    lay_out(c, e, seed, received, 1, in, &e->received);
    state = shared;
    if (is_verbose && rank == 0) {
      fprintf(stderr, "  form %d, %s, kind %d, types %d and %d, %lld items\n", form,
              e->is_gather ? "gather" : "alltoall", e->kind, type, received,
              (long long)e->sent.count);
    }
  }
  if (form == 0) {
    prepare(c, &all[0], 0);
    block(c, &all[0]);
    check_exchange(c, &all[0], 0);
  } else if (form == 1) {
    for (int i = 0; i < number; ++i) {
      prepare(c, &all[i], 0);
      begin(c, &all[i]);
      int sum = 0;
      if (chance(30)) CHECK_MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c->iso));
    }
    for (int i = number - 1; i >= 0; --i)
      CHECK_MPI(mpress_wait(&all[i].request, MPI_STATUS_IGNORE));
    for (int i = 0; i < number; ++i) check_exchange(c, &all[i], 0);
  } else {
    make(c, &all[0]);
    for (int epoch = 0; epoch < STARTS; ++epoch) {
      prepare(c, &all[0], epoch);
      CHECK_MPI(mpress_start(&all[0].request));
      CHECK_MPI(mpress_wait(&all[0].request, MPI_STATUS_IGNORE));
      check_exchange(c, &all[0], epoch);
    }
    CHECK_MPI(mpress_request_free(&all[0].request));
  }
  for (int i = 0; i < number; ++i) {
    drop_buffer(&all[i].sent.buffer);
    drop_buffer(&all[i].received.buffer);
  }
}

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

static void run(int number, int has_devices) {
  static const char* const algorithms[] = {"auto",   "direct", "combining",
                                           "digits", "lines",  "ring"};
  struct Case c;
  memset(&c, 0, sizeof c);
  c.grid.dims = up_to(MOST_DIMS);
  int members = 1;
  for (int j = 0; j < c.grid.dims; ++j) {
    c.grid.sizes[j] = 1;
    for (int tries = 0; tries < 2; ++tries) {
      const int n = 1 + up_to(4);
      if (members * n <= size) c.grid.sizes[j] = n;
    }
    members *= c.grid.sizes[j];
    c.grid.periodic[j] = chance(60);
  }
  c.s = up_to(MOST);
  for (int i = 0; i < c.s; ++i) {
    const int copied = i > 0 && chance(30) ? up_to(i - 1) : -1;
    for (int j = 0; j < c.grid.dims; ++j) {
      const int most = chance(80) ? 1 : 2 * c.grid.sizes[j];
      c.list[i * c.grid.dims + j] =
          copied >= 0 ? c.list[copied * c.grid.dims + j] : up_to(2 * most) - most;
    }
  }
  MPI_Info info;
  CHECK_MPI(MPI_Info_create(&info));
  const char* const algorithm = algorithms[up_to(5)];
  CHECK_MPI(MPI_Info_set(info, "iso_algorithm", algorithm));
  if (chance(40)) CHECK_MPI(MPI_Info_set(info, "iso_ports", chance(50) ? "1" : "2"));
  c.is_uniform = chance(50);
  CHECK_MPI(MPI_Info_set(info, "iso_uniform_sizes", c.is_uniform ? "true" : "false"));
  const int is_attribute = chance(30);
  if (is_attribute) CHECK_MPI(MPI_Info_set(info, "iso_attribute", "true"));
  CHECK_MPI(
      MPI_Cart_create(MPI_COMM_WORLD, c.grid.dims, c.grid.sizes, c.grid.periodic, 0, &c.grid.comm));
  const int exchanges = 1 + up_to(3);
  if (is_verbose && rank == 0) {
    fprintf(stderr, "case %d: %s, s %d, %d dimensions:", number, algorithm, c.s, c.grid.dims);
    for (int j = 0; j < c.grid.dims; ++j) {
      fprintf(stderr, " %d%s", c.grid.sizes[j], c.grid.periodic[j] ? " periodic" : "");
    }
    fprintf(stderr, "%s\n", c.is_uniform ? ", uniform" : "");
  }
  if (c.grid.comm != MPI_COMM_NULL) {
    CHECK_MPI(MPI_Cart_coords(c.grid.comm, rank, c.grid.dims, c.grid.at));
    CHECK_MPI(mpress_iso_neighborhood_create_with_info(c.grid.comm, c.s, c.list, info, &c.iso));
    for (int i = 0; i < c.s; ++i) {
      c.sources[i] = rank_at(&c.grid, c.list + i * c.grid.dims, -1);
      c.targets[i] = rank_at(&c.grid, c.list + i * c.grid.dims, 1);
    }
    for (int i = 0; i < exchanges; ++i) {
      if (chance(70)) {
        exchange(&c, number * 64 + i * AT_ONCE, has_devices);
      } else {
        reduce(&c, number * 64 + i, has_devices);
      }
    }
    if (!is_attribute) CHECK_MPI(MPI_Comm_free(&c.iso));
    CHECK_MPI(MPI_Comm_free(&c.grid.comm));
  }
  CHECK_MPI(MPI_Info_free(&info));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  const int cases = argc > 2 ? atoi(argv[2]) : 10, has_devices = argc > 3;
  is_verbose = getenv("VERBOSE") != NULL;
  CHECK_MPI(mpress_init());
  make_types();
  CHECK_MPI(MPI_Op_create(add, 1, &own_op));
  for (int i = 0; i < cases; ++i) {
    state = seed * 7919u + (unsigned)i * 104729u;
    up_to(1);
    run(i, has_devices);
  }
  for (int i = 3; i < TYPES; ++i) CHECK_MPI(MPI_Type_free(&types[i].type));
  CHECK_MPI(MPI_Op_free(&own_op));
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
