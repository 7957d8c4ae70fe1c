/* MPI_Neighbor_ calls on distributed graphs of which the program promises that they are isomorphic
 * (mpress_isomorphic), on grids with and without borders, with neighbours in an order of each
 * process's own; and promises that are not kept.
 *
 * isomorphic_graphs SEED ROUNDS ALGORITHM */
#include "check.h"

#include <stdint.h>

enum { most_neighbors = 40, most_items = 9, most_ranks = 16, guard = 77 };

static int rank, size;
static uint64_t state, own_state;

static unsigned next(uint64_t* from, unsigned n) {
  *from = *from * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)((*from >> 33) % n);
}
static unsigned below(unsigned n) { return next(&state, n); }

struct Grid {
  int count, dims[3], periods[3];
};

/* The rank at an offset from another; MPI_PROC_NULL beyond a border. */
static int neighbor(const struct Grid* grid, int of, const int* offset, int sign) {
  int stride = size, found = 0;
  for (int j = 0; j < grid->count; ++j) {
    stride /= grid->dims[j];
    int at = of / stride % grid->dims[j] + sign * offset[j];
    if (!grid->periods[j] && (at < 0 || at >= grid->dims[j])) return MPI_PROC_NULL;
    at = (at % grid->dims[j] + grid->dims[j]) % grid->dims[j];
    found += at * stride;
  }
  return found;
}

static struct Grid make_grid(MPI_Comm* cart) {
  struct Grid grid = {1 + (int)below(3), {1, 1, 1}, {0}};
  int rest = size;
  for (int j = 2; j <= rest; ++j) {
    while (rest % j == 0) {
      grid.dims[below((unsigned)grid.count)] *= j;
      rest /= j;
    }
  }
  for (int j = 0; j < grid.count; ++j) grid.periods[j] = (int)below(2);
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, grid.count, grid.dims, grid.periods, 0, cart));
  return grid;
}

static void shuffle(int* places, int count) {
  for (int i = count - 1; i > 0; --i) {
    const int k = (int)next(&own_state, (unsigned)i + 1), kept = places[i];
    places[i] = places[k];
    places[k] = kept;
  }
}

/* Of several edges from one process to another MPI has the kth there be the kth here. So both have
 * those that lead to one process in the order of the list. */
static int list(const struct Grid* grid, int offsets[][3], int count, int sign, int* ranks,
                int* numbers) {
  int order[most_neighbors], found = 0;
  for (int i = 0; i < count; ++i) order[i] = i;
  shuffle(order, count);
  for (int i = 0; i < count; ++i) {
    const int of = neighbor(grid, rank, offsets[order[i]], sign);
    if (of == MPI_PROC_NULL) continue;
    ranks[found] = of;
    numbers[found++] = order[i];
  }
  for (int i = 0; i < found; ++i) {
    for (int k = i + 1; k < found; ++k) {
      if (ranks[i] == ranks[k] && numbers[i] > numbers[k]) {
        const int kept = numbers[i];
        numbers[i] = numbers[k];
        numbers[k] = kept;
      }
    }
  }
  return found;
}

static double value(int from, int number, int item, int round) {
  return 1e6 * round + 1e4 * from + 100. * number + item;
}

