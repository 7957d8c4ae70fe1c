// The pieces of a reduction that a rank combines: its own, and, where a host's ranks combine first
// what they bring, those of ranks on other hosts; and the memory that what others bring comes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "coll/blocks/element_blocks.hpp"
#include "coll/reduce/piece_sum.hpp"
#include "memory/buffer_pool.hpp"
#include "schedule/hosts.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class Pieces {
 public:
  /// Of the call that `of` tells of: this rank combines what all ranks bring to its own piece.
  /// `hosts`: set where each host combines first. `input`: the elements that this rank contributes;
  /// `begins`: of the ranks' pieces, in elements.
  void make(const PieceSum::Of& of, const schedule::Hosts* hosts, const std::byte* input,
            std::span<const std::int64_t> begins);
  void clear();

  PieceSum& own() const { return *pieces_.front(); }
  std::span<const std::unique_ptr<PieceSum>> all() const { return pieces_; }
  /// Those of other hosts' ranks.
  std::span<const std::unique_ptr<PieceSum>> passed_on() const { return all().subspan(1); }

  // What others bring comes to memory that is given for it.

  /// Elements that this has room for; 0: nothing comes.
  std::int64_t room() const { return room_; }
  void settle(memory::Buffer memory, std::size_t width);
  void leave_room() { memory_.reset(); }
  /// That memory, as a buffer that blocks come to.
  ElementSpans incoming() const;
  /// And which of its blocks one of an all-to-all among the ranks is.
  int place_of(schedule::Block block) const;

 private:
  std::vector<std::unique_ptr<PieceSum>> pieces_;  ///< first the own
  std::unordered_map<int, std::size_t> by_owner_;
  std::vector<int> first_places_;            ///< by piece
  std::vector<std::int64_t> counts_, from_;  ///< by place, in elements
  std::int64_t room_ = 0;
  memory::Buffer memory_;
  int ranks_ = 0;
};

}  // namespace mpress::engine
