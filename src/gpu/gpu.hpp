// GPUs as the engine sees them: where memory lies, memory that processes share, queues.
//
// A library of its own implements this and the headers of queues, so that nothing else of mpress
// depends on CUDA: libmpress_cuda.so, loaded when the program first passes memory of a device, or
// the one that MPRESS_GPU names (tests use a simulated device). No call throws. None but those that
// allocate or say so waits for a device, and none uses a stream of the program's but
// Gpu::work_of(), default_work() and Queue::signal().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/queue.hpp"

namespace mpress::gpu {

/// Changes with the headers that a library implements: this one, those of queues, gpu/arrays.hpp. A
/// library of another version is not used.
inline constexpr std::uint32_t interface_version = 26;

/// No device: memory that the host may touch, be it pinned, managed, or of no GPU at all.
inline constexpr int host = -1;

/// A block of device memory of the program's.
struct Block {
  std::byte* base;
  std::size_t bytes;
  std::uint64_t id;  ///< no other block of this process has it, or had it
};

/// Where an implementation keeps memory; each block is 256-byte aligned.
enum class Place : std::uint8_t {
  device,
  pinned,  ///< host memory that devices reach
};

/// What other processes of this host open memory by. Plain bytes, which mean something to this
/// library alone.
using MemoryHandle = std::array<std::byte, 64>;

/// The GPUs of this machine. One object a process, never destroyed; thread-safe.
class Gpu {
 public:
  virtual std::uint32_t version() const = 0;

  /// What it is, for people: "CUDA 13.0, NVIDIA H200".
  virtual const char* name() const = 0;

  /// The device whose memory `pointer` points to, or `host`.
  virtual int locate(const void* pointer) const = 0;

  /// A queue on `device`; null where the device refuses.
  virtual std::unique_ptr<Queue> open_queue(int device, Priority priority) = 0;
  std::unique_ptr<Queue> open_queue(int device) { return open_queue(device, Priority::usual); }

  /// What the program has enqueued on `stream` until now, one of `device` (a cudaStream_t; null:
  /// the default stream). Null where the device refuses, or `stream` is being captured into a
  /// graph: the capture goes on.
  virtual std::shared_ptr<const PriorWork> work_of(int device, void* stream) = 0;

  /// What the default streams hold now, the legacy one and this thread's own: those of the context
  /// that is current, and those of `device`. Work on streams of the program's own is none of it, be
  /// they blocking ones. Null where the default streams are idle, which is what this is fast for. A
  /// capture of any stream goes on.
  virtual std::shared_ptr<const PriorWork> default_work(int device) = 0;

  /// Null where memory ran out. `device`: for pinned memory, any that the process uses. May wait
  /// for the device, so whoever needs memory often keeps it (memory::BufferPool).
  virtual void* allocate(Place place, int device, std::size_t bytes) = 0;
  /// Nothing that uses the memory is under way any more.
  virtual void release(Place place, int device, void* memory) = 0;

  /// The same number for the same device in all processes of this host, and another for others; 0
  /// where it cannot be told.
  virtual std::uint64_t identity(int device) = 0;

  /// Of the device's memory, whoever has it; 0 where it cannot be told.
  virtual std::size_t memory_bytes(int device) = 0;

  /// Its multiprocessors, times their clock in GHz; 0 where that cannot be told.
  virtual double speed(int device) = 0;

  /// The block on `device` that a pointer of the program's points into. False where it is of no
  /// kind that could be shared.
  virtual bool find_block(int device, const void* pointer, Block& block) = 0;

  /// Lets other processes open a block: one from allocate(Place::device, …), which is released
  /// after they have closed it, or one of the program's, which may free it at any time: drivers
  /// keep the memory until they have closed it. False where the device cannot.
  virtual bool share(int device, void* memory, MemoryHandle& handle) = 0;

  /// A block that another process shares, as queues of `device` reach it, to read and to write.
  /// Null where they cannot. A process opens a block once for a device, and none of its own.
  virtual void* open(int device, const MemoryHandle& handle) = 0;
  /// Nothing uses the memory any more. Waits until the device is idle.
  virtual void close(int device, void* memory) = 0;

  /// Pins host memory that processes share: queues may copy from and to it at full speed, write
  /// there (Report, Queue::write()), and wait for what is written there. `device`: as for
  /// allocate(). False where they cannot.
  virtual bool map(int device, void* memory, std::size_t bytes) = 0;
  /// Nothing writes there any more. May wait as close() does.
  virtual void unmap(int device, void* memory) = 0;

 protected:
  ~Gpu() = default;
};

/// What a library exports: `extern "C" mpress::gpu::Gpu* mpress_gpu()`; null where there is no
/// device after all.
using Entry = Gpu* (*)();
inline constexpr char entry_name[] = "mpress_gpu";

}  // namespace mpress::gpu
