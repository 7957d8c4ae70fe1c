/* The stack that calls need: each family in a thread of its own, MPI_Init and what precedes it too.
 * Communicators name their codecs, which MPI ignores where mpress is not loaded. Prints "stack
 * CODEC/FAMILY BYTES" of this rank. With the argument "devices" buffers lie on simulated GPUs. */
#include <mpi.h>
#include <string.h>

#include "check.h"
#include "painted.h"
#include "simulated_gpu.h"

enum { most = 10000 }; /* five chunks of 16 KB */
static const int sizes[] = {1, 60, 1000, 5000, most};
enum { number_of_sizes = sizeof sizes / sizeof sizes[0] };
static double host[4][most];
static double *out = host[0], *in = host[1], *more = host[2], *const values = host[3];
static int rank, ranks, next, previous;
static MPI_Comm comm;
static MPI_Datatype kinds[2];

static void fill(MPI_Datatype kind, int count) {
  for (int i = 0; i < count; ++i) {
    const double x = rank + i % 997 * 0.25 + (i % 5000 == 4000 ? 1e30 : 0);
    if (kind == MPI_FLOAT)
      ((float*)values)[i] = (float)x;
    else
      values[i] = x;
  }
  const size_t bytes = (size_t)count * (kind == MPI_FLOAT ? 4 : 8);
  if (out == host[0])
    memcpy(out, values, bytes);
  else
    sim_copy_in(out, values, bytes);
}

/* act(kind, count) for all types and sizes. */
static void each(void (*act)(MPI_Datatype, int)) {
  for (int k = 0; k < 2; ++k) {
    for (int s = 0; s < number_of_sizes; ++s) {
      fill(kinds[k], sizes[s]);
      act(kinds[k], sizes[s]);
    }
  }
}

