/* Processes that meet: inter-communicators within the world, merged ones; groups of processes that
 * connect through a port, and through a socket. Half of the ranks talk to the other half. */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

enum { N = 3000 };

static int rank, size, upper, half, peer;
static float out[N], in[N];

/* Over an inter-communicator or a merged one, where `to` is the partner. */
static void talk(MPI_Comm comm, int to) {
  MPI_Status status;
  MPI_Request request;
  int count;
  fill_f32(out, N, rank);
  MPI_Sendrecv(out, N, MPI_FLOAT, to, 1, in, N, MPI_FLOAT, to, 1, comm, &status);
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == N && status.MPI_SOURCE == to && same_f32(in, N, peer));
  MPI_Isend(out, N, MPI_FLOAT, to, 2, comm, &request);
  MPI_Probe(to, 2, comm, &status);
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(count == N);
  MPI_Recv(in, N, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
  CHECK(status.MPI_TAG == 2 && same_f32(in, N, peer));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void merged(MPI_Comm inter) {
  MPI_Comm all;
  int merged_rank;
  MPI_Intercomm_merge(inter, upper, &all);
  MPI_Comm_rank(all, &merged_rank);
  talk(all, upper ? merged_rank - half : merged_rank + half);
  MPI_Comm_free(&all);
}

/* Two processes connect; `comm` has the one that calls alone. */
static void connected(void) {
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm inter;
  if (rank == 0) {
    CHECK_MPI(MPI_Open_port(MPI_INFO_NULL, port));
    MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, half, 3, MPI_COMM_WORLD);
    CHECK_MPI(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    MPI_Close_port(port);
  } else {
    MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_MPI(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
  }
  talk(inter, 0);
  MPI_Comm_disconnect(&inter);
}

static void joined(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  MPI_Comm inter;
  int fd = socket(AF_UNIX, SOCK_STREAM, 0), ready = 1;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  if (rank == 0) {
    CHECK(bind(fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(fd, 1) == 0);
    MPI_Send(&ready, 1, MPI_INT, half, 4, MPI_COMM_WORLD);
    const int accepted = accept(fd, NULL, NULL);
    close(fd);
    fd = accepted;
    unlink(path);
  } else {
    MPI_Recv(&ready, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(connect(fd, (struct sockaddr*)&address, sizeof address) == 0);
  }
  CHECK_MPI(MPI_Comm_join(fd, &inter));
  talk(inter, 0);
  MPI_Comm_disconnect(&inter);
  close(fd);
}

int main(int argc, char** argv) {
  MPI_Comm part, inter;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(size % 2 == 0);
  half = size / 2;
  upper = rank >= half;
  peer = upper ? rank - half : rank + half;
  MPI_Comm_split(MPI_COMM_WORLD, upper, rank, &part);
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, upper ? 0 : half, 9, &inter);
  talk(inter, rank % half);
  merged(inter);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&part);
  talk(MPI_COMM_WORLD, peer);
  if (rank % half == 0) connected();
  if (rank % half == 0 && argc > 1) joined(argv[1]);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
