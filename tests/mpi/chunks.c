/* Messages that travel as a header and chunks keep MPI's rules: no send waits for its receiver's
 * chunks, what is truncated or cancelled leaves nothing behind, communicators and requests may be
 * freed while chunks are under way, and every completion call tells the truth about them.
 * To be run with chunks of 64 KiB or less on at least two ranks. */
#include "check.h"

enum { N = 150001, SHORT = 120000, FEW = 20 };

static int rank, size, left, right;
static float out[N], in[N];
static MPI_Comm comm;

static int class_of(int code) {
  int error_class;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static void is_from(const MPI_Status* status, int source, int tag) {
  int count;
  CHECK(status->MPI_SOURCE == source && status->MPI_TAG == tag);
  CHECK_MPI(MPI_Get_count(status, MPI_FLOAT, &count));
  CHECK(count == N);
}

/* Only the beginning compresses, so that the chunks behind it are large on the wire: MPI does not
 * take them before they are received. */
static void fill_mostly_noise(float* values, int seed) {
  fill_f32(values, N, seed);
  fill_noise(values + N / 6, sizeof(float) * (N - N / 6), (unsigned)seed);
}

static int is_mostly_noise(const float* values, int seed) {
  static float expected[N];
  fill_mostly_noise(expected, seed);
  return memcmp(values, expected, sizeof expected) == 0;
}

/* Rank 1 posts its receive and enters the barrier; rank 0 sends and enters it too. */
static void send_then_barrier(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  for (int round = 0; round < 4; ++round) {
    fill_mostly_noise(out, round);
    memset(in, 0, sizeof in);
    if (rank == 1) CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, 0, round, comm, &request));
    if (rank == 0 && round % 2 == 0) CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, round, comm));
    if (rank == 0 && round % 2 == 1) CHECK_MPI(MPI_Ssend(out, N, MPI_FLOAT, 1, round, comm));
    memset(out, 0, sizeof out); /* the send is over: its buffer is the program's */
    MPI_Barrier(comm);
    if (rank == 1) {
      CHECK_MPI(MPI_Wait(&request, &status));
      is_from(&status, 0, round);
      CHECK(is_mostly_noise(in, round));
    }
  }
}

