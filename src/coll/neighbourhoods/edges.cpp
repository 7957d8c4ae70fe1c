#include "coll/neighbourhoods/edges.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "codec/float_environment.hpp"
#include "schedule/builder.hpp"
#include "schedule/neighbourhoods/grid.hpp"

namespace mpress::engine {
namespace {

/// Places of one peer's blocks, in their order.
struct Edges {
  int peer;
  std::vector<int> places;
};

/// Of those of `places` that have data, by the peer and in the order of its first one.
std::vector<Edges> edges_of(std::span<const int> places, const std::vector<int>& peers, int rank,
                            const auto& has_data) {
  std::vector<Edges> found;
  std::unordered_map<int, std::size_t> known;
  for (const int place : places) {
    const int peer = peers[static_cast<std::size_t>(place)];
    if (peer == schedule::Topology::none || peer == rank || !has_data(place)) continue;
    const auto [at, is_new] = known.try_emplace(peer, found.size());
    if (is_new) found.push_back({peer, {}});
    found[at->second].places.push_back(place);
  }
  return found;
}

std::vector<BlockData> look_up(const BlockList& blocks, const auto& is_there) {
  std::vector<BlockData> found(static_cast<std::size_t>(blocks.count()));
  for (int i = 0; i < blocks.count(); ++i) {
    if (is_there(i)) found[static_cast<std::size_t>(i)] = blocks[i];
  }
  return found;
}

std::unique_ptr<Exchange> along_edges(const Collective& call, const Team& team,
                                      const schedule::Topology& topology, const BlockList& sent,
                                      const BlockList& received, const LongPairs* pairs) {
  const bool is_gather = call.has_many_readers;
  auto exchange = std::make_unique<Exchange>();
  exchange->pattern = is_gather ? Pattern::allgather : Pattern::alltoall;
  const auto is_missing = [](const std::vector<int>& peers, int i) {
    return peers[static_cast<std::size_t>(i)] == schedule::Topology::none;
  };
  exchange->sent = look_up(sent, [&](int i) {
    if (!is_gather && is_missing(topology.destinations, i)) return false;
    return !pairs || pairs->is_sent(i);
  });
  exchange->received = look_up(received, [&](int i) {
    return !is_missing(topology.sources, i) && (!pairs || pairs->is_received(i));
  });

  std::vector<int> outgoing(topology.destinations.size());
  for (std::size_t i = 0; i < outgoing.size(); ++i) outgoing[i] = static_cast<int>(i);
  const int rank = team.rank();
  const auto sends = edges_of(outgoing, topology.destinations, rank,
                              [&](int i) { return exchange->to(i).bytes > 0; });
  const auto receives = edges_of(topology.arrival, topology.sources, rank, [&](int i) {
    return exchange->received[static_cast<std::size_t>(i)].bytes > 0;
  });
  schedule::Builder builder(team.size(), rank);
  const auto places = exchange->places();
  const auto block = [&](int origin, int place) {
    return static_cast<schedule::Block>(origin) * places + static_cast<schedule::Block>(place);
  };
  for (const Edges& edges : sends) {
    if (is_gather) builder.block(rank);
    for (const int place : edges.places) {
      if (!is_gather) builder.block(block(rank, place));
    }
    builder.send(edges.peer, 0);
  }
  std::vector<int> sources(topology.sources.size(), schedule::Grid::none);
  for (const Edges& edges : receives) {
    if (is_gather) builder.block(edges.peer);
    for (const int place : edges.places) {
      if (!is_gather) builder.block(block(edges.peer, place));
      if (is_gather) sources[static_cast<std::size_t>(place)] = edges.peer;
    }
    builder.receive(edges.peer, 0);
  }
  schedule::Schedule schedule = builder.finish(1);
  auto passages = schedule::Passages::of_sources(schedule, sources);
  exchange->edges =
      std::make_shared<const Way>(Way{false, std::move(schedule), std::move(passages)});
  exchange->own_edges = &topology.own;
  return exchange;
}

}  // namespace

std::unique_ptr<Exchange> exchange_along_edges(const Collective& call, const Team& team,
                                               const schedule::Topology& topology,
                                               const BlockList& sent, const BlockList& received,
                                               const LongPairs* pairs) {
  return compute([&] { return along_edges(call, team, topology, sent, received, pairs); });
}

}  // namespace mpress::engine
