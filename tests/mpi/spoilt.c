/* What a broken network does: rank 0 sends a message, rank 1 takes it as it travels, behind
 * mpress's back, flips a bit of byte N and sends it back; rank 0 says what came of it. spoilt N
 * [return]      with "return", errors are returned */
#include "beneath.h"

enum { COUNT = 40000 };

static void spoil(int at) {
  static float values[COUNT];
  int bytes;
  MPI_Status status;
  const OwnRecv receive = (OwnRecv)own_function("PMPI_Recv");
  const OwnSend send = (OwnSend)own_function("PMPI_Send");
  receive(values, COUNT, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  CHECK(at < bytes);
  ((char*)values)[at] ^= 4;
  send(values, bytes / 4, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  static float values[COUNT], expected[COUNT];
  int rank, code;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  if (argc > 2) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  fill_f32(expected, COUNT, 1);
  if (rank == 1) {
    spoil(atoi(argv[1]));
  } else {
    MPI_Send(expected, COUNT, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    code = MPI_Recv(values, COUNT, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
      char text[MPI_MAX_ERROR_STRING];
      int length;
      MPI_Error_string(code, text, &length);
      printf("error: %s\n", text);
    } else {
      printf("%s\n", memcmp(values, expected, sizeof values) == 0 ? "intact" : "changed");
    }
  }
  MPI_Finalize();
  return 0;
}
