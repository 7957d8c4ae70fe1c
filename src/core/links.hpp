// The links of a rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "link/channel/channel_link.hpp"
#include "link/host/host_link.hpp"
#include "link/link.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::engine {

class Links {
 public:
  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  link::Account held_for_channel;  ///< what messages on their way by the channel hold of memory
  link::PeerLink peer;
  link::HostLink host;
  link::ChannelLink channel;

  /// Blocks that are shorter go to devices of this host's ranks by way of the host, which is
  /// faster.
  std::size_t least_bytes_between_devices = 16 * 1024;

  /// Each is faster than those behind it, wherever it reaches a rank. The last reaches all.
  std::array<link::Link*, 3> all() { return {&peer, &host, &channel}; }

  /// All but the last.
  std::array<link::Link*, 2> between_devices() { return {&peer, &host}; }

  /// Null where a route, which comes from another rank, names none.
  link::Link* find(link::Kind kind) {
    for (link::Link* const one : all()) {
      if (one->kind() == kind) return one;
    }
    return nullptr;
  }
  link::Link& of(link::Kind kind) { return *find(kind); }

  /// The first of which `reaches` is true, or the last.
  template <typename Reaches>
  link::Kind first(Reaches reaches) const {
    if (reaches(peer)) return link::Kind::peer;
    return reaches(host) ? link::Kind::host : link::Kind::channel;
  }

  /// The first that might bring blocks to a rank, now or once both have connected. Costs a few
  /// nanoseconds, as does the next one.
  link::Kind nearest(int rank) const {
    return first([rank](const link::Link& link) { return link.may_reach(rank); });
  }

  /// The first that can now.
  link::Kind nearest_open(int rank) const {
    return first([rank](const link::Link& link) { return link.reaches(rank); });
  }

  /// A message from `rank` has come to memory of `device`: a step towards the link that the next
  /// ones may take.
  void connect(int rank, int device) {
    peer.connect(rank, device);
    if (!peer.may_read(rank)) host.connect(rank, device);
  }

  /// Has a block come between devices, or one by any link?
  bool are_used_between_devices() const { return peer.is_used() || host.is_used(); }
  bool are_used() const { return channel.is_used() || are_used_between_devices(); }

  /// No reader will ask for the blocks of this operation.
  void cancel(std::uint64_t operation) {
    for (link::Link* const one : all()) one->cancel(operation);
  }
};

}  // namespace mpress::engine
