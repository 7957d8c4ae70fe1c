/* Sessions of MPI: alone, again and again; or beside MPI_COMM_WORLD, which they outlive. */
#include "check.h"

enum { N = 50000 };
static float out[N], in[N];

static void exchange(MPI_Comm comm, int seed) {
  int rank, size;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  fill_f32(out, N, seed + rank);
  MPI_Isend(out, N, MPI_FLOAT, (rank + 1) % size, 0, comm, &request);
  MPI_Recv(in, N, MPI_FLOAT, (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (!same_f32(in, N, seed + (rank + size - 1) % size)) {
    fputs("changed\n", stderr);
    exit(1);
  }
}

static MPI_Comm start(MPI_Session* session) {
  MPI_Group group;
  MPI_Comm comm, duplicate;
  MPI_Info info;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
  MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpress_codec", "mpc");
  MPI_Comm_create_from_group(group, "mpress", info, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_dup(comm, &duplicate);
  MPI_Comm_free(&comm);
  MPI_Info_free(&info);
  MPI_Group_free(&group);
  return duplicate;
}

static void finish(MPI_Session* session, MPI_Comm comm) {
  MPI_Comm_free(&comm);
  MPI_Session_finalize(session);
}

int main(int argc, char** argv) {
  MPI_Session session;
  MPI_Comm comm, late;
  const int alone = argc > 1 && !strcmp(argv[1], "alone");
  if (alone) {
    int cycles = 2;
#if defined(OPEN_MPI)
    cycles = 0; /* MPI_Session_init of Open MPI 5.0 crashes before MPI_Init */
#endif
    for (int cycle = 0; cycle < cycles; ++cycle) {
      comm = start(&session);
      exchange(comm, cycle);
      finish(&session, comm);
    }
    puts("ok");
    return 0;
  }
  MPI_Init(&argc, &argv);
  exchange(MPI_COMM_WORLD, 1);
  comm = start(&session);
  exchange(MPI_COMM_WORLD, 2);
  exchange(comm, 3);
  MPI_Finalize();
  exchange(comm, 4);
  MPI_Comm_dup(comm, &late);
  exchange(late, 5);
  MPI_Comm_free(&late);
  finish(&session, comm);
  puts("ok");
  return 0;
}
