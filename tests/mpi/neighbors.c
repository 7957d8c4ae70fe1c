/* Random calls of neighbourhoods on random grids and graphs, checked bit for bit, on memory of the
 * host and of devices, each rank's its own.
 *
 * neighbors SEED ROUNDS [any|host|device] [long|graphs]: host: no buffer lies on a device; device:
 * all lie on their rank's own; long: no block is short; graphs: no grids. */
#include "moves.h"
#include "simulated_gpu.h"

enum { most_edges = 12 * most_ranks, most_items_a_block = 6000 };

/* A block's way: from a place among those that one rank sends to one among those of another. */
struct Edge {
  int from, to, sent, received;
};
struct Graph {
  MPI_Comm comm;
  struct Edge edges[most_edges];
  int count;
  int sent[most_ranks], received[most_ranks]; /* places of each rank */
};

static int rank, size;

static void add_edge(struct Graph* graph, int from, int to, int sent, int received) {
  graph->edges[graph->count++] = (struct Edge){from, to, sent, received};
}

/* What goes in one direction comes from the other one, whoever is there. */
static void make_grid(struct Graph* graph) {
  int dims[3] = {size, 1, 1}, periods[3], strides[3];
  for (int j = 2, rest = size; rest > 1 && j <= rest; ++j) {
    while (rest % j == 0) {
      const int to = (int)below(3);
      rest /= j;
      dims[0] /= j;
      dims[to] *= j;
    }
  }
  const int all = 1 + (dims[1] * dims[2] > 1 || below(2)) + (dims[2] > 1 || below(2));
  const int count = dims[2] > 1 && all < 3 ? 3 : all;
  strides[count - 1] = 1;
  for (int j = count - 2; j >= 0; --j) strides[j] = strides[j + 1] * dims[j + 1];
  for (int j = 0; j < count; ++j) periods[j] = (int)below(2);
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, count, dims, periods, 0, &graph->comm));
  for (int from = 0; from < size; ++from) {
    graph->sent[from] = graph->received[from] = 2 * count;
    for (int s = 0; s < 2 * count; ++s) {
      const int j = s / 2, here = from / strides[j] % dims[j], there = here + (s % 2 ? 1 : -1);
      const int wrapped = (there + dims[j]) % dims[j];
      if (!periods[j] && wrapped != there) continue;
      add_edge(graph, from, from + (wrapped - here) * strides[j], s, s ^ 1);
    }
  }
}

static void make_distributed_graph(struct Graph* graph) {
  const int wanted = (int)below((unsigned)(4 * size));
  for (int i = 0; i < wanted; ++i) {
    const int from = (int)below((unsigned)size), to = (int)below((unsigned)size);
    if (graph->sent[from] == 12 || graph->received[to] == 12) continue;
    add_edge(graph, from, to, graph->sent[from]++, graph->received[to]++);
  }
  int sources[12] = {0}, destinations[12] = {0};
  for (int i = 0; i < graph->count; ++i) {
    const struct Edge* const edge = &graph->edges[i];
    if (edge->from == rank) destinations[edge->sent] = edge->to;
    if (edge->to == rank) sources[edge->received] = edge->from;
  }
  CHECK_MPI(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, graph->received[rank], sources,
                                           MPI_UNWEIGHTED, graph->sent[rank], destinations,
                                           MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph->comm));
}

static void make_graph(struct Graph* graph) {
  int is_edge[most_ranks][most_ranks], place_of[most_ranks][most_ranks];
  int ends[most_ranks], all[most_ranks * most_ranks], count = 0;
  for (int i = 0; i < size; ++i) {
    for (int j = i; j < size; ++j) is_edge[i][j] = is_edge[j][i] = (int)below(2);
  }
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      if (!is_edge[i][j]) continue;
      place_of[i][j] = graph->sent[i]++;
      all[count++] = j;
    }
    ends[i] = count;
    graph->received[i] = graph->sent[i];
  }
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      if (is_edge[i][j]) add_edge(graph, i, j, place_of[i][j], place_of[j][i]);
    }
  }
  CHECK_MPI(MPI_Graph_create(MPI_COMM_WORLD, size, ends, all, 0, &graph->comm));
}

