/* Memory that only MPI can work with: of a device, while mpress has GPUs switched off. Here it is
 * memory that nobody may touch before its message is asked for, and that a driver of our own, which
 * is this file compiled with DRIVER as libcuda.so.1, calls a device's. One rank. With the argument
 * "at once", MPI may touch it from the start, as some do when they are told to send. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#ifdef DRIVER

uintptr_t device_begin, device_end;

int cuPointerGetAttributes(unsigned count, const int* attributes, void** results, uintptr_t at) {
  const int is_device = at >= device_begin && at < device_end;
  (void)count, (void)attributes;
  *(unsigned*)results[0] = is_device ? 2 : 0;
  *(unsigned*)results[1] = 0;
  *(int*)results[2] = is_device ? 0 : -1;
  return 0;
}

/* This machine has a GPU. */
int access(const char* path, int mode) {
  int (*real)(const char*, int) = (int (*)(const char*, int))dlsym(RTLD_NEXT, "access");
  return strcmp(path, "/dev/nvidiactl") == 0 ? 0 : real(path, mode);
}

#else

#include <sys/mman.h>

#include "check.h"

extern uintptr_t device_begin, device_end;

enum { N = 1 << 18 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const size_t bytes = N * sizeof(float);
  float* got = malloc(bytes);
  const int at_once = argc > 1 && strcmp(argv[1], "at once") == 0;
  const int protection = at_once ? PROT_READ | PROT_WRITE : PROT_NONE;
  float* data = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  device_begin = (uintptr_t)data;
  device_end = device_begin + bytes;
  if (at_once) fill_f32(data, N, 3);
  MPI_Request request;
  CHECK_MPI(MPI_Isend(data, N, MPI_FLOAT, 0, 1, MPI_COMM_SELF, &request));
  CHECK(mprotect(data, bytes, PROT_READ | PROT_WRITE) == 0);
  fill_f32(data, N, 3);
  CHECK_MPI(MPI_Recv(got, N, MPI_FLOAT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(same_f32(got, N, 3));
  CHECK_MPI(MPI_Sendrecv_replace(data, N, MPI_FLOAT, 0, 1, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(same_f32(data, N, 3));
  /* What the host's memory sends compressed is decoded there all the same. */
  fill_f32(got, N, 7);
  CHECK_MPI(MPI_Isend(got, N, MPI_FLOAT, 0, 2, MPI_COMM_SELF, &request));
  CHECK_MPI(MPI_Recv(data, N, MPI_FLOAT, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(same_f32(data, N, 7));
  MPI_Datatype every_other;
  MPI_Type_vector(N / 2, 1, 2, MPI_FLOAT, &every_other);
  MPI_Type_commit(&every_other);
  memset(data, 0, bytes);
  CHECK_MPI(MPI_Isend(got, N / 2, MPI_FLOAT, 0, 2, MPI_COMM_SELF, &request));
  CHECK_MPI(MPI_Recv(data, 1, every_other, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < N; ++i) CHECK(data[i] == (i % 2 ? 0 : got[i / 2]));
  MPI_Type_free(&every_other);
  MPI_Finalize();
  puts("ok");
  return 0;
}

#endif
