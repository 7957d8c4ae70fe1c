/* What calls on device memory must not touch, and what they tell: arguments that do not count,
 * packing, requests of all kinds together, absolute addresses, errors, and devices that lack
 * something, which the argument names. With the argument "alone", calls alone in which MPI must not
 * touch memory of devices. For any number of ranks. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "device_memory.h"
#include "simulated_gpu.h"

enum { N = 500, MOST = 8, BYTES = N * MOST * (int)sizeof(int) };

static int rank, size;

static void fill(struct Memory* m, int seed) {
  for (int i = 0; i < (int)(m->bytes / sizeof(int)); ++i) ((int*)m->shadow)[i] = seed + i;
  put(m);
}

static int holds(struct Memory* m, int seed, int from, int count) {
  get(m);
  for (int i = from; i < from + count; ++i) {
    if (((int*)m->shadow)[i] != seed + i) return 0;
  }
  return 1;
}

static int unchanged(struct Memory* m, int seed) {
  return holds(m, seed, 0, (int)(m->bytes / sizeof(int)));
}

static struct Memory filled(int device, int seed) {
  struct Memory m = memory_on(device, BYTES);
  fill(&m, seed);
  return m;
}

static void check_zero_counts(void) {
  struct Memory s = filled(0, 1), r = filled(1, 2);
  int counts[MOST] = {0}, places[MOST] = {0};
  MPI_Datatype empty, types[MOST];
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  for (int i = 0; i < MOST; ++i) types[i] = i % 2 == 0 ? empty : MPI_INT;
  CHECK_MPI(MPI_Bcast(r.data, 0, MPI_INT, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Bcast(r.data, 7, empty, 0, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Allreduce(s.data, r.data, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Allgather(s.data, 0, MPI_INT, r.data, 0, MPI_INT, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Alltoallv(s.data, counts, places, MPI_INT, r.data, counts, places, MPI_INT,
                          MPI_COMM_WORLD));
  CHECK_MPI(
      MPI_Alltoallw(s.data, counts, places, types, r.data, counts, places, types, MPI_COMM_WORLD));
  CHECK_MPI(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD));
  CHECK(unchanged(&s, 1) && unchanged(&r, 2));
  MPI_Type_free(&empty);
  drop(&s), drop(&r);
}

/* Elsewhere than at the root these may be anything. */
static void check_what_does_not_count(void) {
  const int root = size - 1, is_root = rank == root;
  struct Memory s = filled(0, 1), r = filled(1, 2), other = filled(0, 3);
  int counts[MOST], places[MOST];
  for (int i = 0; i < MOST; ++i) counts[i] = N, places[i] = i * N;
  for (int rubbish = 0; rubbish < 2; ++rubbish) {
    char* const nowhere = rubbish ? (char*)24 : other.data;
    char* const in = is_root ? r.data : nowhere;
    char* const out = is_root ? s.data : nowhere;
    const MPI_Datatype type = is_root ? MPI_INT : MPI_DATATYPE_NULL;
    const int count = is_root ? N : -5;
    CHECK_MPI(MPI_Gather(s.data, N, MPI_INT, in, count, type, root, MPI_COMM_WORLD));
    if (is_root) CHECK(holds(&r, 1, 0, N));
    CHECK_MPI(MPI_Gatherv(s.data, N, MPI_INT, in, is_root ? counts : NULL, is_root ? places : NULL,
                          type, root, MPI_COMM_WORLD));
    CHECK_MPI(MPI_Reduce(s.data, in, N, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD));
    if (is_root) CHECK(holds(&r, 1, 0, N));
    fill(&r, 2);
    CHECK_MPI(MPI_Scatter(out, count, type, r.data, N, MPI_INT, root, MPI_COMM_WORLD));
    CHECK(holds(&r, 1 + rank * N, 0, N));
    CHECK_MPI(MPI_Scatterv(out, is_root ? counts : NULL, is_root ? places : NULL, type, r.data, N,
                           MPI_INT, root, MPI_COMM_WORLD));
    CHECK(holds(&r, 1 + rank * N, 0, N) && holds(&r, 2, N, N));
    fill(&r, 2);
  }
  CHECK(unchanged(&s, 1) && unchanged(&other, 3));
  drop(&s), drop(&r), drop(&other);
}

