// The receiving side of a message that comes in chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/p2p/chunk_sink.hpp"
#include "trace/record.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// Collects the chunks that a header announced. Each goes to the sink when it has come, while the
/// next ones travel.
class ChunkReceive {
 public:
  ChunkReceive(const ChunkReceive&) = delete;
  ChunkReceive& operator=(const ChunkReceive&) = delete;
  virtual ~ChunkReceive() = default;

  virtual trace::Way way() const = 0;

  /// Takes what has come. True when all has; never waits.
  virtual bool advance(Job& job) = 0;

  /// The caller will do nothing else until all has come: what a device could tell the sender later,
  /// this process tells it then.
  void await() { is_awaited_ = true; }

  // When all has come:
  virtual int code() const { return code_ != MPI_SUCCESS ? code_ : sink_->code(); }
  virtual std::size_t wire_bytes() const { return wire_bytes_; }
  virtual std::uint64_t decode_ns() const { return sink_->decode_ns(); }
  const wire::Header& header() const { return header_; }

 protected:
  ChunkReceive(const wire::Header& header, int source, std::unique_ptr<ChunkSink> sink)
      : header_(header), source_(source), sink_(std::move(sink)), chunks_(header.chunks()) {}

  const wire::Header header_;
  const int source_;  ///< in MPI_COMM_WORLD
  std::unique_ptr<ChunkSink> sink_;
  const std::uint64_t chunks_;
  std::uint64_t taken_ = 0;  ///< chunks that the sink has got
  int code_ = MPI_SUCCESS;   ///< what went wrong on the way
  std::size_t wire_bytes_ = 0;
  bool is_awaited_ = false;
};

/// Chunks that come by MPI, which may have them at once. `source` is a rank in MPI_COMM_WORLD.
/// `travel_begin_ns`: see Receive.
std::unique_ptr<ChunkReceive> receive_chunks(Job& job, const wire::Header& header, int source,
                                             std::unique_ptr<ChunkSink> sink,
                                             std::uint64_t travel_begin_ns = 0);

/// Chunks that come by the peer link, to a sink that fills memory of `device`, or the host's.
std::unique_ptr<ChunkReceive> receive_peer_chunks(const wire::Header& header, int source,
                                                  int device, std::unique_ptr<ChunkSink> sink);

}  // namespace mpress::engine
