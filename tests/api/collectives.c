/* Collective calls of mpress's own, with a codec each: results within their bounds and the same on
 * all ranks, in all forms, on several communicators; ranks that ask for different codecs. Any
 * number of ranks. An argument: the codecs, for how many elements. */
#include <mpress/mpress.h>

#include "../mpi/check.h"

enum { MOST = 16 };
static int rank, size, count;
static double *out, *in, *same;

static mpress_call with(const char* spec, mpress_outcome* outcome) {
  mpress_call call;
  memset(&call, 0, sizeof call);
  call.mask = MPRESS_CALL_SPEC | (outcome ? MPRESS_CALL_OUTCOME : 0);
  call.spec = spec;
  call.outcome = outcome;
  return call;
}

static double value(int seed, int i) { return (double)(seed + 1) + 1e-6 * (double)i; }

static void fill(double* values, int n, int seed) {
  for (int i = 0; i < n; ++i) values[i] = value(seed, i);
}

/* Are the values of a block within a bound? */
static void check_block(const double* values, int n, int seed, double bound) {
  for (int i = 0; i < n; ++i) CHECK(fabs(values[i] - value(seed, i)) <= bound);
}

static void check_sum(const double* values, int first, int n, double bound) {
  for (int i = 0; i < n; ++i) {
    double expected = 0;
    for (int r = 0; r < size; ++r) expected += value(r, first + i);
    CHECK(fabs(values[i] - expected) <= bound + 1e-12 * fabs(expected));
  }
}

/* Do all ranks have the same bits? */
static void check_same(const double* values, int n) {
  memcpy(same, values, (size_t)n * sizeof *values);
  CHECK_MPI(MPI_Bcast(same, n, MPI_DOUBLE, 0, MPI_COMM_WORLD));
  CHECK(memcmp(same, values, (size_t)n * sizeof *values) == 0);
}

static void moving(const char* spec, double bound) {
  const mpress_call call = with(spec, NULL);
  const int root = size - 1;
  MPI_Count counts[MOST];
  MPI_Aint places[MOST];
  int total = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r == 1 ? 0 : count - r; /* not the same, and none of one */
    places[r] = total;
    total += (int)counts[r];
  }
  fill(in, count, rank == root ? 3 : 9);
  CHECK_MPI(mpress_bcast(in, count, MPI_DOUBLE, root, MPI_COMM_WORLD, &call));
  check_block(in, count, 3, rank == root ? 0 : bound);

  fill(out, count, rank);
  CHECK_MPI(mpress_allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD, &call));
  for (int r = 0; r < size; ++r) check_block(in + r * count, count, r, bound);
  check_same(in, size * count);
  CHECK_MPI(mpress_allgatherv(out, counts[rank], MPI_DOUBLE, in, counts, places, MPI_DOUBLE,
                              MPI_COMM_WORLD, &call));
  for (int r = 0; r < size; ++r) check_block(in + places[r], (int)counts[r], r, bound);
  check_same(in, total);

  CHECK_MPI(
      mpress_gather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, root, MPI_COMM_WORLD, &call));
  for (int r = 0; rank == root && r < size; ++r) check_block(in + r * count, count, r, bound);
  CHECK_MPI(mpress_gatherv(out, counts[rank], MPI_DOUBLE, in, counts, places, MPI_DOUBLE, 0,
                           MPI_COMM_WORLD, &call));
  for (int r = 0; rank == 0 && r < size; ++r) {
    check_block(in + places[r], (int)counts[r], r, bound);
  }

  for (int r = 0; r < size; ++r) fill(out + r * count, count, 100 * rank + r);
  CHECK_MPI(
      mpress_scatter(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &call));
  check_block(in, count, rank, bound);
  CHECK_MPI(mpress_alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD, &call));
  for (int r = 0; r < size; ++r) check_block(in + r * count, count, 100 * r + rank, bound);
  for (int r = 0; r < size; ++r) fill(out + places[r], (int)counts[r], 100 * rank + r);
  CHECK_MPI(mpress_scatterv(out, counts, places, MPI_DOUBLE, in, counts[rank], MPI_DOUBLE, 0,
                            MPI_COMM_WORLD, &call));
  check_block(in, (int)counts[rank], rank, bound);
  MPI_Count mine[MOST];
  MPI_Aint mine_at[MOST];
  MPI_Datatype types[MOST];
  MPI_Aint sent_at[MOST];
  for (int r = 0; r < size; ++r) {
    mine[r] = counts[rank];
    mine_at[r] = (MPI_Aint)r * count;
  }
  CHECK_MPI(mpress_alltoallv(out, counts, places, MPI_DOUBLE, in, mine, mine_at, MPI_DOUBLE,
                             MPI_COMM_WORLD, &call));
  for (int r = 0; r < size; ++r) {
    check_block(in + r * count, (int)counts[rank], 100 * r + rank, bound);
  }
  memset(in, 0, (size_t)(size * count) * sizeof *in);
  for (int r = 0; r < size; ++r) {
    types[r] = MPI_DOUBLE;
    mine_at[r] *= (MPI_Aint)sizeof(double);
    sent_at[r] = places[r] * (MPI_Aint)sizeof(double);
  }
  CHECK_MPI(mpress_alltoallw(out, counts, sent_at, types, in, mine, mine_at, types, MPI_COMM_WORLD,
                             &call));
  for (int r = 0; r < size; ++r) {
    check_block(in + r * count, (int)counts[rank], 100 * r + rank, bound);
  }
}

