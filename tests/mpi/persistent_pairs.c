/* Persistent MPI_Alltoallv, Alltoallw, Gatherv and Scatterv with pairs of nothing, of little and of
 * much: started again with other data, in any order, together with messages, and completed by every
 * call; freed while they are active or not; on communicators that are freed.
 *
 * persistent_pairs PART: all, threads, or freed: requests that are freed while they are active,
 * which MPICH's own do not survive. Prints how many long pairs were started. */
#include <pthread.h>

#include "check.h"

enum { most_ranks = 8, gap = 3, is_long = 20000, is_short = 50, starts = 10 };
#define GUARD (-7.f)

enum Op { alltoallv, alltoallw, gatherv, scatterv, op_count };

/* Floats from one rank to another; each has many for the next one. */
static int number(enum Op op, int from, int to, int size) {
  if (to == (from + 1) % size) return is_long;
  static const int numbers[] = {is_long, is_short, 0, is_long - 1, 1};
  return numbers[(from + 2 * to + (int)op) % 5];
}

static float value(int start, int from, int to, int i) {
  return (float)(100 * start + 10 * from + to) + 1e-3f * (float)(i / 4);
}

struct Side {
  int counts[most_ranks], places[most_ranks], bytes_at[most_ranks], blocks, floats;
  MPI_Datatype types[most_ranks];
  float* data;
};

struct Call {
  enum Op op;
  int rank, size, root;
  struct Side out, in;
  MPI_Request request;
};

static void add_block(struct Side* side, int count) {
  const int i = side->blocks++;
  side->counts[i] = count;
  side->places[i] = side->floats;
  side->bytes_at[i] = side->floats * (int)sizeof(float);
  side->types[i] = MPI_FLOAT;
  side->floats += count + gap;
}

static int sender(const struct Call* c, int block) { return c->op == scatterv ? c->root : block; }
static int receiver(const struct Call* c, int block) { return c->op == gatherv ? c->root : block; }

static void make(struct Call* c, enum Op op, int root, MPI_Comm comm) {
  memset(c, 0, sizeof *c);
  c->op = op;
  c->root = root;
  CHECK_MPI(MPI_Comm_rank(comm, &c->rank));
  CHECK_MPI(MPI_Comm_size(comm, &c->size));
  const int is_root = c->rank == root;
  for (int i = 0; i < c->size; ++i) {
    if (op == gatherv ? i == 0 : op != scatterv || is_root) {
      add_block(&c->out, number(op, c->rank, op == gatherv ? root : i, c->size));
    }
    if (op == scatterv ? i == 0 : op != gatherv || is_root) {
      add_block(&c->in, number(op, op == scatterv ? root : i, c->rank, c->size));
    }
  }
  c->out.data = calloc((size_t)c->out.floats + 1, sizeof(float));
  c->in.data = calloc((size_t)c->in.floats + 1, sizeof(float));
  CHECK(c->out.data && c->in.data);
  struct Side *o = &c->out, *i = &c->in;
  switch (op) {
    case alltoallv:
      CHECK_MPI(MPI_Alltoallv_init(o->data, o->counts, o->places, MPI_FLOAT, i->data, i->counts,
                                   i->places, MPI_FLOAT, comm, MPI_INFO_NULL, &c->request));
      break;
    case alltoallw:
      CHECK_MPI(MPI_Alltoallw_init(o->data, o->counts, o->bytes_at, o->types, i->data, i->counts,
                                   i->bytes_at, i->types, comm, MPI_INFO_NULL, &c->request));
      break;
    case gatherv:
      CHECK_MPI(MPI_Gatherv_init(o->data, o->counts[0], MPI_FLOAT, i->data, i->counts, i->places,
                                 MPI_FLOAT, root, comm, MPI_INFO_NULL, &c->request));
      break;
    default:
      CHECK_MPI(MPI_Scatterv_init(o->data, o->counts, o->places, MPI_FLOAT, i->data, i->counts[0],
                                  MPI_FLOAT, root, comm, MPI_INFO_NULL, &c->request));
  }
}

