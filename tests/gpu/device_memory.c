/* tests/simulated_gpu/simulated_gpu.h on GPUs: the programs of tests/mpi that pass memory of
 * devices run on real ones when they are linked with this in place of the simulated library. What
 * only a simulation can do (limits of pinned memory, failures) ends the program. With
 * DEVICE_MEMORY=kept, what is freed is given out again: an MPI that opens each new block in other
 * processes takes long for that. */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

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

/* What was allocated here. */
struct Block {
  struct Block* next;
  void* memory;
  size_t bytes;
  int device;
  int is_kept_from_others;
};

static struct Block* blocks;
static struct Block* kept; /* free ones */
static pthread_mutex_t lists =
    PTHREAD_MUTEX_INITIALIZER; /* whoever reads or changes these holds it */

static int keeps(void) {
  const char* const value = getenv("DEVICE_MEMORY");
  return value && strcmp(value, "kept") == 0;
}

static int real_device(int device) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  return device % devices;
}

static void move_first(struct Block** from, struct Block** to) {
  struct Block* const block = *from;
  *from = block->next;
  block->next = *to;
  *to = block;
}

/* Is there a free block that fits well? Then it is the first of `blocks`. */
static int take_kept(int device, size_t bytes) {
  for (struct Block** place = &kept; *place; place = &(*place)->next) {
    if ((*place)->device == device && (*place)->bytes >= bytes && (*place)->bytes / 2 <= bytes) {
      move_first(place, &blocks);
      return 1;
    }
  }
  return 0;
}

static cudaError_t take(int device, size_t bytes, int is_kept_from_others) {
  if (!is_kept_from_others && take_kept(device, bytes)) return cudaSuccess;
  void* memory = NULL;
  check(cudaSetDevice(real_device(device)), "cudaSetDevice");
  const cudaError_t code = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
  if (code != cudaSuccess) return code;
  struct Block* block = malloc(sizeof *block);
  *block = (struct Block){blocks, memory, bytes, device, is_kept_from_others};
  blocks = block;
  return cudaSuccess;
}

static void end(struct Block* block) {
  check(cudaFree(block->memory), "cudaFree");
  free(block);
}

static void give(struct Block** place) {
  struct Block* const block = *place;
  *place = block->next;
  end(block);
}

int sim_count(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
  (void)cudaGetLastError();
  return 0;
}

void* sim_malloc(int device, size_t bytes) {
  pthread_mutex_lock(&lists);
  check(take(device, bytes, 0), "cudaMalloc");
  void* const memory = blocks->memory;
  pthread_mutex_unlock(&lists);
  return memory;
}

void sim_free(void* memory) {
  if (!memory) return;
  /* As cudaFree does. Not with the lock: work of another thread's may wait for this one. */
  if (keeps()) check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  pthread_mutex_lock(&lists);
  struct Block** place = &blocks;
  while (*place && (*place)->memory != memory) place = &(*place)->next;
  if (!*place) check(cudaErrorInvalidValue, "sim_free");
  struct Block* const block = *place;
  if (keeps())
    move_first(place, &kept);
  else
    *place = block->next;
  pthread_mutex_unlock(&lists);
  if (!keeps()) end(block);
}

static _Thread_local int chosen = -1; /* the device that the program has made current */

void sim_set_device(int device) {
  chosen = device;
  if (device >= 0) check(cudaSetDevice(real_device(device)), "cudaSetDevice");
}

/* Makes that current, or else the device of this memory. */
static void be_there(const void* memory) {
  struct cudaPointerAttributes where;
  check(cudaPointerGetAttributes(&where, memory), "cudaPointerGetAttributes");
  check(cudaSetDevice(chosen >= 0 ? real_device(chosen) : where.device), "cudaSetDevice");
}

void sim_copy_in(void* device_memory, const void* host_memory, size_t bytes) {
  be_there(device_memory);
  check(cudaMemcpy(device_memory, host_memory, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void sim_copy_out(void* host_memory, const void* device_memory, size_t bytes) {
  be_there(device_memory);
  check(cudaMemcpy(host_memory, device_memory, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void sim_set(void* device_memory, int byte, size_t bytes) {
  be_there(device_memory);
  check(cudaMemset(device_memory, byte, bytes), "cudaMemset");
}

void sim_copy_within(void* to, const void* from, size_t bytes) {
  be_there(to);
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
}

void sim_synchronize(void) { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

void* sim_stream_create_blocking(int device) {
  cudaStream_t stream;
  check(cudaSetDevice(real_device(device)), "cudaSetDevice");
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  return stream;
}

void* sim_thread_stream(int device) {
  check(cudaSetDevice(real_device(device)), "cudaSetDevice");
  return cudaStreamPerThread;
}

static void CUDART_CB await_flag(void* flag) {
  while (__atomic_load_n((const int*)flag, __ATOMIC_ACQUIRE) == 0) usleep(20);
}

void sim_stream_wait(void* stream, const int* flag) {
  check(cudaLaunchHostFunc(stream, await_flag, (void*)(uintptr_t)flag), "cudaLaunchHostFunc");
}

/* One that does not wait for the legacy default stream, as those of libraries. */
void* sim_stream_create(int device) {
  cudaStream_t stream;
  check(cudaSetDevice(real_device(device)), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

void sim_stream_destroy(void* stream) {
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

void sim_stream_copy(void* stream, void* to, const void* from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void sim_stream_synchronize(void* stream) {
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void sim_stream_capture(void* stream, int capturing) {
  if (capturing) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    return;
  }
  cudaGraph_t graph = NULL;
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  if (graph) check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

/* Takes the rest of the device's memory, whoever else uses it. One process of the program does so
 * at a time: two that share a device would each see room for the same piece. */
void sim_set_limit(int device, size_t bytes) {
  if (device < 0) refuse("a limit of pinned memory");
  size_t own = 0, room = 0, total = 0;
  pthread_mutex_lock(&lists);
  for (struct Block** place = &blocks; *place;) {
    if ((*place)->device == device && (*place)->is_kept_from_others) {
      give(place);
    } else {
      own += (*place)->device == device ? (*place)->bytes : 0;
      place = &(*place)->next;
    }
  }
  const size_t left = bytes > own ? bytes - own : 0;
  const int program = open("/proc/self/exe", O_RDONLY);
  if (program < 0 || flock(program, LOCK_EX) != 0) refuse("a lock of the program's file");
  for (size_t piece = bytes == SIZE_MAX ? 0 : (size_t)1 << 36; piece >= (size_t)1 << 20;
       piece /= 2) {
    do {
      check(cudaSetDevice(real_device(device)), "cudaSetDevice");
      check(cudaMemGetInfo(&room, &total), "cudaMemGetInfo");
    } while (room >= left + piece && take(device, piece, 1) == cudaSuccess);
  }
  (void)cudaGetLastError();
  close(program);
  pthread_mutex_unlock(&lists);
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
