// Where a rank has the blocks that it sends in a neighbourhood's all-to-all or all-gather, and to
// which of its neighbours' places those belong that it gets.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// One rank's. Where it says entry, an element of Schedule::blocks is meant.
struct Passages {
  static constexpr std::uint32_t own = UINT32_MAX;

  /// Of each entry that is sent: the entry by which the block came, or `own`. Of others: itself.
  std::vector<std::uint32_t> from;
  /// Of each entry: for which neighbour its block is. 0 in all-gathers, where it is for all.
  std::vector<std::uint32_t> part;
  /// Of each entry that is received: the neighbours whose blocks this rank gets by it. None: it
  /// only passes. Several: all-gathers whose offsets lead to one rank.
  std::span<const int> slots(std::size_t entry) const {
    return std::span(slots_).subspan(first_[entry], first_[entry + 1] - first_[entry]);
  }
  /// The entry by which a block comes, which comes to this rank.
  std::uint32_t entry_of(Block block) const { return came_.find(block); }

  /// For the rank at `coordinates`: of a schedule of Routes, or of ring_alltoall().
  static Passages of_alltoall(const Neighbourhood& neighbourhood, const Schedule& schedule,
                              std::span<const int> coordinates);
  /// Of a schedule of GatherTree, or of direct_gather().
  static Passages of_gather(const Neighbourhood& neighbourhood, const Schedule& schedule,
                            std::span<const int> coordinates);

  /// Of a schedule whose blocks are numbered by origin, and not passed on. `sources`: of each
  /// place, the rank whose block belongs there; Grid::none: none's.
  static Passages of_sources(const Schedule& schedule, std::span<const int> sources);

 private:
  explicit Passages(const Schedule& schedule);

  std::vector<std::uint32_t> first_;  ///< of each entry's slots, and the end of all
  std::vector<int> slots_;

  /// By which entry blocks come: a table with open addressing, as there may be thousands of them to
  /// be filed before a program's first exchange.
  class Came {
   public:
    explicit Came(std::size_t most);
    void add(Block block, std::uint32_t entry);
    std::uint32_t find(Block block) const;  ///< `own`: by none

   private:
    std::size_t place_of(Block block) const;
    int shift_ = 63;
    std::vector<std::pair<Block, std::uint32_t>> places_;  ///< `own`: free
  };
  Came came_;
};

}  // namespace mpress::schedule