/* Returns how many long pairs this rank sends. */
static int fill(struct Call* c, int start) {
  int found = 0;
  for (int b = 0; b < c->out.blocks; ++b) {
    const int to = receiver(c, b);
    found += to != c->rank && 4 * c->out.counts[b] >= 65536;
    for (int i = 0; i < c->out.counts[b]; ++i) {
      c->out.data[c->out.places[b] + i] = value(start, c->rank, to, i);
    }
  }
  for (int i = 0; i < c->in.floats; ++i) c->in.data[i] = GUARD;
  return found;
}

static void check(const struct Call* c, int start) {
  for (int b = 0; b < c->in.blocks; ++b) {
    const float* const block = c->in.data + c->in.places[b];
    for (int i = 0; i < c->in.counts[b]; ++i) {
      CHECK(block[i] == value(start, sender(c, b), c->rank, i));
    }
    for (int i = 0; i < gap; ++i) CHECK(block[c->in.counts[b] + i] == GUARD);
  }
}

static void drop(struct Call* c) {
  free(c->out.data);
  free(c->in.data);
}

/* Completes all of `count` requests, or those that are active: each `how` by other calls. */
static void complete(int count, MPI_Request* requests, int how) {
  int flag = 0, index = 0, done = 0, left = count, indices[16];
  switch (how % 9) {
    case 0: CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE)); break;
    case 1:
      for (int i = count - 1; i >= 0; --i) CHECK_MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
      break;
    case 2:
      for (int i = 0; i < count; i += flag) {
        CHECK_MPI(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
      }
      break;
    case 3:
      for (; left > 0; --left) {
        CHECK_MPI(MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE));
        CHECK(index != MPI_UNDEFINED);
      }
      break;
    case 4:
      for (; left > 0; left -= done) {
        CHECK_MPI(MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
        CHECK(done != MPI_UNDEFINED);
      }
      break;
    case 5:
      for (; left > 0; left -= flag) {
        CHECK_MPI(MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag || index != MPI_UNDEFINED);
      }
      break;
    case 6:
      for (; left > 0; left -= done) {
        CHECK_MPI(MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
        CHECK(done != MPI_UNDEFINED);
      }
      break;
    case 7:
      for (int i = 0; i < count; ++i) {
        for (flag = 0; !flag;) {
          CHECK_MPI(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
        }
      }
      CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
      break;
    default:
      CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD)); /* MPI blocks, and blocks come */
      CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
  }
  /* What is not active is complete. */
  CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
}

/* All calls and two messages at once, each rank with another order of its own. */
static int mixed(MPI_Comm comm, int has_barrier) {
  enum { messages = 2, all = op_count + messages };
  struct Call calls[op_count];
  MPI_Request requests[all];
  int rank, size, long_pairs = 0;
  CHECK_MPI(MPI_Comm_rank(comm, &rank));
  CHECK_MPI(MPI_Comm_size(comm, &size));
  float* const sent = calloc(is_long, sizeof(float));
  float* const got = calloc(is_long, sizeof(float));
  CHECK(sent && got);
  const int previous = (rank + size - 1) % size;
  CHECK_MPI(MPI_Send_init(sent, is_long, MPI_FLOAT, (rank + 1) % size, 5, comm, &requests[0]));
  CHECK_MPI(MPI_Recv_init(got, is_long, MPI_FLOAT, previous, 5, comm, &requests[1]));
  for (int op = 0; op < op_count; ++op) {
    make(&calls[op], (enum Op)op, op % size, comm);
    requests[messages + op] = calls[op].request;
  }
  for (int start = 0; start < starts; ++start) {
    for (int op = 0; op < op_count; ++op) long_pairs += fill(&calls[op], start);
    fill_f32(sent, is_long, 10 * rank + start);
    if (start % 2) {
      CHECK_MPI(MPI_Startall(all, requests));
    } else {
      for (int i = 0; i < all; ++i) CHECK_MPI(MPI_Start(&requests[(i + rank * start) % all]));
    }
    complete(all, requests, has_barrier || start % 9 != 8 ? start : 0);
    for (int op = 0; op < op_count; ++op) check(&calls[op], start);
    CHECK(same_f32(got, is_long, 10 * previous + start));
  }
  for (int i = 0; i < all; ++i) CHECK_MPI(MPI_Request_free(&requests[i]));
  for (int op = 0; op < op_count; ++op) drop(&calls[op]);
  free(sent);
  free(got);
  return long_pairs;
}

