// What links assume of a machine. The defaults are measured on GPUs of one host that NVLink joins
// at some 400 GB/s; whoever has measured another machine sets them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpress::link {

struct Parameters {
  /// How long an offer stands while its sender waits for nothing else: about what the message takes
  /// on its way, or, where its reader waits for its turn, what a few do.
  std::uint64_t offer_begin_ns = 10000;
  std::uint64_t bytes_per_ns = 400;
  std::uint64_t bytes_per_ns_in_turn = 80;

  /// Shorter gets than this take no turns: what is uneven then takes less than waiting does.
  std::size_t least_turn = 4u << 20;

  /// How long a turn is waited for, beyond four times what the message takes.
  std::uint64_t turn_begin_ns = 20000;

  /// An offer that nobody has asked for in this time may be one that the program does not look at.
  std::uint64_t still_asked_ns = 50000;

  std::uint64_t offer_ns(std::size_t bytes, bool waits_for_turn) const {
    return offer_begin_ns + bytes / (waits_for_turn ? bytes_per_ns_in_turn : bytes_per_ns);
  }
  std::uint64_t turn_ns(std::size_t bytes) const {
    return turn_begin_ns + 4 * bytes / bytes_per_ns;
  }
};

}  // namespace mpress::link
