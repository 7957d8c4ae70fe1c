/* Random collective calls that move data, checked bit for bit, on memory of the host and of
 * devices, each rank's its own, with messages under way meanwhile.
 *
 * blocks SEED ROUNDS [host|late]: host: no buffer lies on a device; late: none does in the first
 * ten rounds, and then those of rank 1 alone. */
#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

enum { most_ranks = 16, most_items = 12000, guard = 0x5A };

static uint64_t state;

/* The same on all ranks. */
static unsigned below(unsigned n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % n);
}

enum Op {
  alltoall,
  alltoallv,
  alltoallw,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  bcast,
  op_count
};

/* Floats, doubles, ints, and doubles with gaps. */
struct Kind {
  MPI_Datatype type;
  int size;   /* bytes of data in an item */
  int extent; /* bytes from an item to the next */
};
static struct Kind kinds[4];

static void make_kinds(void) {
  MPI_Datatype column, strewn;
  CHECK_MPI(MPI_Type_vector(2, 2, 3, MPI_DOUBLE, &column));
  CHECK_MPI(MPI_Type_create_resized(column, 0, 6 * sizeof(double), &strewn));
  CHECK_MPI(MPI_Type_commit(&strewn));
  CHECK_MPI(MPI_Type_free(&column));
  kinds[0] = (struct Kind){MPI_FLOAT, 4, 4};
  kinds[1] = (struct Kind){MPI_DOUBLE, 8, 8};
  kinds[2] = (struct Kind){MPI_INT, 4, 4};
  kinds[3] = (struct Kind){strewn, 32, 48};
}

static int is_data(const struct Kind* kind, int byte) {
  return kind->size == kind->extent || byte % kind->extent % 24 < 16;
}

/* What an item's byte holds on its way from one rank to another: floats that compress. */
static char value(int round, int from, int to, const struct Kind* kind, int byte) {
  const int width = kind->type == MPI_FLOAT || kind->type == MPI_INT ? 4 : 8;
  char bytes[8];
  const int at = byte / width;
  if (width == 4) {
    const float x = (float)(round + 1) + 17.f * (float)from + (float)to + 1e-2f * (float)(at / 8);
    memcpy(bytes, &x, 4);
  } else {
    const double x = round + 1 + 17. * from + to + 1e-2 * (at / 8);
    memcpy(bytes, &x, 8);
  }
  return bytes[byte % width];
}

static void fill(char* block, int round, int from, int to, const struct Kind* kind, int items) {
  for (int i = 0; i < items * kind->extent; ++i) {
    if (is_data(kind, i)) block[i] = value(round, from, to, kind, i);
  }
}

static int is_right(const char* block, int round, int from, int to, const struct Kind* kind,
                    int items) {
  for (int i = 0; i < items * kind->extent; ++i) {
    const char expected = is_data(kind, i) ? value(round, from, to, kind, i) : guard;
    if (block[i] != expected) return 0;
  }
  return 1;
}

/* The blocks of a buffer: at random places, in order, with room between them. */
struct Buffer {
  struct Memory memory;
  int counts[most_ranks];
  int places[most_ranks]; /* in items */
  int bytes_at[most_ranks];
  MPI_Datatype types[most_ranks];
};

static struct Buffer make(int blocks, const int* counts, const struct Kind* kind, int is_even,
                          int device) {
  struct Buffer buffer;
  int items = 0;
  for (int i = 0; i < most_ranks; ++i) {
    buffer.counts[i] = i < blocks ? counts[i] : 0;
    buffer.places[i] = items;
    buffer.bytes_at[i] = items * kind->extent;
    buffer.types[i] = kind->type;
    items += buffer.counts[i] + (is_even ? 0 : i % 3);
  }
  buffer.memory = memory_on(device, (size_t)(items + 1) * (size_t)kind->extent);
  memset(buffer.memory.shadow, guard, buffer.memory.bytes);
  return buffer;
}