/* Open MPI 5 crashes where a persistent call starts on a communicator that has been freed. */
#if defined(OPEN_MPI)
enum { may_start_later = 0 };
#else
enum { may_start_later = 1 };
#endif

/* Communicators that are freed before the calls are started, and while they are active; and
 * requests that never start. */
static int freed_communicators(void) {
  int long_pairs = 0;
  for (int round = 0; round < 4; ++round) {
    MPI_Comm comm;
    struct Call call, unused;
    CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    make(&call, (enum Op)round, 0, comm);
    make(&unused, (enum Op)round, 0, comm);
    CHECK_MPI(MPI_Request_free(&unused.request));
    if (may_start_later && round % 2) CHECK_MPI(MPI_Comm_free(&comm));
    for (int start = 0; start < 2; ++start) {
      long_pairs += fill(&call, start);
      CHECK_MPI(MPI_Start(&call.request));
      if (comm != MPI_COMM_NULL && (may_start_later || start == 1)) CHECK_MPI(MPI_Comm_free(&comm));
      CHECK_MPI(MPI_Wait(&call.request, MPI_STATUS_IGNORE));
      check(&call, start);
    }
    CHECK_MPI(MPI_Request_free(&call.request));
    drop(&call);
    drop(&unused);
  }
  return long_pairs;
}

enum { threads = 3 };
struct Work {
  MPI_Comm comm;
  int long_pairs;
};
static void* work(void* given) {
  struct Work* const mine = given;
  mine->long_pairs = mixed(mine->comm, 0);
  return NULL;
}

static int by_threads(void) {
  pthread_t ids[threads];
  struct Work works[threads];
  int long_pairs = 0;
  for (int i = 0; i < threads; ++i) CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm));
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&ids[i], NULL, work, &works[i]) == 0);
  for (int i = 0; i < threads; ++i) {
    CHECK(pthread_join(ids[i], NULL) == 0);
    long_pairs += works[i].long_pairs;
  }
  for (int i = 0; i < threads; ++i) CHECK_MPI(MPI_Comm_free(&works[i].comm));
  return long_pairs;
}

/* What they bring is there at the end at the latest. */
enum { freed_calls = 2 };
static struct Call freed[freed_calls];
static int freed_requests(void) {
  int long_pairs = 0;
  for (int i = 0; i < freed_calls; ++i) {
    make(&freed[i], i == 0 ? alltoallv : alltoallw, 0, MPI_COMM_WORLD);
    long_pairs += fill(&freed[i], i);
    CHECK_MPI(MPI_Start(&freed[i].request));
    CHECK_MPI(MPI_Request_free(&freed[i].request));
    CHECK(freed[i].request == MPI_REQUEST_NULL);
  }
  return long_pairs;
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const int is_threaded = strcmp(argv[1], "threads") == 0, is_freed = strcmp(argv[1], "freed") == 0;
  int rank, provided, all = 0, long_pairs;
  CHECK_MPI(MPI_Init_thread(&argc, &argv, is_threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                            &provided));
  CHECK(!is_threaded || provided == MPI_THREAD_MULTIPLE);
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_rank = rank;
  if (is_threaded) {
    long_pairs = by_threads();
  } else if (is_freed) {
    long_pairs = freed_requests();
  } else {
    MPI_Comm halves;
    CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &halves));
    long_pairs = mixed(MPI_COMM_WORLD, 1) + mixed(halves, 1) + freed_communicators();
    CHECK_MPI(MPI_Comm_free(&halves));
  }
  CHECK_MPI(MPI_Reduce(&long_pairs, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Finalize());
  for (int i = 0; is_freed && i < freed_calls; ++i) {
    check(&freed[i], i);
    drop(&freed[i]);
  }
  if (rank == 0) printf("%d\n", all);
  return 0;
}
