/* tests/simulated_gpu/simulated_gpu.h on GPUs: the programs of tests/mpi that pass memory of
 * devices run on real ones when they are linked with this in place of the simulated library. What
 * only a simulation can do (limits, failures) ends the program. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulated_gpu.h"

static void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  abort();
}

static void refuse(const char* what) {
  fprintf(stderr, "%s needs simulated devices\n", what);
  abort();
}

void* sim_malloc(int device, size_t bytes) {
  int devices = 0;
  void* memory = NULL;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  check(cudaSetDevice(device % devices), "cudaSetDevice");
  check(cudaMalloc(&memory, bytes > 0 ? bytes : 1), "cudaMalloc");
  return memory;
}

void sim_free(void* memory) { check(cudaFree(memory), "cudaFree"); }

void sim_copy_in(void* device_memory, const void* host_memory, size_t bytes) {
  check(cudaMemcpy(device_memory, host_memory, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void sim_copy_out(void* host_memory, const void* device_memory, size_t bytes) {
  check(cudaMemcpy(host_memory, device_memory, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void sim_set_limit(int device, size_t bytes) {
  (void)device, (void)bytes;
  refuse("sim_set_limit");
}

void sim_set_failing(int device, unsigned pieces) {
  (void)device, (void)pieces;
  refuse("sim_set_failing");
}

size_t sim_held(int device) {
  (void)device;
  refuse("sim_held");
  return 0;
}
