/* Every collective call of mpress.h in its three forms, compared in every bit with what plain MPI
 * brings: elements of all types and with gaps, in place, of nothing, between groups, and among
 * neighbours. What is added up is so short that no order of the ranks rounds it. 2 to 8 ranks. */
#include <complex.h>
#include <mpress/mpress.h>

#include "../mpi/check.h"

enum { MOST = 8, COUNT = 1500, GUARD = 0x5A };

#define MOVES(X) \
  X(bcast)       \
  X(gather)      \
  X(gatherv) X(scatter) X(scatterv) X(allgather) X(allgatherv) X(alltoall) X(alltoallv) X(alltoallw)
#define REDUCTIONS(X) \
  X(reduce) X(allreduce) X(reduce_scatter) X(reduce_scatter_block) X(scan) X(exscan)
#define NEIGHBOURS(X)   \
  X(neighbor_allgather) \
  X(neighbor_allgatherv) X(neighbor_alltoall) X(neighbor_alltoallv) X(neighbor_alltoallw)

#define VALUE(name) name,
#define NAME(name) #name,
enum Op { MOVES(VALUE) REDUCTIONS(VALUE) NEIGHBOURS(VALUE) OPS };
static const char* const op_names[] = {MOVES(NAME) REDUCTIONS(NAME) NEIGHBOURS(NAME)};
enum Form { BLOCKING, IMMEDIATE, PERSISTENT, FORMS };

/* An element, and how many leaves lie where in it. */
struct Kind {
  MPI_Datatype type;
  int leaves, extent; /* bytes */
  enum { F32, F64, I32 } leaf;
};
static struct Kind kinds[5];
enum { FLOATS, DOUBLES, COMPLEX, INTS, STREWN };

/* A communicator, and who this rank is there and has blocks of. */
struct Group {
  MPI_Comm comm;
  int is_inter, rank, size, peers;
  int degrees[2], neighbours[2][MOST + 1]; /* whom it sends to; whom it gets from */
};

/* The blocks of a buffer; MPI's counts, and mpress's. */
struct Side {
  char* data;
  size_t bytes;
  int blocks, counts[MOST + 1], places[MOST + 1], bytes_at[MOST + 1];
  MPI_Count long_counts[MOST + 1];
  MPI_Aint long_places[MOST + 1], long_bytes_at[MOST + 1];
  MPI_Datatype types[MOST + 1];
};

static int world;
static const char* told = "";
static int told_form;

