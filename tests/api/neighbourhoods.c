/* include/mpress/iso.h on grids of up to four dimensions, periodic and not, with lists of all
 * kinds: against coordinates that are computed here. Runs on any number of processes. */
#include <malloc.h>
#include <mpress/iso.h>
#include <stdint.h>

#include "../mpi/check.h"

enum { MOST_DIMS = 4, MOST = 40 };

static int rank, size;
static unsigned state = 1;

static int random_up_to(int most) {
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 8) % (unsigned)(most + 1));
}

struct Grid {
  MPI_Comm comm;
  int dims, sizes[MOST_DIMS], periodic[MOST_DIMS], at[MOST_DIMS];
};

/* The rank at `at` + sign * relative. */
static int rank_at(const struct Grid* grid, const int* at, const int* relative, int sign) {
  int found = 0;
  for (int j = 0; j < grid->dims; ++j) {
    int place = at[j] + sign * relative[j];
    if (grid->periodic[j]) place = (place % grid->sizes[j] + grid->sizes[j]) % grid->sizes[j];
    if (place < 0 || place >= grid->sizes[j]) return MPI_PROC_NULL;
    found = found * grid->sizes[j] + place;
  }
  return found;
}

/* Sources and targets as this process alone sees them; `existing`: without MPI_PROC_NULL. */
static void check_lists(const struct Grid* grid, MPI_Comm iso, const int* list, int s) {
  int sources[MOST + 1], targets[MOST + 1], expected[2][MOST], existing[2][MOST];
  int degrees[2] = {0, 0}, told[3], relative[MOST * MOST_DIMS + 1];
  for (int i = 0; i < s; ++i) {
    for (int way = 0; way < 2; ++way) {
      const int found = rank_at(grid, grid->at, list + i * grid->dims, way == 0 ? -1 : 1);
      expected[way][i] = found;
      if (found != MPI_PROC_NULL) existing[way][degrees[way]++] = found;
    }
  }
  CHECK_MPI(mpress_iso_neighborhood_count(iso, &told[0], &told[1], &told[2]));
  CHECK(told[0] == s && told[1] == degrees[0] && told[2] == degrees[1]);
  for (int most = 0; most <= s + 1; most += s > 4 ? s / 2 : 1) {
    memset(sources, 0x7e, sizeof sources);
    memset(targets, 0x7e, sizeof targets);
    CHECK_MPI(mpress_iso_neighborhood_get(iso, most, sources, targets));
    for (int i = 0; i <= MOST; ++i) {
      const int is_written = i < most && i < s;
      CHECK(sources[i] == (is_written ? expected[0][i] : 0x7e7e7e7e));
      CHECK(targets[i] == (is_written ? expected[1][i] : 0x7e7e7e7e));
    }
    memset(sources, 0x7e, sizeof sources);
    CHECK_MPI(mpress_iso_neighborhood_graph_get(iso, most, sources, targets));
    for (int i = 0; i <= MOST; ++i) {
      const int is_written = i < most && i < degrees[0];
      CHECK(sources[i] == (is_written ? existing[0][i] : 0x7e7e7e7e));
      if (i < most && i < degrees[1]) CHECK(targets[i] == existing[1][i]);
    }
  }
  CHECK_MPI(mpress_iso_neighborhood_get_relative(iso, s, relative));
  for (int i = 0; i < s * grid->dims; ++i) CHECK(relative[i] == list[i]);
}

/* MPI makes a graph of what graph_get lists, and everybody's neighbours are mutual. */
static void check_graph(MPI_Comm iso, int s) {
  int sources[MOST + 1], targets[MOST + 1], told[3];
  MPI_Comm graph;
  CHECK_MPI(mpress_iso_neighborhood_count(iso, &told[0], &told[1], &told[2]));
  CHECK_MPI(mpress_iso_neighborhood_graph_get(iso, s, sources, targets));
  int* volatile none = (int*)MPI_UNWEIGHTED; /* no array, which compilers might warn of */
  CHECK_MPI(MPI_Dist_graph_create_adjacent(iso, told[1], sources, none, told[2], targets, none,
                                           MPI_INFO_NULL, 0, &graph));
  CHECK_MPI(MPI_Comm_free(&graph));
}

