// The frame: how a compressed message looks on the wire. Layout and reasons: docs/wire-format.md.
//
// A frame is [64-byte header | payload | padding], sent in place of the raw message on the
// program's own communicator and tag, and never larger than the raw message. Its size is one that
// few raw messages have, so that a probe can leave most messages alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/element.hpp"
#include "codec/spec.hpp"

namespace mpress::wire {

inline constexpr std::size_t header_bytes = 64;

/// What one chunk may stand for, in bytes of elements.
inline constexpr std::size_t max_chunk_bytes = 1u << 30;

/// Identifies the job and the format version: whoever receives a message that starts with it
/// holds a frame.
using Nonce = std::array<std::uint8_t, 16>;

/// The nonce of a job; `job` is any text that all its ranks share and no other job does.
Nonce make_nonce(const std::string& job);

struct Header {
  /// Resolved: never rel, never auto. Of chunks by the peer link szp's bound may be 0: payloads
  /// tell it.
  Spec spec;
  ElementType type = ElementType::f32;
  std::uint64_t count = 0;          ///< elements
  std::uint64_t payload_bytes = 0;  ///< in this message, without padding
  /// Where not 0, the payload comes apart from the header, in chunks that stand for this many
  /// bytes of elements each (the last one for the rest).
  std::uint32_t chunk_bytes = 0;
  /// By which link they come, and where: the link's business (link/route.hpp).
  std::uint64_t route = 0;
  /// A chunk with exactly the size of its elements is those, by any link, and none is longer. By
  /// MPI that is so anyway.
  bool may_be_elements = false;

  std::uint64_t raw_bytes() const { return count * element_size(type); }
  std::uint64_t chunks() const {
    return chunk_bytes == 0 ? 0 : (raw_bytes() + chunk_bytes - 1) / chunk_bytes;
  }
  /// Bytes of elements that chunk `i` stands for.
  std::size_t chunk_raw_bytes(std::uint64_t i) const {
    return std::min<std::uint64_t>(chunk_bytes, raw_bytes() - i * chunk_bytes);
  }
};

/// Frames are so many bytes more than a multiple of this. That is a whole number of elements, 42 of
/// f32 or 21 of f64 more than one of 256 bytes; programs prefer powers of two and their neighbours.
/// A message of any other size is no frame.
inline constexpr std::size_t size_grain = 256;
inline constexpr std::size_t size_above_grain = 168;

/// Bytes of the whole frame.
constexpr std::size_t frame_bytes(std::size_t payload_bytes) {
  const std::size_t least = header_bytes + payload_bytes;
  const std::size_t grains = (least + size_grain - 1 - size_above_grain) / size_grain;
  return grains * size_grain + size_above_grain;
}

/// The smallest frame there is.
inline constexpr std::size_t min_frame_bytes = frame_bytes(0);

/// Could a message of this size be a frame?
constexpr bool is_frame_size(std::size_t bytes) { return bytes % size_grain == size_above_grain; }

/// Writes the 64 bytes of `header` to `out`.
void write_header(const Header& header, const Nonce& nonce, void* out);

/// Writes `header` before the payload, if there is one, that lies header_bytes behind `frame`, and
/// zeros behind that. Returns the frame's size.
std::size_t close_frame(const Header& header, const Nonce& nonce, std::byte* frame);

enum class Parse : std::uint8_t {
  raw,      ///< not a frame of this job
  frame,    ///< a frame, and `header` is set
  cut,      ///< the beginning of a frame that is longer
  corrupt,  ///< starts like a frame but contradicts its checksum or itself
};

/// Do the header_bytes at `message` announce chunks? For a message whose size is not known yet:
/// read_header() judges the rest.
bool announces_chunks(const void* message, const Nonce& nonce);

/// Looks at a received message of `bytes` bytes. Reads at most header_bytes of it.
Parse read_header(const void* message, std::size_t bytes, const Nonce& nonce, Header& header);

}  // namespace mpress::wire
