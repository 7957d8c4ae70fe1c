// Where the chunks of a message go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/status.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// A chunk that has come.
struct Landed {
  const std::byte* data;
  std::size_t bytes;
  bool is_encoded;       ///< a payload; else its elements as they are
  bool is_near = false;  ///< in memory of the device's own, where a payload may be read repeatedly
};

/// Takes the chunks of one message, in order.
class ChunkSink {
 public:
  ChunkSink(const wire::Header& header, int source) : header_(header), source_(source) {}
  ChunkSink(const ChunkSink&) = delete;
  ChunkSink& operator=(const ChunkSink&) = delete;
  virtual ~ChunkSink() = default;

  /// Host memory for chunk `chunk`, with room for `bytes` bytes; null while there is none.
  virtual std::byte* place_of(Job& job, std::uint64_t chunk, std::size_t bytes) = 0;

  /// Whether it takes chunks from memory of devices, too; then it tells whether it has room for
  /// more.
  virtual bool reads_devices() const { return false; }
  virtual bool has_room(Job&) { return false; }

  /// A chunk has come to its place, or lies on a device. It stays there until it is settled.
  virtual void take(Job& job, std::uint64_t chunk, const Landed& landed) = 0;

  /// A chunk has come to nothing, whose place is as if it had come there.
  virtual void skip(Job& job, std::uint64_t chunk) = 0;

  /// For one that reads devices: several chunks, none of them encoded, have come to `data`, one
  /// behind the other. `flag`, which may be null, is set to 1 by the device once they have been
  /// copied (gpu::Queue::copy()).
  virtual void take_raw(Job&, std::uint64_t /*first*/, std::uint64_t /*chunks*/,
                        const std::byte* /*data*/, std::size_t /*bytes*/, std::uint32_t* /*flag*/) {
  }

  /// How many of the chunks are where they belong. Never waits.
  virtual std::uint64_t settled(Job& job) = 0;

  /// Waits until no device works at what was taken; for one that reads devices.
  virtual void drain() {}

  int code() const { return code_; }  ///< MPI_SUCCESS, or the first that went wrong
  std::uint64_t decode_ns() const { return decode_ns_; }

 protected:
  /// Notes what a decoder found; tells where it is not ok.
  void note(Job& job, std::uint64_t chunk, Status status);

  const wire::Header header_;
  const int source_;
  int code_ = MPI_SUCCESS;
  std::uint64_t decode_ns_ = 0;
};

/// Room that any chunk of a message fits into, encoded or not.
std::size_t room_for_chunk(const wire::Header& header);

/// Into host memory with room for header.raw_bytes(): each chunk is received where its elements
/// belong, as far as it is no larger than they are, and decoded there. Null where memory is short.
std::unique_ptr<ChunkSink> host_sink(Job& job, const wire::Header& header, int source,
                                     std::byte* elements);

/// Into memory of `device`, by way of pinned memory, or from devices that it reaches; `is_near`:
/// its own is all it will get. Null where the device has no memory or no queue.
std::unique_ptr<ChunkSink> device_sink(Job& job, const wire::Header& header, int source, int device,
                                       std::byte* elements, bool is_near);

/// Drops what comes, as soon as there is memory to do so.
std::unique_ptr<ChunkSink> no_sink(const wire::Header& header, int source);

}  // namespace mpress::engine
