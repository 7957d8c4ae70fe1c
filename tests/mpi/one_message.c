/* Rank 0 sends one message to rank 1, which says what came of it. */
#include "check.h"

enum { N = 40000 };

int main(int argc, char **argv) {
  static float values[N];
  int rank, code;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  if (argc > 1) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    fill_f32(values, N, 1);
    code = MPI_Send(values, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
  } else {
    code = MPI_Recv(values, N, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    printf("rank %d: error: %s\n", rank, text);
  } else if (rank == 1) {
    printf("rank 1: %s\n", same_f32(values, N, 1) ? "intact" : "changed");
  }
  MPI_Finalize();
  return 0;
}
