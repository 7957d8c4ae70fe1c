/* Messages of one kind many times over, and then one that only looks like them: what was decided of
 * the former must not outlive what it rests on. Two ranks; rank 0 sends. */
#include <time.h>

#include "check.h"

enum { N = 4096, TIMES = 40 };
static union {
  float f32[N];
  char bytes[N * sizeof(float)];
} data;
static int rank;

/* `times` messages of `count` items with the floats of `seed`. */
static void pass(int times, int count, MPI_Datatype type, MPI_Comm comm, int seed) {
  for (int i = 0; i < times; ++i) {
    if (rank == 0) {
      fill_f32(data.f32, N, seed);
      CHECK_MPI(MPI_Send(&data, count, type, 1, 0, comm));
    } else {
      memset(&data, 0, sizeof data);
      CHECK_MPI(MPI_Recv(&data, count, type, 0, 0, comm, MPI_STATUS_IGNORE));
      CHECK(same_f32(data.f32, N, seed));
    }
  }
}

static void set_codec(MPI_Comm comm, const char* codec) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpress_codec", codec);
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
}

/* none, mpc, none: TIMES each. */
static void hints(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const char* codecs[] = {"none", "mpc", "none"};
  for (int i = 0; i < 3; ++i) {
    set_codec(comm, codecs[i]);
    pass(TIMES, N, MPI_FLOAT, comm, i);
  }
  MPI_Comm_free(&comm);
}

/* Communicators that may have one handle: TIMES messages raw, and as many compressed. */
static void communicators(void) {
  for (int i = 0; i < 2; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (i == 0) set_codec(comm, "none");
    pass(TIMES, N, MPI_FLOAT, comm, i);
    MPI_Comm_free(&comm);
  }
}

/* Types that may have one handle: TIMES messages of ints, and as many of floats. */
static void types(void) {
  for (int i = 0; i < 2; ++i) {
    MPI_Datatype type;
    MPI_Type_contiguous(N, i == 0 ? MPI_INT : MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    pass(TIMES, 1, type, MPI_COMM_WORLD, i);
    MPI_Type_free(&type);
  }
}

/* TIMES messages that nothing compresses, and as many that are compressed, by turns of `run`. */
static void data_that_changes(int run) {
  static union {
    float f32[N];
    unsigned bits[N];
  } noise;
  for (int i = 0; i < TIMES; i += run) {
    for (int k = 0; k < run; ++k) {
      fill_noise(noise.bits, sizeof noise, (unsigned)(i + k));
      if (rank == 0) {
        MPI_Send(noise.f32, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(&data, N, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(memcmp(&data, &noise, sizeof noise) == 0);
      }
    }
    pass(run, N, MPI_FLOAT, MPI_COMM_WORLD, i);
  }
}

/* The same in both ways at once. */
static void exchanges_that_change(int run) {
  static float out[N];
  for (int i = 0; i < 2 * TIMES; ++i) {
    if (i / run % 2 == 0) {
      fill_noise(out, sizeof out, (unsigned)i);
    } else {
      fill_f32(out, N, i);
    }
    memset(&data, 0, sizeof data);
    CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, 1 - rank, 0, &data, N, MPI_FLOAT, 1 - rank, 0,
                           MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(memcmp(&data, out, sizeof out) == 0);
  }
}

/* Raw ones in both ways at once, whose buffer is that of what comes. */
static void replaced(void) {
  static int values[N];
  for (int i = 0; i < TIMES; ++i) {
    for (int k = 0; k < N; ++k) values[k] = i + rank + k;
    CHECK_MPI(MPI_Sendrecv_replace(values, N, MPI_INT, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD,
                                   MPI_STATUS_IGNORE));
    for (int k = 0; k < N; ++k) CHECK(values[k] == i + 1 - rank + k);
  }
}

/* Messages of all lengths into one kind of receive, those that a frame could have among them. */
static void lengths(void) {
  for (int bytes = 9000; bytes < 9600; ++bytes) {
    const int others = bytes % 3 == 0 ? 9000 : bytes;
    for (int i = 0; i < 2; ++i) {
      const int length = i == 0 ? bytes : others;
      if (rank == 0) {
        memset(&data, bytes, sizeof data);
        MPI_Send(&data, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      } else {
        MPI_Status status;
        int count;
        memset(&data, ~bytes, sizeof data);
        MPI_Recv(&data, N * (int)sizeof(float), MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == length && status.MPI_SOURCE == 0 && status.MPI_TAG == 0);
        CHECK(data.bytes[length - 1] == (char)bytes && data.bytes[length] == (char)~bytes);
      }
    }
  }
}

static int to_itself(MPI_Comm comm, int key, void* value, void* extra) {
  static float out[N], in[N];
  (void)key, (void)value, (void)extra;
  int self;
  MPI_Comm_rank(comm, &self);
  for (int i = 0; i < 3; ++i) {
    fill_f32(out, N, i);
    memset(in, 0, sizeof in);
    CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, self, 0, in, N, MPI_FLOAT, self, 0, comm,
                           MPI_STATUS_IGNORE));
    CHECK(same_f32(in, N, i));
  }
  return MPI_SUCCESS;
}

static void pass_both_ways(MPI_Comm comm, int peer, int seed) {
  static float out[N];
  fill_f32(out, N, seed);
  memset(&data, 0, sizeof data);
  CHECK_MPI(MPI_Sendrecv(out, N, MPI_FLOAT, peer, 0, &data, N, MPI_FLOAT, peer, 0, comm,
                         MPI_STATUS_IGNORE));
  CHECK(same_f32(data.f32, N, seed));
}

/* Messages on communicators while they are freed, from callbacks before and behind mpress's; then
 * on others with the same handles, of other kinds. */
static void ending(void) {
  enum { COMMS = 4 };
  MPI_Comm comms[COMMS], local;
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, to_itself, &key, NULL);
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &local);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < COMMS; ++i) {
      MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
      if (round % 2 == 0) MPI_Comm_set_attr(comms[i], key, NULL);
      if (i > 0) pass_both_ways(comms[i], 1 - rank, i);
      if (round % 2 != 0) MPI_Comm_set_attr(comms[i], key, NULL);
    }
    for (int i = 0; i < COMMS; ++i) {
      CHECK_MPI(i % 2 == 0 ? MPI_Comm_free(&comms[i]) : MPI_Comm_disconnect(&comms[i]));
      CHECK(comms[i] == MPI_COMM_NULL);
    }
    for (int i = 0; i < COMMS; ++i) {
      MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - rank, 9, &comms[i]);
      for (int k = 0; k < 3; ++k) pass_both_ways(comms[i], 0, 10 + i + k);
    }
    for (int i = 0; i < COMMS; ++i) MPI_Comm_free(&comms[i]);
  }
  MPI_Comm_free(&local);
  MPI_Comm_free_keyval(&key);
}