static void check_places(const struct Grid* grid) {
  int relative[MOST_DIMS + 1] = {0}, told = -7, source = -7, target = -7, members;
  CHECK_MPI(MPI_Comm_size(grid->comm, &members));
  for (int other = 0; other < members; ++other) {
    CHECK_MPI(mpress_cart_relative_coord(grid->comm, other, relative));
    CHECK_MPI(mpress_cart_relative_rank(grid->comm, relative, &told));
    CHECK(told == other);
    for (int j = 0; j < grid->dims; ++j) {
      const int twice = 2 * relative[j], n = grid->sizes[j];
      CHECK(!grid->periodic[j] || (twice > -n && twice <= n)); /* of two alike the positive one */
    }
  }
  for (int turn = 0; turn < 20; ++turn) {
    for (int j = 0; j < grid->dims; ++j) relative[j] = random_up_to(30) - 15;
    CHECK_MPI(mpress_cart_relative_shift(grid->comm, relative, &source, &target));
    CHECK(source == rank_at(grid, grid->at, relative, -1));
    CHECK(target == rank_at(grid, grid->at, relative, 1));
  }
}

/* MPI_Cart_shift tells the neighbours of MPI's own calls. */
static void check_axes(const struct Grid* grid) {
  int told[3], both[2][2 * MOST_DIMS + 1], missing = 0;
  CHECK_MPI(mpress_cart_neighborhood_count(grid->comm, &told[0], &told[1], &told[2]));
  CHECK_MPI(mpress_cart_neighborhood_get(grid->comm, 2 * grid->dims, both[0], both[1]));
  for (int j = 0; j < grid->dims; ++j) {
    int before, behind;
    CHECK_MPI(MPI_Cart_shift(grid->comm, j, 1, &before, &behind));
    for (int way = 0; way < 2; ++way) {
      CHECK(both[way][2 * j] == before && both[way][2 * j + 1] == behind);
    }
    missing += (before == MPI_PROC_NULL) + (behind == MPI_PROC_NULL);
  }
  CHECK(told[0] == 2 * grid->dims);
  CHECK(told[1] == told[0] - missing && told[2] == told[1]);
  CHECK_MPI(mpress_cart_neighborhood_graph_get(grid->comm, 2 * grid->dims, both[0], both[1]));
  for (int i = 0; i < told[1]; ++i) CHECK(both[0][i] != MPI_PROC_NULL && both[0][i] == both[1][i]);
}

static void on_grid(struct Grid* grid) {
  int list[MOST * MOST_DIMS + 1], s = random_up_to(MOST);
  MPI_Comm iso, duplicate, attributed;
  MPI_Info info;
  CHECK_MPI(MPI_Cart_coords(grid->comm, rank, grid->dims, grid->at));
  check_places(grid);
  check_axes(grid);
  for (int i = 0; i < s; ++i) {
    const int copied = i > 0 && random_up_to(3) == 0 ? random_up_to(i - 1) : -1;
    for (int j = 0; j < grid->dims; ++j) {
      list[i * grid->dims + j] = copied >= 0 ? list[copied * grid->dims + j]
                                             : random_up_to(2 * grid->sizes[j]) - grid->sizes[j];
    }
  }
  CHECK_MPI(mpress_iso_neighborhood_create(grid->comm, s, list, &iso));
  check_lists(grid, iso, list, s);
  check_graph(iso, s);
  /* Several of one grid; a duplicate keeps its own when the other ends. */
  CHECK_MPI(MPI_Info_create(&info));
  CHECK_MPI(MPI_Info_set(info, "iso_attribute", "true"));
  CHECK_MPI(mpress_iso_neighborhood_create_with_info(grid->comm, s / 2, list, info, &attributed));
  CHECK(attributed == grid->comm);
  CHECK_MPI(MPI_Comm_dup(iso, &duplicate));
  CHECK_MPI(MPI_Comm_free(&iso));
  check_lists(grid, duplicate, list, s);
  check_lists(grid, attributed, list, s / 2);
  CHECK_MPI(mpress_iso_neighborhood_create_with_info(grid->comm, s, list, info, &attributed));
  check_lists(grid, attributed, list, s);
  CHECK_MPI(MPI_Comm_free(&duplicate));
  CHECK_MPI(MPI_Info_free(&info));
}

