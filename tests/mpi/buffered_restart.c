/* A persistent buffered send that starts again while MPI still sends what it has buffered before:
 * Open MPI gives the program another handle then. The first messages do not compress, so MPI has
 * the request itself; the others do. */
#include "check.h"

enum { N = 1 << 14, PLAIN = 3, ROUNDS = 8 };

static float value(int round, int i) {
  if (round >= PLAIN) return (float)(round + i / 64);
  unsigned bits = (unsigned)(i * ROUNDS + round + 1) * 2654435761u;
  bits = (bits ^ bits >> 15) * 2246822519u;
  bits = (bits ^ bits >> 13) * 3266489917u;
  bits ^= bits >> 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

int main(int argc, char** argv) {
  static float data[N];
  int rank, bytes, go = 0;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  if (rank == 0) {
    CHECK_MPI(MPI_Pack_size(N, MPI_FLOAT, MPI_COMM_WORLD, &bytes));
    const int room = ROUNDS * (bytes + MPI_BSEND_OVERHEAD);
    void* buffer = malloc((size_t)room);
    MPI_Request request;
    CHECK_MPI(MPI_Buffer_attach(buffer, room));
    CHECK_MPI(MPI_Bsend_init(data, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, &request));
    for (int round = 0; round < ROUNDS; ++round) {
      for (int i = 0; i < N; ++i) data[i] = value(round, i);
      CHECK_MPI(MPI_Start(&request));
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(request != MPI_REQUEST_NULL);
    }
    CHECK_MPI(MPI_Send(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Request_free(&request));
    CHECK_MPI(MPI_Buffer_detach(&buffer, &bytes));
    free(buffer);
  } else if (rank == 1) {
    CHECK_MPI(MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int round = 0; round < ROUNDS; ++round) {
      CHECK_MPI(MPI_Recv(data, N, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int i = 0; i < N; ++i) {
        const float expected = value(round, i);
        CHECK(memcmp(&data[i], &expected, sizeof expected) == 0);
      }
    }
  }
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
