// Where the chunks of a message go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/status.hpp"
#include "link/mpi.hpp"
#include "memory/buffer_pool.hpp"
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

  /// Where MPI shall receive chunk `chunk`, with room for its elements; null while there is none.
  virtual std::byte* place_of(Job& job, std::uint64_t chunk) = 0;

  /// A chunk has come to its place, and is `bytes` long: as long as its elements where it was not
  /// worth encoding.
  virtual void take(Job& job, std::uint64_t chunk, std::size_t bytes) = 0;

  /// Is all that was taken where it belongs? Never waits.
  virtual bool is_settled(Job& job) = 0;

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

/// Into memory of `device`, by way of pinned memory. Null where the device has no memory or no
/// lane.
std::unique_ptr<ChunkSink> device_sink(Job& job, const wire::Header& header, int source, int device,
                                       std::byte* elements);

/// Drops what comes.
std::unique_ptr<ChunkSink> no_sink(Job& job, const wire::Header& header, int source);

}  // namespace mpress::engine
