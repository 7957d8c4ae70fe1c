/* Hints that ranks have to give alike for reductions: where they differ, those are errors on all
 * ranks, everything else works, and the communicator does again once they are the same. Hints hold
 * for calls that are made later.
 *
 * hints_differ [blocking]: on two or more ranks, with MPRESS_CODEC=mpc; where all other calls are
 * the MPI's, those that block alone. */
#include "check.h"

enum { N = 60000 };

static int rank, size, only_blocking;
static float in[N], out[N];

static int give(MPI_Comm comm, const char* key, const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, value);
  const int code = MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  return code;
}

static double exact(int i) {
  double sum = 0;
  for (int r = 0; r < size; ++r) sum += (float)(sin(1e-3 * i) + r);
  return sum;
}

static int reduce(MPI_Comm comm, int form) {
  for (int i = 0; i < N; ++i) in[i] = (float)(sin(1e-3 * i) + rank);
  MPI_Request request = MPI_REQUEST_NULL;
  int code;
  if (form == 0) return MPI_Allreduce(in, out, N, MPI_FLOAT, MPI_SUM, comm);
  if (form == 1) {
    code = MPI_Iallreduce(in, out, N, MPI_FLOAT, MPI_SUM, comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
  }
  return MPI_Reduce(in, out, N, MPI_FLOAT, MPI_SUM, size - 1, comm);
}

static void fails(MPI_Comm comm) {
  for (int form = 0; form < 3; ++form) {
    if (form == 1 && only_blocking) continue;
    const int code = reduce(comm, form);
    CHECK(code != MPI_SUCCESS);
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "mpress_codec") != NULL);
  }
  int number = rank == 1 ? 42 : 0;
  CHECK_MPI(MPI_Bcast(&number, 1, MPI_INT, 1, comm));
  CHECK(number == 42);
  for (int i = 0; i < N; ++i) in[i] = rank == 0 ? (float)i : -1;
  CHECK_MPI(MPI_Bcast(in, N, MPI_FLOAT, 0, comm));
  for (int i = 0; i < N; ++i) CHECK(in[i] == (float)i || fabs(in[i] - i) < 2);
}

/* The largest error of a sum. */
static double error_of(MPI_Comm comm) {
  double most = 0;
  CHECK_MPI(reduce(comm, 0));
  for (int i = 0; i < N; ++i) {
    const double error = fabs(out[i] - exact(i));
    most = error > most ? error : most;
  }
  return most;
}

static void all_of(MPI_Comm comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const double rounding = 1e-6 * size * size;
  CHECK(error_of(comm) <= rounding);
  CHECK_MPI(give(comm, "mpress_codec", rank == 0 ? "szp:abs=1e-2" : "szp:abs=1e-3"));
  fails(comm);
  CHECK_MPI(give(comm, "mpress_codec", "szp:abs=1e-2"));
  double error = error_of(comm);
  CHECK(error > 1e-4 && error <= 1e-2);
  CHECK_MPI(give(comm, "mpress_codec", "szp:abs=0.1"));
  error = error_of(comm);
  CHECK(error > 1e-2 && error <= 0.1);
  CHECK_MPI(give(comm, "mpress_codec", "none"));
  CHECK(error_of(comm) <= rounding);

  /* One rank's value is wrong: it is told so, and the others wait for nobody. */
  int code = give(comm, "mpress_codec", rank == 0 ? "szp:abs=nothing" : "szp:abs=1e-3");
  CHECK((code == MPI_SUCCESS) == (rank != 0));
  fails(comm);
  CHECK_MPI(give(comm, "mpress_codec", "mpc"));
  CHECK(error_of(comm) <= rounding);

  code = give(comm, "mpress_reproducible", rank == 0 ? "0" : "1");
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  CHECK(class == MPI_ERR_INFO_VALUE);
  CHECK(error_of(comm) <= rounding);
  CHECK_MPI(give(comm, "mpress_reproducible", "1"));
  CHECK(error_of(comm) <= rounding);
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  only_blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = rank;
  all_of(MPI_COMM_WORLD);
  MPI_Comm fresh, used, split;
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_SELF, &used)); /* of one rank: nobody to tell */
  CHECK_MPI(give(used, "mpress_codec", "zfp:16"));
  MPI_Comm_free(&used);
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &split));
  CHECK_MPI(MPI_Comm_rank(split, &rank));
  all_of(split);
  MPI_Comm_free(&split);
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  /* Before the first call there. */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &fresh));
  MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
  CHECK_MPI(give(fresh, "mpress_codec", rank == 0 ? "mpc" : "zfp:16"));
  fails(fresh);
  CHECK_MPI(give(fresh, "mpress_codec", "szp:abs=1e-2"));
  const double error = error_of(fresh);
  CHECK(error > 1e-4 && error <= 1e-2);
  MPI_Comm_free(&fresh);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
