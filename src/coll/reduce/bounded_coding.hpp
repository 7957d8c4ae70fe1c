// A reduction with a bound on the error: the words that members tell each other first of their
// contributions, and how all encode these then, which follows from such words alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "codec/element.hpp"
#include "codec/range.hpp"
#include "codec/spec.hpp"
#include "codec/sum_grid.hpp"
#include "coll/algorithm.hpp"
#include "message/message.hpp"
#include "pipeline/loss.hpp"

namespace mpress::engine {

/// A member's contribution, as it tells the others.
struct ContributionSummary {
  double min, max;  ///< of finite elements; both 0 where there are none
  double share;     ///< of their elements' bytes that payloads take; 0: none go in windows
  double windows;   ///< of the host, that the payloads of all would fill, were they like its
  std::uint64_t chunk_bytes;
  std::uint64_t flags;
  codec::Grounds expected;  ///< of one that does not know its range; with a relative bound
  Offer joint;

  // Flags.
  static constexpr std::uint64_t pays = 1;       ///< encoding it
  static constexpr std::uint64_t is_finite = 2;  ///< there are finite elements
  static constexpr std::uint64_t is_on_device = 4;
  static constexpr std::uint64_t is_known = 8;  ///< its range

  bool has(std::uint64_t flag) const { return (flags & flag) != 0; }
};

/// A reduction, as all of its members know it.
struct BoundedReduction {
  ElementType type;
  bool is_sum;  ///< else a minimum or a maximum
  int members;
  Spec spec;                 ///< of szp
  bool encodes_in_any_case;  ///< also where that does not pay
};

struct BoundedCoding {
  Coding coding;
  Loss loss;                 ///< of the result
  bool adds_quanta = false;  ///< of payloads
  double greatest = 0;       ///< magnitude among the contributions
  codec::Grounds grounds;    ///< of sums: what the coding follows from
  bool is_blind = false;     ///< it is encoded, and not all members know their range
  bool are_any_known = false;

  BoundedCoding() = default;
  BoundedCoding(std::span<const ContributionSummary> summaries, const BoundedReduction& of);

 private:
  void agree(std::span<const ContributionSummary> summaries, const BoundedReduction& of);
  std::optional<codec::Grid> grid_for(double bound, const BoundedReduction& of);
  void choose(double bound, const BoundedReduction& of);
};

}  // namespace mpress::engine
