/* Messages in chunks that nobody takes: the argument says why. To be run with chunks of 64 KiB on
 * two ranks. */
#include "check.h"

enum { N = 150000, ROOM = 120000, ROUNDS = 24, CALLS = 200 };

static int rank;
static float out[N], in[N];

/* MPI proceeds with both ranks, whatever is under way. */
static void let_proceed(void) {
  for (int i = 0; i < CALLS; ++i) {
    MPI_Sendrecv(NULL, 0, MPI_INT, 1 - rank, 1, NULL, 0, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

/* The receiver has room for the header but not for the data; the last time MPI ends at once. */
static void truncated(void) {
  int error_class = MPI_ERR_TRUNCATE;
  MPI_Comm quiet;
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
  for (int round = 0; round < ROUNDS; ++round) {
    if (round > 0) let_proceed();
    if (rank == 0) CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, 0, quiet));
    if (rank == 0) continue;
    MPI_Error_class(MPI_Recv(in, ROOM, MPI_FLOAT, 0, 0, quiet, MPI_STATUS_IGNORE), &error_class);
    CHECK(error_class == MPI_ERR_TRUNCATE);
  }
  MPI_Comm_free(&quiet);
}

/* A send is cancelled before its receiver sees it, or else it is received. MPI ends at once. */
static void cancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int flag = 0, gone;
  if (rank == 0) {
    CHECK_MPI(MPI_Issend(out, N, MPI_FLOAT, 1, 77, MPI_COMM_WORLD, &request));
    CHECK_MPI(MPI_Cancel(&request));
    CHECK_MPI(MPI_Wait(&request, &status));
    CHECK_MPI(MPI_Test_cancelled(&status, &gone));
    puts(gone ? "cancelled" : "received");
    CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD));
    return;
  }
  while (!flag) {
    CHECK_MPI(MPI_Iprobe(0, 77, MPI_COMM_WORLD, &flag, &status));
    if (flag) CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, 0, 77, MPI_COMM_WORLD, &status));
    CHECK_MPI(MPI_Iprobe(0, 2, MPI_COMM_WORLD, &flag, &status));
  }
  CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  const char* part = argc > 1 ? argv[1] : "truncated";
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  /* Only the beginning compresses: MPI does not take the chunks behind it before they are received.
   */
  fill_f32(out, N, 1);
  fill_noise(out + N / 6, sizeof(float) * (N - N / 6), 1);
  if (!strcmp(part, "truncated")) truncated();
  if (!strcmp(part, "cancelled")) cancelled();
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