static void check_that(int is_true, const char* what, const struct Group* g) {
  if (is_true) return;
  fprintf(stderr, "rank %d: %s, form %d, %s of %d: %s\n", world, told, told_form,
          g->is_inter ? "a group" : "members", g->size, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int is_vector(enum Op op) {
  return op == gatherv || op == scatterv || op == allgatherv || op == alltoallv ||
         op == alltoallw || op == reduce_scatter || op == neighbor_allgatherv ||
         op == neighbor_alltoallv || op == neighbor_alltoallw;
}
static int is_reduction(enum Op op) { return op >= reduce && op <= exscan; }
static int is_neighbour(enum Op op) { return op >= neighbor_allgather; }
static int is_same_for_all(enum Op op) {
  return op == allgather || op == allgatherv || op == neighbor_allgather ||
         op == neighbor_allgatherv;
}
static int has_root(enum Op op) { return op <= scatterv || op == reduce; }

/* Elements of the block between two ranks, the same both ways; some have none. */
static int count_between(enum Op op, int most, int from, int to) {
  if (!is_vector(op)) return most;
  if (is_same_for_all(op)) to = 0;
  return (from + to) % 4 == 3 ? 0 : most - most / 50 * ((from + to) % 3);
}

static double value(int from, int to, int i) { return from * 8 + to + 1 + i % 512 / 16.; }

static void write_leaf(const struct Kind* kind, char* at, double x) {
  const float single = (float)x;
  const int whole = (int)(16 * x);
  if (kind->leaf == F64) memcpy(at, &x, 8);
  if (kind->leaf == F32) memcpy(at, &single, 4);
  if (kind->leaf == I32) memcpy(at, &whole, 4);
}

static void fill(const struct Kind* kind, char* block, int count, int from, int to) {
  const int width = kind->leaf == F64 ? 8 : 4;
  const int has_gaps = kind->extent > kind->leaves * width;
  for (int i = 0; i < count * kind->leaves; ++i) {
    const int leaf = i % kind->leaves;
    const int place = has_gaps ? leaf + leaf / 2 : leaf;
    write_leaf(kind, block + i / kind->leaves * kind->extent + place * width, value(from, to, i));
  }
}

static void add_block(struct Side* side, const struct Kind* kind, int count, int has_gap) {
  const int i = side->blocks++;
  const int place = i ? side->places[i - 1] + side->counts[i - 1] + has_gap : 0;
  side->long_counts[i] = side->counts[i] = count;
  side->long_places[i] = side->places[i] = place;
  side->long_bytes_at[i] = side->bytes_at[i] = place * kind->extent;
  side->types[i] = kind->type;
  side->bytes = (size_t)((place + count) * kind->extent);
}

static void make_room(struct Side* side) {
  side->data = malloc(side->bytes + 1);
  CHECK(side->data);
  memset(side->data, GUARD, side->bytes + 1);
}

/* A call of this rank: the arguments of all. */
struct Call {
  enum Op op;
  const struct Kind* kind;
  const struct Group* group;
  MPI_Op how;
  int root, most, count; /* count: of a reduction */
  int sends, gets;       /* is there a buffer to send, and to receive in? */
  struct Side out, in;
};

/* A root is a rank of the first group. */
static struct Call make_call(enum Op op, const struct Kind* kind, const struct Group* g, int most,
                             int is_first, int root) {
  struct Call c = {.op = op, .kind = kind, .group = g, .how = MPI_SUM, .root = root, .most = most};
  const int is_root = has_root(op) && g->rank == root && (!g->is_inter || is_first);
  const int has_gap = is_vector(op) && op != reduce_scatter;
  /* Between groups the members of the first but the root have no part. */
  const int is_idle = has_root(op) && g->is_inter && is_first && !is_root;
  if (g->is_inter && has_root(op) && is_first) c.root = is_root ? MPI_ROOT : MPI_PROC_NULL;
  const int leaves_out = g->is_inter && is_root; /* the root has no block of its own there */
  if (is_reduction(op)) {
    int count = most;
    if (op == reduce_scatter || op == reduce_scatter_block) {
      /* Both groups have as much. */
      const int total = 24 * (most / 24) * (g->is_inter ? 1 : g->size);
      const int part = total / g->size;
      for (int i = 0; i < g->size; ++i) {
        const int odd = op == reduce_scatter && g->size > 1 ? (i ? -1 : g->size - 1) : 0;
        c.in.counts[i] = part ? part + 3 * odd : 0;
        c.in.long_counts[i] = c.in.counts[i];
      }
      count = total;
    }
    c.count = op == reduce_scatter_block ? c.in.counts[0] : count;
    c.sends = !is_idle && !leaves_out;
    c.gets = op == reduce ? is_root : 1;
    c.out.bytes = (size_t)(count * kind->extent);
    c.in.bytes = c.out.bytes;
    if (op == reduce_scatter || op == reduce_scatter_block) {
      c.in.bytes = (size_t)(c.in.counts[g->rank] * kind->extent);
    }
    make_room(&c.out);
    make_room(&c.in);
    fill(kind, c.out.data, count, world, 1);
    return c;
  }
  if (is_neighbour(op)) {
    const int blocks = is_same_for_all(op) ? 1 : g->degrees[0];
    for (int i = 0; i < blocks; ++i) {
      add_block(&c.out, kind, count_between(op, most, g->rank, g->neighbours[0][i]), has_gap);
    }
    for (int i = 0; i < g->degrees[1]; ++i) {
      add_block(&c.in, kind, count_between(op, most, g->neighbours[1][i], g->rank), has_gap);
    }
    c.sends = c.gets = 1;
  } else if (op == bcast) {
    add_block(&c.in, kind, is_idle ? 0 : most, 0);
    c.gets = 1;
  } else {
    const int gathers = op == gather || op == gatherv, scatters = op == scatter || op == scatterv;
    const int sends_many = scatters ? is_root : !gathers && !is_same_for_all(op);
    const int gets_many = gathers ? is_root : !scatters;
    for (int i = 0; sends_many && i < g->peers; ++i) {
      add_block(&c.out, kind, count_between(op, most, g->rank, i), has_gap);
    }
    for (int i = 0; gets_many && i < g->peers; ++i) {
      add_block(&c.in, kind, count_between(op, most, i, g->rank), has_gap);
    }
    const int is_apart = is_idle || leaves_out;
    if (!sends_many && !scatters && !is_apart) {
      add_block(&c.out, kind, count_between(op, most, g->rank, gathers ? root : 0), 0);
    }
    if (!gets_many && !gathers && !is_apart) {
      add_block(&c.in, kind, count_between(op, most, root, g->rank), 0);
    }
    c.sends = c.out.blocks > 0;
    c.gets = c.in.blocks > 0;
  }
  make_room(&c.out);
  make_room(&c.in);
  for (int i = 0; i < c.out.blocks; ++i) {
    fill(kind, c.out.data + c.out.bytes_at[i], c.out.counts[i], g->rank + g->is_inter * world, i);
  }
  if (op == bcast && is_root) fill(kind, c.in.data, most, root, 0);
  return c;
}

static void drop(struct Call* c) {
  free(c->out.data);
  free(c->in.data);
}

/* What plain MPI brings. */
static int by_mpi(const struct Call* c, const void* from, void* into) {
  const struct Side *o = &c->out, *i = &c->in;
  const MPI_Datatype t = c->kind->type;
  const MPI_Comm comm = c->group->comm;
  const int root = c->root, most = c->most;
  switch (c->op) {
    case bcast: return MPI_Bcast(into, most, t, root, comm);
    case gather: return MPI_Gather(from, most, t, into, most, t, root, comm);
    case gatherv:
      return MPI_Gatherv(from, o->counts[0], t, into, i->counts, i->places, t, root, comm);
    case scatter: return MPI_Scatter(from, most, t, into, most, t, root, comm);
    case scatterv:
      return MPI_Scatterv(from, o->counts, o->places, t, into, i->counts[0], t, root, comm);
    case allgather: return MPI_Allgather(from, most, t, into, most, t, comm);
    case allgatherv:
      return MPI_Allgatherv(from, o->counts[0], t, into, i->counts, i->places, t, comm);
    case alltoall: return MPI_Alltoall(from, most, t, into, most, t, comm);
    case alltoallv:
      return MPI_Alltoallv(from, o->counts, o->places, t, into, i->counts, i->places, t, comm);
    case alltoallw:
      return MPI_Alltoallw(from, o->counts, o->bytes_at, o->types, into, i->counts, i->bytes_at,
                           i->types, comm);
    case reduce: return MPI_Reduce(from, into, c->count, t, c->how, root, comm);
    case allreduce: return MPI_Allreduce(from, into, c->count, t, c->how, comm);
    case reduce_scatter: return MPI_Reduce_scatter(from, into, i->counts, t, c->how, comm);
    case reduce_scatter_block:
      return MPI_Reduce_scatter_block(from, into, c->count, t, c->how, comm);
    case scan: return MPI_Scan(from, into, c->count, t, c->how, comm);
    case exscan: return MPI_Exscan(from, into, c->count, t, c->how, comm);
    case neighbor_allgather: return MPI_Neighbor_allgather(from, most, t, into, most, t, comm);
    case neighbor_allgatherv:
      return MPI_Neighbor_allgatherv(from, o->counts[0], t, into, i->counts, i->places, t, comm);
    case neighbor_alltoall: return MPI_Neighbor_alltoall(from, most, t, into, most, t, comm);
    case neighbor_alltoallv:
      return MPI_Neighbor_alltoallv(from, o->counts, o->places, t, into, i->counts, i->places, t,
                                    comm);
    default:
      return MPI_Neighbor_alltoallw(from, o->counts, o->long_bytes_at, o->types, into, i->counts,
                                    i->long_bytes_at, i->types, comm);
  }
}

#define CALL(name, ...)                                              \
  (form == BLOCKING    ? mpress_##name(__VA_ARGS__, asked)           \
   : form == IMMEDIATE ? mpress_i##name(__VA_ARGS__, request, asked) \
                       : mpress_##name##_init(__VA_ARGS__, request, asked))

static int by_mpress(const struct Call* c, enum Form form, const void* from, void* into,
                     mpress_request* request, const mpress_call* asked) {
  const struct Side *o = &c->out, *i = &c->in;
  const MPI_Datatype t = c->kind->type;
  const MPI_Comm comm = c->group->comm;
  const MPI_Count most = c->most;
  const int root = c->root;
  switch (c->op) {
    case bcast: return CALL(bcast, into, most, t, root, comm);
    case gather: return CALL(gather, from, most, t, into, most, t, root, comm);
    case gatherv:
      return CALL(gatherv, from, o->counts[0], t, into, i->long_counts, i->long_places, t, root,
                  comm);
    case scatter: return CALL(scatter, from, most, t, into, most, t, root, comm);
    case scatterv:
      return CALL(scatterv, from, o->long_counts, o->long_places, t, into, i->counts[0], t, root,
                  comm);
    case allgather: return CALL(allgather, from, most, t, into, most, t, comm);
    case allgatherv:
      return CALL(allgatherv, from, o->counts[0], t, into, i->long_counts, i->long_places, t, comm);
    case alltoall: return CALL(alltoall, from, most, t, into, most, t, comm);
    case alltoallv:
      return CALL(alltoallv, from, o->long_counts, o->long_places, t, into, i->long_counts,
                  i->long_places, t, comm);
    case alltoallw:
      return CALL(alltoallw, from, o->long_counts, o->long_bytes_at, o->types, into, i->long_counts,
                  i->long_bytes_at, i->types, comm);
    case reduce: return CALL(reduce, from, into, c->count, t, c->how, root, comm);
    case allreduce: return CALL(allreduce, from, into, c->count, t, c->how, comm);
    case reduce_scatter: return CALL(reduce_scatter, from, into, i->long_counts, t, c->how, comm);
    case reduce_scatter_block:
      return CALL(reduce_scatter_block, from, into, c->count, t, c->how, comm);
    case scan: return CALL(scan, from, into, c->count, t, c->how, comm);
    case exscan: return CALL(exscan, from, into, c->count, t, c->how, comm);
    case neighbor_allgather: return CALL(neighbor_allgather, from, most, t, into, most, t, comm);
    case neighbor_allgatherv:
      return CALL(neighbor_allgatherv, from, o->counts[0], t, into, i->long_counts, i->long_places,
                  t, comm);
    case neighbor_alltoall: return CALL(neighbor_alltoall, from, most, t, into, most, t, comm);
    case neighbor_alltoallv:
      return CALL(neighbor_alltoallv, from, o->long_counts, o->long_places, t, into, i->long_counts,
                  i->long_places, t, comm);
    default:
      return CALL(neighbor_alltoallw, from, o->long_counts, o->long_bytes_at, o->types, into,
                  i->long_counts, i->long_bytes_at, i->types, comm);
  }
}

/* Puts what this rank sends where the call in place finds it. Returns whether its buffer to send,
 * or that to receive in, is MPI_IN_PLACE. */
enum Place { NOWHERE, SENT, RECEIVED };
static enum Place put_in_place(struct Call* c, char* in) {
  const struct Side *o = &c->out, *i = &c->in;
  const int rank = c->group->rank, is_root = rank == c->root;
  switch (c->op) {
    case gather:
    case gatherv:
      if (!is_root) return NOWHERE;
      memcpy(in + i->bytes_at[rank], o->data, o->bytes);
      return SENT;
    case allgather:
    case allgatherv: memcpy(in + i->bytes_at[rank], o->data, o->bytes); return SENT;
    case alltoall:
    case alltoallv:
    case alltoallw: memcpy(in, o->data, o->bytes); return SENT;
    case scatter:
    case scatterv: return is_root ? RECEIVED : NOWHERE;
    case reduce:
      if (!is_root) return NOWHERE;
      memcpy(in, o->data, o->bytes);
      return SENT;
    default: memcpy(in, o->data, o->bytes); return SENT;
  }
}

/* MPIs do not all do these in place: MPICH 5 copies overlapping results of MPI_Reduce_scatter, and
 * Open MPI 5 mixes up what its non-blocking MPI_Alltoallv and MPI_Alltoallw bring. */
static int may_be_in_place(const struct Call* c, enum Form form) {
  if (c->group->is_inter || is_neighbour(c->op) || c->op == bcast) return 0;
  if (c->op == reduce_scatter) return form == BLOCKING && c->kind->leaf != I32 && c->most >= 1000;
  return form == BLOCKING || (c->op != alltoallv && c->op != alltoallw);
}

static void compare(struct Call* c, enum Form form, int in_place, const mpress_call* asked) {
  const struct Side* const i = &c->in;
  const int is_undefined = c->op == exscan && c->group->rank == 0;
  told = op_names[c->op];
  told_form = (int)form;
  char* const expected = malloc(i->bytes + 1);
  const size_t room = in_place && c->out.bytes > i->bytes ? c->out.bytes : i->bytes;
  char* const got = malloc(room + 1);
  char* const before = malloc(c->out.bytes + 1);
  CHECK(expected && got && before);
  memcpy(expected, i->data, i->bytes + 1);
  memcpy(before, c->out.data, c->out.bytes);
  /* Types with gaps have no bytes to send there. */
  check_that(by_mpi(c, c->out.data, expected) == MPI_SUCCESS, "MPI's own", c->group);
  mpress_request request = MPRESS_REQUEST_NULL;
  const void* from = c->out.data;
  void* into = got;
  for (int start = 0; start < (form == PERSISTENT ? 2 : 1); ++start) {
    memset(got, GUARD, room + 1);
    memcpy(got, i->data, i->bytes + 1);
    if (in_place) {
      const enum Place place = put_in_place(c, got);
      if (place == SENT) from = MPI_IN_PLACE;
      if (place == RECEIVED) into = MPI_IN_PLACE;
    }
    if (asked) *asked->outcome = (mpress_outcome){7, 7};
    if (start == 0) {
      const int code = by_mpress(c, form, from, into, &request, asked);
      check_that(code == MPI_SUCCESS, "mpress's", c->group);
    }
    check_that(form != PERSISTENT || request, "no request", c->group);
    if (form == PERSISTENT) CHECK_MPI(mpress_start(&request));
    if (form != BLOCKING) CHECK_MPI(mpress_wait(&request, MPI_STATUS_IGNORE));
    if (form == IMMEDIATE) check_that(!request, "the request stays", c->group);
    if (asked) check_that(asked->outcome->bound == 0, "a bound", c->group);
    const int is_all = !is_undefined && c->gets && into == got;
    check_that(!is_all || memcmp(got, expected, i->bytes) == 0, "other bits than MPI's", c->group);
    check_that(room > i->bytes || got[i->bytes] == GUARD, "beyond the end", c->group);
    check_that(memcmp(before, c->out.data, c->out.bytes) == 0, "what is sent changed", c->group);
  }
  if (form == PERSISTENT) CHECK_MPI(mpress_request_free(&request));
  check_that(!request, "the request stays", c->group);
  free(expected);
  free(got);
  free(before);
}

static void all_forms(enum Op op, int kind, const struct Group* g, int most, int is_first) {
  static mpress_outcome outcome;
  static mpress_call asked;
  asked.mask = MPRESS_CALL_SPEC | MPRESS_CALL_OUTCOME;
  asked.spec = "mpc";
  asked.outcome = &outcome;
  int first_size = g->size;
  if (g->is_inter && !is_first) first_size = g->peers;
  for (int form = 0; form < FORMS; ++form) {
    /* MPICH 5's own MPI_Ibcast between groups is wrong where the root is not the first. */
    const int is_first_root = g->is_inter && op == bcast && form != BLOCKING;
    const int root = is_first_root ? 0 : (kind + form) % first_size;
    struct Call c = make_call(op, &kinds[kind], g, most, is_first, root);
    if (kind == INTS) c.how = MPI_MAX;
    compare(&c, (enum Form)form, 0, (kind + form) % 2 ? NULL : &asked);
    if (may_be_in_place(&c, (enum Form)form)) compare(&c, (enum Form)form, 1, NULL);
    drop(&c);
  }
}

static void make_kinds(void) {
  MPI_Datatype column, strewn;
  CHECK_MPI(MPI_Type_vector(2, 2, 3, MPI_DOUBLE, &column));
  CHECK_MPI(MPI_Type_create_resized(column, 0, 6 * sizeof(double), &strewn));
  CHECK_MPI(MPI_Type_commit(&strewn));
  CHECK_MPI(MPI_Type_free(&column));
  kinds[FLOATS] = (struct Kind){MPI_FLOAT, 1, 4, F32};
  kinds[DOUBLES] = (struct Kind){MPI_DOUBLE, 1, 8, F64};
  kinds[COMPLEX] = (struct Kind){MPI_C_DOUBLE_COMPLEX, 2, 16, F64};
  kinds[INTS] = (struct Kind){MPI_INT, 1, 4, I32};
  kinds[STREWN] = (struct Kind){strewn, 4, 48, F64};
}

static struct Group group_of(MPI_Comm comm) {
  struct Group g = {.comm = comm};
  CHECK_MPI(MPI_Comm_test_inter(comm, &g.is_inter));
  CHECK_MPI(MPI_Comm_rank(comm, &g.rank));
  CHECK_MPI(MPI_Comm_size(comm, &g.size));
  g.peers = g.size;
  if (g.is_inter) CHECK_MPI(MPI_Comm_remote_size(comm, &g.peers));
  return g;
}

/* A ring both ways, and a graph: each sends to the next, and all but the last to the first. */
static struct Group ring_of(int size) {
  MPI_Comm comm;
  const int periodic = 1;
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm));
  struct Group g = group_of(comm);
  const int left = (g.rank + size - 1) % size, right = (g.rank + 1) % size;
  for (int way = 0; way < 2; ++way) {
    g.degrees[way] = 2;
    g.neighbours[way][0] = left;
    g.neighbours[way][1] = right;
  }
  return g;
}

static struct Group graph_of(int size) {
  struct Group g = {.degrees = {1, 1}};
  g.neighbours[0][0] = (world + 1) % size;
  g.neighbours[1][0] = (world + size - 1) % size;
  if (world < size - 1) g.neighbours[0][g.degrees[0]++] = 0;
  for (int r = 0; world == 0 && r < size - 1; ++r) g.neighbours[1][g.degrees[1]++] = r;
  MPI_Comm comm;
  int weights[MOST + 1];
  for (int i = 0; i <= MOST; ++i) weights[i] = 1;
  CHECK_MPI(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g.degrees[1], g.neighbours[1], weights,
                                           g.degrees[0], g.neighbours[0], weights, MPI_INFO_NULL, 0,
                                           &comm));
  struct Group known = group_of(comm);
  memcpy(known.degrees, g.degrees, sizeof g.degrees);
  memcpy(known.neighbours, g.neighbours, sizeof g.neighbours);
  return known;
}

