/* Random collective calls that move data, checked bit for bit, on memory of the host and of
 * devices, each rank's its own, with messages under way meanwhile.
 *
 * blocks SEED ROUNDS [host|late|device]: host: no buffer lies on a device; late: none does in the
 * first ten rounds, and then those of rank 1 alone; device: most lie on their rank's own. */
#include "moves.h"
#include "simulated_gpu.h"

enum { most_items = 12000 };

int main(int argc, char** argv) {
  int world, size;
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &world));
  CHECK_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check_rank = world;
  state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
  const int rounds = atoi(argv[2]);
  const char* const mode = argc > 3 ? argv[3] : "";
  const int is_late = strcmp(mode, "late") == 0;
  make_kinds();
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &comms[2])); /* the other way round */
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[3]));

  enum { items = 100000 };
  double* const ahead = malloc(sizeof(double) * items);
  double* const behind = malloc(sizeof(double) * items);
  for (int round = 0; round < rounds; ++round) {
    const int comm = (int)below(4);
    const int early = (int)below(2);
    const int partner = world ^ 1;
    const int count = (int)below(items);
    MPI_Request request = MPI_REQUEST_NULL;
    fill_f64(ahead, count, world + round);
    /* A message whose receiver takes it before its call, while its sender is in its own. */
    if (partner < size && world % 2 == early) {
      CHECK_MPI(MPI_Isend(ahead, count, MPI_DOUBLE, partner, round, MPI_COMM_WORLD, &request));
    } else if (partner < size) {
      CHECK_MPI(
          MPI_Recv(behind, count, MPI_DOUBLE, partner, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(same_f64(behind, count, partner + round));
    }
    /* What follows from the round has to be the same everywhere, also in halves. */
    const uint64_t before = state;
    struct Move move = make_move(comms[comm], most_items, mode, is_late && round < 10);
    fill_move(&move, round);
    CHECK_MPI(call_move(&move, blocking, NULL));
    check_move(&move);
    drop_move(&move);
    state = before + 977u * (unsigned)(round + 1);
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  free(ahead);
  free(behind);
  for (int i = 1; i < 4; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
  free_kinds();
  CHECK_MPI(MPI_Finalize());
  if (world == 0) puts("ok");
  return 0;
}
