// The receiving side of a message that comes in chunks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/chunk_sink.hpp"
#include "link/mpi.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// Collects the chunks that a header announced. Each goes to the sink when it has come, while the
/// next ones travel.
class ChunkReceive {
 public:
  /// `source` is a rank in MPI_COMM_WORLD. `travel_begin_ns`: see Receive.
  ChunkReceive(Job& job, const wire::Header& header, int source, std::unique_ptr<ChunkSink> sink,
               std::uint64_t travel_begin_ns = 0);
  ChunkReceive(const ChunkReceive&) = delete;
  ChunkReceive& operator=(const ChunkReceive&) = delete;

  /// Takes what has come. True when all has; never waits.
  bool advance(Job& job);

  /// Waits for all.
  void finish(Job& job);

  // When all has come:
  int code() const { return code_ != MPI_SUCCESS ? code_ : sink_->code(); }
  std::size_t wire_bytes() const { return wire_bytes_; }
  std::uint64_t decode_ns() const { return sink_->decode_ns(); }
  const wire::Header& header() const { return header_; }

 private:
  void post(Job& job);
  void take(Job& job, int result, MPI_Status& status);
  MPI_Request& request_of(std::uint64_t chunk) { return requests_[chunk % requests_.size()]; }

  wire::Header header_;
  int source_;
  std::unique_ptr<ChunkSink> sink_;
  std::uint64_t chunks_;
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
  std::array<MPI_Request, 16> requests_;
  std::array<std::uint64_t, 16> posted_ns_;  ///< when; for the timeline
  bool waited_ = false;  ///< the next chunk was not there when it was looked for
  std::uint64_t travel_begin_ns_;
  int code_ = MPI_SUCCESS;  ///< what MPI told
  std::size_t wire_bytes_ = 0;
};

}  // namespace mpress::engine
