/* Makes the collective calls of a script (script.h), which tests/collective_scripts.py writes: each
 * as the program's MPI_ call, and beneath mpress on the host, on the same data. What comes out must
 * agree: in every bit, or, with a lossy codec, within its bound where other ranks' data arrived,
 * and then with the same bits on all ranks that get a block. What is not finite comes as it was,
 * and nothing else is written, gaps included.
 *
 * scripted SCRIPT BOUND: exact, abs=E, rel=E (of a block's range), or loose: none. */
#include "script_calls.h"

#include "device_memory.h"
#include "simulated_gpu.h"

struct Started {
  struct Call call;
  struct Memory out, in;
  char* expected[most_starts];              /* the receive buffer of each start */
  uint64_t hashes[most_starts][most_ranks]; /* of the data of each block */
  MPI_Request request;
  int done; /* starts */
};

static int rank, is_exact, is_loose;
static double bound, bound_of_range;
static struct Action actions[most_actions];
static struct Started calls[most_actions];
static MPI_Comm comms[comm_count];

static void expect(struct Started* s) {
  const struct Call* const c = &s->call;
  char* const out = malloc(c->out.bytes + 1);
  CHECK(out);
  for (int start = 0; start < c->action->starts; ++start) {
    char* const in = s->expected[start] = malloc(c->in.bytes + 1);
    CHECK(in);
    fill_out(c, start, out);
    fill_in(c, start, in);
    CHECK_MPI(make(c, beneath, out, in, NULL));
  }
  free(out);
}

static void wrong(const struct Started* s, const struct Block* block, int i, const char* what) {
  const struct Action* const a = s->call.action;
  fprintf(stderr, "rank %d: line %d, %s, start %d: from %d to %d, element %d: %s\n", rank, a->line,
          op_names[a->op], s->done, block->from, block->to, i, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Compares an element that may have come with a loss; what is not finite has its bits. */
static int is_near(const char* at, const char* expected, enum Leaf leaf, double error) {
  const double x = read_element(at, leaf), was = read_element(expected, leaf);
  if (!isfinite(was)) return memcmp(at, expected, leaf == f64 ? 8 : 4) == 0;
  return isfinite(x) && (is_loose || fabs(x - was) <= error);
}

static uint64_t check_block(struct Started* s, const struct Block* block, char* got,
                            const char* expected) {
  const struct Call* const c = &s->call;
  const enum Op op = c->action->op;
  const int is_own = block->from == c->rank && op != allgather && op != allgatherv;
  const int has_loss = !is_exact && !is_own && block->leaf != i32;
  double least = INFINITY, most = -INFINITY;
  uint64_t hash = 1469598103934665603u;
  for (int i = 0; has_loss && i < block->count; ++i) {
    const double x = read_element(expected + block->at + offset_of(block->kind, i), block->leaf);
    if (isfinite(x)) least = fmin(least, x), most = fmax(most, x);
  }
  const double error = bound + (most >= least ? bound_of_range * (most - least) : 0);
  for (int i = 0; i < block->count; ++i) {
    const size_t at = block->at + offset_of(block->kind, i);
    const size_t width = (size_t)block->kind->width;
    for (size_t k = 0; k < width; ++k) hash = (hash ^ (unsigned char)got[at + k]) * 1099511628211u;
    const int is_same = memcmp(got + at, expected + at, width) == 0;
    if (!is_same && !(has_loss && is_near(got + at, expected + at, block->leaf, error))) {
      char text[120];
      snprintf(text, sizeof text, "%.17g in the place of %.17g, allowed error %g",
               read_element(got + at, block->leaf), read_element(expected + at, block->leaf),
               has_loss ? error : 0);
      wrong(s, block, i, text);
    }
    memcpy(got + at, expected + at, width); /* for the comparison of all the rest */
  }
  return hash;
}

static void check_start(struct Started* s) {
  const struct Call* const c = &s->call;
  const struct Side* const in = &c->in;
  char* const expected = s->expected[s->done];
  char* const out = malloc(c->out.bytes + 1);
  CHECK(out);
  get(&s->in);
  get(&s->out);
  fill_out(c, s->done, out);
  CHECK(memcmp(s->out.shadow, out, c->out.bytes) == 0);
  for (int i = 0; i < in->number && !c->skips_in; ++i) {
    s->hashes[s->done][i] = check_block(s, &in->blocks[i], s->in.shadow, expected);
  }
  if (memcmp(s->in.shadow, expected, c->in.bytes) != 0) {
    size_t at = 0;
    while (s->in.shadow[at] == expected[at]) ++at;
    fprintf(stderr, "rank %d: line %d: byte %zu beside the data\n", rank, c->action->line, at);
    CHECK(!"nothing beside the data is written");
  }
  free(expected);
  free(out);
}

/* All ranks that get a block have the same bits. */
static void compare_bits(const struct Started* s) {
  const struct Call* const c = &s->call;
  if (!is_same_for_all(c->action->op)) return;
  for (int start = 0; start < c->action->starts; ++start) {
    uint64_t least[most_ranks], most[most_ranks];
    memcpy(least, s->hashes[start], sizeof least);
    memcpy(most, s->hashes[start], sizeof most);
    if (c->action->op == bcast && c->rank == c->root) least[0] = UINT64_MAX, most[0] = 0;
    OWN(Allreduce)(MPI_IN_PLACE, least, c->in.number, MPI_UINT64_T, MPI_MIN, c->comm);
    OWN(Allreduce)(MPI_IN_PLACE, most, c->in.number, MPI_UINT64_T, MPI_MAX, c->comm);
    for (int i = 0; i < c->in.number && c->size > 1; ++i) {
      if (least[i] == most[i] || least[i] > most[i]) continue;
      fprintf(stderr, "line %d, start %d: ranks have other bits of block %d\n", c->action->line,
              start, i);
      CHECK(!"the same bits on all ranks");
    }
  }
}

static void fill_start(struct Started* s) {
  fill_out(&s->call, s->done, s->out.shadow);
  fill_in(&s->call, s->done, s->in.shadow);
  put(&s->out);
  put(&s->in);
}

static struct Memory room(const struct Side* side, int device) {
  return memory_on(device, side->bytes + 1);
}

/* Empty buffers of every second call are null. */
static char* address(const struct Side* side, const struct Memory* memory, unsigned seed) {
  return side->bytes == 0 && seed % 2 ? NULL : memory->data;
}

static void release(struct Started* s) {
  if (s->call.action->form == persistent) CHECK_MPI(MPI_Request_free(&s->request));
  drop(&s->out);
  drop(&s->in);
}

/* Returns whether the call is under way. */
static int begin(struct Started* s) {
  const struct Action* const a = s->call.action;
  s->out = room(&s->call.out, a->out_device);
  s->in = room(&s->call.in, a->in_device);
  fill_start(s);
  CHECK_MPI(make(&s->call, a->form, address(&s->call.out, &s->out, a->seed),
                 address(&s->call.in, &s->in, a->seed), &s->request));
  if (a->form == persistent) CHECK_MPI(MPI_Start(&s->request));
  if (a->form != blocking) return 1;
  check_start(s);
  release(s);
  return 0;
}

/* Checks a start that has ended, and begins the next. Returns whether the call is under way. */
static int pass(struct Started* s) {
  check_start(s);
  if (++s->done == s->call.action->starts) {
    release(s);
    return 0;
  }
  fill_start(s);
  CHECK_MPI(MPI_Start(&s->request));
  return 1;
}

/* Each rank by a call of its own. */
static void wait_one(MPI_Request* request, int how) {
  int flag = 0, index;
  switch (how % 5) {
    case 0: CHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE)); break;
    case 1:
      while (!flag) CHECK_MPI(MPI_Test(request, &flag, MPI_STATUS_IGNORE));
      break;
    case 2: CHECK_MPI(MPI_Waitall(1, request, MPI_STATUSES_IGNORE)); break;
    case 3:
      while (!flag) CHECK_MPI(MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE));
      CHECK_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
      break;
    default: CHECK_MPI(MPI_Waitany(1, request, &index, MPI_STATUS_IGNORE));
  }
}

