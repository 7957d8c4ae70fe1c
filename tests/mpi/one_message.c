/* Rank 0 sends one message to rank 1, which says what came of it. With an argument, errors are
 * returned; "abort" ends rank 1 at once after the message, "noise" sends random bits. */
#include "check.h"

enum { N = 40000 };

int main(int argc, char** argv) {
  static float values[N], expected[N];
  int rank, code;
  const int noise = argc > 2 && strcmp(argv[2], "noise") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  if (argc > 1) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  fill_f32(expected, N, 1);
  if (noise) fill_noise(expected, sizeof expected, 1);
  if (rank == 0) {
    memcpy(values, expected, sizeof values);
    code = MPI_Send(values, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
  } else {
    code = MPI_Recv(values, N, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (argc > 1 && strcmp(argv[1], "abort") == 0) {
    MPI_Barrier(MPI_COMM_WORLD); /* the sender has come back from its call */
    if (rank == 1) abort();
  }
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    printf("rank %d: error: %s\n", rank, text);
  } else if (rank == 1) {
    printf("rank 1: %s\n", memcmp(values, expected, sizeof values) == 0 ? "intact" : "changed");
  }
  MPI_Finalize();
  return 0;
}
