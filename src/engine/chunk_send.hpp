// The sending side of a message that goes in chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "codec/spec.hpp"
#include "engine/chunk_source.hpp"
#include "gpu/gpu.hpp"
#include "link/mpi.hpp"
#include "memory/buffer_pool.hpp"
#include "policy/policy.hpp"
#include "trace/record.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;
struct Message;

/// The elements of a message, without gaps, where they are.
struct Elements {
  ElementType type;
  const void* data;
  std::size_t count;
  int device = gpu::host;
  memory::Buffer packed = {};  ///< where they lie, if they had gaps
};

/// A message of which the header is ready.
class ChunkSend {
 public:
  /// Plans to send the `elements` of a message. Null, and `elements` is as before, where the
  /// message should go in one piece: memory is short, a device refuses, or the first chunk did not
  /// become smaller. That is encoded at once. Elements in host memory need a spec that names a
  /// codec. They stay valid until send(), or lie in `packed`.
  static std::unique_ptr<ChunkSend> plan(Job& job, const Message& message, const Spec& spec,
                                         Elements& elements);

  /// What announces the message.
  const wire::Header& header() const { return header_; }

  /// The serial number of the message, for Outbox::cancel().
  std::uint64_t message() const { return message_; }

  /// Encodes what is left, and hands all to MPI; each chunk leaves as soon as it is ready. Counts
  /// in `row` what it took and gave. To be called once the header is on its way, or before. Returns
  /// the bytes of all chunks.
  std::size_t send(Job& job, trace::Row& row);

 private:
  ChunkSend() = default;

  wire::Header header_;
  std::uint64_t message_ = 0;
  int peer_ = 0;
  std::optional<policy::Subject> subject_;  ///< what the policy learns from it, if anything
  std::unique_ptr<ChunkSource> source_;
  Chunk first_;
  std::uint64_t first_ns_ = 0;  ///< what encoding it took
};

}  // namespace mpress::engine
