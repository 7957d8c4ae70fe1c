/* What mpress costs a call where nothing is compressed. To be run by `mpress run`: in one process,
 * blocks of calls go by turns to mpress (which comes first in a global look-up) and straight to
 * the MPI library, on the same buffers, so that whatever disturbs the machine disturbs both.
 *   p2p_overhead BLOCKS CALLS single|multiple [cuda]
 * prints a line for each pattern, size and block: name bytes calls plain_ns mpress_ns, where
 * `calls` is how many MPI calls one repetition makes and the times are those of one repetition.
 * With "cuda", the process uses a GPU: each pointer might be one of that. */
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

enum { BATCH = 8, LARGEST = 65536 };

static double out[BATCH][LARGEST / 8], in[BATCH][LARGEST / 8];
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
static int use_gpu(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
  int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
  int (*retain)(void**, int) =
      driver ? (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain") : NULL;
  int (*set)(void*) = driver ? (int (*)(void*))dlsym(driver, "cuCtxSetCurrent") : NULL;
  void* context = NULL;
  return init && retain && set && init(0) == 0 && retain(&context, 0) == 0 && set(context) == 0;
}

int main(int argc, char** argv) {
  static const int sizes[] = {0, 8, 256, 1024, 8192, 65536};
  struct calls plain, mpress;
  Dl_info info;
  int size, level;
  if (argc < 4) return 2;
  MPI_Init_thread(&argc, &argv,
                  strcmp(argv[3], "multiple") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  /* Nobody stands in for this call: whoever defines it is MPI. */
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"), &info);
  if (argc > 4 && !use_gpu()) {
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
    if (patterns[p].ranks != size) continue;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
      if (patterns[p].run == iprobe_in_vain && s > 0) break;
      measure(&patterns[p], sizes[s], atoi(argv[1]), atoi(argv[2]), &plain, &mpress);
    }
  }
  MPI_Finalize();
  return 0;
}