/* Ranks have one signature, doubles in fours, and layouts of their own. */
static void broadcast(int round, MPI_Comm comm, int root, int device) {
  int rank;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  const unsigned fours = below(4) == 0 ? below(100) : below(100000);
  const unsigned layouts = below(1u << most_ranks);
  const struct Kind* const kind = layouts >> rank & 1 ? &kinds[1] : &kinds[3];
  const int count = (int)(kind == &kinds[1] ? 4 * fours : fours);
  struct Memory memory = memory_on(device, (size_t)(count + 1) * (size_t)kind->extent);
  memset(memory.shadow, guard, memory.bytes);
  for (int pass = 0; pass < 2; ++pass) {
    int k = 0;
    for (int i = 0; i < count * kind->extent; i += (int)sizeof(double)) {
      if (!is_data(kind, i)) continue;
      const double x = round + 17. * root + 1e-3 * (k++ / 8);
      if (pass == 1) {
        CHECK(memcmp(memory.shadow + i, &x, sizeof x) == 0);
      } else if (rank == root) {
        memcpy(memory.shadow + i, &x, sizeof x);
      }
    }
    if (pass == 1) break;
    put(&memory);
    CHECK_MPI(MPI_Bcast(memory.data, count, kind->type, root, comm));
    get(&memory);
  }
  for (int i = 0; i < count * kind->extent; ++i) {
    CHECK(is_data(kind, i) || memory.shadow[i] == guard);
  }
  drop(&memory);
}

static void one(int round, MPI_Comm comm, const char* mode, int is_last_on_host) {
  int rank, size, world;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  CHECK_MPI(MPI_Comm_size(comm, &size));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  const enum Op op = (enum Op)below(op_count);
  const struct Kind* const kind = &kinds[below(4)];
  const int root = (int)below((unsigned)size);
  const int is_even = op == alltoall || op == gather || op == scatter || op == allgather;
  const int in_place = below(6) == 0;
  const unsigned most = below(3) == 0 ? 40 : most_items;
  int counts[most_ranks][most_ranks]; /* from, to */
  const int all = (int)below(most);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      const int own = below(5) == 0 ? 0 : (int)below(most);
      counts[i][j] = is_even ? all : own;
    }
  }
  int devices[2 * most_ranks];
  for (int i = 0; i < 2 * size; ++i) devices[i] = (int)below(3) - 1;
  int out_device = devices[2 * rank], in_device = devices[2 * rank + 1];
  if (strcmp(mode, "host") == 0 || is_last_on_host) out_device = in_device = -1;
  if (strcmp(mode, "late") == 0 && world != 1) out_device = in_device = -1;

  if (op == bcast) {
    broadcast(round, comm, root, in_device);
    return;
  }
  const int is_same = op == allgather || op == allgatherv; /* for all */
  const int to_all = op <= alltoallw || is_same, to_root = op == gather || op == gatherv;
  for (int i = 0; is_same && i < size; ++i) {
    for (int j = 1; j < size; ++j) counts[i][j] = counts[i][0];
  }
  int out_counts[most_ranks], in_counts[most_ranks];
  int out_blocks = 0, in_blocks = 0;
  if ((to_all && !is_same) || (!to_root && !is_same && rank == root)) {
    out_blocks = size;
    for (int i = 0; i < size; ++i) out_counts[i] = counts[rank][i];
  } else if (to_root || is_same) {
    out_blocks = 1;
    out_counts[0] = counts[rank][root];
  }
  if (to_all || (to_root && rank == root)) {
    in_blocks = size;
    for (int i = 0; i < size; ++i) in_counts[i] = counts[i][rank];
  } else if (!to_root) {
    in_blocks = 1;
    in_counts[0] = counts[root][rank];
  }
  if (to_all && !is_same && in_place) {
    /* Both sides of a pair have as much. */
    for (int i = 0; i < size; ++i) {
      in_counts[i] = is_even ? all : counts[i < rank ? i : rank][i < rank ? rank : i];
    }
  }
  struct Buffer out = make(out_blocks, out_counts, kind, is_even, out_device);
  struct Buffer in = make(in_blocks, in_counts, kind, is_even, in_device);
  const int skips_out = in_place && (to_all || (to_root && rank == root));
  const int skips_in = in_place && !to_all && !to_root && rank == root;
  for (int i = 0; i < out_blocks; ++i) {
    const int to = is_same ? 0 : to_root ? root : i;
    fill(out.memory.shadow + out.bytes_at[i], round, rank, to, kind, out.counts[i]);
  }
  if (skips_out) {
    for (int i = 0; i < in_blocks; ++i) {
      if ((!to_all || is_same) && i != rank) continue;
      const int to = is_same ? 0 : to_all ? i : root;
      fill(in.memory.shadow + in.bytes_at[i], round, rank, to, kind, in.counts[i]);
    }
  }
  put(&out.memory);
  put(&in.memory);
  const void* const from = skips_out ? MPI_IN_PLACE : out.memory.data;
  void* const into = skips_in ? MPI_IN_PLACE : in.memory.data;
  const MPI_Datatype type = kind->type;
  switch (op) {
    case alltoall: CHECK_MPI(MPI_Alltoall(from, all, type, into, all, type, comm)); break;
    case alltoallv:
      CHECK_MPI(MPI_Alltoallv(from, out.counts, out.places, type, into, in.counts, in.places, type,
                              comm));
      break;
    case alltoallw:
      CHECK_MPI(MPI_Alltoallw(from, out.counts, out.bytes_at, out.types, into, in.counts,
                              in.bytes_at, in.types, comm));
      break;
    case gather: CHECK_MPI(MPI_Gather(from, all, type, into, all, type, root, comm)); break;
    case gatherv:
      CHECK_MPI(
          MPI_Gatherv(from, out_counts[0], type, into, in.counts, in.places, type, root, comm));
      break;
    case allgather: CHECK_MPI(MPI_Allgather(from, all, type, into, all, type, comm)); break;
    case allgatherv:
      CHECK_MPI(MPI_Allgatherv(from, out_counts[0], type, into, in.counts, in.places, type, comm));
      break;
    case scatter: CHECK_MPI(MPI_Scatter(from, all, type, into, all, type, root, comm)); break;
    default:
      CHECK_MPI(
          MPI_Scatterv(from, out.counts, out.places, type, into, in_counts[0], type, root, comm));
  }
  get(&in.memory);
  for (int i = 0; i < in_blocks && !skips_in; ++i) {
    const int source = to_all || to_root ? i : root;
    const int to = is_same ? 0 : rank;
    CHECK(is_right(in.memory.shadow + in.bytes_at[i], round, source, to, kind, in.counts[i]));
  }
  drop(&out.memory);
  drop(&in.memory);
}

