// The segment of the peer link: slots, and beside them receive staging, and blocks of the program's
// that are offered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "link/slots/sources.hpp"

namespace mpress::link {

struct PeerSegment : SlotSegment {
  static constexpr std::size_t most_blocks = 256;
  static constexpr std::size_t most_receive_staging = 4;  ///< for each pair of ranks
  static constexpr std::size_t word_bits = 64;

  std::atomic<std::uint32_t> blocks;  ///< of the program's
  SharedBlock block[most_blocks];
  /// The blocks that each rank has opened, a bit for each; written by that rank.
  std::atomic<std::uint64_t> opened_blocks[most_ranks][most_blocks / word_bits];
  /// Bytes that messages to each rank would find room in, if that had receive staging for them.
  std::atomic<std::uint64_t> wanted[most_ranks];
  /// Each rank's receive staging for messages of this one, and how many blocks there are; written
  /// by that rank.
  std::atomic<std::uint32_t> receive_staging_blocks[most_ranks];
  SharedBlock receive_staging[most_ranks][most_receive_staging];
  /// The long offer that was taken last: its first slot, plus one, and above that the rank that
  /// did, plus one. One rank at a time reads much from this one's memory.
  std::atomic<std::uint64_t> reader;

  static PeerSegment& of(SlotSegment& slots) { return static_cast<PeerSegment&>(slots); }
  static PeerSegment& of(const Source& source) { return of(source.slots()); }
};

}  // namespace mpress::link
