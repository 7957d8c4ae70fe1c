/* Parallel files, whose implementations send messages of their own through PMPI calls: collective
 * writes and reads of interleaved blocks, which two-phase I/O exchanges between ranks. */
#include "check.h"

enum { BLOCK = 1000, BLOCKS = 20, N = BLOCK * BLOCKS };

int main(int argc, char** argv) {
  static float out[N], in[N];
  int rank, size, count;
  MPI_File file;
  MPI_Datatype view;
  MPI_Request request;
  MPI_Status status;
  MPI_Info info;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  fill_f32(out, N, rank);
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", "enable"); /* exchange, even where it does not pay */
  MPI_Info_set(info, "romio_cb_read", "enable");
  CHECK_MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
  MPI_Type_vector(BLOCKS, BLOCK, BLOCK * size, MPI_FLOAT, &view);
  MPI_Type_commit(&view);
  CHECK_MPI(MPI_File_set_view(file, (MPI_Offset)(rank * BLOCK * sizeof(float)), MPI_FLOAT, view,
                              "native", info));
  CHECK_MPI(MPI_File_write_all(file, out, N, MPI_FLOAT, &status));
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == N);

  /* A program's own messages beside it. */
  MPI_Irecv(in, N, MPI_FLOAT, previous, 0, MPI_COMM_WORLD, &request);
  MPI_Send(out, N, MPI_FLOAT, next, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(same_f32(in, N, previous));

  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_File_read_at_all(file, 0, in, N, MPI_FLOAT, &status));
  CHECK(same_f32(in, N, rank));
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_File_iread_at(file, 0, in, N, MPI_FLOAT, &request));
  CHECK_MPI(MPI_Wait(&request, &status));
  CHECK(same_f32(in, N, rank));
  MPI_File_close(&file);
  MPI_Type_free(&view);
  MPI_Info_free(&info);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