int main(int argc, char** argv) {
  int world, size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = world;
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  const int rounds = atoi(argv[2]);
  const char* const mode = argc > 3 ? argv[3] : "";
  const int is_late = strcmp(mode, "late") == 0;
  make_kinds();
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &comms[2])); /* the other way round */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[3]));

  enum { items = 100000 };
  double* const ahead = malloc(sizeof(double) * items);
  double* const behind = malloc(sizeof(double) * items);
  for (int round = 0; round < rounds; ++round) {
    const int comm = (int)below(4);
    const int early = (int)below(2);
    const int partner = world ^ 1;
    const int count = (int)below(items);
    MPI_Request request = MPI_REQUEST_NULL;
    fill_f64(ahead, count, world + round);
    /* A message whose receiver takes it before its call, while its sender is in its own. */
    if (partner < size && world % 2 == early) {
      CHECK_MPI(MPI_Isend(ahead, count, MPI_DOUBLE, partner, round, MPI_COMM_WORLD, &request));
    } else if (partner < size) {
      CHECK_MPI(
          MPI_Recv(behind, count, MPI_DOUBLE, partner, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(same_f64(behind, count, partner + round));
    }
    /* What follows from the round has to be the same everywhere, also in halves. */
    const uint64_t before = state;
    one(round, comms[comm], mode, is_late && round < 10);
    state = before + 977u * (unsigned)(round + 1);
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  free(ahead);
  free(behind);
  for (int i = 1; i < 4; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
  CHECK_MPI(MPI_Type_free(&kinds[3].type));
  CHECK_MPI(MPI_Finalize());
  if (world == 0) puts("ok");
  return 0;
}
