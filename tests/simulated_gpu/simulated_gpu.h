/* Two simulated GPUs for programs that pass mpress memory of a device, where there is none: run
 * them with MPRESS_GPU set to the path of libmpress_simulated_gpu.so, and link them with it.
 *
 * The CPU must not touch a device's memory: any access through these pointers crashes, but where
 * SIMULATED_GPU_OPEN is set, which makes any MPI one that takes memory of devices, and may have
 * open what other processes' programs have there: then mpress must not open that. Work is done
 * late, as SIMULATED_GPU_SEED (default 1) has it: when it has been looked at a few times, or by a
 * thread. Misuse ends the process with a message: memory that is freed while it is in use, memory
 * that nobody allocated, unaligned payloads, queues that race, blocks that are released twice, work
 * that nobody waited for. With SIMULATED_GPU_LEAKS=abort, blocks that mpress keeps to the end, or
 * leaves open, do so too; with "shared", of those that it keeps only the shared ones.
 *
 * With SIMULATED_GPU_STAGING=BYTES, a copy of mpress's of more bytes than that between the host's
 * memory and a device's is misuse, too.
 *
 * Processes can share memory. Then their work must not race either: a process starts when it has
 * been told that the others' work is done and was seen done. With SIMULATED_GPU_PEERS=0 the GPUs
 * cannot reach those of other processes. With SIMULATED_GPU_MAP=0 they cannot write to host memory
 * that processes share. With SIMULATED_GPU_SHARED=1 all of them say that they are the same one.
 *
 * Threads of a process may be members, each of which is to the others what another process is.
 */
#ifndef SIMULATED_GPU_H
#define SIMULATED_GPU_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { sim_devices = 2, sim_pinned = -1 };

/* From now on this thread, and the queues and streams that it opens, are of that member, from 0 to
 * 63; of member 0 until then. All that follows is of a member's own. */
void sim_be_member(int member);

/* How many devices the process sees: none where CUDA_VISIBLE_DEVICES is empty. */
int sim_count(void);

/* Memory of a device, 256-byte aligned, full of rubbish; null beyond its limit. */
void* sim_malloc(int device, size_t bytes);
void sim_free(void* memory);

/* The same as of a stream-ordered pool: processes cannot share it. */
void* sim_malloc_pool(int device, size_t bytes);

/* What follows goes on the default stream of the memory's device, or of the one that is current in
 * this thread, where one is. */
void sim_set_device(int device);

/* Between the host's memory and a device's. A copy in has read the host's memory when it returns,
 * and the device gets it later. A copy out waits for all that the default streams hold. */
void sim_copy_in(void* device_memory, const void* host_memory, size_t bytes);
void sim_copy_out(void* host_memory, const void* device_memory, size_t bytes);

/* Sets a device's memory later. Where SIMULATED_GPU_OPEN is set this, and a copy in, is done when
 * the call returns: MPI knows none of these streams. */
void sim_set(void* device_memory, int byte, size_t bytes);

/* Within a device's memory, or from one device to the other: done later. */
void sim_copy_within(void* to, const void* from, size_t bytes);

/* Waits for all that the default streams hold. */
void sim_synchronize(void);

/* A stream of the program's, which mpress takes as a caller's. Its copies, between any two places,
 * are done late, in their order. Idle when it is destroyed, or waited for. While it is captured,
 * nothing may be enqueued on it. */
void* sim_stream_create(int device);
/* One that waits for what the default stream has been given before, and that for it. */
void* sim_stream_create_blocking(int device);
/* The default stream of this thread's own, which is a blocking one. Never destroyed. */
void* sim_thread_stream(int device);
void sim_stream_destroy(void* stream);
void sim_stream_copy(void* stream, void* to, const void* from, size_t bytes);
void sim_stream_synchronize(void* stream);
void sim_stream_capture(void* stream, int capturing);
/* What the stream is given later waits until `*flag`, which any thread may write to, is not 0. */
void sim_stream_wait(void* stream, const int* flag);

/* The most that a device, or the pinned memory, has from now on; what is taken stays. */
void sim_set_limit(int device, size_t bytes);

/* The device refuses all work after the next `pieces` pieces. */
void sim_set_failing(int device, unsigned pieces);

/* From now on decoders wait until `*flag`, which any thread may write to, is not 0; and what their
 * queues are given behind them. Null: no longer. */
void sim_hold_decoders(const int* flag);

/* How often mpress has given a queue of this process pieces to encode: what takes a launch. */
size_t sim_encode_calls(void);

/* How often mpress has had a queue of this process look for a range. */
size_t sim_range_calls(void);

/* How many queues this process has opened, for the first of which a GPU has to be idle. */
size_t sim_queues(void);

/* Bytes of a device, or of pinned memory, that mpress holds. */
size_t sim_held(int device);

#ifdef __cplusplus
}
#endif

#endif