static int handled, last_class;

static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++handled;
  MPI_Error_class(*code, &last_class);
}

/* Receives that MPI refuses, of a kind that was received before; the status that they are given is
 * that of a message with the length of a frame. MPICH returns success once the handler was called.
 */
static void refused(void) {
  enum { SHORT = 200, LIKE_A_FRAME = 20 * 64 + 42 };
  int* const values = (int*)&data;
  MPI_Errhandler errhandler;
  MPI_Comm_create_errhandler(handler, &errhandler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
  for (int i = 0; i < TIMES; ++i) {
    const int count = i == TIMES - 1 ? LIKE_A_FRAME : SHORT;
    MPI_Status status;
    if (rank == 0) {
      MPI_Send(values, count, MPI_INT, 1, 0, MPI_COMM_WORLD);
      if (i < 3) continue;
      MPI_Send(values, count, MPI_INT, 2, 0, MPI_COMM_WORLD);
      CHECK(handled == 1 && last_class == MPI_ERR_RANK);
      handled = 0;
      continue;
    }
    MPI_Recv(values, count, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
    if (i < 3) continue;
    const MPI_Status before = status;
    MPI_Recv(values, SHORT, MPI_INT, 0, -7, MPI_COMM_WORLD, &status);
    CHECK(handled == 1 && last_class == MPI_ERR_TAG);
    CHECK(status.MPI_SOURCE == before.MPI_SOURCE && status.MPI_TAG == before.MPI_TAG);
    MPI_Recv(values, SHORT, MPI_INT, 0, -7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(handled == 2 && last_class == MPI_ERR_TAG);
    handled = 0;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&errhandler);
}

/* Of two messages the second, which is compressed, comes late. */
static void late(void) {
  const struct timespec pause = {0, 5000000};
  static unsigned noise[N];
  fill_noise(noise, sizeof noise, 1);
  for (int i = 0; i < TIMES; ++i) {
    if (rank == 0) MPI_Send(noise, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&data, N, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) nanosleep(&pause, NULL);
    pass(1, N, MPI_FLOAT, MPI_COMM_WORLD, i);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  const char* part = argc > 1 ? argv[1] : "";
  if (strcmp(part, "hints") == 0) hints();
  if (strcmp(part, "communicators") == 0) communicators();
  if (strcmp(part, "types") == 0) types();
  if (strcmp(part, "data") == 0) data_that_changes(20);
  if (strcmp(part, "by turns") == 0) data_that_changes(1);
  if (strcmp(part, "exchanges") == 0) exchanges_that_change(20);
  if (strcmp(part, "replaced") == 0) replaced();
  if (strcmp(part, "lengths") == 0) lengths();
  if (strcmp(part, "ending") == 0) ending();
  if (strcmp(part, "refused") == 0) refused();
  if (strcmp(part, "late") == 0) late();
  MPI_Finalize();
  return 0;
}
