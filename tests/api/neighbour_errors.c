/* Wrong arguments of the exchanges of include/mpress/iso.h: the class of the error, which the
 * communicator's handler gets once, its words, and that nothing is written or begun. On any number
 * of ranks, all of which are wrong in the same way.
 *
 * neighbour_errors [disabled]: mpress is switched off. */
#include <mpress/iso.h>

#include "../mpi/check.h"

enum { S = 2, COUNT = 3, ROOM = 16 };

static MPI_Comm iso;
static mpress_request request = MPRESS_REQUEST_NULL;
static int sent[ROOM], received[ROOM], raised, times;

static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  CHECK(MPI_Error_class(*code, &raised) == MPI_SUCCESS);
  ++times;
}

#define REFUSED(class, call)                                                       \
  do {                                                                             \
    int found = MPI_SUCCESS;                                                       \
    raised = times = 0;                                                            \
    MPI_Error_class(call, &found);                                                 \
    CHECK(found == (class) && raised == (class) && times == 1);                    \
    CHECK(strstr(mpress_error_text(), "mpress: ") == mpress_error_text());         \
    CHECK(request == MPRESS_REQUEST_NULL);                                         \
    for (int at = 0; at < ROOM; ++at) CHECK(received[at] == -1 && sent[at] == at); \
  } while (0)

