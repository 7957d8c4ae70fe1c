// How a region is cut into chunks, as both ends of a pipeline know it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/codec.hpp"
#include "codec/spec.hpp"
#include "gpu/gpu.hpp"
#include "link/route.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

/// All chunks stand for as many bytes of elements, but for the last. A message in one piece is one
/// chunk.
struct Chunking {
  Spec spec;
  ElementType type;
  std::uint64_t count;      ///< elements of all
  std::size_t chunk_bytes;  ///< at least 1
  int peer;                 ///< rank in MPI_COMM_WORLD
  std::uint32_t message;    ///< its number in the timeline; or trace::no_number: it has one chunk
  bool may_be_elements = false;  ///< as wire::Header's

  /// Of the message that a header announces, or that lies behind it.
  static Chunking of(const wire::Header& header, int peer) {
    if (header.chunk_bytes == 0) {
      const std::size_t bytes = std::max<std::size_t>(header.raw_bytes(), 1);
      return {header.spec, header.type, header.count, bytes, peer, trace::no_number};
    }
    return {header.spec,           header.type, header.count,
            header.chunk_bytes,    peer,        link::Route(header.route).number,
            header.may_be_elements};
  }

  bool encodes() const { return spec.codec != Codec::none; }
  std::uint64_t bytes() const { return count * element_size(type); }
  std::uint64_t chunks() const {
    return std::max<std::uint64_t>((bytes() + chunk_bytes - 1) / chunk_bytes, 1);
  }

  /// Where a chunk begins, in bytes, and how much it stands for.
  std::size_t offset(std::uint64_t chunk) const { return chunk * chunk_bytes; }
  std::size_t raw_bytes(std::uint64_t chunk) const {
    return std::min<std::uint64_t>(chunk_bytes, bytes() - offset(chunk));
  }
  std::size_t elements(std::uint64_t chunk) const { return raw_bytes(chunk) / element_size(type); }

  /// What the largest payload of a chunk takes.
  std::size_t payload_room() const { return codec::max_payload_bytes(spec, type, elements(0)); }

  /// Room for any chunk, encoded or not.
  std::size_t room() const {
    return encodes() ? std::max(raw_bytes(0), payload_room()) : raw_bytes(0);
  }

  /// What the timeline shows of a chunk.
  trace::Event event(trace::Kind kind, std::uint64_t chunk, std::uint64_t begin_ns) const {
    return {.begin_ns = begin_ns,
            .raw_bytes = raw_bytes(chunk),
            .message = message,
            .chunk = static_cast<std::uint32_t>(chunk),
            .peer = peer,
            .kind = kind,
            .codec = spec.codec};
  }

  /// Notes that a chunk's work is over, on `device` or on the host. A message in one piece is shown
  /// by who sends or receives it.
  void note(trace::Kind kind, std::uint64_t chunk, std::uint64_t begin_ns, std::size_t wire_bytes,
            int device = gpu::host) const {
    if (!trace::timeline.is_on() || message == trace::no_number) return;
    trace::Event event = this->event(kind, chunk, begin_ns);
    event.end_ns = trace::now_ns();
    event.wire_bytes = wire_bytes;
    event.device = device;
    trace::timeline.note(event);
  }
};

}  // namespace mpress::engine
