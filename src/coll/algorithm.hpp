// The algorithms of collective calls: which ways there are to serve one, and when each applies.
#pragma once

#include <cstddef>
#include <span>

#include "coll/call.hpp"

namespace mpress::engine {

/// Why an algorithm does not serve a call, for reports; null: it does.
using WhyNot = const char*;
/// The reason of an algorithm that is meant for other operations.
inline constexpr char other_kind[] = "serves other calls";

/// Words that each member tells the others of a call that is offered.
inline constexpr std::size_t offer_words = 6;

/// One way to serve collective calls.
struct Algorithm {
  const char* name;

  /// A function of what members have agreed on alone, so that all choose alike.
  WhyNot (*why_not)(const AgreedCall& call);

  /// Members offer the algorithm to each other, once it applies. A member that cannot take part
  /// refuses; then all members try the next one.
  bool is_offered = false;
};

// Definitions: coll/algorithms, a file each; blocks.cpp has the algorithms of messages.

/// Blocks that kernels of all members store in each other's memory.
extern const Algorithm symmetric_move;
/// A long broadcast through each other's memory, unit by unit.
extern const Algorithm symmetric_broadcast;
/// A reduction of elements as they are, by kernels of all members.
extern const Algorithm symmetric_reduction;
/// A reduction whose inputs and pieces members read in slots of the peer link, host by host.
extern const Algorithm linked_reduction;
/// A reduction by messages of pieces, encoded or not.
extern const Algorithm reduction_by_blocks;
/// A neighbourhood's blocks as messages.
extern const Algorithm neighbours;
/// Blocks as messages, by a schedule.
extern const Algorithm blocks;
/// Pairs that are long enough as messages, and MPI's own call for all others.
extern const Algorithm pairs;
/// MPI's own call.
extern const Algorithm by_mpi;

/// Indices into algorithms(), in the order in which members try them.
enum class AlgorithmId : unsigned char {
  symmetric_move,
  symmetric_broadcast,
  symmetric_reduction,
  linked_reduction,
  reduction_by_blocks,
  neighbours,
  blocks,
  pairs,
  mpi,
  count_
};

/// Members offer no algorithm behind this one.
inline constexpr AlgorithmId last_offered = AlgorithmId::linked_reduction;

/// The last one applies to every call.
std::span<const Algorithm> algorithms();
inline const Algorithm& algorithm(AlgorithmId id) {
  return algorithms()[static_cast<std::size_t>(id)];
}

/// The first algorithm from `first` on that applies.
AlgorithmId first_that_applies(const AgreedCall& call, AlgorithmId first = AlgorithmId{});

inline AlgorithmId next(AlgorithmId id) {
  return static_cast<AlgorithmId>(static_cast<unsigned char>(id) + 1);
}

}  // namespace mpress::engine