/* Every way to complete a receive, on a ring. */
static void completions(void) {
  enum { K = 4 };
  static float many[K][N];
  MPI_Request requests[K], sends[K];
  MPI_Status status, statuses[K];
  for (int way = 0; way < 12; ++way) {
    memset(many, 0, sizeof many);
    for (int k = 0; k < K; ++k) {
      CHECK_MPI(MPI_Irecv(many[k], N, MPI_FLOAT, left, k, comm, &requests[k]));
    }
    for (int k = 0; k < K; ++k) {
      fill_f32(out, N, rank + k);
      if (k % 2) {
        CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, k, comm, &sends[k]));
      } else {
        CHECK_MPI(MPI_Issend(out, N, MPI_FLOAT, right, k, comm, &sends[k]));
      }
      /* A buffer belongs to MPI until the send completes: one for each. */
      CHECK_MPI(MPI_Wait(k % 2 ? &sends[k] : &requests[k], way == 0 ? MPI_STATUS_IGNORE : &status));
      if (k % 2 == 0) CHECK_MPI(MPI_Wait(&sends[k], MPI_STATUS_IGNORE));
      if (k % 2 == 0) CHECK(requests[k] == MPI_REQUEST_NULL && same_f32(many[k], N, left + k));
    }
    int open = 2, flag = 0, done, index, indices[K];
    switch (way) {
      case 0: CHECK_MPI(MPI_Waitall(K, requests, MPI_STATUSES_IGNORE)); break;
      case 1:
        CHECK_MPI(MPI_Waitall(K, requests, statuses));
        is_from(&statuses[1], left, 1);
        break;
      case 2:
        for (; open; --open) {
          CHECK_MPI(MPI_Waitany(K, requests, &index, &status));
          is_from(&status, left, index);
        }
        CHECK_MPI(MPI_Waitany(K, requests, &index, &status));
        CHECK(index == MPI_UNDEFINED);
        break;
      case 3:
        while (open) {
          CHECK_MPI(MPI_Waitsome(K, requests, &done, indices, statuses));
          CHECK(done > 0);
          for (int d = 0; d < done; ++d) is_from(&statuses[d], left, indices[d]);
          open -= done;
        }
        break;
      case 4:
        for (int k = 1; k < K; k += 2) {
          for (flag = 0; !flag;) CHECK_MPI(MPI_Test(&requests[k], &flag, &status));
          is_from(&status, left, k);
        }
        break;
      case 5:
        while (!flag) CHECK_MPI(MPI_Testall(K, requests, &flag, statuses));
        is_from(&statuses[3], left, 3);
        break;
      case 6:
        while (open) {
          CHECK_MPI(MPI_Testany(K, requests, &index, &flag, &status));
          if (!flag) continue;
          CHECK(index != MPI_UNDEFINED);
          is_from(&status, left, index);
          --open;
        }
        break;
      case 7:
        while (open) {
          CHECK_MPI(MPI_Testsome(K, requests, &done, indices, statuses));
          CHECK(done != MPI_UNDEFINED);
          for (int d = 0; d < done; ++d) is_from(&statuses[d], left, indices[d]);
          open -= done;
        }
        break;
      case 8: /* looking does not complete */
        while (!flag) CHECK_MPI(MPI_Request_get_status(requests[1], &flag, &status));
        is_from(&status, left, 1);
        CHECK(same_f32(many[1], N, left + 1) && requests[1] != MPI_REQUEST_NULL);
        CHECK_MPI(MPI_Waitall(K, requests, statuses));
        is_from(&statuses[1], left, 1);
        break;
      case 9: /* freed: what was sent still arrives */
        CHECK_MPI(MPI_Request_free(&requests[1]));
        CHECK_MPI(MPI_Request_free(&requests[3]));
        CHECK(requests[1] == MPI_REQUEST_NULL);
        while (!same_f32(many[1], N, left + 1) || !same_f32(many[3], N, left + 3)) {
          CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 99, comm, &flag, MPI_STATUS_IGNORE));
        }
        break;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
      case 10:
        while (!flag) {
          CHECK_MPI(MPI_Request_get_status_any(K, requests, &index, &flag, &status));
          if (flag) CHECK(index == 1 || index == 3);
        }
        is_from(&status, left, index);
        for (flag = 0; !flag;) CHECK_MPI(MPI_Request_get_status_all(K, requests, &flag, statuses));
        CHECK_MPI(MPI_Waitall(K, requests, statuses));
        break;
      case 11:
        for (done = 0; done < 2;) {
          CHECK_MPI(MPI_Request_get_status_some(K, requests, &done, indices, statuses));
          CHECK(done != MPI_UNDEFINED);
        }
        is_from(&statuses[1], left, 3);
        CHECK_MPI(MPI_Waitall(K, requests, statuses));
        break;
#endif
      default: CHECK_MPI(MPI_Waitall(K, requests, statuses)); break;
    }
    for (int k = 0; k < K; ++k) CHECK(same_f32(many[k], N, left + k));
    MPI_Barrier(comm);
  }
}

/* Receives with too little room: for the message, and even for its header. */
static void truncated(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm quiet;
  CHECK_MPI(MPI_Comm_dup(comm, &quiet));
  MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
  for (int i = 0; i < N; ++i) in[i] = -7.0f;
  fill_mostly_noise(out, 3);
  if (rank == 0) {
    for (int tag = 0; tag < 4; ++tag) {
      MPI_Recv(NULL, 0, MPI_INT, 1, 100, comm, MPI_STATUS_IGNORE); /* the receive is posted */
      CHECK_MPI(MPI_Send(out, N, MPI_FLOAT, 1, tag, quiet));
    }
  } else if (rank == 1) {
    MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
    CHECK(class_of(MPI_Recv(in, SHORT, MPI_FLOAT, 0, 0, quiet, MPI_STATUS_IGNORE)) ==
          MPI_ERR_TRUNCATE);
    for (int tag = 1; tag < 4; ++tag) {
      const int room = tag == 2 ? FEW : SHORT;
      CHECK_MPI(MPI_Irecv(in, room, MPI_FLOAT, 0, tag, quiet, &request));
      MPI_Send(NULL, 0, MPI_INT, 0, 100, comm);
      int flag = 0, code = MPI_SUCCESS;
      if (tag < 3) {
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      } else {
        while (!flag && code == MPI_SUCCESS) code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      }
      CHECK(class_of(code) == MPI_ERR_TRUNCATE);
    }
#ifndef OMPI_MAJOR_VERSION /* Open MPI itself writes all of a large message, room or not. */
    for (int i = SHORT; i < N; ++i) CHECK(in[i] == -7.0f);
#endif
  }
  CHECK_MPI(MPI_Comm_free(&quiet));
}