enum Call { to_each, to_each_v, to_each_w, to_all, to_all_v, call_count };

struct Exchange {
  enum Call call;
  const struct Graph* graph;
  struct Kind kind;
  int round, all, is_same;
  struct Buffer out, in;
};

static int count_of(unsigned most, int is_long) {
  return is_long ? 1500 + (int)below(most) : below(4) == 0 ? 0 : (int)below(most);
}

static struct Exchange make_exchange(const struct Graph* graph, const char* mode, int is_long) {
  struct Exchange e = {.graph = graph};
  e.call = (enum Call)below(call_count);
  e.kind = kinds[below(4)];
  const unsigned most = is_long || below(3) ? most_items_a_block : 40;
  e.all = count_of(most, is_long);
  e.is_same = e.call == to_all || e.call == to_all_v;
  const int is_even = e.call == to_each || e.call == to_all;
  int out_counts[most_ranks], in_counts[most_ranks], own[most_ranks], devices[2 * most_ranks];
  /* Of neighbours that are missing, too. */
  for (int i = 0; i < most_ranks; ++i) out_counts[i] = in_counts[i] = is_even ? e.all : i;
  for (int i = 0; i < size; ++i) own[i] = is_even ? e.all : count_of(most, is_long);
  for (int i = 0; i < graph->count; ++i) {
    const struct Edge* const edge = &graph->edges[i];
    const int each = count_of(most, is_long);
    const int count = e.is_same ? own[edge->from] : is_even ? e.all : each;
    if (edge->from == rank && !e.is_same) out_counts[edge->sent] = count;
    if (edge->to == rank) in_counts[edge->received] = count;
  }
  if (e.is_same) out_counts[0] = own[rank];
  for (int i = 0; i < 2 * size; ++i) devices[i] = (int)below(3) - 1;
  int out_device = devices[2 * rank], in_device = devices[2 * rank + 1];
  if (strcmp(mode, "host") == 0) out_device = in_device = -1;
  if (strcmp(mode, "device") == 0) out_device = in_device = rank % sim_devices;
  e.out = make(e.is_same ? 1 : graph->sent[rank], out_counts, &e.kind, is_even, out_device);
  e.in = make(graph->received[rank], in_counts, &e.kind, is_even, in_device);
  return e;
}

static void fill_exchange(struct Exchange* e, int round) {
  e->round = round;
  memset(e->in.memory.shadow, guard, e->in.memory.bytes);
  if (e->is_same) fill(e->out.memory.shadow, round, rank, 0, &e->kind, e->out.counts[0]);
  for (int i = 0; i < e->graph->count && !e->is_same; ++i) {
    const struct Edge* const edge = &e->graph->edges[i];
    if (edge->from != rank) continue;
    fill(e->out.memory.shadow + e->out.bytes_at[edge->sent], round, rank, i, &e->kind,
         e->out.counts[edge->sent]);
  }
  put(&e->out.memory);
  put(&e->in.memory);
}

static int begin_exchange(struct Exchange* e, enum Form form, MPI_Request* request) {
  const void* const from = e->out.memory.data;
  void* const into = e->in.memory.data;
  const MPI_Datatype type = e->kind.type;
  const MPI_Comm comm = e->graph->comm;
  struct Buffer *out = &e->out, *in = &e->in;
  MPI_Aint out_at[most_ranks], in_at[most_ranks];
  for (int i = 0; i < most_ranks; ++i) {
    out_at[i] = out->bytes_at[i];
    in_at[i] = in->bytes_at[i];
  }
#define NEIGHBOR_CALL(name, ...)                                    \
  (form == blocking    ? MPI_Neighbor_##name(__VA_ARGS__)           \
   : form == immediate ? MPI_Ineighbor_##name(__VA_ARGS__, request) \
                       : MPI_Neighbor_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request))
  switch (e->call) {
    case to_each: return NEIGHBOR_CALL(alltoall, from, e->all, type, into, e->all, type, comm);
    case to_each_v:
      return NEIGHBOR_CALL(alltoallv, from, out->counts, out->places, type, into, in->counts,
                           in->places, type, comm);
    case to_each_w:
      return NEIGHBOR_CALL(alltoallw, from, out->counts, out_at, out->types, into, in->counts,
                           in_at, in->types, comm);
    case to_all: return NEIGHBOR_CALL(allgather, from, e->all, type, into, e->all, type, comm);
    default:
      return NEIGHBOR_CALL(allgatherv, from, out->counts[0], type, into, in->counts, in->places,
                           type, comm);
  }
}

