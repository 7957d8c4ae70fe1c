// A message on its way to MPI, as the parts of the sending side pass it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "codec/spec.hpp"
#include "core/devices.hpp"
#include "engine/p2p/send/chunk_send.hpp"
#include "engine/p2p/send/send.hpp"
#include "gpu/gpu.hpp"
#include "link/route.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/objects/type_info.hpp"
#include "mpi/staging.hpp"
#include "pipeline/loss.hpp"
#include "policy/policy.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

class Job;

/// A message to be sent, and what is known of it.
struct Message {
  const SendCall& call;
  const SendArguments& arguments;
  const mpi::TypeInfo& type;
  const mpi::CommInfo& comm;
  int peer;           ///< rank in MPI_COMM_WORLD; trace::any_peer where it has none
  std::size_t bytes;  ///< of data, without gaps
  int device;         ///< whose memory it lies in, or gpu::host
  bool is_readable;   ///< by the CPU
  /// What work on it comes behind, as Region has it.
  Devices::Behind behind = nullptr;
};

/// What a message became.
struct Prepared {
  memory::Buffer memory;              ///< what MPI gets lies there
  const std::byte* data = nullptr;    ///< what MPI gets; null: the program's own buffer
  std::size_t bytes = 0;              ///< of that
  bool is_frame = false;              ///< a frame, or a header; else the elements
  std::unique_ptr<ChunkSend> chunks;  ///< which the header announces, and which count themselves
  trace::Reason reason = trace::Reason::none;
  std::uint64_t took_ns = 0;
  Loss loss;  ///< of a frame, or of what a header announces
};

bool is_short(const Job& job, const Message& message);

/// Why it goes as it is, whatever that costs; or none.
trace::Reason reason_before_costs(const Job& job, const Message& message);

/// Whether a kill switch holds for this message.
bool is_switched_off(const Config& config, const Message& message);

/// Bytes of elements in the chunks of this message where it goes by MPI; those of a long one in
/// device memory are some times as long. 0: it goes in one piece.
std::size_t mpi_chunk_bytes(const Job& job, const Message& message);

/// Where it goes by MPI: in chunks, if it is compressed or in device memory?
inline bool is_cut(const Job& job, const Message& message) {
  const std::size_t chunk_bytes = mpi_chunk_bytes(job, message);
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

/// Where it is compressed and goes by MPI: does MPI get its payloads in memory of their device?
bool leaves_device(const Job& job, const Message& message);

/// What the policy has to decide about.
policy::Subject subject_of(const Job& job, const Message& message, Codec codec);

/// The same for as long as the communicator is there: owning costs two locked operations.
policy::Subject glance_at_subject(const Job& job, const Message& message, Codec codec);

/// What a message is to be encoded with where that pays: what its call, else its communicator, else
/// the environment asks for. None: it is to be left raw.
Spec wanted_spec(const Job& job, const Message& message);

/// What becomes of a message.
struct Choice {
  Spec spec;  ///< what to encode it with; none where it is left raw
  trace::Reason reason = trace::Reason::none;  ///< why it is
  policy::Timing timing = policy::Timing::none;
  std::optional<policy::Subject> subject = {};  ///< where it is timed: of what
};

/// `may_time`: it may be chosen to time a link, as far as the policy has to know that. Calls no
/// MPI, so a quick look at the message's type and communicator is enough.
Choice choose(Job& job, const Message& message, bool may_time = true);

/// The elements of a message, which is not empty: where the program has them, or packed where they
/// are. Empty where memory for that is short. Returns an MPI error code, and raises nothing.
int gather_elements(Job& job, const Message& message, std::optional<Elements>& elements);

/// Does mpress take this message from a device if it is not encoded, or may MPI have it where it
/// is? Cheap, as it is asked before anybody knows where the message lies.
bool takes_raw(const Job& job, const Message& message);

/// May a message that is not encoded be announced by a header?
bool may_be_announced(const Job& job, const Message& message);

/// Prepares a message to be encoded with the chosen spec, which fits it, or, with codec none, one
/// in device memory or that is to be timed, by the first protocol that can be had (protocols.hpp).
/// Returns an MPI error code, and raises nothing.
int prepare(Job& job, const Message& message, const Choice& choice, Prepared& prepared);

/// The eager protocol: one frame. Where none becomes smaller MPI gets the elements: from the
/// program's buffer, or, of a device that MPI does not know, in host memory. Returns an MPI error
/// code.
int prepare_eager(Job& job, const Message& message, const Spec& spec, const Elements& elements,
                  Prepared& prepared);

/// Why a message in memory of a device did not go from there by a link between devices, as
/// prepare() has left it. `way`: how it goes; `of_peer`: what the peer link tells of it.
trace::Detour detour_of(const Job& job, const Message& message, trace::Way way,
                        trace::Detour of_peer, bool encodes);

/// How a message leaves, as it is counted.
struct Departure {
  Codec codec = Codec::none;
  trace::Reason reason = trace::Reason::none;
  trace::Way way = trace::Way::whole;
  trace::Detour of_peer = trace::Detour::none;  ///< what the peer link tells of it
  std::uint32_t number = trace::no_number;      ///< in the timeline
  std::size_t wire_bytes = 0;                   ///< of what MPI gets
  std::uint64_t begin_ns = 0;                   ///< of the call
  Loss loss = {};
};

/// Counts a message in the row that it returns. `span`: the call, for the timeline.
trace::Row& count(Job& job, const Message& message, const Departure& departure, trace::Span& span);

/// So many chunks, of so many bytes on their way, have memory of the host link's at a time; 0: all.
std::size_t window_chunks(const Job& job, std::size_t chunk_bytes, Driven driven);

/// The bytes of elements in the chunks of a block of `message`'s that several ranks get, none of
/// which is in memory of the host's alone where `kind` names a link between devices. As many as it
/// has: it goes in one piece.
std::size_t block_chunk_bytes(const Job& job, const Message& message, link::Kind kind,
                              bool encodes);

/// Where the call wants to know the largest error: this is one.
void tell_error(const SendCall& call, double error);

}  // namespace mpress::engine
