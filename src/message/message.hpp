// A message to be sent, as the parts of the sending side pass it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "codec/spec.hpp"
#include "config/config.hpp"
#include "core/asked.hpp"
#include "core/devices.hpp"
#include "core/hints.hpp"
#include "core/layout.hpp"
#include "gpu/gpu.hpp"
#include "link/route.hpp"
#include "memory/buffer_pool.hpp"
#include "message/chunk_send.hpp"
#include "pipeline/loss.hpp"
#include "policy/policy.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class LaunchBatch;
struct Messaging;

/// How data is encoded where its communicator's codec does not say.
struct Coding {
  Spec spec;                                        ///< none: it goes as it is,
  trace::Reason why_raw = trace::Reason::disabled;  ///< for this reason
  bool is_decided = false;                          ///< whether that pays is not asked any more
  bool is_summed = false;       ///< payloads are added up, so all blocks are encoded as such
  std::size_t chunk_bytes = 0;  ///< of those; 0: in one piece
  bool is_for_devices = false;  ///< which take longer chunks of longer blocks
  /// Set: those go by memory of the host that is used again and again, and payloads are expected to
  /// have so much of the elements' bytes.
  double share_in_windows = 0;
  bool is_for_root_too = false;  ///< a broadcast's root gets what the others get

  double* largest_error = nullptr;  ///< set: where the largest that was measured is kept

  /// Bytes of elements in the chunks of a block that is summed; the same on all ranks.
  std::size_t chunk_of(std::size_t bytes) const;
};

/// Messages that their ranks let proceed until they are over. None: whoever sends one may not look
/// at it for long.
struct Driven {
  std::size_t of_host = 0;  ///< on their way at once
  std::size_t of_rank = 0;  ///< that begin at once
  explicit operator bool() const { return of_host > 0; }
};

/// What a sending call allows, and what it counts as.
struct SendCall {
  trace::Called op;   ///< as it is counted; a block of a collective call's has an algorithm
  Family family;      ///< whose kill switch holds, beside that of all messages
  bool buffer_stays;  ///< the program's buffer is the call's until it is over
  /// Set: it goes as it is, for this reason.
  std::optional<trace::Reason> raw_for = {};
  const Coding* coding = nullptr;  ///< set: how it is encoded; outlives the call
  /// Set: what devices encode for it may wait for the launch() of this, which comes before
  /// SendOperation::start().
  LaunchBatch* batch = nullptr;
  Driven driven = {};
  bool raw_by_kernels = false;  ///< as policy::Subject has it
};

/// A message to be sent, and what is known of it.
struct Message {
  const SendCall& call;
  const void* buffer;
  std::int64_t count;  ///< of items
  const Layout& layout;
  const CommSettings& comm;
  int peer;                        ///< rank in MPI_COMM_WORLD; trace::any_peer where it has none
  std::size_t bytes;               ///< of data, without gaps
  int device;                      ///< whose memory it lies in, or gpu::host
  bool is_readable;                ///< by the CPU
  std::optional<Spec> asked = {};  ///< by the call itself
  Outcome* outcome = nullptr;      ///< where to add what becomes of it; outlives the call
  /// What work on it comes behind, as Region has it.
  Devices::Behind behind = nullptr;
};

/// What a message became.
struct Prepared {
  std::unique_ptr<ChunkSend> chunks;  ///< its data follows a header; null:
  memory::Buffer memory;              ///< what MPI gets lies there
  const std::byte* data = nullptr;    ///< what MPI gets; null: the program's own buffer
  std::size_t bytes = 0;              ///< of that
  bool is_frame = false;              ///< a frame; else the elements
  trace::Reason reason = trace::Reason::none;
  std::uint64_t took_ns = 0;
  Loss loss;                  ///< of a frame, or of what a header announces
  trace::Row* row = nullptr;  ///< where the message was counted
  trace::Span span;           ///< the sending call; where there are chunks they have it
};

/// Is it too short to be encoded?
bool is_short(const Messaging& messaging, const Message& message);

/// Sizes in bytes, both included.
struct SizeRange {
  std::size_t first, last;
};

/// Of messages like this one, those that are short, or not, as it is. Others may be, too.
SizeRange alike_in_shortness(const Messaging& messaging, const Message& message);

/// Why it goes as it is, whatever that costs; or none.
trace::Reason reason_before_costs(const Messaging& messaging, const Message& message);

/// Whether a kill switch holds for this message.
bool is_switched_off(const Config& config, const Message& message);

/// Bytes of elements in the chunks of this message where it goes by the channel; those of a long
/// one in device memory are some times as long. 0: it goes in one piece.
std::size_t channel_chunk_bytes(const Messaging& messaging, const Message& message);

