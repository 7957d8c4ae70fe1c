// The receiving side of a message that comes in chunks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "link/mpi.hpp"
#include "memory/buffer_pool.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// Collects the chunks that a header announced. Each is received where its elements belong, since
/// it is never larger than they are, and decoded there while the next ones travel.
class ChunkReceive {
 public:
  /// `source` is a rank in MPI_COMM_WORLD. `elements` has room for header.raw_bytes() and stays
  /// valid until the end; null drops what comes. `travel_begin_ns`: see Receive.
  ChunkReceive(Job& job, const wire::Header& header, int source, std::byte* elements,
               std::uint64_t travel_begin_ns = 0);
  ChunkReceive(const ChunkReceive&) = delete;
  ChunkReceive& operator=(const ChunkReceive&) = delete;

  /// Takes what has come. True when all has; never waits.
  bool advance(Job& job);

  /// Waits for all.
  void finish(Job& job);

  // When all has come:
  int code() const { return code_; }  ///< MPI_SUCCESS, or what went wrong
  std::size_t wire_bytes() const { return wire_bytes_; }
  std::uint64_t decode_ns() const { return decode_ns_; }
  const wire::Header& header() const { return header_; }

 private:
  void post(Job& job);
  void take(Job& job, int result, MPI_Status& status);
  void decode(Job& job, std::size_t bytes);
  std::byte* place_of(std::uint64_t chunk) const;
  MPI_Request& request_of(std::uint64_t chunk) { return requests_[chunk % requests_.size()]; }

  wire::Header header_;
  int source_;
  std::byte* elements_;
  memory::Buffer aside_;  ///< room for one chunk: encoded, or to be dropped
  std::uint64_t chunks_;
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
  std::array<MPI_Request, 16> requests_;
  bool waited_ = false;  ///< the next chunk was not there when it was looked for
  std::uint64_t travel_begin_ns_;
  int code_ = MPI_SUCCESS;
  std::size_t wire_bytes_ = 0;
  std::uint64_t decode_ns_ = 0;
};

}  // namespace mpress::engine
