// The sending side of a message that goes in chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/spec.hpp"
#include "link/mpi.hpp"
#include "memory/buffer_pool.hpp"
#include "trace/record.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// A message of which the header is ready and the first chunk is encoded.
class ChunkSend {
 public:
  /// Plans to send `count` elements to `peer`, a rank in MPI_COMM_WORLD, and encodes the first
  /// chunk. Null where the message should go in one piece: memory is short, or the first chunk
  /// did not become smaller. `elements` stays valid until send(), or lies in `packed`.
  static std::unique_ptr<ChunkSend> plan(Job& job, const Spec& spec, ElementType type,
                                         const void* elements, std::size_t count, int peer,
                                         memory::Buffer& packed);

  /// What announces the message.
  const wire::Header& header() const { return header_; }

  /// The serial number of the message, for Outbox::cancel().
  std::uint64_t message() const { return message_; }

  /// Encodes what is left, and hands all to MPI; each chunk leaves as soon as it is ready. Counts
  /// in `row` what it took and gave. To be called once the header is on its way, or before.
  void send(Job& job, trace::Row& row);

 private:
  ChunkSend() = default;
  std::size_t encode(std::uint64_t chunk);

  wire::Header header_;
  std::uint64_t message_ = 0;
  int peer_ = 0;
  const std::byte* elements_ = nullptr;
  memory::Buffer packed_;
  std::vector<memory::Buffer> buffers_;
  std::size_t first_bytes_ = 0;  ///< of the first chunk, encoded
  std::uint64_t first_ns_ = 0;   ///< what encoding it took
};

}  // namespace mpress::engine
