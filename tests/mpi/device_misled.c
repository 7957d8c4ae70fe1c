/* A header whose data lies in memory of a GPU comes from a rank that shares none: rank 0 sends a
 * message, rank 1 takes its header as it travels, behind mpress's back, and sends it back. Two
 * ranks. */
#include "beneath.h"
#include "device_link.h"
#include "simulated_gpu.h"

int main(int argc, char** argv) {
  static char header[4 * N];
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  struct Memory memory = room_on(rank), host = room_on(-1);
  for (int i = 0; i < 2; ++i) one_message(&memory, 0, &memory, 1, 1);
  for (int round = 0; round < 4; ++round) {
    struct Memory* const into = round % 2 == 0 ? &memory : &host;
    if (rank == 0) {
      set_values(&memory, N, round);
      CHECK_MPI(MPI_Send(memory.data, N, MPI_FLOAT, 1, round, MPI_COMM_WORLD));
      const int code =
          MPI_Recv(into->data, ROOM, MPI_FLOAT, 1, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(code != MPI_SUCCESS);
      MPI_Error_string(code, text, &length);
      CHECK(strstr(text, "corrupt") != NULL);
    } else {
      const OwnRecv receive = (OwnRecv)own_function("PMPI_Recv");
      const OwnSend send = (OwnSend)own_function("PMPI_Send");
      receive(header, N, MPI_FLOAT, 0, round, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &length);
      CHECK(length == 168);
      send(header, length / 4, MPI_FLOAT, 0, round, MPI_COMM_WORLD);
    }
  }
  drop(&memory);
  drop(&host);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
