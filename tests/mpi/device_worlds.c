/* Messages between memory of GPUs where MPI_COMM_WORLD is not all there is: "merged" with spawned
 * processes, in which mpress is not at work, or beside "sessions". Two ranks. */
#include "device_link.h"
#include "simulated_gpu.h"

enum { ROUNDS = 4 };

/* Every rank of a communicator to every other. */
static void exchange(MPI_Comm comm, int is_child) {
  struct Memory from = room_on(is_child ? -1 : 0), to = room_on(is_child ? -1 : 1);
  int own, ranks;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &ranks);
  for (int round = 0; round < ROUNDS * ranks; ++round) {
    const int peer = (round + ranks - own) % ranks;
    MPI_Status status;
    set_values(&from, N, own + round);
    CHECK_MPI(MPI_Sendrecv(from.data, N, MPI_FLOAT, peer, 1, to.data, ROOM, MPI_FLOAT, peer, 1,
                           comm, &status));
    check_status(&status, peer, 1, N);
    check_values(&to, N, peer + round);
  }
  drop(&from);
  drop(&to);
}

static void merged(const char* program) {
  MPI_Comm inter, all;
  MPI_Comm_get_parent(&inter);
  const int is_child = inter != MPI_COMM_NULL;
  char part[] = "merged";
  char* arguments[] = {part, NULL};
  if (!is_child) {
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
  }
  MPI_Intercomm_merge(inter, is_child, &all);
  exchange(all, is_child);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

static void sessions(void) {
#if MPI_VERSION >= 4
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  exchange(MPI_COMM_WORLD, 0);
  MPI_Session_finalize(&session);
#endif
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_get_parent(&parent);
  if (!strcmp(argv[1], "merged")) merged(argv[0]);
  if (!strcmp(argv[1], "sessions")) sessions();
  MPI_Finalize();
  if (rank == 0 && parent == MPI_COMM_NULL) puts("ok");
  return 0;
}
