// The sending side of a message whose data follows apart from its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "codec/spec.hpp"
#include "engine/p2p/chunk_source.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"
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

/// A message of which the header is ready, and whose data follows apart from it.
class ChunkSend {
 public:
  ChunkSend(const ChunkSend&) = delete;
  ChunkSend& operator=(const ChunkSend&) = delete;
  virtual ~ChunkSend() = default;

  /// What announces the message.
  const wire::Header& header() const { return header_; }

  /// The serial number of the message, for ChunkLink::cancel().
  std::uint64_t message() const { return message_; }

  virtual trace::Way way() const = 0;

  /// Lets the data proceed; the header is on its way, or will be. Never waits, neither for a device
  /// nor for the receiver. True once the program's buffer is free and all has been handed over or
  /// published, or will not come: see code(), and the receiver learns of it, too. Counts in `row`
  /// what it took and gave, and raises nothing. `waits_for_more`: the caller waits for something
  /// else as well, so what is offered to the receiver may be for longer. Not called again once it
  /// returned true.
  virtual bool advance(Job& job, trace::Row& row, bool waits_for_more) = 0;

  /// Must somebody call advance() for the receiver to get all of the data? No, where a device
  /// publishes it by itself, or where it is offered, and the receiver can take it alone.
  virtual bool needs_host() const { return true; }

  /// Is the data offered to the receiver where the program has it?
  virtual bool is_offered() const { return false; }

  // Once advance() has returned true:

  /// An MPI error code.
  int code() const { return code_; }

  /// Of all chunks.
  std::size_t sent_bytes() const { return sent_bytes_; }

 protected:
  ChunkSend() = default;

  /// Notes what all messages in chunks have in common.
  void describe(Job& job, const Message& message, const Spec& spec, const Elements& elements,
                std::size_t chunk_bytes);

  /// Makes the header's spec one for an encoder; false where a device refuses.
  bool resolve(Job& job, const Elements& elements);

  /// Hands to MPI what `source` has by now. True once that is all. Where the source fails, the rest
  /// of the chunks are sent empty, which tells the receiver so.
  bool send_by_mpi(Job& job, ChunkSource& source);

  /// For a `source` whose first chunk was taken before.
  void begin_with(Chunk first) { first_ = std::move(first); }

  /// Counts what was sent.
  void count(Job& job, trace::Row& row) const;

  wire::Header header_;
  std::uint64_t message_ = 0;
  int peer_ = 0;
  std::size_t sent_bytes_ = 0;
  std::uint64_t took_ns_ = 0;  ///< what encoding took this process
  int code_ = MPI_SUCCESS;
  std::optional<policy::Subject> subject_;  ///< what the policy learns from it, if anything

 private:
  void hand_over(Job& job, Chunk chunk);

  Chunk first_;
  std::uint64_t handed_ = 0;  ///< chunks
};

/// Plans to send the `elements` of a message in chunks by MPI. Null, and `elements` is as before,
/// where the message should go in one piece: memory is short, a device refuses, or the first chunk
/// did not become smaller. That is encoded at once. Elements in host memory need a spec that names
/// a codec. They stay valid until advance() returns true, or lie in `packed`.
std::unique_ptr<ChunkSend> plan_chunks(Job& job, const Message& message, const Spec& spec,
                                       Elements& elements);

/// The same by the peer link, for elements on a device and a message of any size from
/// Job::least_peer_bytes on. Null where there is no memory for it that the peer has opened. Takes
/// no longer than giving a device its work does. `buffer_stays`: the caller leaves the program's
/// buffer as it is until advance() returns true.
std::unique_ptr<ChunkSend> plan_peer_chunks(Job& job, const Message& message, const Spec& spec,
                                            Elements& elements, bool buffer_stays);

}  // namespace mpress::engine
