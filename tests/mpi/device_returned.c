/* Copies and settings of a device's memory that have returned while the device may not be done with
 * them: of what is sent, and of where it is received. Then MPI is called, in every way that reads
 * or writes such memory. With the argument "long", only much, and by copies within the device: what
 * an MPI that takes such memory gets as it is has to be there in these simulations. With "held",
 * streams of the program's that the default one waits for hold work that ends after the calls, or
 * are being captured: the calls do not wait for them. */
#include "device_memory.h"
#include "simulated_gpu.h"

enum { MOST = 70000, SET = 0x41, PERIOD = 13 };
static const int counts[] = {5, 4000, MOST};

/* How what is sent is written. */
enum How { COPIED, COPIED_WITHIN, BY_THREAD, ELSEWHERE, SETTING, HOWS };

enum Call {
  SENDRECV,
  REPLACE,
  IMMEDIATE,
  PERSISTENT,
  PROBED,
  BCAST,
  GATHER,
  SCATTER,
  ALLGATHER,
  ALLTOALL,
  ALLTOALLV,
  ALLREDUCE,
  REDUCE,
  REDUCE_SCATTER,
  SCAN,
  IALLGATHER,
  IALLTOALLV,
  IALLREDUCE,
  ISCAN,
#if MPI_VERSION >= 4
  ALLGATHER_INIT,
  ALLTOALLV_INIT,
  ALLREDUCE_INIT,
#endif
  CALLS
};

static int rank, size, device, next, before;
static size_t bytes; /* of each buffer */
static float *sent, *got, *spare;
static float* host;
static void* thread_stream;

static int is_sum(enum Call call) {
#if MPI_VERSION >= 4
  if (call == ALLREDUCE_INIT) return 1;
#endif
  return call == ALLREDUCE || call == REDUCE || call == REDUCE_SCATTER || call == SCAN ||
         call == IALLREDUCE || call == ISCAN;
}

/* Element `i` of what `from` has for `to`, which repeats after PERIOD elements. */
static float value(int from, int to, int seed, int i, enum How how) {
  float set;
  if (how != SETTING) return (float)(from * 31 + to * 17 + seed * 7 + i % PERIOD);
  memset(&set, SET + from, sizeof set);
  return set;
}

static void write_sent(int count, int seed, enum How how) {
  for (int to = 0; to < size; ++to) {
    float* const block = host + to * count;
    for (int i = 0; i < count; ++i) {
      block[i] = i < PERIOD ? value(rank, to, seed, i, how) : block[i - PERIOD];
    }
  }
  const size_t all = sizeof(float) * (size_t)(size * count);
  sim_set(got, 0x5a, all); /* while its own device is current */
  switch (how) {
    case COPIED: sim_copy_in(sent, host, all); break;
    case COPIED_WITHIN:
      sim_copy_in(spare, host, all);
      sim_copy_within(sent, spare, all);
      break;
    case BY_THREAD:
      sim_copy_in(spare, host, all);
      sim_stream_copy(thread_stream, sent, spare, all);
      break;
    case ELSEWHERE: /* the device that is current stays so until the call has returned */
      sim_set_device((device + 1) % sim_devices);
      sim_copy_in(sent, host, all);
      break;
    default: sim_set(sent, SET + rank, all);
  }
}

static MPI_Request kept[CALLS][2];

static void complete(MPI_Request* requests, int number) {
  CHECK_MPI(MPI_Waitall(number, requests, MPI_STATUSES_IGNORE));
}

