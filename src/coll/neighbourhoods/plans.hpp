// By which ways a neighbourhood's blocks may travel, and which of them a call takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "policy/methods.hpp"
#include "schedule/neighbourhoods/neighbour_sums.hpp"
#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/neighbourhoods/passages.hpp"
#include "schedule/neighbourhoods/routes.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

/// What the program wants, the same on all processes of a neighbourhood.
struct NeighbourHints {
  enum class Algorithm : unsigned char { automatic, direct, combining, digits, lines, ring };
  Algorithm algorithm = Algorithm::automatic;
  int ports = 0;                   ///< exchanges at once; 0: as many as there are
  bool is_reproducible = false;    ///< reductions combine in the order of the list
  bool has_uniform_sizes = false;  ///< also in calls with counts: block i has one size everywhere

  bool operator==(const NeighbourHints&) const = default;

  /// A hash: equal hints have equal ones, and others almost always different ones.
  std::uint64_t hash() const;
};

/// What an exchange does.
enum class Pattern : unsigned char {
  alltoall,  ///< each neighbour gets a block of its own
  allgather  ///< all get one
};

/// How blocks travel, for one process. The same for all calls that take this way.
struct Way {
  /// Does a message carry all blocks of a transfer (packed_rounds)? Else each block is a message of
  /// its own (coll/blocks/runner).
  bool is_packed;
  schedule::Schedule schedule;
  schedule::Passages passages;
};

/// Of one process. Thread-safe.
class NeighbourPlans {
 public:
  NeighbourPlans(schedule::Neighbourhood list, int rank, NeighbourHints hints);
  NeighbourPlans(const NeighbourPlans&) = delete;
  NeighbourPlans& operator=(const NeighbourPlans&) = delete;

  const schedule::Neighbourhood& list() const { return list_; }
  int rank() const { return rank_; }  ///< of this process, as are:
  const std::vector<int>& coordinates() const { return coordinates_; }
  const NeighbourHints& hints() const { return hints_; }
  /// May mpress choose how blocks travel?
  bool is_free() const { return hints_.algorithm == NeighbourHints::Algorithm::automatic; }
  /// Neighbours that are the process itself.
  const std::vector<int>& own() const { return own_; }

  /// The way of a reduction by message combining, if that is its way; null: straight.
  const schedule::SumSchedule* sums(Pattern pattern, std::size_t bytes, bool encodes,
                                    const policy::LinkCosts& costs) const;

  /// The way of a call. `sizes`: bytes of each block, or of the one of an all-gather, on all
  /// processes; empty: no process knows. `encodes`: they may be compressed. The same on all
  /// processes. Throws std::bad_alloc.
  const Way& way(Pattern pattern, std::span<const std::size_t> sizes, bool encodes,
                 const policy::LinkCosts& costs) const;

 private:
  /// What a rank sends on a torus.
  struct Work {
    int rounds = 0;
    std::size_t messages = 0;
    std::vector<std::size_t> passes;  ///< in how many of them each block is

    std::size_t bytes(std::span<const std::size_t> sizes) const;
  };
  struct Known {
    std::once_flag once;
    Work work;
    std::optional<Way> way;
  };
  struct KnownSums {
    std::once_flag once;
    Work work;
    std::optional<schedule::SumSchedule> schedule;
  };
  struct Pair {
    Known direct;
    Known packed;
    KnownSums sums;
  };
  const Way& choose(Pattern pattern, std::span<const std::size_t> sizes, bool encodes,
                    const policy::LinkCosts& costs) const;
  const schedule::SumSchedule* choose_sums(Pattern pattern, std::size_t bytes, bool encodes,
                                           const policy::LinkCosts& costs) const;
  const Known& direct(Pattern pattern) const;
  const Known& packed(Pattern pattern) const;
  Way routed(const schedule::Routes& routes, bool is_packed) const;
  Way gathered(schedule::Schedule schedule, bool is_packed) const;
  bool pays(const Work& packed, const Work& direct, std::span<const std::size_t> sizes,
            bool encodes, const policy::LinkCosts& costs) const;

  const schedule::Neighbourhood list_;
  const int rank_;
  const NeighbourHints hints_;
  std::vector<int> coordinates_;
  std::vector<int> own_;
  mutable std::array<Pair, 2> known_;  ///< of each pattern
};

}  // namespace mpress::engine