static void grids(void) {
  for (int turn = 0; turn < 12; ++turn) {
    struct Grid grid = {.dims = turn % (MOST_DIMS + 1)};
    int members = 1;
    for (int j = 0; j < grid.dims; ++j) {
      grid.sizes[j] = 1 + random_up_to(size / members - 1 < 2 ? size / members - 1 : 2);
      members *= grid.sizes[j];
      grid.periodic[j] = random_up_to(1);
    }
    CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, grid.dims, grid.sizes, grid.periodic, 0, &grid.comm));
    CHECK((grid.comm != MPI_COMM_NULL) == (rank < members));
    if (grid.comm != MPI_COMM_NULL) {
      on_grid(&grid);
      CHECK_MPI(MPI_Comm_free(&grid.comm));
    } else { /* as many random numbers */
      state = 1;
    }
    state = (unsigned)turn + 2;
  }
}

static void lists(void) {
  int list[1000], s;
  const int counts[][5] = {/* d, radius, inner, Moore, von Neumann */
                           {2, 1, 0, 8, 4},   {2, 3, 0, 48, 24}, {2, 3, 1, 40, 20},
                           {3, 1, -1, 27, 7}, {3, 2, 1, 98, 18}, {4, 1, 0, 80, 8},
                           {0, 3, 0, 0, 0},   {0, 0, -1, 1, 1},  {3, 0, 0, 0, 0}};
  for (unsigned i = 0; i < sizeof counts / sizeof *counts; ++i) {
    const int* const c = counts[i];
    CHECK_MPI(mpress_iso_moore(c[0], c[1], c[2], 0, NULL, &s));
    CHECK(s == c[3]);
    CHECK_MPI(mpress_iso_von_neumann(c[0], c[1], c[2], 0, NULL, &s));
    CHECK(s == c[4]);
  }
  /* Few of very many: those of a cube, or of none of its corners. */
  CHECK_MPI(mpress_iso_von_neumann(300, 1, 0, 0, NULL, &s));
  CHECK(s == 600);
  CHECK_MPI(mpress_iso_moore(2, 50000, 49999, 0, NULL, &s));
  CHECK(s == 400000);
  list[6] = 77;
  CHECK_MPI(mpress_iso_moore(2, 1, 0, 3, list, &s));
  const int first[] = {-1, -1, -1, 0, -1, 1};
  CHECK(s == 8 && memcmp(list, first, sizeof first) == 0 && list[6] == 77);
}

/* What a type reads, against the loops that the comments of iso.h describe. */
static void check_type(int count, int first, int increment, int stride, int step, int literal) {
  enum { ROOM = 400, MIDDLE = 200 };
  static double from[ROOM], packed[ROOM], expected[ROOM];
  MPI_Datatype type;
  int position = 0, n = 0;
  for (int i = 0; i < ROOM; ++i) from[i] = i;
  for (int i = 0; i < count; ++i) {
    int offset = 0;
    for (int k = 0; k < i; ++k) offset += literal ? stride + step : stride + k * step;
    for (int k = 0; k < first + i * increment; ++k) expected[n++] = from[MIDDLE + offset + k];
  }
  CHECK_MPI((literal ? mpress_type_create_triangular_literal : mpress_type_create_triangular)(
      count, first, increment, stride, step, MPI_DOUBLE, &type));
  CHECK_MPI(MPI_Type_commit(&type));
  CHECK_MPI(MPI_Pack(from + MIDDLE, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF));
  CHECK(position == n * (int)sizeof(double));
  for (int i = 0; i < n; ++i) CHECK(packed[i] == expected[i]);
  CHECK_MPI(MPI_Type_free(&type));
}

static void triangles(void) {
  for (int literal = 0; literal < 2; ++literal) {
    check_type(5, 1, 1, 1, 1, literal);   /* a lower triangle, packed */
    check_type(5, 5, -1, 5, -1, literal); /* an upper one */
    check_type(4, 4, -1, 10, 0, literal); /* of a matrix, in all four corners */
    check_type(4, 4, -1, 11, 0, literal);
    check_type(4, 1, 1, 10, 0, literal);
    check_type(4, 1, 1, 9, 0, literal);
    check_type(6, 0, 2, -13, 1, literal); /* backwards; a block without items */
    check_type(1, 7, -9, 3, 3, literal);
    check_type(0, -1, 0, 0, 0, literal);
  }
}

static int raised;
static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  CHECK(MPI_Error_class(*code, &raised) == MPI_SUCCESS);
}

#define CHECK_RAISES(class, call) \
  (raised = MPI_SUCCESS, CHECK((call) != MPI_SUCCESS), CHECK(raised == (class)))

