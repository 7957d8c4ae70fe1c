/* How many messages, and of how many bytes, the exchanges of a neighbourhood take: what a library
 * beneath mpress has counted (tests/mpi/count_messages.c), a line for each call and rank. Each call
 * is made twice, and counted once.
 *
 * neighbour_counts DIMS PERIODIC LIST RADIUS INNER: on a cube of processes, where LIST is "moore",
 * "neumann", or "cube": all offsets from INNER to RADIUS but 0. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpress/iso.h>

#include "../mpi/check.h"

enum { MOST_DIMS = 5, MOST = 700, COUNT = 3 };

static int rank, size;
static int list[MOST * MOST_DIMS], s;
static int sent[MOST * COUNT], received[MOST * COUNT];
static MPI_Count counts[MOST];
static MPI_Aint places[MOST], bytes[MOST];
static MPI_Datatype types[MOST];

static void make_list(const char* kind, int dims, int radius, int inner) {
  if (strcmp(kind, "moore") == 0) {
    CHECK_MPI(mpress_iso_moore(dims, radius, inner, MOST, list, &s));
  } else if (strcmp(kind, "neumann") == 0) {
    CHECK_MPI(mpress_iso_von_neumann(dims, radius, inner, MOST, list, &s));
  } else {
    int all = 1;
    for (int j = 0; j < dims; ++j) all *= radius - inner + 1;
    for (int number = 0; number < all; ++number) {
      int is_self = 1;
      for (int j = dims - 1, rest = number; j >= 0; --j, rest /= radius - inner + 1) {
        list[s * dims + j] = inner + rest % (radius - inner + 1);
        is_self &= list[s * dims + j] == 0;
      }
      s += !is_self;
    }
  }
  CHECK(s <= MOST);
}

static void call(const char* name, MPI_Comm iso) {
  if (strcmp(name, "alltoall") == 0) {
    CHECK_MPI(
        mpress_iso_neighbor_alltoall(sent, COUNT, MPI_INT, received, COUNT, MPI_INT, iso, NULL));
  } else if (strcmp(name, "alltoallv") == 0) {
    CHECK_MPI(mpress_iso_neighbor_alltoallv(sent, counts, places, MPI_INT, received, counts, places,
                                            MPI_INT, iso, NULL));
  } else if (strcmp(name, "allgather") == 0) {
    CHECK_MPI(
        mpress_iso_neighbor_allgather(sent, COUNT, MPI_INT, received, COUNT, MPI_INT, iso, NULL));
  } else if (strcmp(name, "reduce") == 0) {
    CHECK_MPI(mpress_iso_neighbor_reduce(sent, received, COUNT, MPI_INT, MPI_SUM, iso, NULL));
  } else {
    CHECK_MPI(mpress_iso_neighbor_scatter_reduce(sent, counts, bytes, types, received, COUNT,
                                                 MPI_INT, MPI_SUM, iso, NULL));
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char *call, *algorithm;
  } cases[] = {
      {"alltoall", "direct"},  {"alltoall", "combining"},    {"alltoallv", "digits"},
      {"allgather", "direct"}, {"allgather", "combining"},   {"reduce", "direct"},
      {"reduce", "combining"}, {"scatter_reduce", "direct"}, {"scatter_reduce", "combining"}};
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  CHECK(argc == 6);
  CHECK_MPI(mpress_init());
  const long* const counted = dlsym(RTLD_DEFAULT, "counted_messages");
  long* const all = malloc(4 * sizeof(long) * (size_t)size);
  CHECK(counted && all);
  const int dims = atoi(argv[1]);
  int sizes[MOST_DIMS], periodic[MOST_DIMS];
  for (int j = 0; j < dims; ++j) {
    sizes[j] = (int)lround(pow(size, 1.0 / dims));
    periodic[j] = atoi(argv[2]);
  }
  make_list(argv[3], dims, atoi(argv[4]), atoi(argv[5]));
  for (int i = 0; i < s; ++i) {
    counts[i] = COUNT;
    places[i] = i * COUNT;
    bytes[i] = i * COUNT * (MPI_Aint)sizeof(int);
    types[i] = MPI_INT;
  }
  MPI_Comm cart, iso;
  MPI_Info info;
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, dims, sizes, periodic, 0, &cart));
  CHECK_MPI(MPI_Info_create(&info));
  CHECK_MPI(MPI_Info_set(info, "iso_uniform_sizes", "true"));
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
    CHECK_MPI(MPI_Info_set(info, "iso_algorithm", cases[i].algorithm));
    CHECK_MPI(mpress_iso_neighborhood_create_with_info(cart, s, list, info, &iso));
    call(cases[i].call, iso); /* the first on a communicator makes what the others use */
    long before[4], own[4];
    CHECK_MPI(MPI_Barrier(iso));
    memcpy(before, counted, sizeof before);
    call(cases[i].call, iso);
    for (int k = 0; k < 4; ++k) own[k] = counted[k] - before[k];
    CHECK_MPI(MPI_Gather(own, 4, MPI_LONG, all, 4, MPI_LONG, 0, iso));
    for (int r = 0; r < size && rank == 0; ++r) {
      printf("%s %s %d %ld %ld %ld %ld\n", cases[i].call, cases[i].algorithm, r, all[4 * r],
             all[4 * r + 1], all[4 * r + 2], all[4 * r + 3]);
    }
    CHECK_MPI(MPI_Comm_free(&iso));
  }
  CHECK_MPI(MPI_Info_free(&info));
  CHECK_MPI(MPI_Comm_free(&cart));
  free(all);
  CHECK_MPI(MPI_Finalize());
  return 0;
}
