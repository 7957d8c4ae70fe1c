/* Messages that their receiver takes from where the sender's program has them: a program for two
 * ranks, which meet first; the argument says what to do. */
#ifndef MPRESS_TESTS_DEVICE_DIRECT_H
#define MPRESS_TESTS_DEVICE_DIRECT_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the device is still writing is not sent from where it lies. */
#define SYNCHRONIZED 1
#include "device_link.h"

#ifndef MANY
#define MANY 60
#endif

static MPI_Comm comm;
static struct Memory from, to; /* on this rank's device */

/* A word that both ranks see without calling MPI. */
static volatile int* shared_word(void) {
  char path[64];
  int file, pid = (int)getpid();
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/mpress-direct-%d", pid);
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == rank) file = shm_open(path, O_RDWR | O_CREAT, 0600);
    if (turn == rank) CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) shm_unlink(path);
  void* word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(word != MAP_FAILED);
  close(file);
  return word;
}

/* Says that rank 1 has got something, to a rank 0 that waits in MPI, but for no send. */
static void got_it(void) {
  int ignored = 0;
  if (rank == 1) CHECK_MPI(MPI_Send(&ignored, 1, MPI_INT, 0, 99, comm));
  if (rank == 0) CHECK_MPI(MPI_Recv(&ignored, 1, MPI_INT, 1, 99, comm, MPI_STATUS_IGNORE));
}

/* The sender has begun, and does something else until its message is received. */
static void one(int i, int count, int offset, MPI_Datatype type, struct Memory* into) {
  MPI_Request request;
  MPI_Status status;
  if (rank == 0) {
    set_values(&from, ROOM, i);
    CHECK_MPI(MPI_Isend((float*)from.data + offset, count, MPI_FLOAT, 1, i, comm, &request));
  } else {
    CHECK_MPI(MPI_Recv(into->data, type == MPI_FLOAT ? count : 1, type, 0, i, comm, &status));
    CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == i);
  }
  got_it();
  if (rank == 0) CHECK_MPI(MPI_Wait(&request, &status));
  if (rank == 0) set_values(&from, ROOM, -1); /* it is the program's again */
}

static void received(void) {
  for (int i = 0; i < MANY; ++i) {
    const int count = i % 3 == 0 ? 9000 : N, offset = i % 5;
    one(i, count, offset, MPI_FLOAT, &to);
    if (rank == 0) continue;
    get(&to);
    for (int k = 0; k < count; ++k) {
      float value;
      memcpy(&value, to.shadow + sizeof(float) * (size_t)k, sizeof value);
      CHECK(value == (float)(i + 1) + 1e-3f * (float)(k + offset));
    }
  }
}

/* Blocking sends, in any mode, to a receiver who is there or comes late. */
static void blocking(void) {
  for (int i = 0; i < 2 * MANY; ++i) {
    MPI_Request request;
    if (rank == 1) CHECK_MPI(MPI_Irecv(to.data, ROOM, MPI_FLOAT, 0, i, comm, &request));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      set_values(&from, N, i);
      const int code = i % 3 == 0   ? MPI_Send(from.data, N, MPI_FLOAT, 1, i, comm)
                       : i % 3 == 1 ? MPI_Rsend(from.data, N, MPI_FLOAT, 1, i, comm)
                                    : MPI_Ssend(from.data, N, MPI_FLOAT, 1, i, comm);
      CHECK_MPI(code);
      set_values(&from, N, -1);
    } else {
      if (i % 7 == 0) usleep(2000);
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      check_values(&to, N, i);
    }
  }
}