static void exchange(MPI_Comm graph, int form, const int* sources, const int* source_numbers,
                     int in_count, const int* numbers, int out_count, int round) {
  const int items = 1 + (int)below(most_items), call = (int)below(3);
  double sent[most_neighbors][most_items], received[most_neighbors + 1][most_items];
  int counts[most_neighbors], places[most_neighbors];
  MPI_Request request;
  for (int i = 0; i < most_neighbors; ++i) {
    counts[i] = items;
    places[i] = i * items;
  }
  double *out = &sent[0][0], *in = &received[0][0];
  for (int i = 0; i < (most_neighbors + 1) * most_items; ++i) in[i] = guard;
  for (int i = 0; i < out_count; ++i) {
    for (int k = 0; k < items; ++k) {
      out[i * items + k] = value(rank, call == 2 ? 0 : numbers[i], k, round);
    }
  }
  for (int k = 0; k < items && out_count == 0; ++k) out[k] = value(rank, 0, k, round);
#define CALL(name, ...)                                               \
  CHECK_MPI(form == 0   ? MPI_Neighbor_##name(__VA_ARGS__)            \
            : form == 1 ? MPI_Ineighbor_##name(__VA_ARGS__, &request) \
                        : MPI_Neighbor_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request))
  if (call == 0) CALL(alltoall, out, items, MPI_DOUBLE, in, items, MPI_DOUBLE, graph);
  if (call == 1) {
    CALL(alltoallv, out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, graph);
  }
  if (call == 2) CALL(allgather, out, items, MPI_DOUBLE, in, items, MPI_DOUBLE, graph);
  if (form == 2) CHECK_MPI(MPI_Start(&request));
  if (form != 0) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (form == 2) CHECK_MPI(MPI_Request_free(&request));
  for (int i = 0; i < in_count; ++i) {
    for (int k = 0; k < items; ++k) {
      CHECK(in[i * items + k] == value(sources[i], call == 2 ? 0 : source_numbers[i], k, round));
    }
  }
  for (int i = in_count * items; i < (most_neighbors + 1) * most_items; ++i) CHECK(in[i] == guard);
}

/* All processes find that one of them has broken the promise, by an error of the call. */
static void check_broken(MPI_Comm cart, MPI_Info info, int breaks) {
  MPI_Comm graph = MPI_COMM_WORLD;
  int next_one = (rank + 1) % size, before = (rank + size - 1) % size;
  const int count = breaks && rank == 0 ? 0 : 1;
  CHECK_MPI(MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN));
  /* A ring, of which an edge is missing. */
  const int code =
      MPI_Dist_graph_create_adjacent(cart, breaks && rank == 1 ? 0 : 1, &before, MPI_UNWEIGHTED,
                                     count, &next_one, MPI_UNWEIGHTED, info, 0, &graph);
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) CHECK_MPI(MPI_Error_class(code, &class));
  CHECK(class == (breaks ? MPI_ERR_TOPOLOGY : MPI_SUCCESS));
  CHECK(!breaks || graph == MPI_COMM_NULL);
  if (!breaks) CHECK_MPI(MPI_Comm_free(&graph));
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  own_state = state + 12345u * (unsigned)rank;
  const int rounds = atoi(argv[2]);
  MPI_Info info;
  CHECK_MPI(MPI_Info_create(&info));
  CHECK_MPI(MPI_Info_set(info, "mpress_isomorphic", "true"));
  CHECK_MPI(MPI_Info_set(info, "iso_algorithm", argv[3]));
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm cart, graph, again;
    const struct Grid grid = make_grid(&cart);
    int offsets[most_neighbors][3];
    const int count = (int)below(most_neighbors / 2);
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < 3; ++j) offsets[i][j] = (int)below(5) - 2;
    }
    int sources[most_neighbors], source_numbers[most_neighbors], targets[most_neighbors],
        numbers[most_neighbors];
    const int in_count = list(&grid, offsets, count, -1, sources, source_numbers);
    const int out_count = list(&grid, offsets, count, 1, targets, numbers);
    CHECK_MPI(MPI_Dist_graph_create_adjacent(cart, in_count, sources, MPI_UNWEIGHTED, out_count,
                                             targets, MPI_UNWEIGHTED, info, 0, &graph));
    CHECK_MPI(MPI_Comm_dup(graph, &again));
    for (int i = 0; i < 3; ++i) {
      /* Not all MPIs let a call that does not block make what mpress needs. */
      exchange(i == 1 ? again : graph, i == 1 ? 0 : (int)below(3), sources, source_numbers,
               in_count, numbers, out_count, 3 * round + i);
    }
    CHECK_MPI(MPI_Comm_free(&graph));
    CHECK_MPI(MPI_Comm_free(&again));
    CHECK_MPI(MPI_Comm_free(&cart));
  }
  if (size > 2) {
    MPI_Comm ring;
    const int periodic = 1;
    CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring));
    check_broken(ring, info, 0);
    check_broken(ring, info, 1);
    CHECK_MPI(MPI_Comm_free(&ring));
  }
  CHECK_MPI(MPI_Info_free(&info));
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
