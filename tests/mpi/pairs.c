/* MPI_Alltoallv, Alltoallw, Gatherv and Scatterv on memory of the host, with pairs of nothing, of
 * little and of much in one call; beside them other collective calls and messages under way.
 *
 * pairs SEED ROUNDS LEAST FORMS BOUND: pairs of LEAST bytes and more are long; FORMS: blocking, or
 * mixed: of all forms; BOUND: by how much data may differ. Prints how many pairs were long, of
 * blocking calls, of non-blocking and of persistent ones; and of blocking ones those between ranks
 * of which one is odd. */
#include <stdint.h>

#include "check.h"

#if MPI_VERSION >= 4
#define HAS_LARGE 1
#else
#define HAS_LARGE 0
#endif
/* Open MPI 5 has them, though it is no MPI 4. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT 0
#endif

enum { most_ranks = 8, most_fours = 6000, guard = 0x5A };

static uint64_t state; /* the same on all ranks */

static unsigned below(unsigned n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((state >> 33) % n);
}

enum Op { alltoallv, alltoallw, gatherv, scatterv, op_count };
#if HAS_PERSISTENT
enum Form { blocking, immediate, persistent, form_count };
#else
enum Form { blocking, immediate, form_count, persistent = form_count };
#endif

/* Data are doubles in fours; ranks have them as they like. */
struct Kind {
  MPI_Datatype type;
  int a_four; /* items */
  int extent; /* bytes from an item to the next */
};
enum { kind_count = 3 };
static struct Kind kinds[kind_count];

static void make_kinds(void) {
  MPI_Datatype column, strewn, two;
  CHECK_MPI(MPI_Type_vector(2, 2, 3, MPI_DOUBLE, &column));
  CHECK_MPI(MPI_Type_create_resized(column, 0, 6 * sizeof(double), &strewn));
  CHECK_MPI(MPI_Type_contiguous(2, MPI_DOUBLE, &two));
  CHECK_MPI(MPI_Type_commit(&strewn));
  CHECK_MPI(MPI_Type_commit(&two));
  CHECK_MPI(MPI_Type_free(&column));
  kinds[0] = (struct Kind){MPI_DOUBLE, 4, 8};
  kinds[1] = (struct Kind){two, 2, 16};
  kinds[2] = (struct Kind){strewn, 1, 48};
}

static int is_data(const struct Kind* kind, int byte) {
  return kind->extent != 48 || byte % 24 < 16;
}

static double value(int round, int from, int to, int k) {
  return round + 1 + 17. * from + to + 1e-2 * (k / 8);
}

/* Blocks of one buffer, in any order, with room between them. */
struct Buffer {
  char* data;
  int bytes, blocks;
  struct Kind kinds[most_ranks];
  MPI_Datatype types[most_ranks];
  int counts[most_ranks], places[most_ranks], bytes_at[most_ranks]; /* places in items */
  MPI_Count large_counts[most_ranks];
  MPI_Aint large_places[most_ranks], large_bytes_at[most_ranks];
};

