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

/// Takes the chunks of one message, in order.
class ChunkSink {
 public:
  ChunkSink(const wire::Header& header, int source) : header_(header), source_(source) {}
  ChunkSink(const ChunkSink&) = delete;
  ChunkSink& operator=(const ChunkSink&) = delete;
  virtual ~ChunkSink() = default;

  /// Host memory for chunk `chunk`, with room for its elements; null while there is none.
  virtual std::byte* place_of(Job& job, std::uint64_t chunk) = 0;

  /// Whether it takes chunks from memory of devices, too; then it tells whether it has room for
  /// more.
  virtual bool reads_devices() const { return false; }
  virtual bool has_room(Job&) { return false; }

  /// A chunk has come to its place, or to `data` on a device, and is `bytes` long: as long as its
  /// elements where it was not worth encoding. It stays there until it is settled. `is_near`: in
  /// memory of the device's own, where a payload may be read again and again.
  virtual void take(Job& job, std::uint64_t chunk, const std::byte* data, std::size_t bytes,
                    bool is_near) = 0;

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

/// Into host memory with room for header.raw_bytes(): each chunk is received where its elements
/// belong, since it is never larger than they are, and decoded there.
std::unique_ptr<ChunkSink> host_sink(Job& job, const wire::Header& header, int source,
                                     std::byte* elements);

/// Into memory of `device`, by way of pinned memory, or from devices that it reaches; `is_near`:
/// its own is all it will get. Null where the device has no memory or no queue.
std::unique_ptr<ChunkSink> device_sink(Job& job, const wire::Header& header, int source, int device,
                                       std::byte* elements, bool is_near);

/// Drops what comes.
std::unique_ptr<ChunkSink> no_sink(Job& job, const wire::Header& header, int source);

}  // namespace mpress::engine