static void cancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int gone;
  /* A receive that nobody answers; a later one takes the message that comes then. */
  CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, 7, comm, &request));
  CHECK_MPI(MPI_Cancel(&request));
  CHECK_MPI(MPI_Wait(&request, &status));
  CHECK_MPI(MPI_Test_cancelled(&status, &gone));
  CHECK(gone);
  MPI_Barrier(comm);
  fill_f32(out, N, rank);
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 7, comm, &request));
  CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, left, 7, comm, &status));
  is_from(&status, left, 7);
  CHECK(same_f32(in, N, left));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  /* A persistent receive is cancelled like any other. */
  CHECK_MPI(MPI_Recv_init(in, N, MPI_FLOAT, left, 8, comm, &request));
  CHECK_MPI(MPI_Start(&request));
  CHECK_MPI(MPI_Cancel(&request));
  CHECK_MPI(MPI_Wait(&request, &status));
  CHECK_MPI(MPI_Test_cancelled(&status, &gone));
  CHECK(gone);
  CHECK_MPI(MPI_Request_free(&request));
  MPI_Barrier(comm);
  /* A send is cancelled before its receiver sees it, or else it is received. */
  int sent = 0, answered = 0;
  fill_mostly_noise(out, rank + 2);
  CHECK_MPI(MPI_Issend(out, N, MPI_FLOAT, right, 9, comm, &request));
#ifdef OMPI_MAJOR_VERSION
  /* MPICH 5.0 cancels no such send, and crashes where it is a short one, as a header is, whose
   * request was never in use before: it looks for it in the network. */
  CHECK_MPI(MPI_Cancel(&request));
#endif
  while (!sent || !answered) {
    int there = 0;
    if (!sent) {
      CHECK_MPI(MPI_Test(&request, &sent, MPI_STATUS_IGNORE));
      if (sent) CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, right, 10, comm));
    }
    CHECK_MPI(MPI_Iprobe(left, MPI_ANY_TAG, comm, &there, &status));
    if (there && status.MPI_TAG == 9) {
      CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, left, 9, comm, &status));
      is_from(&status, left, 9);
    } else if (there) {
      CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, left, 10, comm, MPI_STATUS_IGNORE));
      answered = 1;
    }
  }
}

/* The communicator ends for the program while its messages are under way. */
static void freed_communicator(void) {
  MPI_Comm other;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  CHECK_MPI(MPI_Comm_dup(comm, &other));
  fill_mostly_noise(out, rank + 5);
  CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, 1, other, &requests[0]));
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 1, other, &requests[1]));
  CHECK_MPI(MPI_Comm_free(&other));
  CHECK_MPI(MPI_Waitall(2, requests, statuses));
  is_from(&statuses[0], left, 1);
  CHECK(is_mostly_noise(in, left + 5));
}

static void probed(void) {
  MPI_Request request, send;
  MPI_Message message;
  MPI_Status status;
  for (int way = 0; way < 6; ++way) {
    memset(in, 0, sizeof in);
    fill_f32(out, N, rank + way);
    CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, way, comm, &send));
    if (way < 3) {
      CHECK_MPI(MPI_Probe(left, way, comm, &status));
      is_from(&status, left, way);
    } else {
      CHECK_MPI(MPI_Mprobe(left, MPI_ANY_TAG, comm, &message, &status));
      is_from(&status, left, way);
    }
    switch (way) {
      case 0: CHECK_MPI(MPI_Recv(in, N, MPI_FLOAT, MPI_ANY_SOURCE, 0, comm, &status)); break;
      case 1:
        CHECK_MPI(MPI_Irecv(in, N, MPI_FLOAT, left, MPI_ANY_TAG, comm, &request));
        CHECK_MPI(MPI_Wait(&request, &status));
        break;
      case 2:
        CHECK_MPI(MPI_Recv_init(in, N, MPI_FLOAT, left, 2, comm, &request));
        CHECK_MPI(MPI_Start(&request));
        CHECK_MPI(MPI_Wait(&request, &status));
        CHECK_MPI(MPI_Request_free(&request));
        break;
      case 3: CHECK_MPI(MPI_Mrecv(in, N, MPI_FLOAT, &message, &status)); break;
      case 4:
        CHECK_MPI(MPI_Imrecv(in, N, MPI_FLOAT, &message, &request));
        for (int flag = 0; !flag;) CHECK_MPI(MPI_Test(&request, &flag, &status));
        break;
      default:
        CHECK_MPI(MPI_Imrecv(in, N, MPI_FLOAT, &message, &request));
        CHECK_MPI(MPI_Request_free(&request));
        while (!same_f32(in, N, left + way)) {
          int flag;
          CHECK_MPI(MPI_Iprobe(left, 99, comm, &flag, MPI_STATUS_IGNORE));
        }
        break;
    }
    if (way < 5) is_from(&status, left, way);
    CHECK(same_f32(in, N, left + way));
    CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
  }
}