/* Collective calls and messages, completed together. */
static void check_requests(void) {
  enum { COUNT = 6 };
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  for (int way = 0; way < 6; ++way) {
    struct Memory s = filled(way % 2, 5), r[COUNT - 1];
    MPI_Request requests[COUNT];
    for (int i = 0; i < COUNT - 1; ++i) r[i] = filled(i % 3 - 1, 2);
    MPI_Iallreduce(s.data, r[0].data, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(r[1].data, N, MPI_INT, previous, way, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(rank == 0 ? s.data : r[2].data, N, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(s.data, N, MPI_INT, next, way, MPI_COMM_WORLD, &requests[3]);
    MPI_Iallgather(s.data, N, MPI_INT, r[3].data, N, MPI_INT, MPI_COMM_WORLD, &requests[4]);
    MPI_Iscan(s.data, r[4].data, N, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &requests[5]);
    int left = COUNT, done, index, flag, indices[COUNT];
    while (left > 0) {
      done = 0;
      switch (way) {
        case 0: CHECK_MPI(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE)), done = COUNT; break;
        case 1: CHECK_MPI(MPI_Waitany(COUNT, requests, &index, MPI_STATUS_IGNORE)), done = 1; break;
        case 2:
          CHECK_MPI(MPI_Waitsome(COUNT, requests, &done, indices, MPI_STATUSES_IGNORE));
          break;
        case 3:
          CHECK_MPI(MPI_Testall(COUNT, requests, &flag, MPI_STATUSES_IGNORE));
          done = flag ? COUNT : 0;
          break;
        case 4: CHECK_MPI(MPI_Testany(COUNT, requests, &index, &done, MPI_STATUS_IGNORE)); break;
        default: CHECK_MPI(MPI_Testsome(COUNT, requests, &done, indices, MPI_STATUSES_IGNORE));
      }
      left -= done;
    }
    for (int i = 0; i < COUNT; ++i) CHECK(requests[i] == MPI_REQUEST_NULL);
    for (int i = 0; i < COUNT - 1; ++i) {
      CHECK(holds(&r[i], i == 2 && rank == 0 ? 2 : 5, 0, N));
      if (i != 3) CHECK(holds(&r[i], 2, N, N));
    }
    drop(&s);
    for (int i = 0; i < COUNT - 1; ++i) drop(&r[i]);
  }
}

typedef int (*AllreduceInit)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                             MPI_Request*);

/* Each start takes what the memory then holds, and its end writes anew. */
static void check_restarts(void) {
  const AllreduceInit init = (AllreduceInit)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  struct Memory s = filled(0, 1), sum = filled(1, 2), got = filled(0, 2);
  MPI_Request requests[3];
  CHECK(init);
  CHECK_MPI(init(s.data, sum.data, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, requests));
  MPI_Recv_init(got.data, N, MPI_INT, previous, 9, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(s.data, N, MPI_INT, next, 9, MPI_COMM_WORLD, &requests[2]);
  for (int round = 0; round < 4; ++round) {
    fill(&s, 10 * round), fill(&sum, 2), fill(&got, 2);
    CHECK_MPI(MPI_Startall(3, requests));
    CHECK_MPI(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(holds(&sum, 10 * round, 0, N) && holds(&got, 10 * round, 0, N));
    CHECK(holds(&sum, 2, N, N));
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
  drop(&s), drop(&sum), drop(&got);
}

typedef int (*PackLarge)(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Count*,
                         MPI_Comm);
typedef int (*UnpackLarge)(const void*, MPI_Count, MPI_Count*, void*, MPI_Count, MPI_Datatype,
                           MPI_Comm);
typedef int (*PackExternalLarge)(const char*, const void*, MPI_Count, MPI_Datatype, void*,
                                 MPI_Count, MPI_Count*);

/* Every second int, behind something that is packed already. */
static void check_packing(int first_turn) {
  const PackLarge pack = (PackLarge)dlsym(RTLD_DEFAULT, "MPI_Pack_c");
  const UnpackLarge unpack = (UnpackLarge)dlsym(RTLD_DEFAULT, "MPI_Unpack_c");
  const PackExternalLarge pack_external =
      (PackExternalLarge)dlsym(RTLD_DEFAULT, "MPI_Pack_external_c");
  CHECK(pack && unpack && pack_external);
  MPI_Datatype every_second;
  MPI_Type_vector(N, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  for (int turn = first_turn; turn < 8; ++turn) {
    const int large = turn % 2, external = turn >= 4;
    struct Memory s = filled(turn % 3 - 1, 1), p = filled(turn % 2, 2), r = filled(0, 3);
    int position = 8;
    MPI_Count wide = 8;
    MPI_Aint place = 8;
    if (external && large) {
      CHECK_MPI(pack_external("external32", s.data, 1, every_second, p.data, BYTES, &wide));
    } else if (external) {
      CHECK_MPI(MPI_Pack_external("external32", s.data, 1, every_second, p.data, BYTES, &place));
    } else if (large) {
      CHECK_MPI(pack(s.data, 1, every_second, p.data, BYTES, &wide, MPI_COMM_WORLD));
    } else {
      CHECK_MPI(MPI_Pack(s.data, 1, every_second, p.data, BYTES, &position, MPI_COMM_WORLD));
    }
    const MPI_Count at = large ? wide : external ? (MPI_Count)place : (MPI_Count)position;
    CHECK(at == 8 + N * 4);
    CHECK(holds(&p, 2, 0, 2) && holds(&p, 2, 2 + N, N));
    if (!external) CHECK(((int*)p.shadow)[2] == 1 && ((int*)p.shadow)[3] == 3);
    position = 8, wide = 8, place = 8;
    if (external) {
      CHECK_MPI(MPI_Unpack_external("external32", p.data, BYTES, &place, r.data, 1, every_second));
    } else if (large) {
      CHECK_MPI(unpack(p.data, BYTES, &wide, r.data, 1, every_second, MPI_COMM_WORLD));
    } else {
      CHECK_MPI(MPI_Unpack(p.data, BYTES, &position, r.data, 1, every_second, MPI_COMM_WORLD));
    }
    get(&r);
    for (int i = 0; i < 2 * N; ++i) CHECK(((int*)r.shadow)[i] == (i % 2 == 0 ? 1 : 3) + i);
    CHECK(unchanged(&s, 1));
    CHECK_MPI(MPI_Reduce_local(s.data, r.data, N, MPI_INT, MPI_SUM));
    get(&r);
    for (int i = 0; i < N; ++i) CHECK(((int*)r.shadow)[i] == (i % 2 == 0 ? 2 : 4) + 2 * i);
    drop(&s), drop(&p), drop(&r);
  }
  MPI_Type_free(&every_second);
}

static void check_absolute_addresses(void) {
  struct Memory m[2] = {filled(0, rank == 0 ? 1 : 2), filled(1, rank == 0 ? 1 : 2)};
  MPI_Datatype types[2], everywhere[MOST];
  int ones[MOST] = {0}, zeros[MOST] = {0};
  for (int i = 0; i < 2; ++i) {
    const int length = N;
    MPI_Aint address;
    MPI_Get_address(m[i].data, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &types[i]);
    MPI_Type_commit(&types[i]);
  }
  CHECK_MPI(MPI_Bcast(MPI_BOTTOM, 1, types[1], 0, MPI_COMM_WORLD));
  CHECK(holds(&m[1], 1, 0, N) && holds(&m[1], rank == 0 ? 1 : 2, N, N));
  /* from the one device to the other, within the process */
  fill(&m[0], 7);
  for (int i = 0; i < MOST; ++i) everywhere[i] = MPI_INT;
  ones[rank] = 1, everywhere[rank] = types[0];
  MPI_Datatype into[MOST];
  memcpy(into, everywhere, sizeof into);
  into[rank] = types[1];
  MPI_Request request;
  CHECK_MPI(MPI_Ialltoallw(MPI_BOTTOM, ones, zeros, everywhere, MPI_BOTTOM, ones, zeros, into,
                           MPI_COMM_WORLD, &request));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(holds(&m[1], 7, 0, N) && unchanged(&m[0], 7));
  for (int i = 0; i < 2; ++i) MPI_Type_free(&types[i]), drop(&m[i]);
}

static int calls_of_handler, class_of_last;

static void note(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  ++calls_of_handler;
  MPI_Error_class(*code, &class_of_last);
}

static void expect_error(int class) {
  CHECK(calls_of_handler == 1 && class_of_last == class);
  calls_of_handler = 0;
}

/* MPI's own errors: told once, to the communicator's handler. What a call returned as one has
 * written nothing; MPICH returns success once the handler has returned. */
static void check_errors(void) {
  struct Memory s = filled(0, 1), r = filled(1, 2);
  MPI_Datatype uncommitted;
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Type_contiguous(3, MPI_INT, &uncommitted);
  int silent = MPI_Bcast(r.data, -1, MPI_INT, 0, comm) == MPI_SUCCESS;
  expect_error(MPI_ERR_COUNT);
  silent |= MPI_Bcast(r.data, 1, MPI_INT, size + 3, comm) == MPI_SUCCESS;
  expect_error(MPI_ERR_ROOT);
  silent |= MPI_Allgather(s.data, 1, uncommitted, r.data, 1, MPI_INT, comm) == MPI_SUCCESS;
  expect_error(MPI_ERR_TYPE);
  silent |= MPI_Iallreduce(s.data, r.data, N, MPI_INT, MPI_OP_NULL, comm, &request) == MPI_SUCCESS;
  expect_error(MPI_ERR_OP);
  CHECK(unchanged(&s, 1) && (silent || unchanged(&r, 2)));
  MPI_Type_free(&uncommitted);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  drop(&s), drop(&r);
}

static void check_text(int code) { CHECK(code != MPI_SUCCESS && is_device_error(code)); }

/* A device that refuses is told of where its memory is read or written. */
static void check_refusing_devices(void) {
  struct Memory d = filled(0, 1), h = filled(-1, 2);
  MPI_Request request, persistent;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const AllreduceInit init = (AllreduceInit)dlsym(RTLD_DEFAULT, "MPI_Allreduce_init");
  CHECK_MPI(init(d.data, h.data, N, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &persistent));
  sim_set_failing(0, 0);
  check_text(MPI_Allreduce(d.data, h.data, N, MPI_INT, MPI_SUM, comm));
  check_text(MPI_Iallreduce(d.data, h.data, N, MPI_INT, MPI_SUM, comm, &request));
  check_text(MPI_Start(&persistent));
  check_text(MPI_Allreduce(h.data, d.data, N, MPI_INT, MPI_SUM, comm));
  int code = MPI_Iallreduce(h.data, d.data, N, MPI_INT, MPI_SUM, comm, &request);
  if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  check_text(code);
  code = MPI_Iallreduce(h.data, d.data, N, MPI_INT, MPI_SUM, comm, &request);
  MPI_Status status;
  if (code == MPI_SUCCESS) {
    CHECK(MPI_Waitall(1, &request, &status) == MPI_ERR_IN_STATUS);
    code = status.MPI_ERROR;
  }
  check_text(code);
  CHECK(holds(&h, 2, 0, N));
  MPI_Request_free(&persistent);
  MPI_Comm_free(&comm);
}

/* Layouts of many runs, which are packed on the device where it has room. */
static void check_without_memory(const char* lacking) {
  struct Memory s = filled(0, 1), r = filled(1, 2);
  MPI_Datatype every_second;
  MPI_Type_vector(N / 2, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  if (strstr(lacking, "device memory")) sim_set_limit(0, 0), sim_set_limit(1, 0);
  if (strstr(lacking, "pinned memory")) sim_set_limit(sim_pinned, 0);
  for (int round = 0; round < 3; ++round) {
    fill(&r, 2);
    CHECK_MPI(MPI_Allgather(s.data, 1, every_second, r.data, 1, every_second, MPI_COMM_WORLD));
    get(&r);
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j + 1 < N; ++j) { /* the extent ends with the last item */
        const int at = i * (N - 1) + j;
        CHECK(((int*)r.shadow)[at] == (j % 2 == 0 ? 1 + j : 2 + at));
      }
    }
    CHECK_MPI(MPI_Allreduce(s.data, r.data, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK(holds(&r, 1, 0, N));
  }
  MPI_Type_free(&every_second);
  drop(&s), drop(&r);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const char* lacking = argc > 1 ? argv[1] : "nothing";
  if (strcmp(lacking, "devices") == 0) {
    check_refusing_devices();
  } else if (strcmp(lacking, "alone") == 0) {
    check_packing(4);
  } else if (strcmp(lacking, "nothing") != 0) {
    check_without_memory(lacking);
  } else {
    check_zero_counts();
    check_what_does_not_count();
    check_requests();
    check_restarts();
    check_packing(0);
    check_absolute_addresses();
    check_errors();
  }
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
