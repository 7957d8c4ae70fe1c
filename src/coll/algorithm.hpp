// The algorithms of collective calls: which ways there are to serve one, and when each applies.
#pragma once

#include <cstddef>
#include <span>

#include "coll/call.hpp"

namespace mpress::engine {

/// Why an algorithm does not serve a call, for reports; null: it does.
using WhyNot = const char*;

/// One way to serve collective calls.
struct Algorithm {
  const char* name;

  /// A function of what members have agreed on alone, so that all choose alike.
  WhyNot (*why_not)(const AgreedCall& call);

  /// Do members still tell each other, once it applies, whether each of them can? Any of them may
  /// refuse; then the next one is looked at.
  bool is_offered = false;
};

/// Indices into algorithms(), in the order in which they are looked at.
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

/// None behind it is offered.
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
