/* The exchanges of include/mpress/iso.h in random cases: each element of a block is a function of
 * its origin, its neighbour, its place and the exchange, so what a process has to get follows from
 * its coordinates alone. Everything around the blocks stays as it was.
 *
 * neighbour_exchanges SEED CASES [devices]: on any number of processes. */
#include "neighbour_case.h"
#include "neighbour_sums.h"
#include "simulated_gpu.h"

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