static struct Buffer make(int blocks, const int* fours, int has_own_types) {
  struct Buffer b = {.blocks = blocks, .types = {MPI_DOUBLE}};
  int order[most_ranks], at = 0;
  for (int i = 0; i < blocks; ++i) order[i] = i;
  for (int i = blocks - 1; i > 0; --i) {
    const int j = rand() % (i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  const int all = rand() % kind_count;
  for (int n = 0; n < blocks; ++n) {
    const int i = order[n];
    const struct Kind kind = b.kinds[i] = kinds[has_own_types ? rand() % kind_count : all];
    b.types[i] = kind.type;
    at = (at + kind.extent - 1) / kind.extent * kind.extent + rand() % 3 * kind.extent;
    b.counts[i] = fours[i] * kind.a_four;
    b.places[i] = at / kind.extent;
    b.bytes_at[i] = at;
    b.large_counts[i] = b.counts[i];
    b.large_places[i] = b.places[i];
    b.large_bytes_at[i] = at;
    at += b.counts[i] * kind.extent;
  }
  b.bytes = at + 64;
  b.data = malloc((size_t)b.bytes);
  CHECK(b.data != NULL);
  memset(b.data, guard, (size_t)b.bytes);
  return b;
}

static void fill(struct Buffer* b, int i, int round, int from, int to) {
  char* const block = b->data + b->bytes_at[i];
  for (int at = 0, k = 0; at < b->counts[i] * b->kinds[i].extent; at += 8) {
    if (!is_data(&b->kinds[i], at)) continue;
    const double x = value(round, from, to, k++);
    memcpy(block + at, &x, sizeof x);
  }
}

/* Marks what it has seen, for check_rest(). */
static void check(struct Buffer* b, int i, int round, int from, int to, double bound) {
  char* const block = b->data + b->bytes_at[i];
  for (int at = 0, k = 0; at < b->counts[i] * b->kinds[i].extent; at += 8) {
    if (!is_data(&b->kinds[i], at)) continue;
    double x;
    memcpy(&x, block + at, sizeof x);
    CHECK(fabs(x - value(round, from, to, k++)) <= (from == to ? 0 : bound));
    memset(block + at, guard, 8);
  }
}

static void check_rest(const struct Buffer* b) {
  for (int i = 0; i < b->bytes; ++i) CHECK(b->data[i] == guard);
}

struct Call {
  enum Op op;
  enum Form form;
  MPI_Comm comm;
  int rank, size, root, round, in_place, is_large;
  struct Buffer out, in;
};

static int start(struct Call* c, MPI_Request* request) {
  struct Buffer *o = &c->out, *i = &c->in;
  const int at_root = c->rank == c->root;
  /* What has one block has no displacement. */
  const void* from = c->op == gatherv ? o->data + o->bytes_at[0] : o->data;
  void* into = c->op == scatterv ? i->data + i->bytes_at[0] : i->data;
  if (c->op == gatherv && c->in_place && at_root) from = MPI_IN_PLACE;
  if (c->op == scatterv && c->in_place && at_root) into = MPI_IN_PLACE;
  const MPI_Datatype sent = o->types[0], got = i->types[0];
  const MPI_Comm comm = c->comm;
  const int root = c->root;
#if HAS_PERSISTENT
#define FORMS(name, ...)                                            \
  return c->form == blocking    ? MPI_##name(__VA_ARGS__)           \
         : c->form == immediate ? MPI_I##name(__VA_ARGS__, request) \
                                : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request)
#define MPI_IAlltoallv_c MPI_Ialltoallv_c
#define MPI_IAlltoallw_c MPI_Ialltoallw_c
#define MPI_IGatherv_c MPI_Igatherv_c
#define MPI_IScatterv_c MPI_Iscatterv_c
#define MPI_Alltoallv_c_init MPI_Alltoallv_init_c
#define MPI_Alltoallw_c_init MPI_Alltoallw_init_c
#define MPI_Gatherv_c_init MPI_Gatherv_init_c
#define MPI_Scatterv_c_init MPI_Scatterv_init_c
#else
#define FORMS(name, ...) \
  return c->form == blocking ? MPI_##name(__VA_ARGS__) : MPI_I##name(__VA_ARGS__, request)
#endif
#define MPI_IAlltoallv MPI_Ialltoallv
#define MPI_IAlltoallw MPI_Ialltoallw
#define MPI_IGatherv MPI_Igatherv
#define MPI_IScatterv MPI_Iscatterv
#if HAS_LARGE
  if (c->is_large) switch (c->op) {
      case alltoallv:
        FORMS(Alltoallv_c, from, o->large_counts, o->large_places, sent, into, i->large_counts,
              i->large_places, got, comm);
      case alltoallw:
        FORMS(Alltoallw_c, from, o->large_counts, o->large_bytes_at, o->types, into,
              i->large_counts, i->large_bytes_at, i->types, comm);
      case gatherv:
        FORMS(Gatherv_c, from, o->large_counts[0], sent, into, i->large_counts, i->large_places,
              got, root, comm);
      default:
        FORMS(Scatterv_c, from, o->large_counts, o->large_places, sent, into, i->large_counts[0],
              got, root, comm);
    }
#endif
  switch (c->op) {
    case alltoallv:
      FORMS(Alltoallv, from, o->counts, o->places, sent, into, i->counts, i->places, got, comm);
    case alltoallw:
      FORMS(Alltoallw, from, o->counts, o->bytes_at, o->types, into, i->counts, i->bytes_at,
            i->types, comm);
    case gatherv:
      FORMS(Gatherv, from, o->counts[0], sent, into, i->counts, i->places, got, root, comm);
    default: FORMS(Scatterv, from, o->counts, o->places, sent, into, i->counts[0], got, root, comm);
  }
}

/* What ranks have for one another in a call, in fours; the same everywhere. */
static void draw(int fours[most_ranks][most_ranks], int least) {
  const unsigned mix = below(4); /* now and then nothing, or little, alone */
  for (int i = 0; i < most_ranks; ++i) {
    for (int j = 0; j < most_ranks; ++j) {
      const unsigned kind = mix == 0 ? below(2) : mix == 1 ? 2 : below(3);
      fours[i][j] = kind == 0 ? 0 : (int)below(kind == 1 ? 40 : most_fours);
    }
  }
  /* Just long, and just not. */
  fours[0][1] = least / 32;
  fours[1][0] = least / 32 - 1;
}

static int world_rank(MPI_Comm comm, int rank) {
  MPI_Group all, group;
  int found;
  CHECK_MPI(MPI_Comm_group(MPI_COMM_WORLD, &all));
  CHECK_MPI(MPI_Comm_group(comm, &group));
  CHECK_MPI(MPI_Group_translate_ranks(group, 1, &rank, all, &found));
  CHECK_MPI(MPI_Group_free(&all));
  CHECK_MPI(MPI_Group_free(&group));
  return found;
}

/* Counts the long pairs that this rank sends, and those to a rank that is odd where it is not, or
 * even where it is odd. */
static struct Call make_call(MPI_Comm comm, int round, enum Form form, int least, int* long_pairs,
                             int* odd_pairs) {
  struct Call c = {.comm = comm, .round = round, .form = form};
  int fours[most_ranks][most_ranks], out[most_ranks], in[most_ranks];
  CHECK_MPI(MPI_Comm_rank(comm, &c.rank));
  CHECK_MPI(MPI_Comm_size(comm, &c.size));
  c.op = (enum Op)below(op_count);
  /* Of one rank, Open MPI 5 takes its displacements for items. */
  if (c.op == alltoallw && c.size == 1) c.op = alltoallv;
  c.root = (int)(below(most_ranks) % (unsigned)c.size);
  c.in_place = below(2);
  c.is_large = HAS_LARGE && below(2);
  draw(fours, least);
  const int is_root = c.rank == c.root, is_of_all = c.op <= alltoallw;
  int outs = is_of_all ? c.size : 0, ins = outs;
  for (int i = 0; i < c.size; ++i) {
    out[i] = fours[c.rank][i];
    in[i] = fours[i][c.rank];
  }
  if (c.op == gatherv) {
    out[0] = fours[c.rank][c.root];
    outs = 1;
    ins = is_root ? c.size : 0;
  } else if (c.op == scatterv) {
    in[0] = fours[c.root][c.rank];
    ins = 1;
    outs = is_root ? c.size : 0;
  }
  c.out = make(outs, out, c.op == alltoallw);
  c.in = make(ins, in, c.op == alltoallw);
  for (int i = 0; i < outs; ++i) {
    const int to = c.op == gatherv ? c.root : i;
    fill(&c.out, i, round, c.rank, to);
    const int is_long = to != c.rank && out[i] * 32 >= least;
    *long_pairs += is_long;
    *odd_pairs += is_long && (world_rank(comm, to) - world_rank(comm, c.rank)) % 2 != 0;
  }
  if (c.op == gatherv && is_root && c.in_place) fill(&c.in, c.rank, round, c.rank, c.rank);
  return c;
}

static void end_call(struct Call* c, double bound) {
  const int is_left = c->op == scatterv && c->in_place && c->rank == c->root;
  for (int i = 0; i < c->in.blocks && !is_left; ++i) {
    check(&c->in, i, c->round, c->op == scatterv ? c->root : i, c->rank, bound);
  }
  check_rest(&c->in);
  free(c->out.data);
  free(c->in.data);
}

/* What other collective calls find of the same communicators, before, beside and after. */
static void beside(MPI_Comm comm, double bound, MPI_Request* request, double* data, int count,
                   int is_over) {
  int rank, size;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  CHECK_MPI(MPI_Comm_size(comm, &size));
  if (!is_over) {
    fill_f64(data, count, rank == 0 ? 7 : 8);
    CHECK_MPI(MPI_Ibcast(data, count, MPI_DOUBLE, 0, comm, request));
    return;
  }
  CHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
  for (int i = 0; i < count; ++i) CHECK(fabs(data[i] - (8 + 1e-6 * i)) <= bound);
  const float one = 1;
  float sum = 0;
  CHECK_MPI(MPI_Allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, comm));
  CHECK(sum == (float)size);
}

