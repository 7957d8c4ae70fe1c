// The algorithms of collective calls: which ways there are to serve one, when each applies, and
// what makes its operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coll/call.hpp"

namespace mpress::engine {

class CollectiveOperation;
class OfferedCall;
struct CallHere;
struct Served;

/// Why an algorithm does not serve a call, for reports; null: it does.
using WhyNot = const char*;
/// The reason of an algorithm that is meant for other operations.
inline constexpr char other_kind[] = "serves other calls";
inline constexpr char not_combined[] = "an operation or a type that mpress does not combine";
inline constexpr char does_not_pay[] = "compression does not pay";

/// Why blocks that lie in host memory are not encoded.
inline WhyNot why_raw(bool is_long_enough) {
  return is_long_enough ? does_not_pay : "shorter than the threshold";
}

/// Words that each member tells the others of a call that is offered.
inline constexpr std::size_t offer_words = 6;
using Offer = std::array<std::uint64_t, offer_words>;

/// One way to serve collective calls.
struct Algorithm {
  const char* name;

  /// A function of what members have agreed on alone, so that all choose alike.
  WhyNot (*why_not)(const AgreedCall& call);

  /// Makes the operation of a call. None of by_mpi.
  std::unique_ptr<CollectiveOperation> (*make)(const CallHere& here,
                                               const Served& served) = nullptr;

  /// Of one that members offer each other, once it applies, in the place of make(): a member that
  /// cannot take part refuses; then all members try the next one.
  std::unique_ptr<OfferedCall> (*offer)(const CallHere& here) = nullptr;
  /// Are these kernels that wait for each other's? A team has one such call at a time.
  bool has_kernels = false;

  bool is_offered() const { return offer != nullptr; }
};

/// All of them, in the order in which members try them. Each is defined in the file of its name in
/// coll/algorithms, those of messages and by_mpi in blocks.cpp.
#define MPRESS_ALGORITHMS(X)                                                                   \
  X(symmetric_move)      /* blocks that kernels of all members store in each other's memory */ \
  X(symmetric_broadcast) /* a long broadcast through that memory, unit by unit */              \
  X(symmetric_reduction) /* elements as they are, by kernels of all members */                 \
  X(linked_reduction)    /* inputs and pieces that members read in slots of the peer link */   \
  X(reduction_by_blocks) /* messages of pieces, encoded or not */                              \
  X(neighbours)          /* a neighbourhood's blocks as messages */                            \
  X(blocks)              /* blocks as messages, by a schedule */                               \
  X(pairs)               /* long pairs as messages, and MPI's own call for all others */       \
  X(by_mpi)              /* MPI's own call */

#define MPRESS_DECLARE(name) extern const Algorithm name;
MPRESS_ALGORITHMS(MPRESS_DECLARE)
#undef MPRESS_DECLARE

/// Indices into algorithms().
enum class AlgorithmId : unsigned char {
#define MPRESS_NAME(name) name,
  MPRESS_ALGORITHMS(MPRESS_NAME)
#undef MPRESS_NAME
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
