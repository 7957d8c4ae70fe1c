// The links of a rank.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "link/channel/channel_link.hpp"
#include "link/host/host_link.hpp"
#include "link/link.hpp"
#include "link/list.hpp"
#include "link/liveness.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::engine {

class Links {
 public:
  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  link::Account held_for_channel;  ///< what messages on their way by the channel hold of memory
  link::Account held_by_teams;     ///< what teams keep of the memory of hosts for calls to come
  link::PeerLink peer;
  link::HostLink host;
  link::ChannelLink channel;

  /// Blocks that are shorter go to devices of this host's ranks by way of the host, which is
  /// faster.
  std::size_t least_bytes_between_devices = 16 * 1024;

  /// In the order of link/list.hpp.
  std::array<link::DeviceLink*, link::count_between_devices> between_devices() {
    return listed<link::DeviceLink>(peer, host);
  }
  std::array<const link::DeviceLink*, link::count_between_devices> between_devices() const {
    return listed<const link::DeviceLink>(peer, host);
  }

  /// The link of a row of the list that says `is_memory`; null of others.
  link::MemoryLink* memory_link(link::Kind kind) {
    const link::Attributes* const about = link::attributes_of(kind);
    if (!about || !about->is_memory) return nullptr;
    return static_cast<link::MemoryLink*>(between_devices()[link::position(kind)]);
  }

  /// Null where a route, which comes from another rank, names none.
  const link::Link* find(link::Kind kind) const {
    if (kind == link::Kind::channel) return &channel;
    return link::attributes_of(kind) ? between_devices()[link::position(kind)] : nullptr;
  }
  link::Link* find(link::Kind kind) {
    return const_cast<link::Link*>(std::as_const(*this).find(kind));
  }
  const link::Link& of(link::Kind kind) const { return *find(kind); }
  link::Link& of(link::Kind kind) { return *find(kind); }
  const link::DeviceLink& of(const link::Attributes& about) const {
    return *between_devices()[link::position(about.kind)];
  }

  /// By which ranks of this host reach what the others share by each link, in the order of the
  /// list.
  using Addresses = std::array<link::Address, link::count_between_devices>;

  /// Opens the links between devices that `is_wanted(attributes)` names.
  template <typename IsWanted>
  Addresses open(const link::DeviceLink::Nonce& nonce, int rank, IsWanted is_wanted) {
    Addresses own;
    for (std::size_t at = 0; at < own.size(); ++at) {
      own[at] = between_devices()[at]->open(nonce, rank, is_wanted(link::between_devices[at]));
    }
    return own;
  }

  /// Tells them of the ranks of this host, this one included, in an order that all of them share.
  void set_ranks(const std::vector<link::RankProcess>& ranks,
                 const std::vector<Addresses>& addresses, const link::Limits& limits);

  bool has_open_device_link() const {
    return std::ranges::any_of(between_devices(), [](const auto* one) { return one->is_open(); });
  }

  /// The first of which `reaches` is true; else the channel link, which reaches all ranks.
  template <typename Reaches>
  link::Kind first(Reaches reaches) const {
    for (const link::DeviceLink* const one : between_devices()) {
      if (reaches(*one)) return one->kind();
    }
    return link::Kind::channel;
  }

  /// The first that might carry blocks to a rank, now or once both have connected. Costs a few
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
    for (link::DeviceLink* const one : between_devices()) {
      if (one->connect(rank, device)) return;
    }
  }

  /// Has a block come between devices, or one by any link?
  bool are_used_between_devices() const {
    return std::ranges::any_of(between_devices(), [](const auto* one) { return one->is_used(); });
  }
  bool are_used() const { return channel.is_used() || are_used_between_devices(); }

  /// No reader will ask for the blocks of this operation.
  void cancel(std::uint64_t operation) {
    for (link::DeviceLink* const one : between_devices()) one->cancel(operation);
    of(link::Kind::channel).cancel(operation);
  }

 private:
  template <typename... Each>
  static consteval bool have_memory_as_listed() {
    std::size_t at = 0;
    return ((!link::between_devices[at++].is_memory || std::is_base_of_v<link::MemoryLink, Each>) &&
            ...);
  }
  template <typename Base, typename... Each>
  static std::array<Base*, link::count_between_devices> listed(Each&... each) {
    static_assert(sizeof...(Each) == link::count_between_devices);
    static_assert(have_memory_as_listed<Each...>());
    return {&each...};
  }
};

}  // namespace mpress::engine