static void wait_all(int count, MPI_Request* requests, int how) {
  int index, done = 0, indices[most_actions];
  switch (how % 4) {
    case 0: CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE)); break;
    case 1:
      for (int i = 0; i < count; ++i) {
        CHECK_MPI(MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE));
      }
      break;
    case 2:
      for (int i = count - 1; i >= 0; --i) CHECK_MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
      break;
    default:
      /* Where a persistent call has nothing to do, Open MPI's is not active after its start. */
      for (int left = count; left > 0; left = done == MPI_UNDEFINED ? 0 : left - done) {
        CHECK_MPI(MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
      }
  }
}

int main(int argc, char** argv) {
  int size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  CHECK(argc == 3 && size <= most_ranks);
  is_exact = strcmp(argv[2], "exact") == 0;
  is_loose = strcmp(argv[2], "loose") == 0;
  if (strncmp(argv[2], "abs=", 4) == 0) bound = atof(argv[2] + 4);
  if (strncmp(argv[2], "rel=", 4) == 0) bound_of_range = atof(argv[2] + 4);
  make_kinds();
  comms[world] = MPI_COMM_WORLD;
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comms[reversed]));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[halves]));
  const int count = read_script(argv[1], rank, actions);
  for (int i = 0; i < count; ++i) {
    if (actions[i].kind != call) continue;
    calls[i].call = make_call(&actions[i], comms[actions[i].comm]);
    expect(&calls[i]);
  }
  struct Started* pending[most_actions];
  MPI_Request requests[most_actions];
  int under_way = 0;
  for (int i = 0; i <= count; ++i) {
    if (i < count && actions[i].kind == call) {
      if (begin(&calls[i])) pending[under_way++] = &calls[i];
    } else if (i < count && actions[i].kind == wait_for && under_way > 0) {
      const int which = actions[i].which % under_way;
      struct Started* const s = pending[which];
      wait_one(&s->request, i + rank);
      memmove(&pending[which], &pending[which + 1],
              sizeof(*pending) * (size_t)(--under_way - which));
      if (pass(s)) pending[under_way++] = s;
    } else {
      while (under_way > 0) {
        for (int k = 0; k < under_way; ++k) requests[k] = pending[k]->request;
        wait_all(under_way, requests, i + rank);
        int left = 0;
        for (int k = 0; k < under_way; ++k) {
          pending[k]->request = requests[k];
          if (pass(pending[k])) pending[left++] = pending[k];
        }
        under_way = left;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    if (actions[i].kind == call) compare_bits(&calls[i]);
  }
  CHECK_MPI(MPI_Comm_free(&comms[reversed]));
  CHECK_MPI(MPI_Comm_free(&comms[halves]));
  free_kinds();
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