/* Both ways at once, by calls that wait for both. */
static void both_ways(void) {
  for (int i = 0; i < 2 * MANY; ++i) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    set_values(&from, N, i + rank);
    if (i % 2 == 0) {
      CHECK_MPI(MPI_Sendrecv(from.data, N, MPI_FLOAT, 1 - rank, i, to.data, ROOM, MPI_FLOAT,
                             1 - rank, i, comm, &statuses[0]));
    } else {
      int done[2], count = 0, flag = 0;
      CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1 - rank, i, comm, &requests[1]));
      CHECK_MPI(MPI_Irecv(to.data, ROOM, MPI_FLOAT, 1 - rank, i, comm, &requests[0]));
      switch (i / 2 % 4) {
        case 0: CHECK_MPI(MPI_Waitall(2, requests, statuses)); break;
        case 1:
          while (!flag) CHECK_MPI(MPI_Testall(2, requests, &flag, statuses));
          break;
        case 2:
          for (int left = 2; left > 0; --left) {
            CHECK_MPI(MPI_Waitany(2, requests, &count, &statuses[1]));
            CHECK(count == 0 || count == 1);
            if (count == 0) statuses[0] = statuses[1];
          }
          CHECK_MPI(MPI_Waitany(2, requests, &count, &statuses[1]));
          CHECK(count == MPI_UNDEFINED);
          break;
        case 3:
          for (int left = 2; left > 0; left -= count) {
            MPI_Status some[2];
            CHECK_MPI(MPI_Waitsome(2, requests, &count, done, some));
            CHECK(count > 0);
            for (int k = 0; k < count; ++k)
              if (done[k] == 0) statuses[0] = some[k];
          }
          break;
      }
      CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    }
    check_status(&statuses[0], 1 - rank, i, N);
    check_values(&to, N, i + 1 - rank);
  }
}

/* A receiver who has begun to take a message and then never looks again, until its sender has gone
 * on. */
static void not_looking(void) {
  volatile int* const sent = shared_word();
  for (int i = 1; i <= MANY; ++i) {
    MPI_Request request;
    int done = 0;
    if (rank == 0) {
      set_values(&from, N, i);
      CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, i, comm, &request));
    } else {
      CHECK_MPI(MPI_Irecv(to.data, ROOM, MPI_FLOAT, 0, i, comm, &request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      usleep(1000);
      CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      set_values(&from, N, -1);
      *sent = i;
    } else {
      for (int look = 0; look < i % 4 && !done; ++look) {
        CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      }
      while (*sent != i) usleep(100);
      if (!done) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
      check_values(&to, N, i);
    }
  }
}

/* A receiver who has begun to take a message to another place than its device's memory, which its
 * host has to do, and then waits in MPI alone: its sender's wait ends all the same. */
static void taken_before_a_barrier(void) {
  struct Memory on_host = room_on(-1), beside = room_on(1 - rank);
  for (int i = 1; i <= MANY; ++i) {
    struct Memory* const into = i % 2 == 0 ? &on_host : &beside;
    MPI_Request request;
    int done = 0;
    if (rank == 0) {
      set_values(&from, N, i);
      CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, i, comm, &request));
    } else {
      CHECK_MPI(MPI_Irecv(into->data, ROOM, MPI_FLOAT, 0, i, comm, &request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int look = 0; rank == 1 && look <= i % 4 && !done; ++look) {
      CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD); /* it has looked */
    if (rank == 0) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
    if (rank == 1 && !done) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank == 1) check_values(into, N, i);
  }
  drop(&on_host);
  drop(&beside);
}

/* A sender who has looked at a message that nobody takes, until its host has to send it, and then
 * waits in MPI for another that its receiver takes later. */