static void exchanges(void) {
  MPI_Status status;
  fill_f32(out, N, rank);
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, right, 1, in, N, MPI_FLOAT, left, 1, comm, &status));
  is_from(&status, left, 1);
  CHECK(same_f32(in, N, left));
  CHECK_MPI(MPI_Sendrecv_replace(in, N, MPI_FLOAT, left, 2, right, 2, comm, &status));
  is_from(&status, right, 2);
  CHECK(same_f32(in, N, rank)); /* back where it came from */
#if MPI_VERSION >= 4
  MPI_Request request;
  CHECK_MPI(MPI_Isendrecv(out, N, MPI_FLOAT, right, 3, in, N, MPI_FLOAT, left, 3, comm, &request));
  CHECK_MPI(MPI_Wait(&request, &status));
  /* MPICH 5.0 leaves the status of these undefined; mpress does not. */
  const int told = getenv("MPRESS_JOB") != NULL;
  if (told) is_from(&status, left, 3);
  CHECK(same_f32(in, N, left));
  CHECK_MPI(MPI_Isendrecv_replace(in, N, MPI_FLOAT, left, 4, right, 4, comm, &request));
  for (int flag = 0; !flag;) CHECK_MPI(MPI_Test(&request, &flag, &status));
  if (told) is_from(&status, right, 4);
  CHECK(same_f32(in, N, rank));
#endif
}

/* Chunks that do not compress travel as they are, in a message of which others do; layouts differ
 * on both sides, and the gaps stay untouched. */
static void mixed(void) {
  MPI_Datatype every_second, columns;
  MPI_Request send;
  MPI_Status status;
  static float wide[2 * N];
  fill_f32(out, N, rank);
  fill_noise(out + N / 3, sizeof(float) * (N / 2 - N / 3), 1);
  CHECK_MPI(MPI_Type_vector(N, 1, 2, MPI_FLOAT, &every_second));
  CHECK_MPI(MPI_Type_commit(&every_second));
  CHECK_MPI(MPI_Type_create_hindexed_block(1, N, (MPI_Aint[]){sizeof(float)}, MPI_FLOAT, &columns));
  CHECK_MPI(MPI_Type_commit(&columns));
  for (int i = 0; i < 2 * N; ++i) wide[i] = -1.0f;
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 1, comm, &send));
  CHECK_MPI(MPI_Recv(wide, 1, every_second, left, 1, comm, &status));
  CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  for (int i = 0; i < N; ++i) {
    if (i < N / 3 || i >= N / 2) CHECK(wide[2 * i] == (float)(left + 1) + 1e-3f * (float)i);
    if (i >= N / 3 && i < N / 2) CHECK(memcmp(&wide[2 * i], &out[i], sizeof(float)) == 0);
    CHECK(wide[2 * i + 1] == -1.0f);
  }
  for (int i = 0; i <= N; ++i) wide[N - 1 + i] = 9.0f; /* from here on received */
  CHECK_MPI(MPI_Isend(out, N, MPI_FLOAT, right, 2, comm, &send));
  CHECK_MPI(MPI_Recv(wide, 1, columns, left, 2, comm, &status));
  CHECK_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
  CHECK(memcmp(&wide[1 + N / 3], &out[N / 3], sizeof(float) * (N / 2 - N / 3)) == 0);
  CHECK(wide[1 + N] == 9.0f);
  CHECK_MPI(MPI_Type_free(&every_second));
  CHECK_MPI(MPI_Type_free(&columns));
}

/* Sends and receives that the program gives up before the end. */
static void freed_at_the_end(void) {
  static float last[N], got[N];
  MPI_Request requests[2];
  fill_mostly_noise(last, 1);
  CHECK_MPI(MPI_Irecv(got, N, MPI_FLOAT, left, 55, MPI_COMM_WORLD, &requests[0]));
  CHECK_MPI(MPI_Isend(last, N, MPI_FLOAT, right, 55, MPI_COMM_WORLD, &requests[1]));
  if (requests[1] != MPI_REQUEST_NULL) CHECK_MPI(MPI_Request_free(&requests[1]));
  CHECK_MPI(MPI_Request_free(&requests[0]));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  send_then_barrier();
  completions();
  truncated();
  cancelled();
  freed_communicator();
  probed();
  exchanges();
  mixed();
  MPI_Comm_free(&comm);
  freed_at_the_end();
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
