/* Random collective calls that move data: what a rank sends and expects, on memory of the host or
 * of devices, checked bit for bit. */
#ifndef MPRESS_TESTS_MOVES_H
#define MPRESS_TESTS_MOVES_H

#include <stdint.h>

#include "check.h"
#include "device_memory.h"
#include "moving_calls.h"
#include "simulated_gpu.h"

enum { most_ranks = 16, guard = 0x5A };

static uint64_t state;

/* The same on all ranks. */
static unsigned below(unsigned n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % n);
}

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

static void free_kinds(void) { CHECK_MPI(MPI_Type_free(&kinds[3].type)); }

static int is_data(const struct Kind* kind, int byte) {
  return kind->size == kind->extent || byte % kind->extent % 24 < 16;
}

/* Bytes of an element. */
static int width_of(const struct Kind* kind) {
  return kind->type == MPI_FLOAT || kind->type == MPI_INT ? 4 : 8;
}

/* What an element holds on its way from one rank to another: floats that compress. */
static void set_element(char bytes[8], int round, int from, int to, int width, int at) {
  if (width == 4) {
    const float x = (float)(round + 1) + 17.f * (float)from + (float)to + 1e-2f * (float)(at / 8);
    memcpy(bytes, &x, 4);
  } else {
    const double x = round + 1 + 17. * from + to + 1e-2 * (at / 8);
    memcpy(bytes, &x, 8);
  }
}

static void fill(char* block, int round, int from, int to, const struct Kind* kind, int items) {
  const int width = width_of(kind);
  for (int at = 0; at * width < items * kind->extent; ++at) {
    if (is_data(kind, at * width)) set_element(block + at * width, round, from, to, width, at);
  }
}