/* What ranks give bounds of their own: each is told the largest of what it sent and got. */
static void bounds_told(void) {
  mpress_outcome outcome;
  const mpress_call call = with(rank == 0 ? "szp:rel=1e-5" : "mpc", &outcome);
  fill(out, count, rank);
  CHECK_MPI(mpress_allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD, &call));
  const double range = 1e-6 * count;
  CHECK(outcome.bound <= 1.001e-5 * range);
  if (outcome.served && size > 1) CHECK(outcome.bound > 0);
  for (int r = 0; r < size; ++r) check_block(in + r * count, count, r, outcome.bound);
  CHECK_MPI(mpress_bcast(in, count, MPI_DOUBLE, size - 1, MPI_COMM_WORLD, &call));
  CHECK(size == 1 || outcome.bound == 0); /* of what its origin sent without a loss */
}

static void reducing(const char* spec, double bound) {
  mpress_outcome outcome = {-1, -1};
  mpress_call call = with(spec, &outcome);
  fill(out, count, rank);
  CHECK_MPI(mpress_allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &call));
  check_sum(in, 0, count, size * bound);
  check_same(in, count);
  if (size > 1 && outcome.served && strncmp(spec, "szp", 3) == 0) {
    CHECK(outcome.bound > 0 && outcome.bound <= bound * 1.001);
    check_sum(in, 0, count, outcome.bound);
  }
  memcpy(in, out, (size_t)count * sizeof *in);
  CHECK_MPI(mpress_allreduce(MPI_IN_PLACE, in, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &call));
  check_block(in, count, size - 1, bound);
  CHECK_MPI(mpress_reduce(out, in, count, MPI_DOUBLE, MPI_SUM, size - 1, MPI_COMM_WORLD, &call));
  if (rank == size - 1) check_sum(in, 0, count, size * bound);
  const int part = count / size;
  MPI_Count counts[MOST];
  for (int r = 0; r < size; ++r) counts[r] = r == 0 ? count - part * (size - 1) : part;
  const int first = rank == 0 ? 0 : (int)counts[0] + (rank - 1) * part;
  CHECK_MPI(mpress_reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &call));
  check_sum(in, first, (int)counts[rank], size * bound);
  CHECK_MPI(mpress_reduce_scatter_block(out, in, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &call));
  check_sum(in, rank * part, part, size * bound);
  /* MPI's own. */
  CHECK_MPI(mpress_scan(out, in, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &call));
  check_block(in, 4, rank, 0);
  CHECK(!outcome.served && outcome.bound == 0);
}