static void both(int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm), MPI_Datatype kind,
                 int count) {
  MPI_Status status;
  for (int turn = 0; turn < 2; ++turn) {
    if (rank % 2 == turn)
      send(out, count, kind, rank ^ 1, 3, comm);
    else
      MPI_Recv(in, count, kind, rank ^ 1, 3, comm, &status);
  }
}
static void messages(MPI_Datatype kind, int count) {
  MPI_Request requests[2];
  both(MPI_Send, kind, count);
  both(MPI_Ssend, kind, count);
  MPI_Sendrecv(out, count, kind, next, 4, in, count, kind, previous, 4, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(out, count, kind, next, 4, previous, 4, comm, MPI_STATUS_IGNORE);
  MPI_Irecv(in, count, kind, previous, 5, comm, &requests[0]);
  MPI_Isend(out, count, kind, next, 5, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Irecv(in, count, kind, MPI_ANY_SOURCE, 5, comm, &requests[0]);
  MPI_Issend(out, count, kind, next, 5, comm, &requests[1]);
  for (int done = 0, i; done < 2; ++done) MPI_Waitany(2, requests, &i, MPI_STATUS_IGNORE);
}
static void send_messages(void) { each(messages); }

static void wait_for_some(MPI_Datatype kind, int count) {
  MPI_Request requests[4];
  int flag = 0, done = 0, indices[4], number;
  for (int i = 0; i < 2; ++i) {
    MPI_Irecv(i ? more : in, count, kind, previous, 6, comm, &requests[i]);
    MPI_Isend(out, count, kind, next, 6, comm, &requests[2 + i]);
  }
  while (done < 2) {
    MPI_Testsome(4, requests, &number, indices, MPI_STATUSES_IGNORE);
    if (number != MPI_UNDEFINED) done += number;
  }
  while (done < 4) {
    MPI_Waitsome(4, requests, &number, indices, MPI_STATUSES_IGNORE);
    done += number;
  }
  MPI_Irecv(in, count, kind, previous, 6, comm, &requests[0]);
  MPI_Isend(out, count, kind, next, 6, comm, &requests[1]);
  while (!flag) MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
  for (flag = 0; !flag;) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
}
static void complete(void) { each(wait_for_some); }

static void with_gaps(MPI_Datatype kind, int count) {
  MPI_Datatype type;
  MPI_Request request;
  if (count < 4) return;
  MPI_Type_vector(count / 4, 2, 4, kind, &type);
  MPI_Type_commit(&type);
  MPI_Irecv(in, 1, type, previous, 7, comm, &request);
  MPI_Send(out, 1, type, next, 7, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Sendrecv(out, 1, type, next, 7, more, count / 4 * 2, kind, previous, 7, comm,
               MPI_STATUS_IGNORE);
  MPI_Bcast(in, 1, type, 0, comm);
  MPI_Type_free(&type);
}
static void send_derived(void) { each(with_gaps); }

static void probes(MPI_Datatype kind, int count) {
  MPI_Message message;
  MPI_Request requests[2];
  MPI_Status status;
  int flag = 0;
  MPI_Isend(out, count, kind, next, 8, comm, &requests[0]);
  MPI_Probe(previous, 8, comm, &status);
  MPI_Recv(in, count, kind, previous, 8, comm, &status);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Isend(out, count, kind, next, 8, comm, &requests[0]);
  MPI_Mprobe(MPI_ANY_SOURCE, 8, comm, &message, &status);
  MPI_Imrecv(in, count, kind, &message, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Isend(out, count, kind, next, 8, comm, &requests[0]);
  while (!flag) MPI_Improbe(previous, 8, comm, &flag, &message, &status);
  MPI_Mrecv(in, count, kind, &message, &status);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}
static void probe(void) { each(probes); }

static void starts(MPI_Datatype kind, int count) {
  MPI_Request requests[2];
  MPI_Recv_init(in, count, kind, previous, 9, comm, &requests[0]);
  MPI_Send_init(out, count, kind, next, 9, comm, &requests[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}
static void start_persistent(void) { each(starts); }

static int counts[64], places[64], byte_places[64];
static MPI_Datatype types[64];
static void parts(MPI_Datatype kind, int each_count) {
  int bytes;
  MPI_Type_size(kind, &bytes);
  for (int i = 0; i < ranks; ++i) {
    counts[i] = each_count;
    places[i] = i * each_count;
    byte_places[i] = i * each_count * bytes;
    types[i] = kind;
  }
}
static void moves(MPI_Datatype kind, int count) {
  const int part = count / ranks;
  parts(kind, part);
  MPI_Bcast(out, count, kind, count % ranks, comm);
  MPI_Gather(out, part, kind, in, part, kind, 0, comm);
  MPI_Gatherv(out, part, kind, in, counts, places, kind, 0, comm);
  MPI_Scatter(out, part, kind, in, part, kind, 0, comm);
  MPI_Scatterv(out, counts, places, kind, in, part, kind, 0, comm);
  MPI_Allgather(out, part, kind, in, part, kind, comm);
  MPI_Allgatherv(out, part, kind, in, counts, places, kind, comm);
  MPI_Alltoall(out, part, kind, in, part, kind, comm);
  MPI_Alltoallv(out, counts, places, kind, in, counts, places, kind, comm);
  MPI_Alltoallw(out, counts, byte_places, types, in, counts, byte_places, types, comm);
}
static void move_data(void) { each(moves); }

static void sums(MPI_Datatype kind, int count) {
  const int part = count / ranks;
  const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_PROD};
  parts(kind, part);
  for (int i = 0; i < 3; ++i) {
    MPI_Allreduce(out, in, count, kind, ops[i], comm);
    MPI_Reduce(out, in, count, kind, ops[i], 0, comm);
    MPI_Reduce_scatter(out, in, counts, kind, ops[i], comm);
    MPI_Reduce_scatter_block(out, in, part, kind, ops[i], comm);
  }
  MPI_Allreduce(MPI_IN_PLACE, in, count, kind, MPI_MIN, comm);
}
static void reduce(void) { each(sums); }

static void in_background(MPI_Datatype kind, int count) {
  const int part = count / ranks;
  MPI_Request requests[3];
  parts(kind, part);
  MPI_Ibcast(more, count, kind, 0, comm, &requests[0]);
  MPI_Ialltoall(out, part, kind, in, part, kind, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Iallreduce(out, in, count, kind, MPI_SUM, comm, &requests[0]);
  MPI_Iallgatherv(out, part, kind, more, counts, places, kind, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Ialltoallv(out, counts, places, kind, in, counts, places, kind, comm, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Ireduce(out, in, count, kind, MPI_SUM, 0, comm, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
}
static void collect_in_background(void) { each(in_background); }

#if MPI_VERSION >= 4
static void made(MPI_Datatype kind, int count) {
  const int part = count / ranks;
  MPI_Request requests[2];
  MPI_Allreduce_init(out, in, count, kind, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
  MPI_Alltoall_init(out, part, kind, more, part, kind, comm, MPI_INFO_NULL, &requests[1]);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}
static void collect_persistent(void) { each(made); }
#endif

static int handled;
static void handle(MPI_Comm* where, int* code, ...) {
  (void)where, (void)code;
  ++handled;
}
static void fail(void) {
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  MPI_Irecv(in, 100, MPI_FLOAT, previous, 10, comm, &request);
  MPI_Send(out, most, MPI_FLOAT, next, 10, comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(handled > 0);
}

static MPI_Comm created;
static MPI_Info hints;
static void make_communicators(void) {
  MPI_Comm half, copy;
  MPI_Request request;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &created);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &half);
  MPI_Allreduce(out, in, most, MPI_DOUBLE, MPI_SUM, half);
  MPI_Comm_idup(half, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Bcast(out, most, MPI_DOUBLE, 0, copy);
  MPI_Comm_free(&copy);
  MPI_Comm_set_info(half, hints);
  MPI_Bcast(out, most, MPI_DOUBLE, 0, half);
  MPI_Comm_free(&half);
}

static void ask_first(void) {
  int flag, version, minor;
  MPI_Initialized(&flag);
  MPI_Get_version(&version, &minor);
}
static void init(void) {
  int provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
}
static void finalize(void) { MPI_Finalize(); }

static void run(void* family) { (*(void (**)(void))family)(); }

static void measure(const char* spec, const char* name, void (*family)(void)) {
  printf("stack %s/%s %zu\n", spec, name, stack_of(run, &family));
}

int main(int argc, char** argv) {
  static const char* const specs[] = {"none",
                                      "auto",
                                      "mpc",
                                      "mpc:dim=3",
                                      "zfp:16",
                                      "zfp:9.5",
                                      "szp:abs=1e-3",
                                      "szp:rel=1e-4",
                                      "szp:abs=1e-3,mode=dense",
                                      "reproducible:",
                                      "reproducible:szp:abs=1e-3"};
  setvbuf(stdout, NULL, _IOLBF, 0); /* ranks write to one pipe */
  forbid_own_copies();
  measure("all", "first-question", ask_first);
  measure("all", "MPI_Init_thread", init);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check_rank = rank;
  next = (rank + 1) % ranks;
  previous = (rank + ranks - 1) % ranks;
  kinds[0] = MPI_FLOAT, kinds[1] = MPI_DOUBLE;
  if (argc > 1 && strcmp(argv[1], "devices") == 0) {
    double** const buffers[] = {&out, &in, &more};
    for (int i = 0; i < 3; ++i) {
      *buffers[i] = sim_malloc(rank % sim_devices, sizeof host[0]);
      CHECK(*buffers[i]);
    }
  }
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; ++i) {
    const char* const behind = strchr(specs[i], ':');
    const int reproducible = strncmp(specs[i], "reproducible", 12) == 0;
    const char* const spec = reproducible ? behind + 1 : specs[i];
    MPI_Info_create(&hints);
    if (*spec) MPI_Info_set(hints, "mpress_codec", spec);
    if (reproducible) MPI_Info_set(hints, "mpress_reproducible", "1");
    measure(specs[i], "communicators", make_communicators);
    comm = created;
    measure(specs[i], "messages", send_messages);
    measure(specs[i], "completion", complete);
    measure(specs[i], "derived", send_derived);
    measure(specs[i], "probes", probe);
    measure(specs[i], "persistent", start_persistent);
    measure(specs[i], "moves", move_data);
    measure(specs[i], "reductions", reduce);
    measure(specs[i], "background", collect_in_background);
#if MPI_VERSION >= 4
    measure(specs[i], "persistent-collectives", collect_persistent);
#endif
    measure(specs[i], "errors", fail);
    MPI_Comm_free(&comm);
    MPI_Info_free(&hints);
  }
  measure("all", "MPI_Finalize", finalize);
  if (rank == 0) puts("ok");
  return 0;
}