int main(int argc, char** argv) {
  int size, flag = -1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = world;
  CHECK(size >= 2 && size <= MOST);
  CHECK_MPI(mpress_initialized(&flag));
  CHECK(flag == 0);
  CHECK_MPI(mpress_init());
  CHECK_MPI(mpress_initialized(&flag));
  CHECK(flag == 1);
  make_kinds();
  const struct Group all = group_of(MPI_COMM_WORLD);
  MPI_Comm half, inter;
  const int is_first = world % 2 == 0;
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &half));
  CHECK_MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_first, 1, &inter));
  const struct Group between = group_of(inter);
  struct Group ring = ring_of(size), graph = graph_of(size);
  for (int op = 0; op < OPS; ++op) {
    for (int kind = 0; kind < 5; ++kind) {
      if (is_reduction((enum Op)op) && kind == STREWN) continue;
      for (int most = 0; most <= COUNT; most += COUNT) {
        if (is_neighbour((enum Op)op)) {
          all_forms((enum Op)op, kind, &ring, most, 1);
          all_forms((enum Op)op, kind, &graph, most, 1);
          continue;
        }
        all_forms((enum Op)op, kind, &all, most, 1);
        if (op != scan && op != exscan) all_forms((enum Op)op, kind, &between, most, is_first);
      }
    }
  }
  CHECK_MPI(MPI_Comm_free(&ring.comm));
  CHECK_MPI(MPI_Comm_free(&graph.comm));
  CHECK_MPI(MPI_Comm_free(&inter));
  CHECK_MPI(MPI_Comm_free(&half));
  CHECK_MPI(MPI_Type_free(&kinds[STREWN].type));
  MPI_Finalize();
  if (world == 0) puts("ok");
  return 0;
}