static void looked_at_before_another(void) {
  enum { LENGTH = 600000 };
  volatile int* const looked = shared_word();
  struct Memory here = memory_on(rank, sizeof(float) * LENGTH);
  for (int i = 1; i <= MANY / 4; ++i) {
    MPI_Request request, other;
    int done = 0, word = i;
    if (rank == 0) {
      set_values(&here, LENGTH, i);
      CHECK_MPI(MPI_Isend(here.data, LENGTH, MPI_FLOAT, 1, i, comm, &request));
      CHECK_MPI(MPI_Issend(&word, 1, MPI_INT, 1, MANY + i, comm, &other));
      for (int look = 0; look < 2 + i % 3 && !done; ++look) {
        CHECK_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        usleep(1000); /* it is offered for less */
      }
      *looked = i; /* a barrier would do what is looked for */
    } else {
      while (*looked != i) usleep(100);
      CHECK_MPI(MPI_Recv(here.data, LENGTH, MPI_FLOAT, 0, i, comm, MPI_STATUS_IGNORE));
      check_values(&here, LENGTH, i);
      CHECK_MPI(MPI_Recv(&word, 1, MPI_INT, 0, MANY + i, comm, MPI_STATUS_IGNORE));
      CHECK(word == i);
    }
    if (rank == 0) CHECK_MPI(MPI_Wait(&other, MPI_STATUS_IGNORE));
    if (rank == 0 && !done) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  drop(&here);
}

/* Messages whose senders look at them only after others have begun. */
static void looked_at_late(void) {
  struct Memory other = room_on(rank), *const memory[] = {&from, &other};
  for (int i = 0; i < MANY; ++i) {
    MPI_Request requests[2];
    for (int k = 0; k < 2; ++k) {
      if (rank == 0) {
        set_values(memory[k], N, 2 * i + k);
        CHECK_MPI(MPI_Isend(memory[k]->data, N, MPI_FLOAT, 1, k, comm, &requests[k]));
      } else if (k == 0) {
        CHECK_MPI(MPI_Recv(to.data, ROOM, MPI_FLOAT, 0, 0, comm, MPI_STATUS_IGNORE));
        check_values(&to, N, 2 * i);
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) CHECK_MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    if (rank == 0) set_values(&from, N, -1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      CHECK_MPI(MPI_Recv(to.data, ROOM, MPI_FLOAT, 0, 1, comm, MPI_STATUS_IGNORE));
      check_values(&to, N, 2 * i + 1);
    } else {
      CHECK_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    }
  }
  drop(&other);
}

/* Memory that is given back, and taken again for other data. */
static void freed_memory(void) {
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 4; ++i) {
      one(4 * round + i, N, 0, MPI_FLOAT, &to);
      if (rank == 1) check_values(&to, N, 4 * round + i);
    }
    drop(&from);
    from = room_on(rank);
  }
}

/* Where a receiver cannot take it like that: to the host, to a type with gaps, and where it has no
 * room for all. */
static void elsewhere(void) {
  struct Memory on_host = room_on(-1);
  MPI_Datatype gaps;
  MPI_Type_vector(N / 2, 2, 4, MPI_FLOAT, &gaps);
  MPI_Type_commit(&gaps);
  struct Memory wide = memory_on(rank, sizeof(float) * 2 * ROOM);
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    MPI_Status status;
    if (i % 3 == 0) {
      one(i, N, 0, MPI_FLOAT, &on_host);
      if (rank == 1) check_values(&on_host, N, i);
    } else if (i % 3 == 1) {
      one(i, N, 0, gaps, &wide);
      if (rank == 0) continue;
      get(&wide);
      for (int k = 0; k < N; ++k) {
        float value;
        memcpy(&value, wide.shadow + sizeof(float) * (size_t)(k / 2 * 4 + k % 2), sizeof value);
        CHECK(value == (float)(i + 1) + 1e-3f * (float)k);
      }
    } else {
      if (rank == 0) {
        set_values(&from, N, i);
        CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, i, comm, &request));
      } else {
        const int code = MPI_Recv(to.data, N / 2, MPI_FLOAT, 0, i, comm, &status);
        CHECK(class_of(code) == MPI_ERR_TRUNCATE);
        set_values(&to, 0, 0);
      }
      got_it();
      if (rank == 0) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  }
  MPI_Type_free(&gaps);
  drop(&wide);
  drop(&on_host);
}

