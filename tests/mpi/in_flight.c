/* Collective calls of all forms under way at once, on overlapping communicators, with messages
 * between them, completed in any order by any call.
 *
 * in_flight mix SEED ROUNDS [host|late]: random ones, checked bit for bit; see blocks.c.
 * in_flight thousand: broadcasts, while a rank waits in another communicator's, of which the first
 * call was a blocking one.
 * in_flight orders: communicators first used in other orders by other ranks.
 * in_flight blocked: a persistent broadcast, while ranks that pass it on are in MPI_Barrier. */
#include "moves.h"
#include "simulated_gpu.h"

enum { most_items = 4000, most_moves = 12, kept_moves = 6, most_doubles = 20000 };

static int world, size;
static uint64_t own_state; /* each rank's own */

static int choose(int n) {
  own_state = own_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((own_state >> 33) % (unsigned)n);
}

/* Waits for one or some of the requests, or for all; by any call, each rank as it likes. The first
 * `passing` are not persistent: MPICH 5.0 fails in MPI_Testall of persistent collective calls. */
static void complete_some(int count, int passing, MPI_Request* requests) {
  int index, flag = 0, done = 0, indices[64];
  MPI_Status statuses[64];
  const int one = choose(count);
  switch (choose(10)) {
    case 0: CHECK_MPI(MPI_Wait(&requests[one], statuses)); break;
    case 1: CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE)); break;
    case 2: CHECK_MPI(MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE)); break;
    case 3: CHECK_MPI(MPI_Waitsome(count, requests, &done, indices, statuses)); break;
    case 4:
      while (!flag) CHECK_MPI(MPI_Test(&requests[one], &flag, MPI_STATUS_IGNORE));
      break;
    case 5: CHECK_MPI(MPI_Testall(passing, requests, &flag, statuses)); break;
    case 6: CHECK_MPI(MPI_Testany(count, requests, &index, &flag, statuses)); break;
    case 7: CHECK_MPI(MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE)); break;
    case 8:
      while (!flag) CHECK_MPI(MPI_Request_get_status(requests[one], &flag, MPI_STATUS_IGNORE));
      break;
    default: CHECK_MPI(MPI_Waitall(one, requests, statuses));
  }
}

static void complete(int count, int passing, MPI_Request* requests) {
  for (int i = choose(6); i > 0; --i) complete_some(count, passing, requests);
  CHECK_MPI(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
}

/* A message between neighbours, both ways. */
struct Message {
  int count, seed, partner;
  double *out, *in;
};

static struct Message exchange(int round, int count, MPI_Request requests[2]) {
  struct Message m = {count, round, world ^ 1, malloc(sizeof(double) * most_doubles),
                      malloc(sizeof(double) * most_doubles)};
  requests[0] = requests[1] = MPI_REQUEST_NULL;
  if (m.partner >= size) return m;
  fill_f64(m.out, count, world + round);
  CHECK_MPI(MPI_Irecv(m.in, count, MPI_DOUBLE, m.partner, round, MPI_COMM_WORLD, &requests[0]));
  CHECK_MPI(MPI_Isend(m.out, count, MPI_DOUBLE, m.partner, round, MPI_COMM_WORLD, &requests[1]));
  return m;
}

static void check_exchange(struct Message* m) {
  if (m->partner < size) CHECK(same_f64(m->in, m->count, m->partner + m->seed));
  free(m->out);
  free(m->in);
}

static void mix(int rounds, const char* mode) {
  const int is_late = strcmp(mode, "late") == 0;
  is_alltoallv_in_place = 0;
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &comms[2])); /* the other way round */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[3]));
  struct Move kept[kept_moves];
  MPI_Request kept_requests[kept_moves];
  for (int i = 0; i < kept_moves; ++i) {
    kept[i] = make_move(comms[below(4)], most_items, mode, is_late);
    CHECK_MPI(call_move(&kept[i], persistent, &kept_requests[i]));
  }
  for (int round = 0; round < rounds; ++round) {
    const int is_on_host = is_late && round < rounds / 2;
    const int count = (int)below(most_moves);
    MPI_Comm passing = MPI_COMM_NULL;
    if (below(4) == 0) CHECK_MPI(MPI_Comm_dup(comms[below(4)], &passing));
    struct Move moves[most_moves];
    MPI_Request requests[most_moves + kept_moves + 2];
    int number = 2;
    struct Message message = exchange(round, (int)below(most_doubles), requests);
    for (int i = 0; i < count; ++i) {
      const int is_blocking = below(4) == 0;
      struct Move* const m = &moves[i];
      const unsigned comm = below(5);
      const int passes = comm == 4 && passing != MPI_COMM_NULL;
      *m = make_move(passes ? passing : comms[comm % 4], most_items, mode, is_on_host);
      fill_move(m, round * most_moves + i);
      if (is_blocking) {
        CHECK_MPI(call_move(m, blocking, NULL));
        continue;
      }
      /* Its type may end before it does. */
      const MPI_Datatype type = m->kind.type;
      const int renames = m->op != alltoallw && choose(2);
      if (renames) CHECK_MPI(MPI_Type_dup(type, &m->kind.type));
      CHECK_MPI(call_move(m, immediate, &requests[number++]));
      if (renames) CHECK_MPI(MPI_Type_free(&m->kind.type));
      m->kind.type = type;
    }
    if (passing != MPI_COMM_NULL) CHECK_MPI(MPI_Comm_free(&passing));
    /* Persistent ones start in any order. */
    const unsigned starts = below(1u << kept_moves);
    const int first = choose(kept_moves);
    int started[kept_moves], start_count = 0;
    for (int k = 0; k < kept_moves; ++k) {
      const int i = (first + k) % kept_moves;
      if (!(starts >> i & 1)) continue;
      fill_move(&kept[i], round * 100 + i);
      started[start_count] = i;
      requests[number + start_count++] = kept_requests[i];
    }
    if (choose(2)) {
      CHECK_MPI(MPI_Startall(start_count, requests + number));
    } else {
      for (int k = 0; k < start_count; ++k) CHECK_MPI(MPI_Start(&requests[number + k]));
    }
    complete(number + start_count, number, requests);
    for (int k = 0; k < start_count; ++k) {
      CHECK(requests[number + k] == kept_requests[started[k]]);
      check_move(&kept[started[k]]);
    }
    for (int i = 0; i < count; ++i) {
      check_move(&moves[i]);
      drop_move(&moves[i]);
    }
    check_exchange(&message);
  }
  for (int i = 0; i < kept_moves; ++i) {
    CHECK_MPI(MPI_Request_free(&kept_requests[i]));
    CHECK(kept_requests[i] == MPI_REQUEST_NULL);
    drop_move(&kept[i]);
  }
  for (int i = 1; i < 4; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
}

