// Which ranks of the job share a host, and the sheets by which they meet there.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "link/board.hpp"
#include "link/host_memory.hpp"
#include "link/liveness.hpp"

namespace mpress::engine {

class Hosts {
 public:
  /// A rank of this host, whose sheet this process has mapped.
  struct Neighbour {
    int rank;
    link::ProcessId process;
    link::HostMemory memory;  ///< of `sheet_bytes`
  };

  // A sheet of another layout has another size, or does not come from this version of mpress.
  static constexpr std::size_t sheet_bytes = sizeof(link::Sheet) + link::Sheet::layout;

  /// `leaders`: by rank of the job, the lowest rank of its host. `neighbours`: all ranks of the
  /// host of `rank`, itself included; or, where they do not reach each other's memory, that one or
  /// none.
  void open(int rank, std::vector<int> leaders, std::vector<Neighbour> neighbours);

  /// The lowest rank of the host of `rank`; the same for all who ask. Ranks that do not share
  /// memory count as hosts of their own.
  int leader(int rank) const { return leader_[static_cast<std::size_t>(rank)]; }

  /// The sheet of a rank of this host; null for others.
  link::Sheet* sheet(int rank) const;
  link::Sheet* own_sheet() const { return sheet(rank_); }
  /// That of this host's first rank.
  link::Sheet* shared_sheet() const { return sheet(leader(rank_)); }

  /// Does the process of a rank of this host still exist?
  bool lives(int rank) const;

  /// A free board of this process's, which others find once it has a key; null where all are taken.
  /// Thread-safe, as is free_board().
  link::Board* take_board();

  /// Gives a board back, once nobody reads it any more.
  void free_board(link::Board* board);

  /// The board that `rank`, of this host, has for `key`; null: none yet.
  link::Board* find_board(int rank, std::uint64_t key) const;

 private:
  const Neighbour* neighbour(int rank) const;

  int rank_ = 0;
  std::vector<int> leader_;            ///< by rank
  std::vector<Neighbour> neighbours_;  ///< by rank
  std::mutex mutex_;
  std::vector<std::size_t> free_boards_;
};

}  // namespace mpress::engine
