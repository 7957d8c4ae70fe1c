/* The calls of a script (script.h), as a rank makes them: its blocks, where they lie, and the call
 * itself, through mpress or beneath it. beneath.h is included before. */
#ifndef MPRESS_TESTS_SCRIPT_CALLS_H
#define MPRESS_TESTS_SCRIPT_CALLS_H

#include "beneath.h"
#include "script.h"

struct Block {
  int from, to; /* ranks of the communicator; who gets one from all alike: to 0 */
  int count;    /* elements */
  enum Leaf leaf;
  const struct Kind* kind;
  size_t at; /* bytes */
};

/* The blocks of a buffer. */
struct Side {
  int number;
  struct Block blocks[most_ranks];
  int counts[most_ranks], places[most_ranks]; /* items */
  int bytes_at[most_ranks];
  MPI_Datatype types[most_ranks];
  MPI_Datatype type;
  int items;    /* of the first block */
  size_t bytes; /* 0: empty */
};

/* A call of this rank. */
struct Call {
  const struct Action* action;
  MPI_Comm comm;
  int rank, size, root;
  struct Side out, in;
  int skips_out, skips_in; /* in place */
};

static int count_of(const struct Action* a, int size, int from, int to) {
  switch (a->op) {
    case gatherv:
    case allgatherv: CHECK(from < a->count_number); return a->counts[from];
    case scatterv: CHECK(to < a->count_number); return a->counts[to];
    case alltoallv:
    case alltoallw: {
      /* In a communicator that is smaller than the world a part of the matrix counts. */
      int columns = 1;
      while (columns * columns < a->count_number) ++columns;
      CHECK(columns * columns == a->count_number && size <= columns);
      return a->counts[from * columns + to];
    }
    default: return a->counts[0];
  }
}

static void add_block(struct Side* side, const struct Action* a, int size, int from, int to,
                      enum Layout layout) {
  const int i = side->number++;
  const enum Leaf leaf = a->leaf == mixed ? (enum Leaf)((from + to) % leaf_count) : a->leaf;
  const enum Layout own = a->op == alltoallw && i % 2 ? contiguous : layout;
  const struct Kind* const kind = &kinds[leaf][own];
  const int count = count_of(a, size, from, to);
  side->blocks[i] = (struct Block){from, is_same_for_all(a->op) ? 0 : to, count, leaf, kind, 0};
  CHECK(count % kind->in_item == 0);
  side->counts[i] = count / kind->in_item;
  side->types[i] = kind->type;
}

/* Blocks lie one after the other; where counts differ, also with room between them (order 1), or
 * the last one first (order 2). */
static void place_blocks(struct Side* side, const struct Action* a, const struct Kind* kind) {
  const int order = is_even(a->op) ? 0 : a->order;
  size_t at = 0;
  for (int k = 0; k < side->number; ++k) {
    const int i = order == 2 ? side->number - 1 - k : k;
    struct Block* const block = &side->blocks[i];
    const size_t extent = (size_t)block->kind->extent;
    if (a->op == alltoallw) at = (at + 7) / 8 * 8;
    side->places[i] = (int)(at / extent);
    side->bytes_at[i] = (int)at;
    block->at = at;
    at += extent * (size_t)(side->counts[i] + (order > 0 ? k % 3 : 0));
    if (side->counts[i] > 0) side->bytes = at;
  }
  side->type = kind->type;
  side->items = side->number > 0 ? side->counts[0] : 0;
}

static struct Call make_call(const struct Action* a, MPI_Comm comm) {
  struct Call c = {.action = a, .comm = comm};
  CHECK_MPI(MPI_Comm_rank(comm, &c.rank));
  CHECK_MPI(MPI_Comm_size(comm, &c.size));
  c.root = a->root % c.size;
  const int is_root = c.rank == c.root, gathers = a->op == gather || a->op == gatherv;
  const int scatters = a->op == scatter || a->op == scatterv;
  const int all_same = a->op == allgather || a->op == allgatherv;
  for (int i = 0; i < c.size; ++i) {
    if (is_alltoall(a->op) || (scatters && is_root)) {
      add_block(&c.out, a, c.size, c.rank, i, a->out_layout);
    }
    if (is_alltoall(a->op) || all_same || (gathers && is_root)) {
      add_block(&c.in, a, c.size, i, c.rank, a->in_layout);
    }
  }
  if (gathers) add_block(&c.out, a, c.size, c.rank, c.root, a->out_layout);
  if (all_same) add_block(&c.out, a, c.size, c.rank, 0, a->out_layout);
  if (scatters) add_block(&c.in, a, c.size, c.root, c.rank, a->in_layout);
  if (a->op == bcast) add_block(&c.in, a, c.size, c.root, 0, a->in_layout);
  const enum Leaf leaf = a->leaf == mixed ? f64 : a->leaf;
  place_blocks(&c.out, a, &kinds[leaf][a->out_layout]);
  place_blocks(&c.in, a, &kinds[leaf][a->in_layout]);
  c.skips_out = a->in_place && (is_alltoall(a->op) || all_same || (gathers && is_root));
  c.skips_in = a->in_place && scatters && is_root;
  return c;
}

