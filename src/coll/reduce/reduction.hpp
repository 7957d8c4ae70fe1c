// A reduction in this process: what it combines, and what its contributions are encoded with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/spec.hpp"
#include "coll/blocks/block_map.hpp"
#include "coll/call.hpp"

namespace mpress::engine {

/// Of a call's arguments.
struct Reduction : ReductionShape {
  const void* input;         ///< this rank's
  bool is_in_place = false;  ///< its contribution lies where results go
};

/// The spec that encodes contributions, where the members agreed on one. Products bear no loss:
/// what an error of one factor does to them depends on all the others. Where the order of the ranks
/// is not to matter, szp's sums do.
Spec spec_for(const Reduction& reduction, const Spec& agreed, bool is_reproducible);

/// A block as long as the longest that `rank` contributes to a piece of another member's, of
/// pieces that begin so; at the beginning of `input`.
BlockData longest_contribution(const Reduction& reduction, const void* input,
                               std::span<const std::int64_t> begins, int rank);

}  // namespace mpress::engine
