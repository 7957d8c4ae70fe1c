/* Whatever is no run of f32 or f64 arrives bit for bit, however lossy the codec that was asked for:
 * integers, bytes, packed data, and structures of which only some members are floats. */
#include "check.h"

enum { BYTES = 1 << 18 };

static char out[BYTES], in[BYTES];
static int rank, right, left;

static void arrives(MPI_Datatype type, int size) {
  MPI_Status status;
  int bytes;
  fill_noise(out, BYTES, (unsigned)rank);
  /* What looks like ordinary numbers is what a lossy codec would change. */
  for (int i = 0; i < BYTES / 8; i += 2) {
    const double value = 1.0 + 1e-9 * i + rank;
    memcpy(out + 8 * i, &value, 8);
  }
  memset(in, 0, BYTES);
  CHECK_MPI(MPI_Sendrecv(out, BYTES / size, type, right, 1, in, BYTES / size, type, left, 1,
                         MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
  CHECK(bytes == BYTES / size * size);
  fill_noise(out, BYTES, (unsigned)left);
  for (int i = 0; i < BYTES / 8; i += 2) {
    const double value = 1.0 + 1e-9 * i + left;
    memcpy(out + 8 * i, &value, 8);
  }
  CHECK(memcmp(in, out, (size_t)bytes) == 0);
}

static void structure_arrives(int floats, MPI_Datatype second) {
  const int lengths[] = {floats, 2};
  const MPI_Aint places[] = {0, 4 * floats};
  const MPI_Datatype parts[] = {MPI_FLOAT, second};
  MPI_Datatype type;
  int size;
  CHECK_MPI(MPI_Type_create_struct(2, lengths, places, parts, &type));
  CHECK_MPI(MPI_Type_commit(&type));
  CHECK_MPI(MPI_Type_size(type, &size));
  arrives(type, size);
  CHECK_MPI(MPI_Type_free(&type));
}

int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  arrives(MPI_INT, 4);
  arrives(MPI_BYTE, 1);
  arrives(MPI_PACKED, 1);
  arrives(MPI_INT64_T, 8);
  structure_arrives(2, MPI_DOUBLE);
  structure_arrives(1, MPI_INT);
  structure_arrives(200, MPI_DOUBLE);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
