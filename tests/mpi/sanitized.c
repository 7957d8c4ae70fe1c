/* Exchanges buffers of exactly the length that MPI is told, each of which is freed at once, so that
 * a sanitizer sees whoever reads or writes beyond them. The argument is the error that a lossy
 * codec may make; behind it `overflow` has the program do so itself.
 *
 * With OWN_OPTIONS it has options of its own for AddressSanitizer. */
#include "check.h"

#ifdef OWN_OPTIONS
const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "detect_leaks=0"; }
#endif

static int size;
static double bound;

static int near_f32(const float* values, int count, int seed) {
  for (int i = 0; i < count; ++i) {
    if (fabs((double)(values[i] - ((float)(seed + 1) + 1e-3f * (float)i))) > bound) return 0;
  }
  return 1;
}

/* Of n floats, from `shift` bytes on. */
static void exchange(int n, int shift) {
  const int next = (check_rank + 1) % size, previous = (check_rank + size - 1) % size;
  const size_t bytes = (size_t)n * sizeof(float);
  char *const a = malloc(bytes + (size_t)shift), *const b = malloc(bytes + (size_t)shift);
  char* const c = malloc(bytes * (size_t)size + (size_t)shift);
  float *const out = (float*)(void*)(a + shift), *const in = (float*)(void*)(b + shift);
  float* const all = (float*)(void*)(c + shift);
  MPI_Request requests[2];
  fill_f32(out, n, check_rank);
  MPI_Irecv(in, n, MPI_FLOAT, previous, n, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, n, MPI_FLOAT, next, n, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(near_f32(in, n, previous));
  if (check_rank == 0) fill_f32(in, n, 5);
  MPI_Bcast(in, n, MPI_FLOAT, 0, MPI_COMM_WORLD);
  CHECK(near_f32(in, n, 5));
  MPI_Allreduce(out, in, n, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
  CHECK(near_f32(in, n, size - 1));
  MPI_Allgather(out, n, MPI_FLOAT, all, n, MPI_FLOAT, MPI_COMM_WORLD);
  for (int r = 0; r < size; ++r) CHECK(near_f32(all + (size_t)r * (size_t)n, n, r));
  free(a), free(b), free(c);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bound = argc > 1 ? atof(argv[1]) : 0;
  for (int n = 1; n < 300000; n = n * 3 + 1) exchange(n, 0), exchange(n, 4);
  if (argc > 2) {
    float* const values = malloc(1000 * sizeof *values);
    volatile float* const beyond = values + argc - 3 + 1000;
    *beyond = 1;
    free(values);
  }
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