static int is_right(const char* block, int round, int from, int to, const struct Kind* kind,
                    int items) {
  const int width = width_of(kind);
  for (int at = 0; at * width < items * kind->extent; ++at) {
    char expected[8];
    memset(expected, guard, sizeof expected);
    if (is_data(kind, at * width)) set_element(expected, round, from, to, width, at);
    if (memcmp(block + at * width, expected, (size_t)width) != 0) return 0;
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

static struct Buffer make(int blocks, const int* counts, const struct Kind* kind, int has_one_count,
                          int device) {
  struct Buffer buffer;
  int items = 0;
  for (int i = 0; i < most_ranks; ++i) {
    buffer.counts[i] = i < blocks ? counts[i] : 0;
    buffer.places[i] = items;
    buffer.bytes_at[i] = items * kind->extent;
    buffer.types[i] = kind->type;
    items += buffer.counts[i] + (has_one_count ? 0 : i % 3);
  }
  buffer.memory = memory_on(device, (size_t)(items + 1) * (size_t)kind->extent);
  memset(buffer.memory.shadow, guard, buffer.memory.bytes);
  return buffer;
}

enum Form { blocking, immediate, persistent };

/* Open MPI 5 mixes up what its non-blocking MPI_Alltoallv and MPI_Alltoallw bring in place. */
static int is_alltoallv_in_place = 1;

/* One call, as this rank makes it. */
struct Move {
  enum Op op;
  struct Kind kind;
  MPI_Comm comm;
  int rank, size, root, all, round;
  int to_all, to_root, is_same; /* who gets blocks; allgather's are the same for all */
  int skips_out, skips_in;      /* in place */
  struct Buffer out, in;
  int out_blocks, in_blocks;
  int out_counts[most_ranks], in_counts[most_ranks];
};

/* Ranks have one signature, doubles in fours, and layouts of their own. */
static void make_broadcast(struct Move* move, int most, int device) {
  const unsigned fours =
      below(4) == 0 ? below((unsigned)most / 100 + 1) : below((unsigned)most * 8);
  /* All without gaps, or as it comes. */
  const unsigned layouts = below(3) == 0 ? ~0u : below(1u << most_ranks);
  move->kind = layouts >> move->rank & 1 ? kinds[1] : kinds[3];
  move->all = (int)(layouts >> move->rank & 1 ? 4 * fours : fours);
  move->in_blocks = 1;
  move->in = make(1, &move->all, &move->kind, 1, device);
}

/* `most_of_all`: items in a block; `mode`: where buffers lie. */
static struct Move draw_move(MPI_Comm comm, int most_of_all, const char* mode,
                             int is_last_on_host) {
  struct Move m = {.comm = comm};
  int world;
  CHECK_MPI(MPI_Comm_rank(comm, &m.rank));
  CHECK_MPI(MPI_Comm_size(comm, &m.size));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  const int rank = m.rank, size = m.size;
  const enum Op op = m.op = (enum Op)below(op_count);
  m.kind = kinds[below(4)];
  const int root = m.root = (int)below((unsigned)size);
  const int has_one_count = is_even(op);
  const int in_place =
      below(6) == 0 && (is_alltoallv_in_place || (op != alltoallv && op != alltoallw));
  const unsigned most = below(3) == 0 ? 40 : (unsigned)most_of_all;
  int counts[most_ranks][most_ranks]; /* from, to */
  const int all = m.all = (int)below(most);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      const int own = below(5) == 0 ? 0 : (int)below(most);
      counts[i][j] = has_one_count ? all : own;
    }
  }
  int devices[2 * most_ranks];
  for (int i = 0; i < 2 * size; ++i) devices[i] = (int)below(3) - 1;
  int out_device = devices[2 * rank], in_device = devices[2 * rank + 1];
  if (strcmp(mode, "host") == 0 || is_last_on_host) out_device = in_device = -1;
  if (strcmp(mode, "late") == 0 && world != 1) out_device = in_device = -1;
  const int host_rank = (int)below(10); /* often there is none */
  if (strcmp(mode, "device") == 0) {
    out_device = in_device = rank == host_rank ? -1 : world % sim_devices;
  }
  if (op == bcast) {
    make_broadcast(&m, most_of_all, in_device);
    return m;
  }
  const int is_same = m.is_same = is_same_for_all(op);
  const int to_all = m.to_all = is_alltoall(op) || is_same;
  const int to_root = m.to_root = op == gather || op == gatherv;
  for (int i = 0; is_same && i < size; ++i) {
    for (int j = 1; j < size; ++j) counts[i][j] = counts[i][0];
  }
  if ((to_all && !is_same) || (!to_root && !is_same && rank == root)) {
    m.out_blocks = size;
    for (int i = 0; i < size; ++i) m.out_counts[i] = counts[rank][i];
  } else if (to_root || is_same) {
    m.out_blocks = 1;
    m.out_counts[0] = counts[rank][root];
  }
  if (to_all || (to_root && rank == root)) {
    m.in_blocks = size;
    for (int i = 0; i < size; ++i) m.in_counts[i] = counts[i][rank];
  } else if (!to_root) {
    m.in_blocks = 1;
    m.in_counts[0] = counts[root][rank];
  }
  if (to_all && !is_same && in_place) {
    /* Both sides of a pair have as much. */
    for (int i = 0; i < size; ++i) {
      m.in_counts[i] = has_one_count ? all : counts[i < rank ? i : rank][i < rank ? rank : i];
    }
  }
  m.out = make(m.out_blocks, m.out_counts, &m.kind, has_one_count, out_device);
  m.in = make(m.in_blocks, m.in_counts, &m.kind, has_one_count, in_device);
  m.skips_out = in_place && (to_all || (to_root && rank == root));
  m.skips_in = in_place && !to_all && !to_root && rank == root;
  return m;
}

/* What follows has to be the same everywhere, also where communicators are halves. */
static struct Move make_move(MPI_Comm comm, int most_of_all, const char* mode,
                             int is_last_on_host) {
  const uint64_t before = state;
  const struct Move m = draw_move(comm, most_of_all, mode, is_last_on_host);
  state = before ^ 0x9E3779B97F4A7C15u;
  below(2);
  return m;
}

static double broadcast_value(const struct Move* m, int k) {
  return m->round + 17. * m->root + 1e-3 * (k / 8);
}