static void errors(void) {
  int sizes[1] = {size}, periodic[1] = {0}, one[1] = {1}, s = 5, in, out, list[2];
  MPI_Comm cart, iso = MPI_COMM_NULL;
  MPI_Datatype type;
  MPI_Errhandler handler;
  MPI_Info info;
  CHECK_MPI(MPI_Comm_create_errhandler(note, &handler));
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periodic, 0, &cart));
  CHECK_MPI(MPI_Comm_set_errhandler(cart, handler));
  CHECK_RAISES(MPI_ERR_TOPOLOGY, mpress_cart_relative_rank(MPI_COMM_WORLD, one, &s));
  CHECK(s == 5);
  CHECK_RAISES(MPI_ERR_COMM, mpress_cart_relative_rank(MPI_COMM_NULL, one, &s));
  CHECK_RAISES(MPI_ERR_ARG, mpress_cart_relative_rank(cart, NULL, &s));
  CHECK_RAISES(MPI_ERR_ARG, mpress_cart_relative_rank(cart, one, NULL));
  CHECK_RAISES(MPI_ERR_RANK, mpress_cart_relative_coord(cart, size, list));
  CHECK_RAISES(MPI_ERR_RANK, mpress_cart_relative_coord(cart, MPI_PROC_NULL, list));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_create(cart, -1, one, &iso));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_create(cart, 1, NULL, &iso));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_create(cart, 1, one, NULL));
  CHECK_RAISES(MPI_ERR_TOPOLOGY, mpress_iso_neighborhood_create(MPI_COMM_WORLD, 1, one, &iso));
  CHECK_RAISES(MPI_ERR_TOPOLOGY, mpress_iso_neighborhood_count(cart, &s, &in, &out));
  CHECK(strstr(mpress_error_text(), "no neighbourhood") != NULL);
  CHECK_MPI(MPI_Info_create(&info));
  CHECK_MPI(MPI_Info_set(info, "iso_attribute", "perhaps"));
  CHECK_RAISES(MPI_ERR_INFO_VALUE,
               mpress_iso_neighborhood_create_with_info(cart, 1, one, info, &iso));
  CHECK_MPI(MPI_Info_free(&info));
  CHECK(iso == MPI_COMM_NULL);
  CHECK_MPI(mpress_iso_neighborhood_create(cart, 1, one, &iso));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_get(iso, -1, list, list));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_get(iso, 1, NULL, list));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_count(iso, NULL, &in, &out));
  CHECK_MPI(MPI_Comm_free(&iso));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_moore(2, -2, 0, 0, NULL, &s));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_moore(-1, 1, 0, 0, NULL, &s));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_von_neumann(2, 1, 0, 4, NULL, &s));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_moore(60, 60, 0, 0, NULL, &s));
  CHECK_RAISES(MPI_ERR_COUNT, mpress_type_create_triangular(-1, 1, 1, 1, 1, MPI_FLOAT, &type));
  CHECK_RAISES(MPI_ERR_COUNT, mpress_type_create_triangular(3, 1, -1, 1, 1, MPI_FLOAT, &type));
  CHECK_RAISES(MPI_ERR_COUNT,
               mpress_type_create_triangular(3, 1, 1, INT64_MAX / 2, 1, MPI_FLOAT, &type));
  CHECK_RAISES(MPI_ERR_ARG, mpress_type_create_triangular(1, 1, 1, 1, 1, MPI_FLOAT, NULL));
  CHECK_RAISES(MPI_ERR_COUNT, /* its end, not its begin */
               mpress_type_create_triangular(2, 1000, 0, INT64_MAX / 8, 0, MPI_DOUBLE, &type));
  /* Where there is no source, there is no need for room. */
  CHECK_MPI(mpress_iso_neighborhood_create(cart, 1, one, &iso));
  CHECK_MPI(mpress_iso_neighborhood_graph_get(iso, 1, rank == 0 ? NULL : list, list));
  CHECK_MPI(MPI_Comm_free(&iso));
  CHECK_MPI(MPI_Comm_free(&cart));
  CHECK_MPI(MPI_Errhandler_free(&handler));
}

