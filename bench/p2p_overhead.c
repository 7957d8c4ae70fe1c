/* What mpress costs a call where nothing is compressed. To be run by `mpress run`: in one process,
 * blocks of calls go by turns to mpress (which comes first in a global look-up) and straight to
 * the MPI library, on the same buffers, so that whatever disturbs the machine disturbs both.
 *   p2p_overhead BLOCKS CALLS single|multiple [cuda|device]
 * prints a line for each pattern, size and block: name bytes calls plain_ns mpress_ns, where
 * `calls` is how many MPI calls one repetition makes and the times are those of one repetition.
 * With "cuda", the process uses a GPU: each pointer might be one of that. With "device", buffers
 * are in memory of GPUs, which MPI has to take, rank r's of GPU r; long messages are repeated less.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS(X) X(Send) X(Isend) X(Recv) X(Irecv) X(Sendrecv) X(Wait) X(Waitall) X(Iprobe) X(Probe)

struct calls {
#define POINTER(name) __typeof__(&MPI_##name) name;
  CALLS(POINTER)
};

enum { BATCH = 8, WINDOW = 16, LARGEST = 65536, LARGEST_ON_DEVICE = 32 << 20 };

static double host_out[BATCH][LARGEST / 8], host_in[BATCH][LARGEST / 8];
static double *out[BATCH], *in[BATCH];
static int rank;
static const struct calls* use;

static void bind(struct calls* calls, void* library) {
#define BIND(name) calls->name = (__typeof__(calls->name))dlsym(library, "MPI_" #name);
  CALLS(BIND)
}

static void isend_recv_wait(int count) {
  MPI_Request request;
  use->Isend(out[0], count, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &request);
  use->Recv(in[0], count, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  use->Wait(&request, MPI_STATUS_IGNORE);
}

static void irecv_send_wait(int count) {
  MPI_Request request;
  use->Irecv(in[0], count, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &request);
  use->Send(out[0], count, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD);
  use->Wait(&request, MPI_STATUS_IGNORE);
}

static void sendrecv(int count) {
  use->Sendrecv(out[0], count, MPI_DOUBLE, rank, 1, in[0], count, MPI_DOUBLE, rank, 1,
                MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void isend_probe_recv_wait(int count) {
  MPI_Request request;
  MPI_Status status;
  use->Isend(out[0], count, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, &request);
  use->Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
  use->Recv(in[0], count, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  use->Wait(&request, MPI_STATUS_IGNORE);
}

static void iprobe_in_vain(int count) {
  int flag;
  (void)count;
  use->Iprobe(rank, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void waitall(int count) {
  MPI_Request requests[2 * BATCH];
  for (int i = 0; i < BATCH; ++i) {
    use->Irecv(in[i], count, MPI_DOUBLE, rank, i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < BATCH; ++i) {
    use->Isend(out[i], count, MPI_DOUBLE, rank, i, MPI_COMM_WORLD, &requests[BATCH + i]);
  }
  use->Waitall(BATCH, requests, MPI_STATUSES_IGNORE);
  use->Waitall(BATCH, requests + BATCH, MPI_STATUSES_IGNORE);
}

/* A message there and one back: each rank makes two calls, and waits for two of the other. */
static void ping_pong(int count) {
  if (rank == 0) use->Send(out[0], count, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
  use->Recv(in[0], count, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) use->Send(out[0], count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
}

/* As the OSU benchmarks do: all receives share a buffer. */
static void window(int count, int sends, int receives) {
  MPI_Request requests[2 * WINDOW];
  int n = 0;
  for (int i = 0; receives && i < WINDOW; ++i) {
    use->Irecv(in[0], count, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &requests[n++]);
  }
  for (int i = 0; sends && i < WINDOW; ++i) {
    use->Isend(out[0], count, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &requests[n++]);
  }
  use->Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void one_way(int count) {
  window(count, rank == 0, rank == 1);
  if (rank == 1) use->Send(NULL, 0, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
  if (rank == 0) use->Recv(NULL, 0, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void both_ways(int count) { window(count, 1, 1); }

static const struct pattern {
  const char* name;
  void (*run)(int count);
  int calls, ranks;
} patterns[] = {
    {"Isend, Recv, Wait", isend_recv_wait, 3, 1},
    {"Irecv, Send, Wait", irecv_send_wait, 3, 1},
    {"Sendrecv", sendrecv, 1, 1},
    {"Isend, Probe, Recv, Wait", isend_probe_recv_wait, 4, 1},
    {"Iprobe, nothing there", iprobe_in_vain, 1, 1},
    {"8 Irecv, 8 Isend, 2 Waitall", waitall, 18, 1},
    {"ping-pong: Send, Recv", ping_pong, 4, 2},
    {"window of 16, one way", one_way, 2 * WINDOW + 2, 2},
    {"window of 16, both ways", both_ways, 4 * WINDOW + 2, 2},
};

static double nanoseconds(const struct pattern* pattern, int count, int repeat) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < repeat; ++i) pattern->run(count);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
         repeat;
}

static void measure(const struct pattern* pattern, int bytes, int blocks, int repeat,
                    const struct calls* plain, const struct calls* mpress) {
  const int count = bytes / 8;
  for (int block = -2; block < blocks; ++block) {  // two to warm up
    double took[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (block ^ turn) & 1;  // who goes first alternates too
      use = which ? mpress : plain;
      took[which] = nanoseconds(pattern, count, repeat);
    }
    if (block >= 0 && rank == 0) {
      printf("%s\t%d\t%d\t%.2f\t%.2f\n", pattern->name, bytes, pattern->calls, took[0], took[1]);
    }
  }
}

/* Loads the driver and makes a context current, as a program's CUDA runtime does. */
static void* use_gpu(int device) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
  int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
  int (*retain)(void**, int) =
      driver ? (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain") : NULL;
  int (*set)(void*) = driver ? (int (*)(void*))dlsym(driver, "cuCtxSetCurrent") : NULL;
  void* context = NULL;
  if (init && retain && set && init(0) == 0 && retain(&context, device) == 0 && set(context) == 0)
    return driver;
  return NULL;
}

static int is_given(int argc, char** argv, const char* mode) {
  return argc > 4 && strcmp(argv[4], mode) == 0;
}

/* Host memory, or the device's; 0 where there is none. */
static int allocate(void* driver) {
  int (*take)(unsigned long long*, size_t) =
      driver ? (int (*)(unsigned long long*, size_t))dlsym(driver, "cuMemAlloc_v2") : NULL;
  for (int i = 0; i < BATCH; ++i) {
    unsigned long long from = 0, to = 0;
    out[i] = host_out[i];
    in[i] = host_in[i];
    if (!driver) continue;
    if (!take || take(&from, LARGEST_ON_DEVICE) != 0 || take(&to, LARGEST_ON_DEVICE) != 0) return 0;
    out[i] = (double*)from;
    in[i] = (double*)to;
  }
  return 1;
}

int main(int argc, char** argv) {
  static const int host_sizes[] = {0, 8, 256, 1024, 8192, LARGEST, -1};
  static const int device_sizes[] = {4096, 65536, 1 << 20, LARGEST_ON_DEVICE, -1};
  struct calls plain, mpress;
  Dl_info info;
  int ranks, level;
  if (argc < 4) return 2;
  MPI_Init_thread(&argc, &argv,
                  strcmp(argv[3], "multiple") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  /* Nobody stands in for this call: whoever defines it is MPI. */
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), &info);
  const int on_device = is_given(argc, argv, "device");
  void* driver = argc > 4 ? use_gpu(on_device ? rank : 0) : NULL;
  if ((argc > 4 && !driver) || !allocate(on_device ? driver : NULL)) {
    fprintf(stderr, "p2p_overhead: no GPU can be used\n");
    return 2;
  }
  bind(&plain, dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD));
  bind(&mpress, RTLD_DEFAULT);
  if (plain.Send == mpress.Send) {
    fprintf(stderr, "p2p_overhead: mpress is not loaded\n");
    return 2;
  }
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns; ++p) {
    if (patterns[p].ranks != ranks) continue;
    for (const int* size = on_device ? device_sizes : host_sizes; *size >= 0; ++size) {
      if (patterns[p].run == iprobe_in_vain && *size > 0) break;
      int repeat = atoi(argv[2]);
      if (on_device) repeat = *size > 1 << 20 ? 2 : repeat / patterns[p].calls + 2;
      measure(&patterns[p], *size, atoi(argv[1]), repeat, &plain, &mpress);
    }
  }
  MPI_Finalize();
  return 0;
}
