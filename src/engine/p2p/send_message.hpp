// A message on its way to MPI, as the parts of the sending side pass it on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/spec.hpp"
#include "engine/p2p/chunk_send.hpp"
#include "engine/p2p/send.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/comm_info.hpp"
#include "mpi/type_info.hpp"
#include "policy/policy.hpp"
#include "trace/record.hpp"
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
};

/// The frame that a message became; 0 bytes where it goes raw after all, for `reason`.
struct Encoded {
  memory::Buffer frame;
  std::size_t bytes = 0;
  std::unique_ptr<ChunkSend> data;  ///< which the frame announces, and which counts itself
  trace::Reason reason = trace::Reason::none;
  std::uint64_t took_ns = 0;
};

bool is_short(const Job& job, const Message& message);

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

/// What the policy has to decide about.
policy::Subject subject_of(const Job& job, const Message& message, Codec codec);

/// What to encode this message with; none where it is left raw, and then `reason` says why.
Spec choose(Job& job, const Message& message, trace::Reason& reason);

/// Encodes a message of floats in host memory with a spec that fits them.
Encoded encode(Job& job, const Message& message, const Spec& spec);

/// Encodes a message in device memory there, or, with codec none, brings it to the host: as a
/// frame, or, with 0 bytes in `encoded.bytes`, as it is, packed. Without a frame, MPI may have it
/// where it lies. Returns an MPI error code, and raises nothing.
int fetch(Job& job, const Message& message, const Spec& spec, Encoded& encoded);

/// Puts the header before a payload, if there is one, and zeros behind it. Returns the frame's
/// size.
std::size_t close_frame(Job& job, const wire::Header& header, memory::Buffer& frame);

/// Tells the policy, and the timeline, what an encoder that ends now took and gave.
void note_encoded(Job& job, const Message& message, const Spec& spec, Encoded& encoded);

}  // namespace mpress::engine
