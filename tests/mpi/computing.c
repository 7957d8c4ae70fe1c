/* With a progress thread: rank 0 sends a large message and then makes no call of MPI's until rank 1
 * says, by the file that the argument names, that it has it. Under MPI's levels below that of
 * several threads the program sees at least what it asks for. */
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 4 << 20 };

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE, rank = 0, level = MPI_THREAD_SINGLE;
  CHECK(argc == 2);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  CHECK(provided >= MPI_THREAD_FUNNELED);
  CHECK_MPI(MPI_Query_thread(&level));
  CHECK(level >= provided);
  float* values = malloc(sizeof(float) * COUNT);
  if (rank == 0) {
    fill_f32(values, COUNT, 7);
    MPI_Request request;
    CHECK_MPI(MPI_Isend(values, COUNT, MPI_FLOAT, 1, 3, MPI_COMM_WORLD, &request));
    const time_t begin = time(NULL);
    while (access(argv[1], F_OK) != 0) CHECK(time(NULL) - begin < 250);
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    CHECK_MPI(MPI_Recv(values, COUNT, MPI_FLOAT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(same_f32(values, COUNT, 7));
    FILE* file = fopen(argv[1], "w");
    CHECK(file != NULL);
    fclose(file);
  }
  free(values);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