/* Before each call: the data of this round. */
static void fill_move(struct Move* m, int round) {
  m->round = round;
  memset(m->in.memory.shadow, guard, m->in.memory.bytes);
  if (m->op == bcast) {
    int k = 0;
    for (int i = 0; m->rank == m->root && i < m->all * m->kind.extent; i += 8) {
      if (!is_data(&m->kind, i)) continue;
      const double x = broadcast_value(m, k++);
      memcpy(m->in.memory.shadow + i, &x, sizeof x);
    }
    put(&m->in.memory);
    return;
  }
  for (int i = 0; i < m->out_blocks; ++i) {
    const int to = m->is_same ? 0 : m->to_root ? m->root : i;
    fill(m->out.memory.shadow + m->out.bytes_at[i], round, m->rank, to, &m->kind, m->out.counts[i]);
  }
  for (int i = 0; m->skips_out && i < m->in_blocks; ++i) {
    if ((!m->to_all || m->is_same) && i != m->rank) continue;
    const int to = m->is_same ? 0 : m->to_all ? i : m->root;
    fill(m->in.memory.shadow + m->in.bytes_at[i], round, m->rank, to, &m->kind, m->in.counts[i]);
  }
  put(&m->out.memory);
  put(&m->in.memory);
}

#define MOVE_CALL(name, ...)                               \
  (form == blocking    ? MPI_##name(__VA_ARGS__)           \
   : form == immediate ? MPI_I##name(__VA_ARGS__, request) \
                       : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request))
#define MPI_IAlltoall MPI_Ialltoall
#define MPI_IAlltoallv MPI_Ialltoallv
#define MPI_IAlltoallw MPI_Ialltoallw
#define MPI_IGather MPI_Igather
#define MPI_IGatherv MPI_Igatherv
#define MPI_IScatter MPI_Iscatter
#define MPI_IScatterv MPI_Iscatterv
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAllgatherv MPI_Iallgatherv
#define MPI_IBcast MPI_Ibcast

static int call_move(struct Move* m, enum Form form, MPI_Request* request) {
  const void* const from = m->skips_out ? MPI_IN_PLACE : m->out.memory.data;
  void* const into = m->skips_in ? MPI_IN_PLACE : m->in.memory.data;
  const MPI_Datatype type = m->kind.type;
  const MPI_Comm comm = m->comm;
  const int all = m->all, root = m->root;
  struct Buffer *out = &m->out, *in = &m->in;
  switch (m->op) {
    case alltoall: return MOVE_CALL(Alltoall, from, all, type, into, all, type, comm);
    case alltoallv:
      return MOVE_CALL(Alltoallv, from, out->counts, out->places, type, into, in->counts,
                       in->places, type, comm);
    case alltoallw:
      return MOVE_CALL(Alltoallw, from, out->counts, out->bytes_at, out->types, into, in->counts,
                       in->bytes_at, in->types, comm);
    case gather: return MOVE_CALL(Gather, from, all, type, into, all, type, root, comm);
    case gatherv:
      return MOVE_CALL(Gatherv, from, m->out_counts[0], type, into, in->counts, in->places, type,
                       root, comm);
    case allgather: return MOVE_CALL(Allgather, from, all, type, into, all, type, comm);
    case allgatherv:
      return MOVE_CALL(Allgatherv, from, m->out_counts[0], type, into, in->counts, in->places, type,
                       comm);
    case scatter: return MOVE_CALL(Scatter, from, all, type, into, all, type, root, comm);
    case scatterv:
      return MOVE_CALL(Scatterv, from, out->counts, out->places, type, into, m->in_counts[0], type,
                       root, comm);
    default: return MOVE_CALL(Bcast, into, all, type, root, comm);
  }
}

static void check_move(struct Move* m) {
  get(&m->in.memory);
  if (m->op == bcast) {
    int k = 0;
    for (int i = 0; i < m->all * m->kind.extent; i += 8) {
      const double x = broadcast_value(m, k);
      char other[8];
      memset(other, guard, sizeof other);
      k += is_data(&m->kind, i);
      CHECK(memcmp(m->in.memory.shadow + i, is_data(&m->kind, i) ? (const char*)&x : other, 8) ==
            0);
    }
    return;
  }
  for (int i = 0; i < m->in_blocks && !m->skips_in; ++i) {
    const int source = m->to_all || m->to_root ? i : m->root;
    const int to = m->is_same ? 0 : m->rank;
    CHECK(is_right(m->in.memory.shadow + m->in.bytes_at[i], m->round, source, to, &m->kind,
                   m->in.counts[i]));
  }
}

static void drop_move(struct Move* m) {
  if (m->op != bcast) drop(&m->out.memory);
  drop(&m->in.memory);
}

#endif