/* Requests that are looked at without an end, freed, or cancelled (which no MPI has to do). */
static void requests(void) {
  for (int i = 0; i < MANY; ++i) {
    MPI_Request request;
    MPI_Status status;
    int flag = 0, cancelled = 0;
    if (rank == 0) {
      set_values(&from, N, i);
      CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, i, comm, &request));
      if (i % 3 == 0) {
        while (!flag) CHECK_MPI(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE));
        set_values(&from, N, -1);
        CHECK_MPI(MPI_Wait(&request, &status));
      } else if (i % 3 == 1) {
        CHECK_MPI(MPI_Request_free(&request));
      } else {
        CHECK_MPI(MPI_Cancel(&request));
        CHECK_MPI(MPI_Wait(&request, &status));
        CHECK_MPI(MPI_Test_cancelled(&status, &cancelled));
        set_values(&from, N, -1);
      }
    }
    MPI_Bcast(&cancelled, 1, MPI_INT, 0, comm);
    if (rank == 1 && !cancelled) {
      CHECK_MPI(MPI_Recv(to.data, ROOM, MPI_FLOAT, 0, i, comm, &status));
      check_status(&status, 0, i, N);
      check_values(&to, N, i);
    }
    got_it();
    for (int call = 0; rank == 0 && i % 3 == 1 && call < 200; ++call) {
      CHECK_MPI(MPI_Iprobe(1, 12345, comm, &flag, MPI_STATUS_IGNORE));
      if (call % 20 == 0) usleep(1000);
    }
  }
  /* One that is freed, and received while its sender is in MPI_Finalize. */
  if (rank == 0) {
    MPI_Request request;
    set_values(&from, N, MANY);
    CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, MANY, comm, &request));
    CHECK_MPI(MPI_Request_free(&request));
  } else {
    usleep(20000);
    CHECK_MPI(MPI_Recv(to.data, ROOM, MPI_FLOAT, 0, MANY, comm, MPI_STATUS_IGNORE));
    check_values(&to, N, MANY);
  }
}

/* Far more at once than the link has memory for: to a receiver who looks, then to one who does not
 * until all has left, every other time without the room for some. */
/* The receiver does nothing for messages until the sender's are done, but MPI proceeds. */
static void wait_for_word(const volatile int* word, int value) {
  int ignored = 0;
  while (*word != value) {
    CHECK_MPI(PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &ignored, MPI_STATUS_IGNORE));
  }
}