/* Makes it with `count` floats a block. */
static void make(enum Call call, int count) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype type = MPI_FLOAT;
  int lengths[64], places[64];
  for (int i = 0; i < size; ++i) lengths[i] = count, places[i] = i * count;
  MPI_Request one = MPI_REQUEST_NULL, two[2];
  MPI_Status status;
  MPI_Message message;
  switch (call) {
    case SENDRECV:
      CHECK_MPI(MPI_Sendrecv(sent, count, type, next, 1, got, count, type, before, 1, world,
                             MPI_STATUS_IGNORE));
      break;
    case REPLACE:
      CHECK_MPI(
          MPI_Sendrecv_replace(sent, count, type, next, 1, before, 1, world, MPI_STATUS_IGNORE));
      break;
    case IMMEDIATE:
      CHECK_MPI(MPI_Irecv(got, count, type, before, 2, world, &two[0]));
      CHECK_MPI(MPI_Isend(sent, count, type, next, 2, world, &two[1]));
      complete(two, 2);
      break;
    case PERSISTENT:
      if (kept[call][0] == MPI_REQUEST_NULL) {
        CHECK_MPI(MPI_Recv_init(got, count, type, before, 3, world, &kept[call][0]));
        CHECK_MPI(MPI_Send_init(sent, count, type, next, 3, world, &kept[call][1]));
      }
      CHECK_MPI(MPI_Startall(2, kept[call]));
      complete(kept[call], 2);
      break;
    case PROBED:
      CHECK_MPI(MPI_Isend(sent, count, type, next, 4, world, &one));
      CHECK_MPI(MPI_Mprobe(before, 4, world, &message, &status));
      CHECK_MPI(MPI_Mrecv(got, count, type, &message, &status));
      complete(&one, 1);
      break;
    case BCAST: CHECK_MPI(MPI_Bcast(rank == 0 ? sent : got, count, type, 0, world)); break;
    case GATHER: CHECK_MPI(MPI_Gather(sent, count, type, got, count, type, 0, world)); break;
    case SCATTER: CHECK_MPI(MPI_Scatter(sent, count, type, got, count, type, 0, world)); break;
    case ALLGATHER: CHECK_MPI(MPI_Allgather(sent, count, type, got, count, type, world)); break;
    case ALLTOALL: CHECK_MPI(MPI_Alltoall(sent, count, type, got, count, type, world)); break;
    case ALLTOALLV:
      CHECK_MPI(MPI_Alltoallv(sent, lengths, places, type, got, lengths, places, type, world));
      break;
    case ALLREDUCE: CHECK_MPI(MPI_Allreduce(sent, got, count, type, MPI_SUM, world)); break;
    case REDUCE: CHECK_MPI(MPI_Reduce(sent, got, count, type, MPI_SUM, 0, world)); break;
    case REDUCE_SCATTER:
      CHECK_MPI(MPI_Reduce_scatter_block(sent, got, count, type, MPI_SUM, world));
      break;
    case SCAN: CHECK_MPI(MPI_Scan(sent, got, count, type, MPI_SUM, world)); break;
    case IALLGATHER:
      CHECK_MPI(MPI_Iallgather(sent, count, type, got, count, type, world, &one));
      break;
    case IALLTOALLV:
      CHECK_MPI(
          MPI_Ialltoallv(sent, lengths, places, type, got, lengths, places, type, world, &one));
      break;
    case IALLREDUCE: CHECK_MPI(MPI_Iallreduce(sent, got, count, type, MPI_SUM, world, &one)); break;
    case ISCAN: CHECK_MPI(MPI_Iscan(sent, got, count, type, MPI_SUM, world, &one)); break;
#if MPI_VERSION >= 4
    case ALLGATHER_INIT:
      if (kept[call][0] == MPI_REQUEST_NULL) {
        CHECK_MPI(MPI_Allgather_init(sent, count, type, got, count, type, world, MPI_INFO_NULL,
                                     &kept[call][0]));
      }
      break;
    case ALLTOALLV_INIT:
      if (kept[call][0] == MPI_REQUEST_NULL) {
        CHECK_MPI(MPI_Alltoallv_init(sent, lengths, places, type, got, lengths, places, type, world,
                                     MPI_INFO_NULL, &kept[call][0]));
      }
      break;
    case ALLREDUCE_INIT:
      if (kept[call][0] == MPI_REQUEST_NULL) {
        CHECK_MPI(MPI_Allreduce_init(sent, got, count, type, MPI_SUM, world, MPI_INFO_NULL,
                                     &kept[call][0]));
      }
      break;
#endif
    default: CHECK(0);
  }
  if (one != MPI_REQUEST_NULL) complete(&one, 1);
  if (call > ISCAN) {
    CHECK_MPI(MPI_Start(&kept[call][0]));
    complete(&kept[call][0], 1);
  }
}

