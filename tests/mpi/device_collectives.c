/* Collective calls on buffers in memory of devices: each in all its forms, compared byte by byte,
 * beside the data too, with the same call on host buffers. With the argument "alone", of those
 * alone in which MPI must not touch memory of devices. For any number of ranks. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "device_memory.h"
#include "simulated_gpu.h"

/* Items start so far inside the memory, and displacements leave gaps of a few items. */
enum { ORIGIN = 256, MOST = 64 };
enum Form { BLOCKING, BLOCKING_C, IMMEDIATE, IMMEDIATE_C, PERSISTENT, PERSISTENT_C, FORMS };

/* The arguments of a call, of which each uses some. Arrays come with small and with large numbers.
 */
struct Arguments {
  const void* s;
  void* r;
  int root;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  MPI_Comm comm;
  int sc_i[MOST], sd_i[MOST], rc_i[MOST], rd_i[MOST], sb_i[MOST], rb_i[MOST];
  MPI_Count sc_l[MOST], rc_l[MOST];
  MPI_Aint sd_l[MOST], rd_l[MOST], sb_l[MOST], rb_l[MOST];
  MPI_Datatype types[MOST];
};

static int rank, size, turn_type, turn_in_place, is_alone;
static MPI_Aint extent;

typedef int (*Call)();

static Call find(const char* name) {
  const Call call = (Call)dlsym(RTLD_DEFAULT, name);
  if (!call) fprintf(stderr, "there is no %s\n", name);
  CHECK(call);
  return call;
}