/* Each process passes another list. */
static void differing(void) {
  int sizes[1] = {size}, periodic[1] = {1}, own[1] = {rank}, one[1] = {1};
  MPI_Comm cart, iso = MPI_COMM_NULL;
  MPI_Errhandler handler;
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periodic, 0, &cart));
  CHECK_MPI(MPI_Comm_create_errhandler(note, &handler));
  CHECK_MPI(MPI_Comm_set_errhandler(cart, handler));
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_create(cart, 1, own, &iso));
  CHECK(iso == MPI_COMM_NULL);
  /* One process alone has given something wrong. */
  CHECK_RAISES(MPI_ERR_ARG, mpress_iso_neighborhood_create(cart, rank == 1 ? -1 : 1, one, &iso));
  CHECK(iso == MPI_COMM_NULL);
  CHECK_MPI(mpress_iso_neighborhood_create(cart, 1, one, &iso));
  CHECK_MPI(MPI_Comm_free(&iso));
  CHECK_MPI(MPI_Errhandler_free(&handler));
  CHECK_MPI(MPI_Comm_free(&cart));
}

/* Who creates a neighbourhood lets a call proceed that others wait for first. */
static void beside(void) {
  enum { COUNT = 1 << 20 };
  static float from[COUNT], to[COUNT];
  int sizes[1] = {size}, periodic[1] = {1}, list[1] = {1};
  MPI_Comm cart, iso;
  CHECK_MPI(mpress_init());
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periodic, 0, &cart));
  for (int round = 0; round < 4; ++round) {
    mpress_request sum;
    for (int i = 0; i < COUNT; ++i) from[i] = (float)(i % 1000 + round);
    CHECK_MPI(mpress_iallreduce(from, to, COUNT, MPI_FLOAT, MPI_SUM, cart, &sum, NULL));
    if (rank != 0) CHECK_MPI(mpress_wait(&sum, MPI_STATUS_IGNORE));
    CHECK_MPI(mpress_iso_neighborhood_create(cart, 1, list, &iso));
    if (rank == 0) CHECK_MPI(mpress_wait(&sum, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; ++i) CHECK(to[i] == (float)(size * (i % 1000 + round)));
    CHECK_MPI(MPI_Comm_free(&iso));
  }
  CHECK_MPI(MPI_Comm_free(&cart));
}

/* Creates and ends one, in one of four ways. */
static void one_of_many(MPI_Comm cart, MPI_Info attribute, const int* list, int number) {
  int s, in, out;
  MPI_Comm iso, other = MPI_COMM_NULL;
  CHECK_MPI(mpress_iso_neighborhood_create_with_info(
      cart, 3, list, number % 4 == 0 ? attribute : MPI_INFO_NULL, &iso));
  if (number % 4 > 1) CHECK_MPI(MPI_Comm_dup(iso, &other));
  if (number % 4 == 2) CHECK_MPI(MPI_Comm_free(&iso)); /* before its duplicate */
  CHECK_MPI(mpress_iso_neighborhood_count(number % 4 > 1 ? other : iso, &s, &in, &out));
  CHECK(s == 3 && in == 3 && out == 3);
  if (other != MPI_COMM_NULL) CHECK_MPI(MPI_Comm_free(&other));
  if (number % 4 % 2 == 1) CHECK_MPI(MPI_Comm_free(&iso));
}

/* Nothing is left of neighbourhoods that have ended: MPIs have few communicators, and the memory
 * that the process has taken grows no more once some have come and gone. */
static void many(void) {
  enum { FIRST = 2000, ALL = 10000 };
  int sizes[1] = {size}, periodic[1] = {1}, list[3] = {1, -1, 0};
  size_t before = 0;
  MPI_Comm cart;
  MPI_Info attribute;
  CHECK_MPI(mpress_init());
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periodic, 0, &cart));
  CHECK_MPI(MPI_Info_create(&attribute));
  CHECK_MPI(MPI_Info_set(attribute, "iso_attribute", "true"));
  for (int i = 0; i < ALL; ++i) {
    if (i == FIRST) before = mallinfo2().uordblks;
    one_of_many(cart, attribute, list, i);
  }
  const size_t now = mallinfo2().uordblks;
  if (now >= before + ALL - FIRST) fprintf(stderr, "%zu bytes, then %zu\n", before, now);
  CHECK(now < before + ALL - FIRST);
  CHECK_MPI(MPI_Info_free(&attribute));
  CHECK_MPI(MPI_Comm_free(&cart));
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  if (argc > 1) {
    if (strcmp(argv[1], "many") == 0) many();
    if (strcmp(argv[1], "differing") == 0) differing();
    if (strcmp(argv[1], "beside") == 0) beside();
  } else {
    grids();
    lists();
    triangles();
    errors();
  }
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
