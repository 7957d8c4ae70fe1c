// A sum of data on a host's devices, by kernels that wait for those of the other members
// (gpu::CollectiveQueue::sum_jointly()): in quanta of szp what ReducedCall does in the place of
// blocks, once its members have exchanged the ranges of their contributions, and with them whether
// all can; as it is what JointReduction does with what is long.
//
// Members make the same calls in one order. Kernels fill no device and none waits for long; what
// one has left undone, because another member's device was busy, is given again by its host, which
// has looked whether that member still lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/range.hpp"
#include "coll/algorithm.hpp"
#include "coll/symmetric/joint_memory.hpp"
#include "config/config.hpp"
#include "core/devices.hpp"

namespace mpress::engine {

class JointSum {
 public:
  /// What a member tells the others: whether it can, its device, the routes to its memory, and how
  /// many units of a part that has room for.
  static constexpr std::size_t words = offer_words;

  /// Who gets results: all of them, all at one member, or each its own part.
  struct Goal {
    std::uint32_t readers;  ///< a bit for each member that gets all parts
    int source = -1;        ///< of a broadcast, which has no part: the only one that contributes
  };
  static Goal broadcast_of(int members, int root) {
    if (members > 31) return {0};
    return {((1u << members) - 1) & ~(1u << root), root};
  }
  /// Of as many members as fit_in_rows() allows.
  static Goal goal_of(Family family, int members, int root) {
    if (members > 31) return {0};
    if (family == Family::allreduce) return {(1u << members) - 1};
    return {family == Family::reduce ? 1u << root : 0};
  }

  /// Of parts that fit_in_rows() (coll/pieces.hpp); member i adds up the elements from begins[i] to
  /// begins[i + 1]. All of these outlive it. No other call uses the memory. `as_it_is`: how that is
  /// combined; empty: a sum in quanta.
  JointSum(Messaging& messaging, Team& team, JointMemory& memory, ElementType type,
           std::span<const std::int64_t> begins, Goal goal, std::optional<codec::Combine> as_it_is);
  ~JointSum();

  /// Of data on `device`, both aligned as their type: all that this member contributes, and where
  /// its results go, all parts or its own; null where it gets none. They may be the same, but where
  /// each gets its own part. What it returns all members tell each other.
  Offer offer(int device, const std::byte* input, std::byte* results);

  /// Before it is accepted, of one with a grid: it finds the range of the contribution of this
  /// member.
  void find_range() { finds_range_ = true; }

  /// `offers`: those of all, by rank. The same for all. Where it is accepted it begins: each
  /// member's contribution by that grid, or, without one, as it is.
  Answer accept(std::span<const Offer> offers, const codec::Grid& grid);

  /// The same of words one behind the other.
  Answer accept(std::span<const std::uint64_t> offers, const codec::Grid& grid);

  /// In the place of accept(), by a member that does not know the offers of all: its own kernel is
  /// not to be waited for.
  void fail();

  /// Never waits. True once it is over.
  bool advance();

  /// The first failure.
  Status status() const { return status_; }

  trace::Way way() const { return memory_.way(); }

  /// Of a grid with a reach, by who gets all parts: had all elements and sums quanta?
  bool were_quanta() const { return were_quanta_; }

  /// Of what this member has brought; where it was to be found.
  const codec::Range& range() const { return range_; }

  /// What this member's kernels have written to all others, and got from them.
  std::uint64_t sent_bytes() const { return sent_; }
  std::uint64_t received_bytes() const { return received_; }
  /// The same of one of them, as elements.
  std::size_t raw_bytes_to(int other) const;
  std::size_t raw_bytes_from(int other) const;

 private:
  using Ability = JointMemory::Ability;

  std::size_t elements_of(int member) const {
    const auto i = static_cast<std::size_t>(member);
    return static_cast<std::size_t>(begins_[i + 1] - begins_[i]);
  }
  std::uint32_t units_wanted() const;
  bool is_reader(int member) const { return (goal_.readers >> member & 1) != 0; }
  bool contributes(int member) const { return goal_.source < 0 || member == goal_.source; }
  void give(bool again);
  void measure_link() const;

  Messaging& messaging_;
  Team& team_;
  JointMemory& memory_;
  const ElementType type_;
  const std::span<const std::int64_t> begins_;
  const Goal goal_;
  const std::optional<codec::Combine> as_it_is_;
  int device_ = gpu::host;
  const std::byte* input_ = nullptr;
  std::byte* results_ = nullptr;
  codec::Grid grid_;
  std::uint32_t number_ = 0;               ///< of its first lap
  gpu::Event event_ = 0;                   ///< of its kernel
  std::vector<std::uint32_t> units_;       ///< by member
  const std::vector<std::uint64_t> from_;  ///< begins_ of parts
  std::vector<std::uint64_t> counts_;      ///< of parts
  unsigned left_undone_ = 0;               ///< times in a row
  std::uint64_t again_at_ns_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;
  Status status_;
  bool were_quanta_ = true;
  bool finds_range_ = false;
  codec::Range range_;  ///< as far as kernels have read it
  bool has_offered_ = false;
  bool is_accepted_ = false;  ///< and under way
  QueueLease queue_;
};

}  // namespace mpress::engine