/* In all three forms. */
#define ALL_REFUSED(class, name, ...)                                                      \
  do {                                                                                     \
    const MPI_Info hints = MPI_INFO_NULL;                                                  \
    REFUSED(class, mpress_iso_neighbor_##name(__VA_ARGS__, NULL));                         \
    REFUSED(class, mpress_iso_ineighbor_##name(__VA_ARGS__, &request, NULL));              \
    REFUSED(class, mpress_iso_neighbor_##name##_init(__VA_ARGS__, hints, &request, NULL)); \
  } while (0)

static MPI_Count counts[S] = {COUNT, COUNT}, negative[S] = {COUNT, -1}, longer[S] = {COUNT, 4};
static MPI_Aint places[S] = {0, COUNT}, bytes[S] = {0, COUNT * sizeof(int)};
static MPI_Datatype types[S], no_types[S];

static void communicators(void) {
  ALL_REFUSED(MPI_ERR_COMM, alltoall, sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_NULL);
  ALL_REFUSED(MPI_ERR_TOPOLOGY, allgather, sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD);
  ALL_REFUSED(MPI_ERR_TOPOLOGY, reduce, sent, received, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void counts_and_types(void) {
  const MPI_Datatype none = MPI_DATATYPE_NULL;
  MPI_Datatype made;
  CHECK_MPI(MPI_Type_contiguous(2, MPI_INT, &made)); /* not committed */
  ALL_REFUSED(MPI_ERR_COUNT, alltoall, sent, -1, MPI_INT, received, 1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_COUNT, alltoall, sent, 1, MPI_INT, received, -1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_COUNT, allgather, sent, -1, MPI_INT, received, 1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_COUNT, reduce, sent, received, -1, MPI_INT, MPI_SUM, iso);
  ALL_REFUSED(MPI_ERR_COUNT, alltoallv, sent, negative, places, MPI_INT, received, counts, places,
              MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_COUNT, alltoallw, sent, counts, bytes, types, received, negative, bytes,
              types, iso);
  ALL_REFUSED(MPI_ERR_COUNT, allgatherv, sent, COUNT, MPI_INT, received, negative, places, MPI_INT,
              iso);
  ALL_REFUSED(MPI_ERR_COUNT, scatter_reduce, sent, negative, bytes, types, received, COUNT, MPI_INT,
              MPI_SUM, iso);
  ALL_REFUSED(MPI_ERR_TYPE, alltoall, sent, 1, none, received, 1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_TYPE, alltoall, sent, 2, MPI_INT, received, 1, made, iso);
  ALL_REFUSED(MPI_ERR_TYPE, allgather, sent, 1, MPI_INT, received, 1, none, iso);
  ALL_REFUSED(MPI_ERR_TYPE, reduce, sent, received, 1, none, MPI_SUM, iso);
  ALL_REFUSED(MPI_ERR_TYPE, alltoallw, sent, counts, bytes, no_types, received, counts, bytes,
              types, iso);
  ALL_REFUSED(MPI_ERR_TYPE, allgatherw, sent, COUNT, MPI_INT, received, counts, bytes, no_types,
              iso);
  ALL_REFUSED(MPI_ERR_TYPE, scatter_reduce, sent, counts, bytes, no_types, received, COUNT, MPI_INT,
              MPI_SUM, iso);
  CHECK_MPI(MPI_Type_free(&made));
}

static void places_and_lengths(void) {
  ALL_REFUSED(MPI_ERR_ARG, alltoall, MPI_IN_PLACE, 1, MPI_INT, received, 1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, allgather, MPI_IN_PLACE, 1, MPI_INT, received, 1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, reduce, MPI_IN_PLACE, received, 1, MPI_INT, MPI_SUM, iso);
  ALL_REFUSED(MPI_ERR_ARG, alltoall, sent, 1, MPI_INT, received, 2, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, allgather, sent, 2, MPI_INT, received, 1, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, scatter_reduce, sent, longer, bytes, types, received, COUNT, MPI_INT,
              MPI_SUM, iso);
  ALL_REFUSED(MPI_ERR_ARG, alltoallv, sent, NULL, places, MPI_INT, received, counts, places,
              MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, alltoallv, sent, counts, places, MPI_INT, received, counts, NULL,
              MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, alltoallw, sent, counts, bytes, NULL, received, counts, bytes, types,
              iso);
  ALL_REFUSED(MPI_ERR_ARG, allgatherv, sent, 1, MPI_INT, received, NULL, places, MPI_INT, iso);
  ALL_REFUSED(MPI_ERR_ARG, allgatherw, sent, 1, MPI_INT, received, counts, bytes, NULL, iso);
  /* Where all know the lengths, those that differ are known, too. */
  MPI_Info info;
  CHECK_MPI(MPI_Info_create(&info));
  CHECK_MPI(MPI_Info_set(info, "iso_uniform_sizes", "true"));
  REFUSED(MPI_ERR_ARG,
          mpress_iso_neighbor_alltoallv_init(sent, counts, places, MPI_INT, received, longer,
                                             places, MPI_INT, iso, info, &request, NULL));
  CHECK_MPI(MPI_Info_set(info, "iso_algorithm", "magic"));
  REFUSED(MPI_ERR_INFO_VALUE,
          mpress_iso_neighbor_alltoall_init(sent, 1, MPI_INT, received, 1, MPI_INT, iso, info,
                                            &request, NULL));
  CHECK_MPI(MPI_Info_free(&info));
  REFUSED(MPI_ERR_ARG,
          mpress_iso_ineighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, iso, NULL, NULL));
  REFUSED(MPI_ERR_ARG, mpress_iso_neighbor_reduce_init(sent, received, 1, MPI_INT, MPI_SUM, iso,
                                                       MPI_INFO_NULL, NULL, NULL));
}

static void keep_first(void* from, void* into, int* count, MPI_Datatype* type) {
  (void)from, (void)into, (void)count, (void)type;
}

static void operators(void) {
  MPI_Op ordered;
  MPI_Datatype pair;
  CHECK_MPI(MPI_Op_create(keep_first, 0, &ordered));
  CHECK_MPI(MPI_Type_contiguous(2, MPI_INT, &pair));
  CHECK_MPI(MPI_Type_commit(&pair));
  const MPI_Op wrong[] = {MPI_OP_NULL, MPI_REPLACE, MPI_NO_OP, ordered};
  for (int i = 0; i < 4; ++i) {
    ALL_REFUSED(MPI_ERR_OP, reduce, sent, received, 1, MPI_INT, wrong[i], iso);
    ALL_REFUSED(MPI_ERR_OP, scatter_reduce, sent, counts, bytes, types, received, COUNT, MPI_INT,
                wrong[i], iso);
  }
  ALL_REFUSED(MPI_ERR_OP, reduce, sent, received, 1, MPI_DOUBLE, MPI_BXOR, iso);
  ALL_REFUSED(MPI_ERR_OP, reduce, sent, received, 1, pair, MPI_SUM, iso);
  CHECK_MPI(MPI_Type_free(&pair));
  CHECK_MPI(MPI_Op_free(&ordered));
}

int main(int argc, char** argv) {
  int sizes[1], periodic[1] = {1}, offsets[S] = {0, 1}, rank;
  MPI_Comm cart;
  MPI_Errhandler handler;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, sizes));
  check_rank = rank;
  for (int i = 0; i < ROOM; ++i) sent[i] = i, received[i] = -1;
  for (int i = 0; i < S; ++i) types[i] = MPI_INT, no_types[i] = i ? MPI_DATATYPE_NULL : MPI_INT;
  CHECK_MPI(MPI_Comm_create_errhandler(note, &handler));
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
  CHECK_MPI(mpress_init());
  CHECK_MPI(MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periodic, 0, &cart));
  CHECK_MPI(MPI_Comm_set_errhandler(cart, handler));
  CHECK_MPI(mpress_iso_neighborhood_create(cart, S, offsets, &iso));
  if (argc > 1) {
    ALL_REFUSED(MPI_ERR_OTHER, alltoall, sent, 1, MPI_INT, received, 1, MPI_INT, iso);
    ALL_REFUSED(MPI_ERR_OTHER, allgather, sent, 1, MPI_INT, received, 1, MPI_INT, iso);
    ALL_REFUSED(MPI_ERR_OTHER, reduce, sent, received, 1, MPI_INT, MPI_SUM, iso);
  } else {
    communicators();
    counts_and_types();
    places_and_lengths();
    operators();
    /* Nothing is left of them. */
    times = 0;
    CHECK_MPI(
        mpress_iso_neighbor_alltoall(sent, COUNT, MPI_INT, received, COUNT, MPI_INT, iso, NULL));
    for (int i = 0; i < S * COUNT; ++i) CHECK(received[i] == i);
    CHECK(times == 0);
  }
  CHECK_MPI(MPI_Comm_free(&iso));
  CHECK_MPI(MPI_Comm_free(&cart));
  CHECK_MPI(MPI_Errhandler_free(&handler));
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
