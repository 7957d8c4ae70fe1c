#include "mpi/job/hosts.hpp"

#include <algorithm>
#include <new>

#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {
namespace {

using link::Board;
using link::HostMemory;
using link::Sheet;

// A sheet of another layout has another size, or does not come from this version of mpress.
constexpr std::size_t sheet_bytes = sizeof(Sheet) + Sheet::layout;

/// The ranks that share this one's host: MPI's, or a part of those.
MPI_Comm split_by_host(int rank, int ranks_a_host) {
  const mpi::Calls& mpi = mpi::calls();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return MPI_COMM_NULL;
  }
  if (ranks_a_host <= 0) return here;
  MPI_Comm part = MPI_COMM_NULL;
  mpi.Comm_split(here, rank / ranks_a_host, rank, &part);
  mpi.Comm_free(&here);
  return part;
}

}  // namespace

void Hosts::open(const HostMemory::Nonce& nonce, int ranks_a_host) {
  const mpi::Calls& mpi = mpi::calls();
  int size = 0;
  mpi.Comm_rank(MPI_COMM_WORLD, &rank_);
  mpi.Comm_size(MPI_COMM_WORLD, &size);
  leader_.resize(static_cast<std::size_t>(size));
  int leader = rank_;
  MPI_Comm here = split_by_host(rank_, ranks_a_host);
  if (here != MPI_COMM_NULL) {
    HostMemory own = HostMemory::create(nonce, rank_, sheet_bytes);
    const std::vector<int> ranks = mpi::ranks_in_world(here);
    struct Card {
      HostMemory::Address address;
      link::ProcessId process;
    };
    const Card card{own.address(), link::own_process()};
    std::vector<Card> cards(ranks.size());
    mpi.Allgather(&card, sizeof card, MPI_BYTE, cards.data(), sizeof card, MPI_BYTE, here);
    int all_found = 1;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      HostMemory memory = ranks[i] == rank_
                              ? std::move(own)
                              : HostMemory::open(cards[i].address, nonce, ranks[i], sheet_bytes);
      all_found = all_found && memory;
      neighbours_.push_back({ranks[i], cards[i].process, std::move(memory)});
    }
    // All of a host reach each other, or none counts as a neighbour.
    mpi.Allreduce(MPI_IN_PLACE, &all_found, 1, MPI_INT, MPI_MIN, here);
    if (all_found) {
      leader = *std::min_element(ranks.begin(), ranks.end());
    } else {
      std::erase_if(neighbours_, [&](const Neighbour& other) { return other.rank != rank_; });
    }
    mpi.Comm_free(&here);
  }
  std::sort(neighbours_.begin(), neighbours_.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.rank < b.rank; });
  mpi.Allgather(&leader, 1, MPI_INT, leader_.data(), 1, MPI_INT, MPI_COMM_WORLD);
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
