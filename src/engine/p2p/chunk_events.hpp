// What the timeline shows of a chunk.
#pragma once

#include <cstdint>

#include "link/route.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

/// An event of chunk `chunk` of the message that `header` announces, from or to rank `peer`.
inline trace::Event chunk_event(trace::Kind kind, const wire::Header& header, int peer,
                                std::uint64_t chunk, std::uint64_t begin_ns) {
  return {.begin_ns = begin_ns,
          .raw_bytes = header.chunk_raw_bytes(chunk),
          .message = link::Route(header.route).number,
          .chunk = static_cast<std::uint32_t>(chunk),
          .peer = peer,
          .kind = kind,
          .codec = header.spec.codec};
}

/// Notes that a chunk's work is over, on `device` or on the host.
inline void note_chunk(trace::Kind kind, const wire::Header& header, int peer, std::uint64_t chunk,
                       std::uint64_t begin_ns, std::size_t wire_bytes, int device = -1) {
  if (!trace::timeline.is_on()) return;
  trace::Event event = chunk_event(kind, header, peer, chunk, begin_ns);
  event.end_ns = trace::now_ns();
  event.wire_bytes = wire_bytes;
  event.device = device;
  trace::timeline.note(event);
}

}  // namespace mpress::engine