static void no_room(void) {
  enum { AT_ONCE = 40 };
  volatile int* sent_rounds = shared_word();
  struct Memory into[AT_ONCE];
  for (int k = 0; k < AT_ONCE; ++k) into[k] = room_on(rank);
  for (int round = 0; round < 12; ++round) {
    const int looks = round < 6, truncates = !looks && round % 2 == 1;
    MPI_Request requests[AT_ONCE];
    MPI_Status statuses[AT_ONCE];
    if (rank == 0) set_values(&from, N, round);
    for (int k = 0; k < AT_ONCE && rank == 1; ++k) {
      const int count = truncates && k % 4 == 3 ? N / 2 : ROOM;
      CHECK_MPI(MPI_Irecv(into[k].data, count, MPI_FLOAT, 0, k, comm, &requests[k]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < AT_ONCE && rank == 0; ++k) {
      CHECK_MPI(MPI_Isend(from.data, N, MPI_FLOAT, 1, k, comm, &requests[k]));
    }
    if (rank == 0) CHECK_MPI(MPI_Waitall(AT_ONCE, requests, statuses));
    if (rank == 0) set_values(&from, N, -1);
    if (rank == 0) *sent_rounds = round + 1;
    if (rank == 1 && !looks) wait_for_word(sent_rounds, round + 1);
    for (int k = 0; k < AT_ONCE && rank == 1; ++k) {
      const int code = MPI_Wait(&requests[k], &statuses[k]);
      if (truncates && k % 4 == 3) {
        CHECK(class_of(code) == MPI_ERR_TRUNCATE);
        continue;
      }
      CHECK_MPI(code);
      check_status(&statuses[k], 0, k, N);
      check_values(&into[k], N, round);
    }
  }
  for (int k = 0; k < AT_ONCE; ++k) drop(&into[k]);
}

/* Each longer than all the memory that the link may have. */
static void too_long(void) {
  enum { LENGTH = 600000 };
  struct Memory here = memory_on(rank, sizeof(float) * LENGTH);
  for (int i = 0; i < 12; ++i) {
    MPI_Request request;
    if (rank == 0) {
      set_values(&here, LENGTH, i);
      CHECK_MPI(MPI_Isend(here.data, LENGTH, MPI_FLOAT, 1, i, comm, &request));
    } else {
      CHECK_MPI(MPI_Recv(here.data, LENGTH, MPI_FLOAT, 0, i, comm, MPI_STATUS_IGNORE));
      check_values(&here, LENGTH, i);
    }
    got_it();
    if (rank == 0) CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank == 0) set_values(&here, LENGTH, -1);
  }
  drop(&here);
}

/* The same to a receiver who comes late: a sender does not run ahead of it without end. */
static void ahead(void) {
  enum { LENGTH = 600000, AT_ONCE = 20 };
  struct Memory here = memory_on(rank, sizeof(float) * LENGTH);
  MPI_Request requests[AT_ONCE];
  if (rank == 0) set_values(&here, LENGTH, 5);
  for (int round = 0; round < 2; ++round) {
    const int messages = round == 0 ? 1 : AT_ONCE;
    for (int k = 0; k < messages && rank == 0; ++k) {
      CHECK_MPI(MPI_Isend(here.data, LENGTH, MPI_FLOAT, 1, k, comm, &requests[k]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < messages && rank == 1; ++k) {
      CHECK_MPI(MPI_Recv(here.data, LENGTH, MPI_FLOAT, 0, k, comm, MPI_STATUS_IGNORE));
      check_values(&here, LENGTH, 5);
    }
    if (rank == 0) CHECK_MPI(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  drop(&here);
}

/* Messages from memory that is free again before they are received: what they say of it is old. */
static void freed_early(void) {
  for (int round = 0; round < 6; ++round) {
    struct Memory here = room_on(rank);
    MPI_Request requests[4];
    for (int k = 0; k < 4; ++k) {
      if (rank == 0) {
        set_values(&here, N, 4 * round + k);
        CHECK_MPI(MPI_Isend(here.data, N, MPI_FLOAT, 1, k, comm, &requests[k]));
        CHECK_MPI(MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
      }
    }
    if (rank == 0) drop(&here);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < 4 && rank == 1; ++k) {
      CHECK_MPI(MPI_Recv(here.data, ROOM, MPI_FLOAT, 0, k, comm, MPI_STATUS_IGNORE));
      check_values(&here, N, 4 * round + k);
    }
    if (rank == 1) drop(&here);
  }
}

int main(int argc, char** argv) {
  forbid_own_copies();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  static const struct {
    const char* name;
    void (*run)(void);
  } parts[] = {{"received", received},
               {"blocking", blocking},
               {"both ways", both_ways},
               {"looked at late", looked_at_late},
               {"not looking", not_looking},
               {"taken before a barrier", taken_before_a_barrier},
               {"looked at before another", looked_at_before_another},
               {"freed memory", freed_memory},
               {"elsewhere", elsewhere},
               {"requests", requests},
               {"no room", no_room},
               {"too long", too_long},
               {"ahead", ahead},
               {"freed early", freed_early},
               {"nothing but too long", too_long}};
  CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  from = room_on(rank);
  to = room_on(rank);
  if (argc < 2 || strncmp(argv[1], "nothing but", 11) != 0) meet();
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (argc > 1 && strcmp(argv[1], parts[i].name) == 0) parts[i].run();
  }
  /* A freed send may still be on its way from there. */
  if (argc > 1 && strcmp(argv[1], "requests") != 0) drop(&from);
  drop(&to);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}

#endif
