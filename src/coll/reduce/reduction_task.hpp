// A reduction in two shots as its arguments and its team tell it: what is alike at each start of a
// persistent call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/spec.hpp"
#include "coll/blocks/element_blocks.hpp"
#include "coll/blocks/served.hpp"
#include "coll/reduce/reduction.hpp"
#include "coll/team.hpp"
#include "core/layout.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

struct ReductionTask {
  /// A call of a member.
  struct Of {
    Collective call;
    Reduction reduction;
    int root;       ///< of MPI_Reduce
    void* results;  ///< where the program has them, as far as this rank gets any
    Spec spec;      ///< which the members agreed on
    AgreedCall agreed;
    Served served;
  };

  /// `messaging` and `team` outlive it.
  ReductionTask(Messaging& messaging, Team& team, const Of& of);

  /// Does each host combine its ranks' contributions first?
  bool is_by_host() const;
  trace::Called called() const;

  /// Can kernels of all members meet in memory that has room for this? As far as all members know.
  bool has_joint_memory() const;

  /// Does each rank get the result of its own piece alone?
  bool is_scattered() const {
    return call.family != Family::allreduce && call.family != Family::reduce;
  }
  /// Does this rank get results, if only of pieces that have elements?
  bool gets_results() const { return call.family != Family::reduce || team.rank() == root; }

  /// All pieces of a buffer, by rank.
  ElementSpans pieces(const void* buffer) const {
    return {const_cast<void*>(buffer), team.size(), 0, counts, begins};
  }
  std::int64_t own_count() const { return counts[static_cast<std::size_t>(team.rank())]; }

  Messaging& messaging;
  Team& team;
  const Collective call;
  const Served served;
  const TeamFacts facts;
  const Reduction reduction;
  const int root;
  std::byte* const results;                    ///< see Of
  const std::shared_ptr<const Layout> layout;  ///< of an element
  const bool is_reproducible;                  ///< it has the same bits in any order of the ranks
  const Spec spec;                             ///< which members share
  const std::vector<std::int64_t> begins;      ///< of pieces, in elements, and the end of the last
  std::vector<std::int64_t> counts;            ///< of their elements
};

}  // namespace mpress::engine
