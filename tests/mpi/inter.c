/* Messages between two groups, over an inter-communicator: they travel as the program gave them, so
 * nothing there is taken for a frame, and nothing but a receive takes a message away. For two
 * ranks.
 */
#include "beneath.h"

enum { N = 20000, FRAME = 42 + 64 * 20 /* floats, of a size that frames have */, WAYS = 8 };

static int rank;
static float out[N], in[N];
static MPI_Comm inter;

/* Receives a message of tag `way` in one of the ways that there are. */
static void receive(int way, MPI_Status* status) {
  MPI_Request request;
  MPI_Message message;
  memset(in, 0, sizeof in);
  switch (way) {
    case 0: CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, 0, way, inter, status)); break;
    case 1:
      CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, way, inter, &request));
      CHECK_MPI(MPI_Wait(&request, status));
      break;
    case 2:
      CHECK_MPI(MPI_Recv_init(in, N, MPI_FLOAT, 0, way, inter, &request));
      CHECK_MPI(MPI_Start(&request));
      CHECK_MPI(MPI_Wait(&request, status));
      CHECK_MPI(MPI_Request_free(&request));
      break;
    case 3:
      CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_INT, 0, 50, in, N, MPI_FLOAT, 0, way, inter, status));
      break;
    case 4:
      CHECK_MPI(MPI_Probe(0, way, inter, status));
      CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, 0, way, inter, status));
      break;
    case 5:
      CHECK_MPI(MPI_Mprobe(0, way, inter, &message, status));
      CHECK_MPI(MPI_Mrecv(in, N, MPI_FLOAT, &message, status));
      break;
    case 6:
      CHECK_MPI(MPI_Mprobe(0, way, inter, &message, status));
      CHECK_MPI(MPI_Imrecv(in, N, MPI_FLOAT, &message, &request));
      CHECK_MPI(MPI_Wait(&request, status));
      break;
    default:
      CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, way, inter, &request));
      for (int flag = 0; !flag;) CHECK_MPI(MPI_Test(&request, &flag, status));
  }
}

static void send_back(int way, const float* values, int count) {
  CHECK_MPI(MPI_Send(values, count, MPI_FLOAT, 0, way, inter));
  if (way == 3) CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 50, inter, MPI_STATUS_IGNORE));
}

static void floats(void) {
  MPI_Status status;
  int count;
  fill_f32(out, N, 1);
  for (int way = 0; way < WAYS; ++way) {
    if (rank == 1) send_back(way, out, N);
    if (rank == 1) continue;
    receive(way, &status);
    CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &count));
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == way && count == N);
    CHECK(same_f32(in, N, 1));
  }
}

/* Rank 1 takes a message as it travels, behind mpress's back, and sends that as its own data. */
static void what_looks_like_a_frame(void) {
  static unsigned char frame[sizeof out], expected[sizeof out];
  MPI_Status status;
  int bytes, count;
  if (rank == 1) {
    const OwnRecv take = (OwnRecv)own_function("PMPI_Recv");
    CHECK_MPI(take(frame, N, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, &status));
    CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
    for (int i = 0; i < bytes; ++i) expected[i] = frame[i] ^ 0xff;
    CHECK_MPI(MPI_Send(expected, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD));
    for (int way = 0; way < WAYS; ++way) send_back(way, (const float*)(void*)frame, bytes / 4);
    return;
  }
  fill_f32(out, N, 2);
  CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Recv(expected, sizeof expected, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
  for (int i = 0; i < bytes; ++i) expected[i] ^= 0xff;
  for (int way = 0; way < WAYS; ++way) {
    receive(way, &status);
    CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == bytes && memcmp(in, expected, (size_t)bytes) == 0);
  }
}

/* A probe leaves a synchronous send uncompleted. */
static void probes(void) {
  for (int way = 0; way < 2; ++way) {
    MPI_Request request;
    MPI_Message message;
    int flag;
    if (rank == 0) {
      fill_f32(out, FRAME, 3);
      CHECK_MPI(MPI_Issend(out, FRAME, MPI_FLOAT, 0, 60, inter, &request));
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 1, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      for (int tries = 0; tries < 1000; ++tries) {
        CHECK_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
      }
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 1, 62, MPI_COMM_WORLD));
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
      if (way == 0) CHECK_MPI(MPI_Probe(0, 60, inter, MPI_STATUS_IGNORE));
      if (way == 1) CHECK_MPI(MPI_Mprobe(0, 60, inter, &message, MPI_STATUS_IGNORE));
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 0, 61, MPI_COMM_WORLD));
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 62, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      if (way == 0) CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, 0, 60, inter, MPI_STATUS_IGNORE));
      if (way == 1) CHECK_MPI(MPI_Mrecv(in, N, MPI_FLOAT, &message, MPI_STATUS_IGNORE));
      CHECK(same_f32(in, FRAME, 3));
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  CHECK_MPI(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 9, &inter));
  floats();
  what_looks_like_a_frame();
  probes();
  MPI_Comm_free(&inter);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
