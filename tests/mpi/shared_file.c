/* MPI-IO beside messages: files written and read collectively, independently, through views and
 * without blocking. Usage: shared_file PATH */
#include "check.h"

enum { N = 5000 };

static int rank, size;
static float out[N], in[N];

static void message(void) {
  static float got[N];
  MPI_Request requests[2];
  MPI_Irecv(got, N, MPI_FLOAT, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, N, MPI_FLOAT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(same_f32(got, N, (rank + 1) % size));
}

int main(int argc, char** argv) {
  MPI_File file;
  MPI_Status status;
  MPI_Request request;
  MPI_Datatype stripes;
  int count;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  fill_f32(out, N, rank);
  CHECK(argc > 1);
  CHECK_MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                          &file));
  const MPI_Offset block = N * sizeof(float);
  CHECK_MPI(MPI_File_write_at_all(file, rank * block, out, N, MPI_FLOAT, &status));
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == N);
  message();
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  const int other = (rank + 1) % size;
  CHECK_MPI(MPI_File_read_at(file, other * block, in, N, MPI_FLOAT, &status));
  CHECK(same_f32(in, N, other));
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_File_iread_at(file, rank * block, in, N, MPI_FLOAT, &request));
  MPI_Request requests[2] = {request, MPI_REQUEST_NULL};
  MPI_Status statuses[2];
  MPI_Waitall(2, requests, statuses);
  MPI_Get_count(&statuses[0], MPI_FLOAT, &count);
  CHECK(count == N && same_f32(in, N, rank));

  /* Element by element by turns of the ranks, through a view. */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_create_resized(MPI_FLOAT, 0, size * (MPI_Aint)sizeof(float), &stripes);
  MPI_Type_commit(&stripes);
  MPI_File_set_view(file, rank * (MPI_Offset)sizeof(float), MPI_FLOAT, stripes, "native",
                    MPI_INFO_NULL);
  CHECK_MPI(MPI_File_write_all(file, out, N, MPI_FLOAT, MPI_STATUS_IGNORE));
  message();
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_File_seek(file, 0, MPI_SEEK_SET));
  CHECK_MPI(MPI_File_read_all(file, in, N, MPI_FLOAT, &status));
  CHECK(same_f32(in, N, rank));
  MPI_Type_free(&stripes);
  MPI_File_close(&file);
  if (rank == 0) MPI_File_delete(argv[1], MPI_INFO_NULL);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
