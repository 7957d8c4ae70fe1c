/* Requests that the program looks at by MPIX_Request_is_complete, which lets nothing proceed and
 * ends nothing: what is complete has its data in the program's buffer, or its buffer back. Where
 * MPI has no such call, MPI_Request_get_status takes its place, unless something defines one.
 *
 * is_complete polled|hooked [threads]. 2 ranks. */
#include "check.h"

enum { SHORT = 3000, LONG = 200000, GAP = 3 };

#if defined MPICH_NUMVERSION && MPICH_NUMVERSION >= 40300000 && !defined MPI_ABI
#define HAS_HOOKS 1
#else
#define HAS_HOOKS 0
int MPIX_Request_is_complete(MPI_Request request) __attribute__((weak));
#endif

static int rank, other, hooked;
static float out[GAP * LONG], in[GAP * LONG];

#if HAS_HOOKS
enum { HAS_CALL = 1 };
static int is_complete(MPI_Request request) { return MPIX_Request_is_complete(request); }

struct Watched {
  MPI_Request request;
  int is_over;
  MPI_Request* answer; /* sent once the request is complete, if there is one */
};

static int look(MPIX_Async_thing thing) {
  struct Watched* const watched = MPIX_Async_get_state(thing);
  if (!is_complete(watched->request)) return MPIX_ASYNC_NOPROGRESS;
  if (watched->answer) {
    CHECK(same_f32(in, LONG, other));
    CHECK_MPI(MPI_Isend(out, 1, MPI_FLOAT, other, 9, MPI_COMM_WORLD, watched->answer));
  }
  watched->is_over = 1;
  return MPIX_ASYNC_DONE;
}

static void progress(void) { CHECK_MPI(MPIX_Stream_progress(MPIX_STREAM_NULL)); }

static void watch(struct Watched* watched) {
  CHECK_MPI(MPIX_Async_start(look, watched, MPIX_STREAM_NULL));
}
#else
#define HAS_CALL (MPIX_Request_is_complete != NULL)
static int is_complete(MPI_Request request) {
  int flag;
  if (HAS_CALL) return MPIX_Request_is_complete(request);
  return MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

static void progress(void) {
  int flag;
  CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
}
#endif

/* Returns when the request is complete. */
static void see(MPI_Request request) {
#if HAS_HOOKS
  if (hooked) {
    struct Watched watched = {request, 0, NULL};
    watch(&watched);
    while (!watched.is_over) progress();
    CHECK(is_complete(request));
    return;
  }
#endif
  while (!is_complete(request)) progress();
  CHECK(is_complete(request));
}

/* What is complete is not touched any more: completing it tells its status alone. */
static void complete(MPI_Request* request, int count, int tag) {
  MPI_Status status;
  int got;
  const float before = in[0];
  in[0] = -1;
  CHECK_MPI(MPI_Wait(request, &status));
  CHECK_MPI(MPI_Get_count(&status, MPI_FLOAT, &got));
  CHECK(got == count && status.MPI_SOURCE == other && status.MPI_TAG == tag && in[0] == -1);
  in[0] = before;
}

static void receives(int count) {
  MPI_Request request;
  if (rank == 0) {
    fill_f32(out, count, rank);
    CHECK_MPI(MPI_Send(out, count, MPI_FLOAT, other, 1, MPI_COMM_WORLD));
    return;
  }
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Irecv(in, count, MPI_FLOAT, 0, 1, MPI_COMM_WORLD, &request));
  see(request);
  CHECK(same_f32(in, count, 0));
  complete(&request, count, 1);
}

