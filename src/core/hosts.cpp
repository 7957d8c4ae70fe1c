#include "core/hosts.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace mpress::engine {

using link::Board;
using link::Sheet;

void Hosts::open(int rank, std::vector<int> leaders, std::vector<Neighbour> neighbours) {
  rank_ = rank;
  leader_ = std::move(leaders);
  neighbours_ = std::move(neighbours);
  std::sort(neighbours_.begin(), neighbours_.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.rank < b.rank; });
}

const Hosts::Neighbour* Hosts::neighbour(int rank) const {
  const auto found =
      std::lower_bound(neighbours_.begin(), neighbours_.end(), rank,
                       [](const Neighbour& other, int wanted) { return other.rank < wanted; });
  return found != neighbours_.end() && found->rank == rank ? &*found : nullptr;
}

Sheet* Hosts::sheet(int rank) const {
  const Neighbour* found = neighbour(rank);
  return found ? std::launder(reinterpret_cast<Sheet*>(found->memory.data())) : nullptr;
}

bool Hosts::lives(int rank) const {
  const Neighbour* found = neighbour(rank);
  return !found || link::is_alive(found->process);
}

Board* Hosts::take_board() {
  Sheet* sheet = own_sheet();
  if (!sheet) return nullptr;
  std::lock_guard lock(mutex_);
  std::size_t number = sheet->used.load(std::memory_order_relaxed);
  if (!free_boards_.empty()) {
    number = free_boards_.back();
    free_boards_.pop_back();
  } else if (number < Sheet::most_boards) {
    sheet->used.store(static_cast<std::uint32_t>(number + 1), std::memory_order_release);
  } else {
    return nullptr;
  }
  Board& board = sheet->board[number];
  board.done.store(0, std::memory_order_relaxed);
  for (auto& slot : board.said) slot.stamp.store(0, std::memory_order_relaxed);
  for (auto& slot : board.results) slot.stamp.store(0, std::memory_order_relaxed);
  return &board;
}

void Hosts::free_board(Board* board) {
  board->key.store(0, std::memory_order_release);
  std::lock_guard lock(mutex_);
  free_boards_.push_back(static_cast<std::size_t>(board - own_sheet()->board));
}

Board* Hosts::find_board(int rank, std::uint64_t key) const {
  Sheet* sheet = this->sheet(rank);
  if (!sheet) return nullptr;
  const std::size_t used = sheet->used.load(std::memory_order_acquire);
  for (std::size_t i = used; i-- > 0;) {
    if (sheet->board[i].key.load(std::memory_order_acquire) == key) return &sheet->board[i];
  }
  return nullptr;
}

}  // namespace mpress::engine