int main(int argc, char** argv) {
  int world, size, long_pairs[6] = {0};
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = world;
  CHECK(argc == 6 && size <= most_ranks);
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  srand((unsigned)world + (unsigned)state);
  const int rounds = atoi(argv[2]), least = atoi(argv[3]);
  const int is_mixed = strcmp(argv[4], "mixed") == 0;
  const double bound = atof(argv[5]);
  make_kinds();
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &comms[2])); /* the other way round */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[3]));
  /* Where members have never waited for one another, non-blocking calls are MPI's. */
  for (int i = 0; i < 4; ++i) {
    const int none[most_ranks] = {0};
    CHECK_MPI(MPI_Alltoallv(&size, none, none, MPI_INT, &world, none, none, MPI_INT, comms[i]));
  }
  enum { most_doubles = 20000, most_calls = 3 };
  double* const data = malloc(sizeof(double) * most_doubles);
  double* const ahead = malloc(sizeof(double) * most_doubles);
  double* const behind = malloc(sizeof(double) * most_doubles);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[most_calls], passing, messages[2];
    struct Call calls[most_calls];
    const MPI_Comm other = comms[below(4)];
    const int doubles = (int)below(most_doubles), right = (world + 1) % size,
              left = (world + size - 1) % size;
    fill_f64(ahead, doubles, world);
    CHECK_MPI(MPI_Irecv(behind, doubles, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &messages[0]));
    CHECK_MPI(MPI_Isend(ahead, doubles, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &messages[1]));
    beside(other, bound, &passing, data, doubles, 0);
    const int number = 1 + (int)below(most_calls);
    int begun = 0;
    for (int i = 0; i < number; ++i) {
      const enum Form form = is_mixed ? (enum Form)below(form_count) : blocking;
      const MPI_Comm comm = comms[below(4)];
      const uint64_t before = state;           /* halves draw other numbers of times */
      struct Call* const call = &calls[begun]; /* MPI reads its arrays meanwhile */
      *call = make_call(comm, round * most_calls + i, form, least, &long_pairs[form],
                        &long_pairs[3 + form]);
      state = before ^ 0x9E3779B97F4A7C15u;
      CHECK_MPI(start(call, &requests[begun]));
      if (call->form == blocking) {
        end_call(call, bound);
        continue;
      }
      if (call->form == persistent) CHECK_MPI(MPI_Start(&requests[begun]));
      ++begun;
    }
    CHECK_MPI(MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < begun; ++i) {
      if (calls[i].form == persistent) CHECK_MPI(MPI_Request_free(&requests[i]));
      end_call(&calls[i], bound);
    }
    beside(other, bound, &passing, data, doubles, 1);
    CHECK_MPI(MPI_Waitall(2, messages, MPI_STATUSES_IGNORE));
    for (int i = 0; i < doubles; ++i) {
      CHECK(fabs(behind[i] - (left + 1 + 1e-6 * i)) <= (left == world ? 0 : bound));
    }
  }
  free(data);
  free(ahead);
  free(behind);
  for (int i = 1; i < 4; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
  for (int i = 1; i < kind_count; ++i) CHECK_MPI(MPI_Type_free(&kinds[i].type));
  int all[6];
  CHECK_MPI(MPI_Reduce(long_pairs, all, 6, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Finalize());
  if (world == 0) printf("%d %d %d %d\n", all[0], all[1], all[2], all[3]);
  return 0;
}
