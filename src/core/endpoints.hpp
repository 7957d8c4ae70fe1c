// The other ranks, as messages see them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/links.hpp"
#include "gpu/gpu.hpp"
#include "link/liveness.hpp"
#include "policy/policy.hpp"
#include "policy/profile.hpp"

namespace mpress::engine {

/// A rank of MPI_COMM_WORLD, and which links lead there.
class Endpoint {
 public:
  Endpoint(const Links& links, int rank, policy::Peer peer)
      : links_(links), rank_(rank), peer_(peer) {}

  bool is_on_this_host() const { return peer_ == policy::Peer::same_host; }

  /// The first link that might carry blocks from devices there, now or once both have connected.
  link::Kind nearest() const { return links_.nearest(rank_); }

  /// The path of a message of `bytes` bytes in memory of `device`, as the policy sees it: the first
  /// link that reaches the rank now.
  policy::Path path(int device, std::size_t bytes) const {
    if (device == gpu::host) return {policy::Place::host, peer_};
    const bool is_long = bytes >= links_.least_bytes_between_devices;
    return {policy::Place::device,
            is_long ? policy::peer_by(links_.nearest_open(rank_), peer_) : peer_};
  }

 private:
  const Links& links_;
  const int rank_;
  const policy::Peer peer_;  ///< on this host, or on another one
};

class Endpoints {
 public:
  explicit Endpoints(const Links& links) : links_(links) {}

  /// `of_host`: those of this rank's, itself included. Before that all are taken to be elsewhere.
  void open(int ranks, std::vector<link::RankProcess> of_host) {
    is_here_.resize(static_cast<std::size_t>(ranks));
    for (const link::RankProcess& one : of_host)
      is_here_[static_cast<std::size_t>(one.rank)] = true;
    of_host_ = std::move(of_host);
  }

  Endpoint of(int rank) const { return {links_, rank, peer_of(rank)}; }

  policy::Peer peer_of(int rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return at < is_here_.size() && is_here_[at] ? policy::Peer::same_host
                                                : policy::Peer::other_host;
  }

  /// Ranks of this host, itself included.
  std::size_t ranks_here() const { return of_host_.size(); }

  /// Has this host more ranks than processors for them?
  bool are_oversubscribed() const;

  /// A rank of this host whose process has ended; negative where all are alive. Costs a system call
  /// or two for each.
  int find_ended() const;

 private:
  const Links& links_;
  std::vector<bool> is_here_;
  std::vector<link::RankProcess> of_host_;
};

}  // namespace mpress::engine
