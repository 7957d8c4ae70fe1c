/* Collective calls of mpress's own with a stream, on GPUs: how long they take to return, and when
 * what is behind them in the stream begins, beside the same calls without a stream.
 *
 * streams [REPEAT]: each rank on a GPU of its own. A line of JSON for each case: microseconds, the
 * longest of all ranks, medians. "blocking": without a stream, from the call until it returns.
 * "returns" and "begins": with one that holds nothing, until the call returns, and until a piece of
 * work behind it has begun. "busy_returns": the same as "returns" of a stream that has 200 us to
 * do.
 */
#include <cuda_runtime.h>
#include <mpi.h>
#include <mpress/mpress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 << 20, WARM = 12, BUSY_BYTES = 256 << 20 };

static int rank, size;
static float *out, *in;
static char* busy;
static cudaStream_t stream;
static cudaEvent_t event;

static void check(int failed, const char* what) {
  if (!failed) return;
  fprintf(stderr, "streams: rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int call(const char* op, int bytes, const mpress_call* asked) {
  const int count = bytes / 4;
  if (strcmp(op, "allreduce") == 0) {
    return mpress_allreduce(out, in, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, asked);
  }
  if (strcmp(op, "bcast") == 0) {
    return mpress_bcast(rank == 0 ? out : in, count, MPI_FLOAT, 0, MPI_COMM_WORLD, asked);
  }
  return mpress_allgather(out, count, MPI_FLOAT, in, count, MPI_FLOAT, MPI_COMM_WORLD, asked);
}

static int before(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* In microseconds; the longest of all ranks' in each round. */
static double median(double* seconds, int rounds) {
  MPI_Allreduce(MPI_IN_PLACE, seconds, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(seconds, (size_t)rounds, sizeof *seconds, before);
  return seconds[rounds / 2] * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int repeat = argc > 1 ? atoi(argv[1]) : 301;
  int devices = 0;
  check(cudaGetDeviceCount(&devices) != cudaSuccess || devices < size, "a GPU for each rank");
  check(cudaSetDevice(rank) != cudaSuccess, "the GPU");
  check(cudaMalloc((void**)&out, MOST) != cudaSuccess, "memory");
  check(cudaMalloc((void**)&in, (size_t)MOST * (size_t)size) != cudaSuccess, "memory");
  check(cudaMalloc((void**)&busy, 2 * (size_t)BUSY_BYTES) != cudaSuccess, "memory");
  check(cudaMemset(out, 0, MOST) != cudaSuccess, "memory");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess, "a stream");
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess, "an event");
  check(cudaDeviceSynchronize() != cudaSuccess, "the GPU");
  check(mpress_init() != MPI_SUCCESS, "mpress_init");
  mpress_call plain, asked;
  memset(&plain, 0, sizeof plain);
  plain.mask = MPRESS_CALL_SPEC;
  plain.spec = "none";
  asked = plain;
  asked.mask |= MPRESS_CALL_STREAM;
  asked.stream = stream;
  static const struct {
    const char* op;
    int bytes;
  } cases[] = {{"allreduce", 2048},  {"allreduce", 65536},  {"allreduce", 1 << 20},
               {"allreduce", MOST},  {"bcast", 65536},      {"bcast", 1 << 20},
               {"allgather", 65536}, {"allgather", 1 << 20}};
  double* const seconds[4] = {
      malloc(sizeof(double) * (size_t)repeat), malloc(sizeof(double) * (size_t)repeat),
      malloc(sizeof(double) * (size_t)repeat), malloc(sizeof(double) * (size_t)repeat)};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    for (int i = -WARM; i < repeat; ++i) {
      const int at = i < 0 ? 0 : i;
      MPI_Barrier(MPI_COMM_WORLD);
      double begin = MPI_Wtime();
      check(call(cases[c].op, cases[c].bytes, &plain) != MPI_SUCCESS, cases[c].op);
      seconds[0][at] = MPI_Wtime() - begin;
      MPI_Barrier(MPI_COMM_WORLD);
      begin = MPI_Wtime();
      check(call(cases[c].op, cases[c].bytes, &asked) != MPI_SUCCESS, cases[c].op);
      seconds[1][at] = MPI_Wtime() - begin;
      cudaEventRecord(event, stream);
      while (cudaEventQuery(event) == cudaErrorNotReady) {
      }
      seconds[2][at] = MPI_Wtime() - begin;
      check(cudaMemcpyAsync(busy, busy + BUSY_BYTES, BUSY_BYTES, cudaMemcpyDeviceToDevice,
                            stream) != cudaSuccess,
            "a copy");
      MPI_Barrier(MPI_COMM_WORLD);
      begin = MPI_Wtime();
      check(call(cases[c].op, cases[c].bytes, &asked) != MPI_SUCCESS, cases[c].op);
      seconds[3][at] = MPI_Wtime() - begin;
      check(cudaStreamSynchronize(stream) != cudaSuccess, "the stream");
    }
    double medians[4];
    for (int k = 0; k < 4; ++k) medians[k] = median(seconds[k], repeat);
    if (rank != 0) continue;
    printf(
        "{\"op\": \"%s\", \"bytes\": %d, \"ranks\": %d, \"blocking\": %.1f, \"returns\": %.1f, "
        "\"begins\": %.1f, \"busy_returns\": %.1f}\n",
        cases[c].op, cases[c].bytes, size, medians[0], medians[1], medians[2], medians[3]);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
