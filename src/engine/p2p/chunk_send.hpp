// The sending side of a message that goes in chunks.
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

  /// Encodes what is left, and sends all; each chunk leaves as soon as it is ready, and none waits
  /// for its receiver. Counts in `row` what it took and gave. To be called once the header is on
  /// its way, or before. Returns code(), and raises nothing; the receiver learns of it, too.
  virtual int send(Job& job, trace::Row& row) = 0;

  /// Is the data offered to the receiver where the program has it? Then send() gives the receiver
  /// some time, which may be better spent: advance() waits for nothing but this process's device,
  /// and tells when send() would return at once. While there is something else to wait for, the
  /// offer stands.
  virtual bool is_offered() const { return false; }
  virtual bool advance(Job& job, trace::Row& row, bool /*waits_for_more*/) {
    send(job, row);
    return true;
  }

  /// Does its receiver get the data only if somebody calls advance()?
  virtual bool needs_host() const { return !is_offered(); }

  /// After that: an MPI error code.
  int code() const { return code_; }

  /// After that: of all chunks.
  std::size_t sent_bytes() const { return sent_bytes_; }

 protected:
  ChunkSend() = default;

  /// Notes what all messages in chunks have in common.
  void describe(Job& job, const Message& message, const Spec& spec, const Elements& elements,
                std::size_t chunk_bytes);

  /// Makes the header's spec one for an encoder; false where a device refuses.
  bool resolve(Job& job, const Elements& elements);

  /// Hands all chunks to MPI; `first` may be there already. Returns what making them took. What
  /// fails ends the job: the message has been announced.
  std::uint64_t send_by_mpi(Job& job, ChunkSource& source, Chunk first);

  /// Counts what was sent.
  void count(Job& job, trace::Row& row, std::uint64_t took_ns) const;

  wire::Header header_;
  std::uint64_t message_ = 0;
  int peer_ = 0;
  std::size_t sent_bytes_ = 0;
  int code_ = MPI_SUCCESS;
  std::optional<policy::Subject> subject_;  ///< what the policy learns from it, if anything
};

/// Plans to send the `elements` of a message in chunks by MPI. Null, and `elements` is as before,
/// where the message should go in one piece: memory is short, a device refuses, or the first chunk
/// did not become smaller. That is encoded at once. Elements in host memory need a spec that names
/// a codec. They stay valid until send(), or lie in `packed`.
std::unique_ptr<ChunkSend> plan_chunks(Job& job, const Message& message, const Spec& spec,
                                       Elements& elements);

/// The same by the peer link, for elements on a device and a message of any size from
/// Job::least_peer_bytes on. Null where there is no memory for it that the peer has opened.
std::unique_ptr<ChunkSend> plan_peer_chunks(Job& job, const Message& message, const Spec& spec,
                                            Elements& elements, bool buffer_stays);

}  // namespace mpress::engine
