// Counting what travels between members without messages.
#pragma once

#include <cstddef>

#include "codec/spec.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

struct Runtime;

/// What went to a rank, or came from it, by kernels and a link, without a message.
struct Moved {
  std::size_t raw_bytes;
  std::size_t wire_bytes;
  Codec codec;

  /// As it is.
  Moved(std::size_t bytes) : Moved(bytes, bytes, Codec::none) {}
  Moved(std::size_t raw, std::size_t wire, Codec by)
      : raw_bytes(raw), wire_bytes(wire), codec(by) {}
};

/// Counts what a rank got of this one, and this one of that rank.
void count_by_kernel(Runtime& runtime, trace::Called called, trace::Way way, int rank,
                     const Moved& sent, const Moved& received);

}  // namespace mpress::engine