static void check_exchange(struct Exchange* e) {
  int is_there[most_ranks] = {0};
  get(&e->in.memory);
  for (int i = 0; i < e->graph->count; ++i) {
    const struct Edge* const edge = &e->graph->edges[i];
    if (edge->to != rank) continue;
    is_there[edge->received] = 1;
    CHECK(is_right(e->in.memory.shadow + e->in.bytes_at[edge->received], e->round, edge->from,
                   e->is_same ? 0 : i, &e->kind, e->in.counts[edge->received]));
  }
  for (int k = 0; k < e->graph->received[rank]; ++k) {
    for (int i = 0; !is_there[k] && i < e->in.counts[k] * e->kind.extent; ++i) {
      CHECK(e->in.memory.shadow[e->in.bytes_at[k] + i] == guard);
    }
  }
}

static void drop_exchange(struct Exchange* e) {
  drop(&e->out.memory);
  drop(&e->in.memory);
}

/* Two are under way at once, and a reduction beside them. */
static void run(const struct Graph* graph, const char* mode, int is_long, int round, int is_first) {
  /* Where MPI_Comm_idup is not safe, a call that blocks comes before mpress serves others. */
  const enum Form drawn = (enum Form)below(3), form = is_first ? blocking : drawn;
  const int is_reverse = (int)below(2);
  int sum = 1;
  struct Exchange both[2];
  MPI_Request requests[2], sums;
  for (int i = 0; i < 2; ++i) both[i] = make_exchange(graph, mode, is_long);
  const int starts = form == persistent ? 3 : 1;
  for (int i = 0; i < 2 && form == persistent; ++i) {
    CHECK_MPI(begin_exchange(&both[i], form, &requests[i]));
  }
  for (int start = 0; start < starts; ++start) {
    for (int i = 0; i < 2; ++i) fill_exchange(&both[i], 100 * round + 10 * start + i);
    for (int i = 0; i < 2; ++i) {
      if (form == persistent) {
        CHECK_MPI(MPI_Start(&requests[i]));
      } else {
        CHECK_MPI(begin_exchange(&both[i], form, &requests[i]));
      }
    }
    CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, graph->comm, &sums));
    for (int i = 0; i < 2 && form != blocking; ++i) {
      CHECK_MPI(MPI_Wait(&requests[is_reverse ^ i], MPI_STATUS_IGNORE));
    }
    CHECK_MPI(MPI_Wait(&sums, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2; ++i) check_exchange(&both[i]);
  }
  for (int i = 0; i < 2; ++i) {
    if (form == persistent) CHECK_MPI(MPI_Request_free(&requests[i]));
    drop_exchange(&both[i]);
  }
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  const int rounds = atoi(argv[2]);
  const char* const mode = argc > 3 ? argv[3] : "";
  const int is_long = argc > 4 && strcmp(argv[4], "long") == 0;
  const int has_grids = argc < 5 || strcmp(argv[4], "graphs") != 0;
  make_kinds();
  for (int round = 0; round < rounds; ++round) {
    struct Graph graph = {.count = 0};
    const unsigned kind = has_grids ? below(3) : 1 + below(2);
    kind == 0 ? make_grid(&graph) : kind == 1 ? make_distributed_graph(&graph) : make_graph(&graph);
    const int calls = 1 + (int)below(3);
    for (int i = 0; i < calls; ++i) run(&graph, mode, is_long, 4 * round + i, i == 0 && is_long);
    CHECK_MPI(MPI_Comm_free(&graph.comm));
  }
  free_kinds();
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
