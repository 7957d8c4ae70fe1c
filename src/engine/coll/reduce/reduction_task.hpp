// A reduction in two shots as its arguments and its team tell it: what is alike at each start of a
// persistent call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/spec.hpp"
#include "coll/team.hpp"
#include "core/layout.hpp"
#include "engine/coll/operands.hpp"
#include "engine/coll/reduce/reduction.hpp"
#include "engine/coll/route.hpp"

namespace mpress::engine {

struct ReductionTask {
  /// As make_operation() has them.
  ReductionTask(Job& job, const Collective& call, const Operands& operands, Team& team,
                const Served& served);

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
  bool gets_results() const {
    return call.family != Family::reduce || team.rank() == operands.root;
  }

  /// All pieces of a buffer, by rank.
  Blocks pieces() const {
    return {team.size(), counts.data(), begins.data(), reduction.mpi_type()};
  }
  std::int64_t own_count() const { return counts[static_cast<std::size_t>(team.rank())]; }
  /// Where the program has its results, as far as this rank gets any.
  std::byte* results() const {
    return static_cast<std::byte*>(const_cast<void*>(operands.receive.buffer));
  }

  Job& job;
  const Collective& call;
  const Operands& operands;
  Team& team;
  const Served served;
  const Reduction reduction;
  const std::shared_ptr<const Layout> layout;  ///< of an element; null: MPI did not tell
  const bool is_reproducible;                  ///< it has the same bits in any order of the ranks
  const Spec spec;                             ///< which members share
  const std::vector<std::int64_t> begins;      ///< of pieces, in elements, and the end of the last
  std::vector<std::int64_t> counts;            ///< of their elements
};

}  // namespace mpress::engine