static void forms(const char* spec, double bound) {
  mpress_request requests[4];
  mpress_outcome outcomes[2];
  const mpress_call call = with(spec, &outcomes[0]), second = with(spec, &outcomes[1]);
  double* const sums = in + count;
  fill(out, count, rank);
  fill(in, count, rank == 0 ? 5 : 1);
  CHECK_MPI(mpress_ibcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD, &requests[0], &call));
  CHECK_MPI(mpress_iallreduce(out, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1],
                              &second));
  CHECK_MPI(mpress_iallgather(out, 100, MPI_DOUBLE, in + 2 * count, 100, MPI_DOUBLE, MPI_COMM_WORLD,
                              &requests[2], NULL));
  requests[3] = MPRESS_REQUEST_NULL;
  CHECK_MPI(mpress_waitall(4, requests, MPI_STATUSES_IGNORE));
  check_block(in, count, 5, rank == 0 ? 0 : bound);
  check_sum(sums, 0, count, size * bound);
  check_same(sums, count);
  for (int r = 0; r < size; ++r) check_block(in + 2 * count + 100 * r, 100, r, 0);

  CHECK_MPI(mpress_allreduce_init(out, sums, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                                  &requests[0], &call));
  for (int round = 0; round < 3; ++round) {
    memset(sums, 0, (size_t)count * sizeof *sums);
    CHECK_MPI(mpress_start(&requests[0]));
    CHECK_MPI(mpress_wait(&requests[0], MPI_STATUS_IGNORE));
    check_sum(sums, 0, count, size * bound);
  }
  CHECK_MPI(mpress_request_free(&requests[0]));
}

static int class_of(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}

/* Ranks that do not agree find the same: an error of reductions, and data that moves all the same.
 */
static void differing(void) {
  if (size == 1 || count < 20000) return; /* what is short is not compressed, nor compared */
  MPI_Comm comm;
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const mpress_call fine = with("szp:abs=1e-3", NULL);
  const mpress_call call = with(rank == 1 ? "szp:abs=1e-4" : "szp:abs=1e-3", NULL);
  for (int round = 0; round < 3; ++round) {
    fill(out, count, rank);
    const int code = mpress_allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm,
                                      round == 2 && rank == 1 ? NULL : &call);
    CHECK(code != MPI_SUCCESS && class_of(code) != MPI_ERR_LASTCODE);
    CHECK_MPI(mpress_allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm, &fine));
    check_sum(in, 0, count, 1e-3 * size);
    const mpress_call other = with(rank == 0 ? "none" : rank == 1 ? "zfp:40" : "mpc", NULL);
    CHECK_MPI(mpress_allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, comm, &other));
    for (int r = 0; r < size; ++r) check_block(in + r * count, count, r, r == 1 ? 1e-6 : 0);
    check_same(in, size * count);
  }
  CHECK_MPI(MPI_Comm_free(&comm));
}

static void wrong(void) {
  MPI_Comm comm;
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const mpress_call call = with("szp:rel=-2", NULL);
  mpress_request request = MPRESS_REQUEST_NULL;
  CHECK(class_of(mpress_allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm, &call)) ==
        MPI_ERR_ARG);
  CHECK(class_of(mpress_ibcast(in, count, MPI_DOUBLE, 0, comm, &request, &call)) == MPI_ERR_ARG);
  CHECK(class_of(mpress_ibcast(in, count, MPI_DOUBLE, 0, comm, NULL, NULL)) == MPI_ERR_ARG);
  CHECK(!request);
  CHECK_MPI(mpress_allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, comm, NULL));
  CHECK_MPI(MPI_Comm_free(&comm));
}

/* A broadcast whose root has what the others have. */
static void same_bits(void) {
  mpress_call call = with("szp:abs=1e-3", NULL);
  call.mask |= MPRESS_CALL_SAME_BITS;
  call.same_bits = 1;
  for (int root = 0; root < size; ++root) {
    fill(in, count, root);
    CHECK_MPI(mpress_bcast(in, count, MPI_DOUBLE, root, MPI_COMM_WORLD, &call));
    check_block(in, count, root, 1e-3);
    check_same(in, count);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(size <= MOST);
  CHECK_MPI(mpress_init());
  count = argc > 1 ? atoi(argv[1]) : 40000;
  const size_t bytes = (size_t)(count * (size + 2) + 100 * size) * sizeof(double);
  out = malloc(bytes);
  in = malloc(bytes);
  same = malloc(bytes);
  const char* const specs[] = {"none", "auto", "mpc", "szp:abs=1e-3", "szp:rel=1e-4"};
  /* Of the range of all ranks' data, where it is relative, and of a rank's own. */
  const double range = 1e-6 * count + size;
  const double bounds[] = {0, 0, 0, 1e-3, 1e-4 * range};
  for (int i = 0; i < (int)(sizeof specs / sizeof *specs); ++i) {
    moving(specs[i], bounds[i]);
    reducing(specs[i], bounds[i]);
    forms(specs[i], bounds[i]);
  }
  bounds_told();
  differing();
  wrong();
  same_bits();
  free(out);
  free(in);
  free(same);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
