/* What arrives of three messages errs by no more than the bound given as the argument, and NaN,
 * infinity and huge values arrive as they are. */
#include "check.h"

enum { N = 100000 };

int main(int argc, char** argv) {
  static float sent[N], got[N];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  CHECK(argc == 2);
  const double bound = atof(argv[1]);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < N; ++i) sent[i] = sinf(1e-3f * (float)i) * (float)(1 + round);
    sent[7] = NAN, sent[77] = INFINITY, sent[777] = -INFINITY, sent[7777] = 3e38f;
    if (rank == 0) {
      CHECK_MPI(MPI_Send(sent, N, MPI_FLOAT, 1, round, MPI_COMM_WORLD));
    } else if (rank == 1) {
      CHECK_MPI(MPI_Recv(got, N, MPI_FLOAT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int i = 0; i < N; ++i) {
        if (isfinite(sent[i])) {
          CHECK(fabs((double)got[i] - (double)sent[i]) <= bound);
        } else {
          CHECK(memcmp(&got[i], &sent[i], sizeof(float)) == 0);
        }
      }
      CHECK(got[7777] == sent[7777]);
    }
  }
  MPI_Finalize();
  return 0;
}
