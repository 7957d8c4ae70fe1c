// Which ranks run on this host.
#pragma once

#include <cstddef>
#include <vector>

#include "link/host/host_link.hpp"
#include "link/liveness.hpp"
#include "link/peer/peer_link.hpp"
#include "policy/profile.hpp"

namespace mpress::engine {

class PeerHosts {
 public:
  /// Collective: all ranks of MPI_COMM_WORLD call it. `segment`: this rank's of the peer
  /// link, for the ranks of its host; `on_host`: that of the host link.
  void find(const link::SegmentAddress& segment, const link::HostMemory::Address& on_host);

  /// The ranks of this host, in an order that all of them share.
  const std::vector<link::HostRank>& ranks() const { return ranks_; }

  /// The same with their segments of the host link.
  const std::vector<link::HostLink::Neighbour>& host_ranks() const { return host_ranks_; }

  /// A rank of this host whose process has ended; negative where all are alive. Costs a system call
  /// or two for each.
  int find_ended() const;

  /// Has this host more ranks than processors for them?
  bool is_crowded() const;

  /// Of a rank in MPI_COMM_WORLD. Where nobody has asked, all are on other hosts.
  policy::Peer peer(int world_rank) const {
    const auto rank = static_cast<std::size_t>(world_rank);
    return rank < is_here_.size() && is_here_[rank] ? policy::Peer::same_host
                                                    : policy::Peer::other_host;
  }

 private:
  std::vector<bool> is_here_;
  std::vector<link::HostRank> ranks_;
  std::vector<link::HostLink::Neighbour> host_ranks_;
  std::vector<link::ProcessId> processes_;  ///< as ranks_
};

}  // namespace mpress::engine
