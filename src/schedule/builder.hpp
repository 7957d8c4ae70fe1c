// How the algorithms write their schedules down: blocks, then the transfer that they belong to.
#pragma once

#include <string_view>
#include <utility>

#include "schedule/schedule.hpp"

namespace mpress::schedule {

class Builder {
 public:
  /// Throws std::invalid_argument, with the name of what is wrong, unless `task` is an `op` with at
  /// least one rank, `rank` and the root are among the ranks, and there is a segment.
  Builder(const Task& task, Op op, int rank);

  /// Of ranks that have no task in common with those above. Throws the same.
  Builder(int size, int rank);

  /// The next one of the transfer that is being written down.
  void block(Block block) { schedule_.blocks.push_back(block); }
  void block(int block) { schedule_.blocks.push_back(static_cast<Block>(block)); }

  /// Ends a transfer, of the blocks since the last one. Without any there is none.
  void send(int peer, int round) { add(schedule_.sends, peer, round); }
  void receive(int peer, int round) { add(schedule_.receives, peer, round); }
  /// A receive of what is combined with what the rank has.
  void combine(int peer, int round) { add(schedule_.receives, peer, round, true); }

  /// Transfers may have been written down in any order; those of a round stay in theirs.
  Schedule finish(int rounds);

 private:
  void add(std::vector<Transfer>& transfers, int peer, int round, bool combines = false);

  Schedule schedule_;
  std::size_t first_ = 0;
};

/// Throws std::invalid_argument if `value` is less than `least`.
void require_at_least(std::string_view name, int value, int least);
/// The same unless `rank` is from 0 to `size` - 1.
void require_rank(std::string_view name, int rank, int size);

constexpr int divided_up(int a, int b) { return a / b + (a % b != 0); }

/// Ranks, or whatever else there is `size` of, as seen from `root`: that one is 0.
class Circle {
 public:
  Circle(int size, int root) : size_(size), root_(root) {}
  int place(int rank) const { return rank < root_ ? rank - root_ + size_ : rank - root_; }
  int rank(int place) const {
    return place < size_ - root_ ? root_ + place : root_ + place - size_;
  }

 private:
  int size_;
  int root_;
};

}  // namespace mpress::schedule
