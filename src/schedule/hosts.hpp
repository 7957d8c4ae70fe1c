// Who shares a host: what the host-aware algorithms ask of a communicator.
#pragma once

#include <span>
#include <vector>

namespace mpress::schedule {

/// Hosts are numbered from 0, in the order of their first ranks; the ranks of a host by places from
/// 0, in their own order.
class Hosts {
 public:
  /// Each rank's host, by any numbers, on however many ranks each. The same on all ranks.
  explicit Hosts(std::span<const int> host_of_rank);

  int ranks() const { return static_cast<int>(host_.size()); }
  int count() const { return static_cast<int>(first_.size()) - 1; }
  int host(int rank) const { return host_[static_cast<std::size_t>(rank)]; }
  int place(int rank) const { return place_[static_cast<std::size_t>(rank)]; }

  /// Ranks of a host, ascending.
  std::span<const int> members(int host) const;
  int members_count(int host) const { return static_cast<int>(members(host).size()); }
  /// Of the host that has the most.
  int most_members() const { return most_; }
  /// Several, some of which have several ranks?
  bool is_mixed() const { return count() > 1 && most_ > 1; }
  bool is_even() const { return most_ * count() == ranks(); }

  /// All ranks, host by host, and where among them `rank` is.
  std::span<const int> host_by_host() const { return members_; }
  int position(int rank) const {
    return first_[static_cast<std::size_t>(host(rank))] + place(rank);
  }

  /// How many ranks below `rank` are not on `host`.
  int others_below(int rank, int host) const;

 private:
  std::vector<int> host_;
  std::vector<int> place_;
  std::vector<int> first_;    ///< of members_, by host; and the end
  std::vector<int> members_;  ///< host by host
  int most_ = 0;
};

}  // namespace mpress::schedule
