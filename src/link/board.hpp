// Where the ranks of one host agree without a call of MPI's or of the system's.
//
// Each process has a sheet of boards in memory that the others map (link/host_memory.hpp), and a
// board of it for each team that it is a member of. A board is written by its owner alone.
//
// Agreement number k, from 0, uses slot k % depth of `said`: the owner's contribution; and, where
// the team spans hosts, of `results`: the result, by the host's first member. Numbers never
// wrap, and `stamp` has the number, so that a value of an earlier round cannot be taken for this
// one's.
//
// A slot of the owner's is free for k while its stamp is of k - depth or before: nobody reads it,
// as each reader's `done` is above that. It is filled for k while its stamp is of k: whoever has
// not yet done k may read it, and so it stays as it is.
//
// The owner fills a slot for k once all readers' `done` is above k - depth. It clears `key`, and
// may use the board for another team, once all readers have done all that it did.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "link/list.hpp"

namespace mpress::link {

struct Board {
  static constexpr std::size_t depth = 8;          ///< agreements of a team that are under way
  static constexpr std::size_t most_words = 8;     ///< of a contribution
  static constexpr std::size_t most_results = 64;  ///< of a result across hosts

  /// Stamps: the number plus one, times two; plus one where it failed.
  static constexpr std::uint64_t stamp_of(std::uint64_t number, bool failed) {
    return (number + 1) * 2 + (failed ? 1 : 0);
  }

  template <std::size_t words>
  struct alignas(128) Slot {
    std::atomic<std::uint64_t> stamp;
    std::uint64_t shape;  ///< what the contribution consists of; must be the same for all
    std::uint64_t word[words];
  };

  alignas(128) std::atomic<std::uint64_t> key;  ///< of the team; 0: free
  /// How many agreements the owner has done with: it will read nothing of theirs any more.
  alignas(128) std::atomic<std::uint64_t> done;
  Slot<most_words> said[depth];
  Slot<most_results> results[depth];
};

struct Sheet {
  static constexpr std::uint32_t layout = 2;  ///< part of what open() of the memory compares
  static constexpr std::size_t most_boards = 1024;

  /// The rate of a kind of link that some rank of the host saw last, in bytes a second, and how
  /// many were seen: on the sheet of the host's first rank, written by all.
  struct alignas(128) Seen {
    std::atomic<std::uint64_t> count;
    std::atomic<double> rate;
  };
  /// Ranks of this host, of other hosts, and those behind each link between devices.
  static constexpr std::size_t most_kinds = 2 + count_between_devices;

  Seen seen[most_kinds];
  std::atomic<std::uint32_t> used;  ///< boards from here on have never been
  Board board[most_boards];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace mpress::link