static void fill_block(char* buffer, const struct Block* block, const struct Action* a, int start,
                       int from, int to) {
  for (int i = 0; i < block->count; ++i) {
    write_element(buffer + block->at + offset_of(block->kind, i), block->leaf, a,
                  a->seed + (unsigned)start, from, to, i);
  }
}

/* What the buffers hold before a start. */
static void fill_out(const struct Call* c, int start, char* buffer) {
  memset(buffer, guard, c->out.bytes);
  for (int i = 0; i < c->out.number; ++i) {
    const struct Block* const block = &c->out.blocks[i];
    fill_block(buffer, block, c->action, start, block->from, block->to);
  }
}

static void fill_in(const struct Call* c, int start, char* buffer) {
  const enum Op op = c->action->op;
  memset(buffer, guard, c->in.bytes);
  for (int i = 0; i < c->in.number; ++i) {
    const struct Block* const block = &c->in.blocks[i];
    if (op == bcast ? c->rank != c->root : !c->skips_out) continue;
    if (!is_alltoall(op) && block->from != c->rank) continue;
    /* In place, what goes to a rank lies where its block comes. */
    const int to = is_alltoall(op) ? block->from : block->to;
    struct Block own = *block;
    if (c->action->leaf == mixed) own.leaf = (enum Leaf)((c->rank + to) % leaf_count);
    fill_block(buffer, &own, c->action, start, c->rank, to);
  }
}

#define OWN(name) ((__typeof__(&MPI_##name))own_function("PMPI_" #name))
#define MAKE(name, iname, ...)                             \
  (form == beneath     ? OWN(name)(__VA_ARGS__)            \
   : form == blocking  ? MPI_##name(__VA_ARGS__)           \
   : form == immediate ? MPI_##iname(__VA_ARGS__, request) \
                       : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request))

/* The request of a persistent call is made, not started. */
static int make(const struct Call* c, enum Form form, const void* from, void* into,
                MPI_Request* request) {
  const struct Side *o = &c->out, *i = &c->in;
  const MPI_Comm comm = c->comm;
  const int root = c->root;
  if (c->skips_out) from = MPI_IN_PLACE;
  if (c->skips_in) into = MPI_IN_PLACE;
  switch (c->action->op) {
    case bcast: return MAKE(Bcast, Ibcast, into, i->items, i->type, root, comm);
    case gather:
      return MAKE(Gather, Igather, from, o->items, o->type, into, i->items, i->type, root, comm);
    case gatherv:
      return MAKE(Gatherv, Igatherv, from, o->items, o->type, into, i->counts, i->places, i->type,
                  root, comm);
    case scatter:
      return MAKE(Scatter, Iscatter, from, o->items, o->type, into, i->items, i->type, root, comm);
    case scatterv:
      return MAKE(Scatterv, Iscatterv, from, o->counts, o->places, o->type, into, i->items, i->type,
                  root, comm);
    case allgather:
      return MAKE(Allgather, Iallgather, from, o->items, o->type, into, i->items, i->type, comm);
    case allgatherv:
      return MAKE(Allgatherv, Iallgatherv, from, o->items, o->type, into, i->counts, i->places,
                  i->type, comm);
    case alltoall:
      return MAKE(Alltoall, Ialltoall, from, o->items, o->type, into, i->items, i->type, comm);
    case alltoallv:
      return MAKE(Alltoallv, Ialltoallv, from, o->counts, o->places, o->type, into, i->counts,
                  i->places, i->type, comm);
    default:
      return MAKE(Alltoallw, Ialltoallw, from, o->counts, o->bytes_at, o->types, into, i->counts,
                  i->bytes_at, i->types, comm);
  }
}

#endif