#define ONE_i(x) ((int)(x))
#define ONE_l(x) ((MPI_Count)(x))
#define CALLS(name, immediate, arguments)                                                       \
  static int name(enum Form form, const struct Arguments* a, MPI_Request* request) {            \
    switch (form) {                                                                             \
      case BLOCKING: return find("MPI_" #name)(arguments(i));                                   \
      case BLOCKING_C: return find("MPI_" #name "_c")(arguments(l));                            \
      case IMMEDIATE: return find("MPI_" #immediate)(arguments(i), request);                    \
      case IMMEDIATE_C: return find("MPI_" #immediate "_c")(arguments(l), request);             \
      case PERSISTENT: return find("MPI_" #name "_init")(arguments(i), MPI_INFO_NULL, request); \
      default: return find("MPI_" #name "_init_c")(arguments(l), MPI_INFO_NULL, request);       \
    }                                                                                           \
  }

/* k: i for ints, l for large numbers. */
#define SEND_ONE(k) a->s, ONE_##k(a->count), a->type
#define RECEIVE_ONE(k) a->r, ONE_##k(a->count), a->type
#define SEND_MANY(k) a->s, a->sc_##k, a->sd_##k, a->type
#define RECEIVE_MANY(k) a->r, a->rc_##k, a->rd_##k, a->type
#define SEND_OWN(k) a->s, ONE_##k(a->sc_i[0]), a->type /* the same for all receivers */
#define RECEIVE_OWN(k) a->r, ONE_##k(a->rc_i[0]), a->type
#define BCAST(k) a->r, ONE_##k(a->count), a->type, a->root, a->comm
#define GATHER(k) SEND_ONE(k), RECEIVE_ONE(k), a->root, a->comm
#define GATHERV(k) SEND_OWN(k), RECEIVE_MANY(k), a->root, a->comm
#define SCATTERV(k) SEND_MANY(k), RECEIVE_OWN(k), a->root, a->comm
#define ALLGATHER(k) SEND_ONE(k), RECEIVE_ONE(k), a->comm
#define ALLGATHERV(k) SEND_OWN(k), RECEIVE_MANY(k), a->comm
#define ALLTOALLV(k) SEND_MANY(k), RECEIVE_MANY(k), a->comm
#define ALLTOALLW(k) \
  a->s, a->sc_##k, a->sb_##k, a->types, a->r, a->rc_##k, a->rb_##k, a->types, a->comm
#define NEIGHBOR_ALLTOALLW(k) \
  a->s, a->sc_##k, a->sb_l, a->types, a->r, a->rc_##k, a->rb_l, a->types, a->comm
#define REDUCE(k) a->s, a->r, ONE_##k(a->count), a->type, a->op, a->root, a->comm
#define ALLREDUCE(k) a->s, a->r, ONE_##k(a->count), a->type, a->op, a->comm
#define REDUCE_SCATTER(k) a->s, a->r, a->rc_##k, a->type, a->op, a->comm
CALLS(Bcast, Ibcast, BCAST)
CALLS(Gather, Igather, GATHER)
CALLS(Gatherv, Igatherv, GATHERV)
CALLS(Scatter, Iscatter, GATHER)
CALLS(Scatterv, Iscatterv, SCATTERV)
CALLS(Allgather, Iallgather, ALLGATHER)
CALLS(Allgatherv, Iallgatherv, ALLGATHERV)
CALLS(Alltoall, Ialltoall, ALLGATHER)
CALLS(Alltoallv, Ialltoallv, ALLTOALLV)
CALLS(Alltoallw, Ialltoallw, ALLTOALLW)
CALLS(Reduce, Ireduce, REDUCE)
CALLS(Allreduce, Iallreduce, ALLREDUCE)
CALLS(Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER)
CALLS(Reduce_scatter_block, Ireduce_scatter_block, ALLREDUCE)
CALLS(Scan, Iscan, ALLREDUCE)
CALLS(Exscan, Iexscan, ALLREDUCE)
CALLS(Neighbor_allgather, Ineighbor_allgather, ALLGATHER)
CALLS(Neighbor_allgatherv, Ineighbor_allgatherv, ALLGATHERV)
CALLS(Neighbor_alltoall, Ineighbor_alltoall, ALLGATHER)
CALLS(Neighbor_alltoallv, Ineighbor_alltoallv, ALLTOALLV)
CALLS(Neighbor_alltoallw, Ineighbor_alltoallw, NEIGHBOR_ALLTOALLW)

/* Where MPI_IN_PLACE may stand. */
enum InPlace { NOWHERE, ROOT_SENDS, ROOT_RECEIVES, ALL_SEND };
/* How many items go from rank to rank in v-forms. */
enum Counts { BY_SENDER, BY_RECEIVER, BY_BOTH };

struct Case {
  const char* name;
  int (*run)(enum Form, const struct Arguments*, MPI_Request*);
  enum InPlace in_place;
  enum Counts counts;
  int rooted, reduces, between_groups;
};

static const struct Case cases[] = {
    {"Bcast", Bcast, NOWHERE, BY_BOTH, 1, 0, 1},
    {"Gather", Gather, ROOT_SENDS, BY_BOTH, 1, 0, 1},
    {"Gatherv", Gatherv, ROOT_SENDS, BY_SENDER, 1, 0, 1},
    {"Scatter", Scatter, ROOT_RECEIVES, BY_BOTH, 1, 0, 1},
    {"Scatterv", Scatterv, ROOT_RECEIVES, BY_RECEIVER, 1, 0, 1},
    {"Allgather", Allgather, ALL_SEND, BY_BOTH, 0, 0, 1},
    {"Allgatherv", Allgatherv, ALL_SEND, BY_SENDER, 0, 0, 1},
    {"Alltoall", Alltoall, ALL_SEND, BY_BOTH, 0, 0, 1},
    {"Alltoallv", Alltoallv, ALL_SEND, BY_BOTH, 0, 0, 1},
    {"Alltoallw", Alltoallw, ALL_SEND, BY_BOTH, 0, 0, 1},
    {"Reduce", Reduce, ROOT_SENDS, BY_BOTH, 1, 1, 1},
    {"Allreduce", Allreduce, ALL_SEND, BY_BOTH, 0, 1, 1},
    {"Reduce_scatter", Reduce_scatter, ALL_SEND, BY_SENDER, 0, 1, 1},
    {"Reduce_scatter_block", Reduce_scatter_block, ALL_SEND, BY_BOTH, 0, 1, 1},
    {"Scan", Scan, ALL_SEND, BY_BOTH, 0, 1, 0},
    {"Exscan", Exscan, ALL_SEND, BY_BOTH, 0, 1, 0},
};
static const struct Case neighbour_cases[] = {
    {"Neighbor_allgather", Neighbor_allgather, NOWHERE, BY_BOTH, 0, 0, 0},
    {"Neighbor_allgatherv", Neighbor_allgatherv, NOWHERE, BY_SENDER, 0, 0, 0},
    {"Neighbor_alltoall", Neighbor_alltoall, NOWHERE, BY_BOTH, 0, 0, 0},
    {"Neighbor_alltoallv", Neighbor_alltoallv, NOWHERE, BY_BOTH, 0, 0, 0},
    {"Neighbor_alltoallw", Neighbor_alltoallw, NOWHERE, BY_BOTH, 0, 0, 0},
};

/* The items that `sender` has for `receiver`, numbers in their groups: none, now and then.
 * Symmetric, as MPI_IN_PLACE asks for. */
static int items(enum Counts counts, int sender, int receiver) {
  const int by = counts == BY_SENDER     ? sender
                 : counts == BY_RECEIVER ? receiver
                                         : sender + receiver;
  return (by + 2) % 4;
}

static void complete(enum Form form, MPI_Request* request) {
  if (form < IMMEDIATE) return;
  const int rounds = form >= PERSISTENT ? 2 : 1;
  for (int round = 0; round < rounds; ++round) {
    int done = 0;
    if (form >= PERSISTENT) CHECK_MPI(MPI_Start(request));
    switch ((form + round) % 3) {
      case 0: CHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE)); break;
      case 1:
        while (!done) CHECK_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        break;
      default:
        while (!done) CHECK_MPI(MPI_Request_get_status(*request, &done, MPI_STATUS_IGNORE));
        CHECK_MPI(MPI_Waitall(1, request, MPI_STATUSES_IGNORE));
    }
  }
  if (form >= PERSISTENT) CHECK_MPI(MPI_Request_free(request));
}

static void fill(struct Memory* m, int seed) {
  for (size_t i = 0; i < m->bytes / 4; ++i) {
    const int small = (int)(i * 7 + (size_t)seed) % 101;
    memcpy(m->shadow + 4 * i, &small, 4); /* sums stay exact, be it an int or a tiny float */
  }
  put(m);
}

/* A communicator, and what this rank is in it. */
struct Group {
  MPI_Comm comm;
  int rank, size, remote_size, topology;
  int is_first; /* of two groups: has it the root? */
};

static void describe(struct Arguments* a, const struct Case* c, const struct Group* g) {
  const int is_inter = g->remote_size > 0;
  a->comm = g->comm;
  a->count = is_inter && c->run == Reduce_scatter_block ? g->remote_size : 3;
  a->root = g->size / 2;
  if (is_inter) a->root = !g->is_first ? 0 : g->rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  for (int i = 0; i < MOST; ++i) {
    a->sc_i[i] = g->topology ? 2 : items(c->counts, g->rank, i);
    a->rc_i[i] = g->topology ? 2 : items(c->counts, i, g->rank);
    if (is_inter && c->run == Reduce_scatter) a->rc_i[i] = g->remote_size;
    /* in descending order, with gaps */
    a->sd_i[i] = (MOST - 1 - i) * 4 + 1;
    a->rd_i[i] = (MOST - 1 - i) * 4;
    a->sb_i[i] = (int)(a->sd_i[i] * extent);
    a->rb_i[i] = (int)(a->rd_i[i] * extent);
    a->sc_l[i] = a->sc_i[i], a->sd_l[i] = a->sd_i[i], a->sb_l[i] = a->sb_i[i];
    a->rc_l[i] = a->rc_i[i], a->rd_l[i] = a->rd_i[i], a->rb_l[i] = a->rb_i[i];
    a->types[i] = a->type;
  }
}

static void fill_both(struct Memory* s, struct Memory* r) {
  fill(s, 3 * rank + 1);
  fill(r, 5 * rank + 2);
}

static void run(const struct Case* c, enum Form form, struct Arguments a, const struct Group* g,
                int in_place, struct Memory* s, struct Memory* r) {
  const int is_root = a.root == g->rank;
  fill_both(s, r);
  a.s = s->data + ORIGIN;
  a.r = r->data + ORIGIN;
  if (in_place && (c->in_place == ALL_SEND || (c->in_place == ROOT_SENDS && is_root))) {
    a.s = MPI_IN_PLACE;
  }
  if (in_place && c->in_place == ROOT_RECEIVES && is_root) a.r = MPI_IN_PLACE;
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK_MPI(c->run(form, &a, &request));
  complete(form, &request);
  get(s);
  get(r);
}

static void compare(const struct Case* c, enum Form form, const char* what,
                    const struct Memory* got, const struct Memory* expected) {
  if (memcmp(got->shadow, expected->shadow, got->bytes) == 0) return;
  size_t at = 0;
  while (got->shadow[at] == expected->shadow[at]) ++at;
  fprintf(stderr,
          "rank %d, %s, form %d, type %d, in place %d: byte %zu of what it %s is %d, not %d\n",
          rank, c->name, (int)form, turn_type, turn_in_place, at, what, got->shadow[at],
          expected->shadow[at]);
  CHECK(!"the same as with host buffers");
}

/* Reductions may write between the items of a type with gaps, and, in place, behind the result:
 * only the result counts. */
static void keep_result(const struct Case* c, const struct Arguments* a, const struct Group* g,
                        struct Memory* host_r) {
  char* const result = malloc(host_r->bytes);
  int count = c->run == Reduce_scatter ? a->rc_i[g->rank] : a->count;
  if (c->run == Exscan && g->rank == 0) count = 0;
  memcpy(result, host_r->shadow, host_r->bytes);
  fill(host_r, 5 * rank + 2);
  MPI_Sendrecv(result + ORIGIN, count, a->type, 0, 0, host_r->shadow + ORIGIN, count, a->type, 0, 0,
               MPI_COMM_SELF, MPI_STATUS_IGNORE);
  free(result);
}

/* Reductions that do not block, and one that Open MPI gets wrong; see src/preload/buffer_calls.cpp.
 */
static int is_of_hosts(const struct Case* c, enum Form form, int in_place) {
  return c->reduces && (form >= IMMEDIATE || (c->run == Reduce_scatter_block && in_place));
}

static void check_case(const struct Case* c, const struct Group* g, MPI_Datatype type, MPI_Op op,
                       int in_place, int turn) {
  static const int places[][2] = {{0, 1}, {0, -1}, {-1, 1}, {1, 1}};
  struct Arguments a = {.type = type, .op = op};
  MPI_Aint lb;
  MPI_Type_get_extent(type, &lb, &extent);
  describe(&a, c, g);
  const size_t bytes = 2 * ORIGIN + (size_t)extent * MOST * 4;
  for (enum Form form = 0; form < FORMS; ++form) {
    /* Open MPI 5 moves nothing then. */
    if (c->run == Alltoallw && size == 1 && form <= BLOCKING_C) continue;
    if (is_alone && !is_of_hosts(c, form, in_place)) continue;
    /* not alike on all ranks */
    const int* place = places[(turn + (int)form + rank) % 4];
    struct Memory s = memory_on(place[0], bytes), r = memory_on(place[1], bytes);
    struct Memory host_s = memory_on(-1, bytes), host_r = memory_on(-1, bytes);
    run(c, form, a, g, in_place, &host_s, &host_r);
    run(c, form, a, g, in_place, &s, &r);
    if (c->reduces) keep_result(c, &a, g, &host_r);
    compare(c, form, "reads", &s, &host_s);
    compare(c, form, "writes", &r, &host_r);
    drop(&s), drop(&r), drop(&host_s), drop(&host_r);
  }
}

static MPI_Datatype moved[4], reduced[4];
static MPI_Op ops[4];

/* Of the vector type, by the CPU: memory of a device would crash it. */
static void add_vectors(void* in, void* in_out, int* count, MPI_Datatype* type) {
  MPI_Aint lb, step;
  MPI_Type_get_extent(*type, &lb, &step);
  for (int i = 0; i < *count; ++i) {
    for (int j = 0; j < 12; ++j) {
      const size_t at = (size_t)(i * step) / 4 + (size_t)(j / 2 * 3 + j % 2);
      ((int*)in_out)[at] += ((int*)in)[at];
    }
  }
}

static void make_types(void) {
  const int lengths[] = {2, 1}, displacements[] = {3, 0};
  const MPI_Aint before[] = {-8, 12};
  moved[0] = MPI_FLOAT;
  MPI_Type_vector(6, 2, 3, MPI_INT, &moved[1]);
  MPI_Type_indexed(2, lengths, displacements, MPI_INT, &moved[2]);
  MPI_Type_create_hindexed(2, lengths, before, MPI_FLOAT, &moved[3]);
  for (int i = 1; i < 4; ++i) MPI_Type_commit(&moved[i]);
  reduced[0] = MPI_FLOAT, ops[0] = MPI_SUM;
  reduced[1] = MPI_INT, ops[1] = MPI_MAX;
  reduced[2] = MPI_SHORT_INT, ops[2] = MPI_MINLOC;
  reduced[3] = moved[1];
  MPI_Op_create(add_vectors, 1, &ops[3]);
}

static void check_on(const struct Case* c, const struct Group* g, int turn) {
  for (int t = 0; t < 4; ++t) {
    for (int in_place = 0; in_place < 2; ++in_place) {
      if (in_place && (c->in_place == NOWHERE || g->remote_size > 0)) continue;
      turn_type = t, turn_in_place = in_place;
      check_case(c, g, c->reduces ? reduced[t] : moved[t], ops[t], in_place, turn + t);
    }
  }
}

static void check_topology(MPI_Comm comm) {
  struct Group g = {.comm = comm, .size = size, .topology = 1};
  MPI_Comm_rank(comm, &g.rank);
  for (int i = 0; i < 5; ++i) check_on(&neighbour_cases[i], &g, i);
  MPI_Comm_free(&comm);
}

static void check_neighbours(void) {
  const int open_ends[] = {0}, closed[] = {1, 1};
  int dims[] = {0, 0}, sources[2] = {(rank + 1) % size, rank}, degree = 1,
      to = (rank + size - 1) % size;
  MPI_Comm comm;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, open_ends, 0, &comm);
  check_topology(comm);
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, closed, 0, &comm);
  check_topology(comm);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, sources, MPI_UNWEIGHTED, degree, &to,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  check_topology(comm);
}

static void check_between_groups(void) {
  struct Group g = {.is_first = rank < (size + 1) / 2};
  MPI_Comm own;
  if (size < 2) return;
  MPI_Comm_split(MPI_COMM_WORLD, g.is_first, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, g.is_first ? (size + 1) / 2 : 0, 0, &g.comm);
  MPI_Comm_rank(g.comm, &g.rank);
  MPI_Comm_size(g.comm, &g.size);
  MPI_Comm_remote_size(g.comm, &g.remote_size);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    if (cases[i].between_groups) check_on(&cases[i], &g, (int)i);
  }
  MPI_Comm_free(&own);
  MPI_Comm_free(&g.comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  is_alone = argc > 1 && strcmp(argv[1], "alone") == 0;
  make_types();
  const struct Group world = {.comm = MPI_COMM_WORLD, .rank = rank, .size = size};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) check_on(&cases[i], &world, (int)i);
  check_neighbours();
  check_between_groups();
  for (int i = 1; i < 4; ++i) MPI_Type_free(&moved[i]);
  MPI_Op_free(&ops[3]);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