/* What a rank has to pass on it passes on while it waits elsewhere. */
static void thousand(void) {
  enum { calls = 1000, items = 6000 };
  MPI_Comm comm, other;
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &other));
  float* const data = malloc(sizeof(float) * calls * items);
  MPI_Request* const requests = malloc(sizeof(MPI_Request) * calls);
  for (int i = 0; i < calls * items; ++i) {
    data[i] = i / items % size == world ? (float)(i / items) : -1;
  }
  CHECK_MPI(MPI_Bcast(data, items, MPI_FLOAT, 0, comm));
  for (int i = 0; i < calls; ++i) {
    CHECK_MPI(MPI_Ibcast(data + i * items, items, MPI_FLOAT, i % size, comm, &requests[i]));
  }
  /* The last comes when it has all. */
  float word = (float)world;
  if (world == size - 1) CHECK_MPI(MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE));
  CHECK_MPI(MPI_Bcast(&word, 1, MPI_FLOAT, size - 1, other));
  CHECK(word == (float)(size - 1));
  if (world == 0) CHECK_MPI(MPI_Barrier(other));
  if (world != size - 1) CHECK_MPI(MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE));
  if (world != 0) CHECK_MPI(MPI_Barrier(other));
  for (int i = 0; i < calls * items; ++i) CHECK(data[i] == (float)(i / items));
  free(data);
  free(requests);
  CHECK_MPI(MPI_Comm_free(&comm));
  CHECK_MPI(MPI_Comm_free(&other));
}

static void orders(void) {
  enum { comm_count = 5, items = 50000 };
  MPI_Comm comms[comm_count];
  MPI_Request requests[comm_count];
  double* const data = malloc(sizeof(double) * comm_count * items);
  for (int i = 0; i < comm_count; ++i) CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
  for (int k = 0; k < comm_count; ++k) {
    const int i = (k * (world % 2 ? 2 : 3) + world) % comm_count;
    double* const part = data + i * items;
    if (world == i % size) fill_f64(part, items, i);
    CHECK_MPI(MPI_Ibcast(part, items, MPI_DOUBLE, i % size, comms[i], &requests[i]));
  }
  /* The program need not have them any more. */
  for (int i = 0; i < comm_count; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
  CHECK_MPI(MPI_Waitall(comm_count, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < comm_count; ++i) CHECK(same_f64(data + i * items, items, i));
  free(data);
}

static void blocked(void) {
  enum { items = 500000, starts = 3 };
  double* const data = malloc(sizeof(double) * items);
  MPI_Request request;
  CHECK_MPI(MPI_Bcast_init(data, items, MPI_DOUBLE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
  for (int start = 0; start < starts; ++start) {
    fill_f64(data, items, world == 0 ? start : -1);
    CHECK_MPI(MPI_Start(&request));
    const int is_last = world == size - 1;
    if (!is_last) CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (is_last) CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(same_f64(data, items, start));
  }
  CHECK_MPI(MPI_Request_free(&request));
  free(data);
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = world;
  make_kinds();
  if (strcmp(argv[1], "mix") == 0) {
    state = strtoull(argv[2], NULL, 10) * 2654435761u + 1;
    own_state = state + 977u * (unsigned)world;
    mix(atoi(argv[3]), argc > 4 ? argv[4] : "");
  } else if (strcmp(argv[1], "thousand") == 0) {
    thousand();
  } else if (strcmp(argv[1], "blocked") == 0) {
    blocked();
  } else {
    orders();
  }
  free_kinds();
  CHECK_MPI(MPI_Finalize());
  if (world == 0) puts("ok");
  return 0;
}