/* Of block `block` that this rank has got; NAN: it got none. */
static float expected(enum Call call, int block, int seed, int i, enum How how) {
  float sum = 0;
  const int of_all = call == GATHER || call == ALLGATHER || call == IALLGATHER;
#if MPI_VERSION >= 4
  if (call == ALLGATHER_INIT) return value(block, 0, seed, i, how);
  if (call == ALLTOALLV_INIT) return value(block, rank, seed, i, how);
#endif
  if (call == GATHER && rank != 0) return NAN;
  if (of_all) return value(block, 0, seed, i, how);
  if (call == ALLTOALL || call == ALLTOALLV || call == IALLTOALLV) {
    return value(block, rank, seed, i, how);
  }
  if (block > 0) return NAN;
  if (call == BCAST) return rank == 0 ? NAN : value(0, 0, seed, i, how);
  if (call == SCATTER) return value(0, rank, seed, i, how);
  if (call == REDUCE && rank != 0) return NAN;
  const int last = call == SCAN || call == ISCAN ? rank : size - 1;
  const int part = call == REDUCE_SCATTER ? rank : 0;
  if (!is_sum(call)) return value(before, 0, seed, i, how);
  for (int from = 0; from <= last; ++from) sum += value(from, part, seed, i, how);
  return sum;
}

static void check_got(enum Call call, int count, int seed, enum How how) {
  const float* const where = call == REPLACE ? sent : got;
  sim_copy_out(host, where, sizeof(float) * (size_t)(size * count));
  for (int block = 0; block < size; ++block) {
    float wanted[PERIOD];
    for (int i = 0; i < PERIOD; ++i) wanted[i] = expected(call, block, seed, i, how);
    for (int i = 0; i < count; ++i) {
      const float want = wanted[i % PERIOD], have = host[block * count + i];
      if (isnan(want) || have == want) continue;
      fprintf(stderr, "rank %d: call %d, written in way %d, %d floats: %g at %d of %d, not %g\n",
              rank, call, how, count, have, i, block, want);
      CHECK(0);
    }
  }
}

static void free_kept(void) {
  for (int call = 0; call < CALLS; ++call) {
    for (int i = 0; i < 2; ++i) {
      if (kept[call][i] != MPI_REQUEST_NULL) CHECK_MPI(MPI_Request_free(&kept[call][i]));
    }
  }
}

static void all_calls(int is_long) {
  for (int c = is_long ? 2 : 0; c < 3; ++c) {
    for (int call = 0; call < CALLS; ++call) {
      for (int how = 0; how < HOWS; ++how) {
        if (is_long && how != COPIED_WITHIN && how != BY_THREAD) continue;
        if (how == SETTING && is_sum(call)) continue;
        write_sent(counts[c], c + call, how);
        make(call, counts[c]);
        sim_set_device(device);
        check_got(call, counts[c], c + call, how);
      }
    }
    free_kept();
  }
}

/* `stream`, a blocking one, holds work until the calls are over, or is being captured. */
static void calls_beside(void* stream, int is_captured) {
  static int flag;
  for (int c = 0; c < 3; ++c) {
    for (int call = 0; call < CALLS; ++call) {
      /* Memory that mpress takes for it may have the device waited for. */
      write_sent(counts[c], call, COPIED);
      make(call, counts[c]);
      write_sent(counts[c], call, COPIED);
      if (is_captured) {
        sim_stream_capture(stream, 1);
      } else {
        sim_synchronize();
        __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
        sim_stream_wait(stream, &flag);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      make(call, counts[c]);
      MPI_Barrier(MPI_COMM_WORLD);
      if (is_captured) {
        sim_stream_capture(stream, 0);
      } else {
        __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
      }
      check_got(call, counts[c], call, COPIED);
    }
    free_kept();
  }
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  CHECK(size <= 64);
  for (int call = 0; call < CALLS; ++call) kept[call][0] = kept[call][1] = MPI_REQUEST_NULL;
  device = rank % sim_devices;
  next = (rank + 1) % size;
  before = (rank + size - 1) % size;
  bytes = sizeof(float) * (size_t)(size * MOST);
  host = malloc(bytes);
  sent = sim_malloc(device, bytes);
  got = sim_malloc(device, bytes);
  spare = sim_malloc(device, bytes);
  sim_set_device(device);
  thread_stream = sim_thread_stream(device);
  if (argc > 1 && strcmp(argv[1], "held") == 0) {
    /* Kernels are loaded for the first message: nothing may hold the device then. */
    write_sent(5, 0, COPIED);
    make(SENDRECV, 5);
    void* const stream = sim_stream_create_blocking(device);
    calls_beside(stream, 0);
    calls_beside(stream, 1);
    sim_stream_destroy(stream);
  } else {
    all_calls(argc > 1 && strcmp(argv[1], "long") == 0);
  }
  sim_free(sent);
  sim_free(got);
  sim_free(spare);
  free(host);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
  return 0;
}
