/* Messages that leave a device in chunks as they are, into layouts of the host with gaps: the
 * header must not be taken for data. */
#include "check.h"
#include "simulated_gpu.h"

enum { COUNT = 60000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  int* host = malloc(2 * COUNT * sizeof(int));
  MPI_Datatype gaps;
  MPI_Type_vector(COUNT, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (int way = 0; way < 5; ++way) {
    if (check_rank == 0) {
      int* data = sim_malloc(0, COUNT * sizeof(int));
      for (int i = 0; i < COUNT; ++i) host[i] = 3 * i + way;
      sim_copy_in(data, host, COUNT * sizeof(int));
      CHECK_MPI(MPI_Send(data, COUNT, MPI_INT, 1, way, MPI_COMM_WORLD));
      sim_free(data);
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Status status;
      MPI_Message message;
      int got = 0;
      for (int i = 0; i < 2 * COUNT; ++i) host[i] = -1;
      switch (way) {
        case 0: CHECK_MPI(MPI_Recv(host, 1, gaps, 0, way, MPI_COMM_WORLD, &status)); break;
        case 1: CHECK_MPI(MPI_Irecv(host, 1, gaps, 0, way, MPI_COMM_WORLD, &request)); break;
        case 2: CHECK_MPI(MPI_Recv_init(host, 1, gaps, 0, way, MPI_COMM_WORLD, &request)); break;
        case 3:
          CHECK_MPI(MPI_Mprobe(0, way, MPI_COMM_WORLD, &message, &status));
          CHECK_MPI(MPI_Mrecv(host, 1, gaps, &message, &status));
          break;
        default:
          CHECK_MPI(MPI_Irecv(host, 1, gaps, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
          for (int done = 0; !done;) CHECK_MPI(MPI_Request_get_status(request, &done, &status));
      }
      if (way == 2) CHECK_MPI(MPI_Start(&request));
      if (request != MPI_REQUEST_NULL) CHECK_MPI(MPI_Wait(&request, &status));
      if (request != MPI_REQUEST_NULL) CHECK_MPI(MPI_Request_free(&request));
      CHECK_MPI(MPI_Get_elements(&status, gaps, &got));
      CHECK(got == COUNT && status.MPI_TAG == way);
      for (int i = 0; i < COUNT; ++i) CHECK(host[2 * i] == 3 * i + way);
      for (int i = 1; i < 2 * COUNT; i += 2) CHECK(host[i] == -1);
    }
  }
  /* Room for a part of the message is an error, also where that is a short one. */
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int room = 100; room < COUNT; room *= 20) {
    if (check_rank == 0) {
      int* data = sim_malloc(1, COUNT * sizeof(int));
      CHECK_MPI(MPI_Send(data, COUNT, MPI_INT, 1, 9, MPI_COMM_WORLD));
      sim_free(data);
    } else {
      MPI_Datatype few;
      MPI_Type_vector(room, 1, 2, MPI_INT, &few);
      MPI_Type_commit(&few);
      int kind = MPI_SUCCESS;
      MPI_Error_class(MPI_Recv(host, 1, few, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &kind);
      CHECK(kind == MPI_ERR_TRUNCATE);
      MPI_Type_free(&few);
    }
  }
  MPI_Type_free(&gaps);
  free(host);
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