/* Its type is freed while the message is under way. */
static void receives_with_gaps(int count) {
  MPI_Request request;
  MPI_Datatype type;
  if (rank == 0) {
    fill_f32(out, count, rank);
    CHECK_MPI(MPI_Send(out, count, MPI_FLOAT, other, 2, MPI_COMM_WORLD));
    return;
  }
  for (int i = 0; i < GAP * count; ++i) in[i] = -2;
  CHECK_MPI(MPI_Type_vector(count, 1, GAP, MPI_FLOAT, &type));
  CHECK_MPI(MPI_Type_commit(&type));
  CHECK_MPI(MPI_Irecv(in, 1, type, 0, 2, MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Type_free(&type));
  see(request);
  for (int i = 0; i < count; ++i) out[i] = in[GAP * i];
  CHECK(same_f32(out, count, 0));
  for (int i = 0; i < GAP * count; ++i) CHECK(i % GAP == 0 || in[i] == -2);
  complete(&request, count, 2);
}

static void persistent(int count) {
  MPI_Request request;
  if (rank == 0) {
    CHECK_MPI(MPI_Send_init(out, count, MPI_FLOAT, other, 3, MPI_COMM_WORLD, &request));
  } else {
    CHECK_MPI(MPI_Recv_init(in, count, MPI_FLOAT, other, 3, MPI_COMM_WORLD, &request));
  }
  for (int round = 0; round < 3; ++round) {
    CHECK(is_complete(request)); /* inactive */
    fill_f32(rank == 0 ? out : in, count, rank == 0 ? round : -round - 7);
    CHECK_MPI(MPI_Start(&request));
    if (!HAS_CALL) { /* MPI_Request_get_status ends a persistent receive in MPICH */
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(rank == 0 || same_f32(in, count, round));
      continue;
    }
    see(request);
    if (rank == 0) {
      memset(out, 0, sizeof(float) * (size_t)count);
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      CHECK(same_f32(in, count, round));
      complete(&request, count, 3);
    }
  }
  CHECK_MPI(MPI_Request_free(&request));
}

/* The buffer of a send that is complete is the program's again. */
static void sends(int count) {
  MPI_Request requests[2];
  if (rank == 1) {
    for (int round = 0; round < 2; ++round) {
      CHECK_MPI(MPI_Recv(in, count, MPI_FLOAT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(same_f32(in, count, round));
    }
    return;
  }
  for (int round = 0; round < 2; ++round) {
    fill_f32(out, count, round);
    if (round == 0) {
      CHECK_MPI(MPI_Isend(out, count, MPI_FLOAT, other, 4, MPI_COMM_WORLD, &requests[round]));
    } else {
      CHECK_MPI(MPI_Issend(out, count, MPI_FLOAT, other, 4, MPI_COMM_WORLD, &requests[round]));
    }
    see(requests[round]);
    memset(out, 0, sizeof(float) * (size_t)count);
  }
  CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void raw(void) {
  MPI_Request request;
  fill_noise(out, sizeof(float) * SHORT, 5);
  if (rank == 0) {
    CHECK_MPI(MPI_Send(out, SHORT, MPI_FLOAT, other, 5, MPI_COMM_WORLD));
    return;
  }
  CHECK_MPI(MPI_Irecv(in, LONG, MPI_FLOAT, 0, 5, MPI_COMM_WORLD, &request));
  see(request);
  CHECK(memcmp(in, out, sizeof(float) * SHORT) == 0);
  complete(&request, SHORT, 5);
}

/* A message that does not fit is complete, too: the call that completes it tells. */
static void truncated(int count) {
  MPI_Request request;
  int class;
  if (rank == 0) {
    fill_f32(out, count, rank);
    CHECK_MPI(MPI_Send(out, count, MPI_FLOAT, other, 6, MPI_COMM_WORLD));
    return;
  }
  CHECK_MPI(MPI_Irecv(in, count / 100, MPI_FLOAT, 0, 6, MPI_COMM_WORLD, &request));
  if (HAS_HOOKS) see(request); /* raises nothing */
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  see(request);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  CHECK_MPI(MPI_Error_class(code, &class));
  CHECK(class == MPI_ERR_TRUNCATE);
}

/* Also of a communicator's first calls, of which the second is looked at first. */
static void collectives(int count) {
  MPI_Comm comm;
  MPI_Request requests[2];
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm));
  fill_f32(rank == 0 ? out : in, count, rank == 0 ? 3 : -3);
  float* const broadcast = rank == 0 ? out : in;
  float* const sums = broadcast + LONG;
  for (int i = 0; i < count; ++i) sums[i] = (float)(i % 64);
  CHECK_MPI(MPI_Ibcast(broadcast, count, MPI_FLOAT, 0, comm, &requests[0]));
  CHECK_MPI(MPI_Iallreduce(MPI_IN_PLACE, sums, count, MPI_FLOAT, MPI_SUM, comm, &requests[1]));
  see(requests[1]);
  for (int i = 0; i < count; ++i) CHECK(sums[i] == (float)(2 * (i % 64)));
  see(requests[0]);
  CHECK(same_f32(broadcast, count, 3));
  CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK_MPI(MPI_Comm_free(&comm));
}

#if HAS_HOOKS
/* The other rank enters the barrier when the hook has answered it. */
static void in_a_barrier(void) {
  float word;
  if (rank == 0) {
    fill_f32(out, LONG, rank);
    CHECK_MPI(MPI_Send(out, LONG, MPI_FLOAT, other, 8, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Recv(&word, 1, MPI_FLOAT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    return;
  }
  MPI_Request answer = MPI_REQUEST_NULL;
  struct Watched watched = {MPI_REQUEST_NULL, 0, &answer};
  memset(in, 0, sizeof in);
  CHECK_MPI(MPI_Irecv(in, LONG, MPI_FLOAT, other, 8, MPI_COMM_WORLD, &watched.request));
  watch(&watched);
  CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
  CHECK(watched.is_over);
  CHECK_MPI(MPI_Wait(&answer, MPI_STATUS_IGNORE));
  complete(&watched.request, LONG, 8);
}

/* On a communicator of MPICH's streams others may receive by calls of its own: messages go raw. */
static void streams(void) {
  MPI_Comm comm, duplicate;
  MPIX_Stream stream;
  MPI_Request request;
  CHECK_MPI(MPIX_Stream_create(MPI_INFO_NULL, &stream));
  CHECK_MPI(MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm));
  CHECK_MPI(MPI_Comm_dup(comm, &duplicate));
  fill_f32(out, LONG, rank);
  MPI_Comm comms[] = {comm, duplicate};
  for (int k = 0; k < 2; ++k) {
    memset(in, 0, sizeof in);
    if (rank == 0) {
      CHECK_MPI(MPI_Send(out, LONG, MPI_FLOAT, other, 7, comms[k]));
    } else {
      CHECK_MPI(MPI_Irecv(in, LONG, MPI_FLOAT, other, 7, comms[k], &request));
      while (!is_complete(request)) CHECK_MPI(MPIX_Stream_progress(stream));
      CHECK(same_f32(in, LONG, 0));
      complete(&request, LONG, 7);
    }
    CHECK_MPI(MPI_Comm_free(&comms[k]));
  }
  CHECK_MPI(MPIX_Stream_free(&stream));
}
#endif

int main(int argc, char** argv) {
  const int threaded = argc > 2;
  int provided;
  setenv("MPIR_CVAR_CH4_RESERVE_VCIS", "1", 0); /* else MPICH has no streams */
  hooked = argc > 1 && !strcmp(argv[1], "hooked");
  MPI_Init_thread(&argc, &argv, threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  other = 1 - rank;
  const int counts[] = {SHORT, LONG};
  for (int k = 0; k < 2; ++k) {
    receives(counts[k]);
    receives_with_gaps(counts[k]);
    persistent(counts[k]);
    sends(counts[k]);
    truncated(counts[k]);
    collectives(counts[k]);
  }
  raw();
#if HAS_HOOKS
  if (hooked && !threaded) in_a_barrier();
  streams();
#endif
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
