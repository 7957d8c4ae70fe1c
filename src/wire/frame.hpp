// The frame: how a compressed message looks on the wire. Layout and reasons: docs/wire-format.md.
//
// A frame is [64-byte header | payload | padding to the element size], sent in place of the raw
// message on the program's own communicator and tag, and never larger than the raw message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/element.hpp"
#include "codec/spec.hpp"

namespace mpress::wire {

inline constexpr std::size_t header_bytes = 64;

/// Identifies the job and the format version: whoever receives a message that starts with it
/// holds a frame.
using Nonce = std::array<std::uint8_t, 16>;

/// The nonce of a job; `job` is any text that all its ranks share and no other job does.
Nonce make_nonce(const std::string& job);

struct Header {
  Spec spec;  ///< resolved: never rel, never auto
  ElementType type = ElementType::f32;
  std::uint64_t count = 0;          ///< elements
  std::uint64_t payload_bytes = 0;  ///< in this message, without padding

  std::uint64_t raw_bytes() const { return count * element_size(type); }
};

/// Bytes of the whole frame, padded so that a count in elements is never undefined.
constexpr std::size_t frame_bytes(std::size_t payload_bytes, ElementType type) {
  const std::size_t align = element_size(type);
  return (header_bytes + payload_bytes + align - 1) / align * align;
}

/// Writes the 64 bytes of `header` to `out`.
void write_header(const Header& header, const Nonce& nonce, void* out);

enum class Parse : std::uint8_t {
  raw,      ///< not a frame of this job
  frame,    ///< a frame, and `header` is set
  corrupt,  ///< starts like a frame but contradicts its checksum or itself
};

/// Looks at a received message of `bytes` bytes. Reads at most header_bytes of it.
Parse read_header(const void* message, std::size_t bytes, const Nonce& nonce, Header& header);

}  // namespace mpress::wire