/// Where it goes by the channel: in chunks, if it is compressed or in device memory?
inline bool is_cut(const Messaging& messaging, const Message& message) {
  const std::size_t chunk_bytes = channel_chunk_bytes(messaging, message);
  return chunk_bytes > 0 && message.bytes >= 2 * chunk_bytes;
}

/// Of what is not encoded.
inline Spec no_codec() {
  Spec none;
  none.codec = Codec::none;
  return none;
}

/// What a header says of a chunk that is the whole message.
std::size_t whole_chunk(std::size_t bytes);

/// Where it is compressed and goes by the channel: does that get its payloads in memory of their
/// device?
bool leaves_device(const Messaging& messaging, const Message& message);

/// What the policy has to decide about.
policy::Subject subject_of(const Messaging& messaging, const Message& message, Codec codec);

/// The same for as long as the communicator is there: owning costs two locked operations.
policy::Subject glance_at_subject(const Messaging& messaging, const Message& message, Codec codec);

/// What a message is to be encoded with where that pays: what its call, else its communicator, else
/// the environment asks for. None: it is to be left raw.
Spec wanted_spec(const Messaging& messaging, const Message& message);

/// What becomes of a message.
struct Choice {
  Spec spec;  ///< what to encode it with; none where it is left raw
  trace::Reason reason = trace::Reason::none;  ///< why it is
  policy::Timing timing = policy::Timing::none;
  std::optional<policy::Subject> subject = {};  ///< where it is timed: of what
};

/// `may_time`: it may be chosen to time a link, as far as the policy has to know that. Calls no
/// MPI, so a quick look at the message's type and communicator is enough.
Choice choose(Messaging& messaging, const Message& message, bool may_time = true);

/// The elements of a message, which is not empty: where the program has them, or packed where they
/// are. Empty where memory for that is short.
Status gather_elements(Messaging& messaging, const Message& message,
                       std::optional<Elements>& elements);

/// Does MPI get data of such a layout that lies on a device packed, and mpress unpacks what comes?
/// Of those with gaps also where MPI takes memory of devices: it copies each run by itself.
bool packs_for_mpi(const Messaging& messaging, const Layout& layout);

/// Does mpress take this message from a device if it is not encoded, or may MPI have it where it
/// is? Cheap, as it is asked before anybody knows where the message lies.
bool takes_raw(const Messaging& messaging, const Message& message);

/// May a message that is not encoded be announced by a header?
bool may_be_announced(const Messaging& messaging, const Message& message);

/// Does a spec that names a codec fit the message's elements? Says so where it does not.
Status check_spec(const Messaging& messaging, const Message& message, const Spec& spec);

/// Prepares a message to be encoded with the chosen spec, or, with codec none, one
/// in device memory or that is to be timed, by the first protocol that can be had (protocols.hpp).
Status prepare(Messaging& messaging, const Message& message, const Choice& choice,
               Prepared& prepared);

/// The eager protocol: one frame. Where none becomes smaller MPI gets the elements: from the
/// program's buffer, or, of a device that MPI does not know, in host memory.
Status prepare_eager(Messaging& messaging, const Message& message, const Spec& spec,
                     const Elements& elements, Prepared& prepared);

/// Why a message in memory of a device did not go from there by a link between devices, as
/// prepare() has left it. `way`: how it goes; `of_peer`: what the peer link tells of it.
trace::Fallback fallback_of(const Messaging& messaging, const Message& message, trace::Way way,
                            trace::Fallback of_peer, bool encodes);

/// How a message leaves, as it is counted.
struct Departure {
  Codec codec = Codec::none;
  trace::Reason reason = trace::Reason::none;
  trace::Way way = trace::Way::whole;
  trace::Fallback of_peer = trace::Fallback::none;  ///< why not by the peer link, as that found
  std::uint32_t number = trace::no_number;          ///< in the timeline
  std::size_t wire_bytes = 0;                       ///< of what MPI gets
  std::uint64_t begin_ns = 0;                       ///< of the call
  Loss loss = {};
};

/// Counts a message in the row that it returns. `span`: the call, for the timeline.
trace::Row& count(Messaging& messaging, const Message& message, const Departure& departure,
                  trace::Span& span);

/// So many chunks, of so many bytes on their way, have memory of the host link's at a time; 0: all.
std::size_t window_chunks(const Messaging& messaging, std::size_t chunk_bytes, Driven driven);

/// The bytes of elements in the chunks of a block of `message`'s that several ranks get, none of
/// which is in memory of the host's alone where `kind` names a link between devices. As many as it
/// has: it goes in one piece.
std::size_t block_chunk_bytes(const Messaging& messaging, const Message& message, link::Kind kind,
                              bool encodes);

/// Where the call wants to know the largest error: this is one.
void tell_error(const SendCall& call, double error);

}  // namespace mpress::engine
