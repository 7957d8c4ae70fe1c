/* What MPI promises of messages, where they go from GPU to GPU and only their headers through MPI.
 * Two ranks, which meet first; the arguments say what to do. To be run with MPRESS_POOL_LIMIT=4M:
 * most parts send more than that, so later messages find memory only where earlier ones' is free.
 * MPI alone has "no send waits" and "unreceived" wait or abort. */
#include <unistd.h>

#include "device_link.h"
#include "simulated_gpu.h"

enum { MANY = 120 };

static MPI_Comm comm;
static struct Memory from, to; /* on this rank's device */

static void send_one(int count, int tag, int seed) {
  set_values(&from, count, seed);
  CHECK_MPI(MPI_Send(from.data, count, MPI_FLOAT, 1, tag, comm));
}

static void receive_one(int count, int tag, int seed) {
  MPI_Status status;
  CHECK_MPI(MPI_Recv(to.data, ROOM, MPI_FLOAT, 0, tag, comm, &status));
  check_status(&status, 0, tag, count);
  check_values(&to, count, seed);
}

/* So many that all memory was used more than once. */
static void many_more(void) {
  for (int i = 0; i < MANY; ++i) {
    if (rank == 0) send_one(N, 1, i);
    if (rank == 1) receive_one(N, 1, i);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* Receives that are too small say so, in any call, and nothing is written behind them. The last two
 * have no room for the header either: what that announces keeps its memory. */
static void truncation(void) {
  static const int rooms[] = {N - 1, N / 2, 42, 41, 0};
  for (int i = 0; i < MANY; ++i) {
    const int room = rooms[i % 5], way = i / 5 % 5;
    struct Memory into = room_on(i / 25 % 2 == 0 ? 1 : -1);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
      set_values(&from, N, i);
      CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, 0, comm, &request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Message message;
    MPI_Status status;
    int code = MPI_SUCCESS;
    if (rank == 1) switch (way) {
        case 0: code = MPI_Recv(into.data, room, MPI_FLOAT, 0, 0, comm, &status); break;
        case 1:
          CHECK_MPI(MPI_Irecv(into.data, room, MPI_FLOAT, 0, 0, comm, &request));
          code = MPI_Wait(&request, &status);
          break;
        case 2:
          CHECK_MPI(MPI_Mprobe(0, 0, comm, &message, &status));
          check_status(&status, 0, 0, N);
          code = MPI_Mrecv(into.data, room, MPI_FLOAT, &message, &status);
          break;
        case 3:
          CHECK_MPI(MPI_Recv_init(into.data, room, MPI_FLOAT, 0, 0, comm, &request));
          CHECK_MPI(MPI_Start(&request));
          code = MPI_Wait(&request, &status);
          MPI_Request_free(&request);
          break;
        case 4:
          CHECK_MPI(MPI_Irecv(into.data, room, MPI_FLOAT, 0, 0, comm, &request));
          code = MPI_Waitall(1, &request, &status);
          if (class_of(code) == MPI_ERR_IN_STATUS) code = status.MPI_ERROR;
          break;
      }
    if (rank == 1) {
      CHECK(class_of(code) == MPI_ERR_TRUNCATE);
      get(&into);
      for (size_t at = sizeof(float) * (size_t)room; at < into.bytes; ++at) {
        CHECK(into.shadow[at] == 0x5a);
      }
    }
    drop(&into);
  }
  many_more();
}

/* No send waits for its receive, and its buffer is the program's when it returns. */
static void no_send_waits(void) {
  enum { UNRECEIVED = 60 };
  for (int tag = 0; tag < 3; ++tag) {
    for (int i = 0; i < UNRECEIVED && rank == 0; ++i) send_one(N, tag, i);
    if (rank == 0) set_values(&from, N, -1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < UNRECEIVED && rank == 1; ++i) receive_one(N, tag, i);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  /* Both send first. */
  for (int i = 0; i < MANY; ++i) {
    set_values(&from, N, i + rank);
    CHECK_MPI(MPI_Send(from.data, N, MPI_FLOAT, 1 - rank, 5, comm));
    CHECK_MPI(MPI_Recv(to.data, N, MPI_FLOAT, 1 - rank, 5, comm, MPI_STATUS_IGNORE));
    check_values(&to, N, i + 1 - rank);
  }
}

/* More than there is memory for: what finds none takes another way, and order stays. */
static void more_than_fits(void) {
  enum { MORE = 2 * MANY };
  static struct Memory buffers[MORE];
  static MPI_Request requests[MORE];
  for (int i = 0; i < MORE && rank == 0; ++i) buffers[i] = room_on(0);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < MORE && rank == 0; ++i) {
      set_values(&buffers[i], N, i);
      CHECK_MPI(MPI_Isend(buffers[i].data, N, MPI_FLOAT, 1, 0, comm, &requests[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MORE && rank == 1; ++i) receive_one(N, 0, i);
    if (rank == 0) CHECK_MPI(MPI_Waitall(MORE, requests, MPI_STATUSES_IGNORE));
  }
  for (int i = 0; i < MORE && rank == 0; ++i) drop(&buffers[i]);
}

/* Synchronous sends complete when they are received, not before. */
static void synchronous(void) {
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    int done = 0;
    if (rank == 0) {
      set_values(&from, N, i);
      CHECK_MPI(MPI_Issend(from.data, N, MPI_FLOAT, 1, 0, comm, &request));
      for (int look = 0; look < 100; ++look) {
        CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        CHECK(!done);
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) receive_one(N, 0, i);
    if (rank == 0) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank == 0) CHECK_MPI(MPI_Ssend(from.data, N, MPI_FLOAT, 1, 1, comm));
    if (rank == 1) receive_one(N, 1, i);
  }
}

/* Messages that take all ways there are, with one tag: none overtakes another. */
static void order(void) {
  static const int counts[] = {N, 1, 0, 42, 41, N / 2, 2 * N / 3};
  static struct Memory host;
  host = room_on(-1);
  MPI_Request requests[MANY];
  struct Memory buffers[MANY];
  for (int i = 0; i < MANY && rank == 0; ++i) {
    buffers[i] = room_on(i % 3 - 1);
    set_values(&buffers[i], counts[i % 7], i);
    CHECK_MPI(MPI_Isend(buffers[i].data, counts[i % 7], MPI_FLOAT, 1, 7, comm, &requests[i]));
  }
  for (int i = 0; i < MANY && rank == 1; ++i) {
    struct Memory* const into = i / 2 % 2 ? &host : &to;
    MPI_Status status;
    CHECK_MPI(MPI_Recv(into->data, ROOM, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
    check_status(&status, 0, 7, counts[i % 7]);
    check_values(into, counts[i % 7], i);
  }
  if (rank == 0) CHECK_MPI(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
  for (int i = 0; i < MANY && rank == 0; ++i) drop(&buffers[i]);
  drop(&host);
}

/* Probes see the message, not its header, as often as they are asked. */
static void probes(void) {
  for (int i = 0; i < MANY; ++i) {
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int found = 0;
    if (rank == 0) send_one(N - i, i, i);
    if (rank == 1) {
      if (i % 4 < 2) {
        CHECK_MPI(MPI_Probe(0, MPI_ANY_TAG, comm, &status));
        check_status(&status, 0, i, N - i);
        while (!found) CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, i, comm, &found, &status));
        check_status(&status, 0, i, N - i);
      }
      if (i % 4 == 2) CHECK_MPI(MPI_Mprobe(0, i, comm, &message, &status));
      while (i % 4 == 3 && !found) {
        CHECK_MPI(MPI_Improbe(0, i, comm, &found, &message, &status));
      }
      check_status(&status, 0, i, N - i);
      if (i % 4 < 2) receive_one(N - i, i, i);
      if (i % 4 == 2) CHECK_MPI(MPI_Mrecv(to.data, ROOM, MPI_FLOAT, &message, &status));
      if (i % 4 == 3) CHECK_MPI(MPI_Imrecv(to.data, ROOM, MPI_FLOAT, &message, &request));
      if (i % 4 == 3) CHECK_MPI(MPI_Wait(&request, &status));
      check_status(&status, 0, i, N - i);
      if (i % 4 > 1) check_values(&to, N - i, i);
    }
  }
}

/* Values that a codec makes longer, alone and behind others that it makes shorter. */
static void what_does_not_compress(void) {
  struct Memory host = room_on(-1), expected = room_on(-1);
  for (int i = 0; i < MANY; ++i) {
    struct Memory* const into = i % 4 == 3 ? &host : &to;
    const size_t bytes = sizeof(float) * N, smooth = i % 2 ? bytes / 2 : 0;
    memset(expected.shadow, 0x5a, expected.bytes);
    fill_f32((float*)expected.shadow, N, i);
    fill_noise(expected.shadow + smooth, bytes - smooth, (unsigned)i);
    if (rank == 0) {
      memcpy(from.shadow, expected.shadow, from.bytes);
      put(&from);
      CHECK_MPI(MPI_Send(from.data, N, MPI_FLOAT, 1, 0, comm));
    }
    if (rank == 1) {
      CHECK_MPI(MPI_Recv(into->data, ROOM, MPI_FLOAT, 0, 0, comm, MPI_STATUS_IGNORE));
      get(into);
      CHECK(memcmp(into->shadow, expected.shadow, expected.bytes) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  drop(&host);
  drop(&expected);
}

/* Messages that are seen, or matched, and never received; one that is not even seen. */
static void unreceived(void) {
  MPI_Message message;
  for (int tag = 0; tag < 3 && rank == 0; ++tag) send_one(N, tag, 0);
  if (rank == 1) CHECK_MPI(MPI_Probe(0, 0, comm, MPI_STATUS_IGNORE));
  if (rank == 1) CHECK_MPI(MPI_Mprobe(0, 1, comm, &message, MPI_STATUS_IGNORE));
}

/* Statuses of all calls that complete requests. */
static void completions(void) {
  enum { FEW = 6, WAYS = 7 };
  struct Memory into[FEW];
  for (int i = 0; i < FEW; ++i) into[i] = room_on(i % 3 - 1);
  for (int way = 0; way < WAYS; ++way) {
    MPI_Request requests[FEW];
    MPI_Status statuses[FEW];
    int indices[FEW], done[FEW] = {0};
    for (int i = 0; i < FEW && rank == 1; ++i) {
      CHECK_MPI(MPI_Irecv(into[i].data, ROOM, MPI_FLOAT, 0, i, comm, &requests[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < FEW && rank == 0; ++i) send_one(N - i, (i + 2) % FEW, way);
    for (int left = rank == 1 ? FEW : 0; left > 0;) {
      int some = 0, flag = 0, i = MPI_UNDEFINED;
      switch (way) {
        case 0: CHECK_MPI(MPI_Waitall(FEW, requests, statuses)), some = FEW; break;
        case 1: CHECK_MPI(MPI_Waitsome(FEW, requests, &some, indices, statuses)); break;
        case 2: CHECK_MPI(MPI_Testsome(FEW, requests, &some, indices, statuses)); break;
        case 3: CHECK_MPI(MPI_Waitany(FEW, requests, &indices[0], &statuses[0])), some = 1; break;
        case 4: CHECK_MPI(MPI_Testany(FEW, requests, &indices[0], &some, &statuses[0])); break;
        case 5: CHECK_MPI(MPI_Testall(FEW, requests, &some, statuses)), some *= FEW; break;
        case 6:
          i = FEW - left;
          while (!flag) CHECK_MPI(MPI_Request_get_status(requests[i], &flag, &statuses[0]));
          check_status(&statuses[0], 0, i, N - (i + FEW - 2) % FEW);
          CHECK_MPI(MPI_Wait(&requests[i], &statuses[0]));
          indices[0] = i, some = 1;
          break;
      }
      for (int k = 0; k < some; ++k) {
        i = way == 0 || way == 5 ? k : indices[k];
        CHECK(i >= 0 && i < FEW && !done[i]);
        done[i] = 1;
        const int count = N - (i + FEW - 2) % FEW;
        check_status(&statuses[k], 0, i, count);
        check_values(&into[i], count, way);
      }
      left -= some;
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < FEW; ++i) drop(&into[i]);
}

/* Receives that are cancelled before their message comes, and after. */
static void cancelled_receives(void) {
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    MPI_Status status;
    int gone = 0;
    if (rank == 0) {
      if (i % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
      send_one(N, 0, i);
      if (i % 2 == 1) MPI_Barrier(MPI_COMM_WORLD);
    } else {
      CHECK_MPI(MPI_Irecv(to.data, ROOM, MPI_FLOAT, 0, 0, comm, &request));
      if (i % 2 == 1) MPI_Barrier(MPI_COMM_WORLD);
      CHECK_MPI(MPI_Cancel(&request));
      CHECK_MPI(MPI_Wait(&request, &status));
      CHECK_MPI(MPI_Test_cancelled(&status, &gone));
      if (i % 2 == 0) MPI_Barrier(MPI_COMM_WORLD);
      if (i % 2 == 0) CHECK(gone);
      if (gone) receive_one(N, 0, i);
      if (!gone) check_status(&status, 0, 0, N);
      if (!gone) check_values(&to, N, i);
    }
  }
}

/* Sends that are cancelled, or received where MPI cannot do that. Tag 77: see cancels.c. */
static void cancelled_sends(void) {
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    MPI_Status status;
    int gone = 0, is_over = 0;
    if (rank == 0) {
      set_values(&from, N, i);
      CHECK_MPI(MPI_Issend(from.data, N, MPI_FLOAT, 1, 77, comm, &request));
      CHECK_MPI(MPI_Cancel(&request));
      CHECK_MPI(MPI_Wait(&request, &status));
      CHECK_MPI(MPI_Test_cancelled(&status, &gone));
      if (i == 0) puts(gone ? "cancelled" : "received");
      CHECK_MPI(MPI_Send(NULL, 0, MPI_INT, 1, 2, comm));
    }
    while (rank == 1 && !is_over) {
      CHECK_MPI(MPI_Iprobe(0, 77, comm, &gone, &status));
      if (gone) receive_one(N, 77, i);
      CHECK_MPI(MPI_Iprobe(0, 2, comm, &is_over, &status));
    }
    if (rank == 1) CHECK_MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 2, comm, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  many_more();
}

/* Requests that are freed while they are active; then so is their communicator. */
static void freed(void) {
  enum { FREED = MANY / 2 };
  struct Memory used[FREED];
  MPI_Comm passing;
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &passing));
  for (int i = 0; i < FREED; ++i) {
    MPI_Request request;
    used[i] = room_on(rank == 0 ? 0 : i % 3 - 1);
    if (rank == 0) {
      set_values(&used[i], N, i);
      CHECK_MPI(MPI_Isend(used[i].data, N, MPI_FLOAT, 1, i, passing, &request));
    } else {
      CHECK_MPI(MPI_Irecv(used[i].data, ROOM, MPI_FLOAT, 0, i, passing, &request));
    }
    CHECK_MPI(MPI_Request_free(&request));
  }
  CHECK_MPI(MPI_Comm_free(&passing));
  many_more();
  /* Nothing tells when they are over, and until then the memory is not the program's. Both ranks
   * get as many turns, however loaded the machine is. */
  for (int turn = 0; turn < FREED; ++turn) {
    for (int call = 0, ignored; call < 40; ++call) {
      CHECK_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 12345, comm, &ignored, MPI_STATUS_IGNORE));
    }
    usleep(2000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < FREED && rank == 1; ++i) check_values(&used[i], N, i);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < FREED; ++i) drop(&used[i]);
}

/* Persistent requests, whose data change. */
static void persistent(void) {
  MPI_Request requests[2];
  for (int side = 0; side < 2; ++side) {
    CHECK_MPI(rank == 0
                  ? MPI_Send_init(from.data, N, MPI_FLOAT, 1, side, comm, &requests[side])
                  : MPI_Recv_init(to.data, N + side, MPI_FLOAT, 0, side, comm, &requests[side]));
  }
  for (int i = 0; i < MANY; ++i) {
    MPI_Status status;
    const int side = i % 2;
    if (rank == 0) set_values(&from, N, i);
    CHECK_MPI(MPI_Start(&requests[side]));
    CHECK_MPI(MPI_Wait(&requests[side], &status));
    if (rank == 0) continue;
    check_status(&status, 0, side, N);
    check_values(&to, N, i);
  }
  for (int side = 0; side < 2; ++side) CHECK_MPI(MPI_Request_free(&requests[side]));
}

/* Messages in communicators whose ranks are others than those of MPI_COMM_WORLD. */
static void communicators(void) {
  MPI_Comm reversed, inter, both;
  CHECK_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed));
  CHECK_MPI(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 3, &inter));
  CHECK_MPI(MPI_Intercomm_merge(inter, rank == 0, &both));
  const struct {
    MPI_Comm comm;
    int peer; /* as it counts ranks */
  } used[] = {{reversed, rank}, {inter, 0}, {both, rank}, {MPI_COMM_SELF, 0}};
  for (int i = 0; i < MANY; ++i) {
    const MPI_Comm on = used[i % 4].comm;
    const int peer = used[i % 4].peer, sender = on == MPI_COMM_SELF ? rank : 1 - rank;
    MPI_Status status;
    set_values(&from, N, i + rank);
    CHECK_MPI(MPI_Sendrecv(from.data, N, MPI_FLOAT, peer, 0, to.data, ROOM, MPI_FLOAT,
                           MPI_ANY_SOURCE, 0, on, &status));
    check_status(&status, peer, 0, N);
    check_values(&to, N, i + sender);
  }
  CHECK_MPI(MPI_Comm_free(&both));
  CHECK_MPI(MPI_Comm_free(&inter));
  CHECK_MPI(MPI_Comm_free(&reversed));
}

int main(int argc, char** argv) {
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  static const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {{"truncation", truncation},
               {"no send waits", no_send_waits},
               {"more than fits", more_than_fits},
               {"synchronous", synchronous},
               {"order", order},
               {"probes", probes},
               {"what does not compress", what_does_not_compress},
               {"unreceived", unreceived},
               {"completions", completions},
               {"cancelled receives", cancelled_receives},
               {"cancelled sends", cancelled_sends},
               {"freed", freed},
               {"persistent", persistent},
               {"communicators", communicators}};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  /* MPIs differ in where they raise the errors of calls that complete several requests. */
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  from = room_on(rank);
  to = room_on(rank);
  meet();
  for (int k = 1; k < argc; ++k) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
      if (strcmp(argv[k], parts[i].name) == 0) parts[i].run();
    }
  }
  drop(&from);
  drop(&to);
  /* A receiver in MPI_Finalize may leave its sender waiting: MPICH 5.0 alone, too. */
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
