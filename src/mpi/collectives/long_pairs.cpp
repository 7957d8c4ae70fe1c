#include "mpi/collectives/long_pairs.hpp"

#include <cstddef>
#include <limits>
#include <vector>

#include "coll/team.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

constexpr MPI_Count never = std::numeric_limits<MPI_Count>::max();

/// Items from which a block is long. Ranks may have other types, but as many bytes.
MPI_Count least_items(const Job& job, MPI_Datatype type) {
  const auto known = mpi::glance_at_type(type);
  if (!known || known->size == 0) return never;
  return static_cast<MPI_Count>((least_long(job.config) + known->size - 1) / known->size);
}

/// Where nobody tells what the other asks for, it may be any codec.
const Gains& gains_of_pairs(const Job& job, const Operands& operands) {
  return operands.asked ? job.collectives.most : job.collectives.usual;
}

/// Is compressing between the two worth a thought? Both know.
bool may_pay(const Gains& gains, const Team& team, int peer) {
  return team.share_host(team.rank(), peer) ? gains.within : gains.between;
}

/// The long blocks of an operand that `may_go(i)` lets travel, which is asked last. Arguments of
/// those that are not there are not looked at.
template <typename IsThere, typename MayGo>
std::vector<bool> long_blocks(const Job& job, const Blocks& blocks, IsThere is_there,
                              MayGo may_go) {
  std::vector<bool> found;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Count least = never;
  for (int i = 0; i < blocks.number(); ++i) {
    if (!is_there(i)) continue;
    const MPI_Count count = blocks.count(i);
    if (count <= 0) continue;
    if (blocks.type(i) != type) {
      type = blocks.type(i);
      least = least_items(job, type);
    }
    if (count < least || !may_go(i)) continue;
    if (found.empty()) found.resize(static_cast<std::size_t>(blocks.number()));
    found[static_cast<std::size_t>(i)] = true;
  }
  return found;
}

/// Of one block for each neighbour, or one for all. Where all have one count, MPI's call has to
/// leave all of them out or none, so where a neighbour's process runs does not matter.
std::vector<bool> long_edges(const Job& job, const Blocks& blocks, const std::vector<int>& peers) {
  const bool is_for_all = static_cast<std::size_t>(blocks.number()) != peers.size();
  const auto is_there = [&](int i) {
    return is_for_all || peers[static_cast<std::size_t>(i)] != mpi::Topology::none;
  };
  return long_blocks(job, blocks, is_there, [](int) { return true; });
}

}  // namespace

LongPairs find_long_pairs(const Job& job, const Team& team, const Operands& operands) {
  const Blocks& sent = operands.send.reads;
  const Blocks& received = operands.receive.writes;
  if (const mpi::Topology* const topology = operands.topology) {
    return {long_edges(job, sent, topology->destinations),
            long_edges(job, received, topology->sources)};
  }
  // One block for each rank, or one for the root.
  const Gains& gains = gains_of_pairs(job, operands);
  const auto of_ranks = [&](const Blocks& blocks) {
    const auto may_go = [&](int i) {
      const int peer = blocks.number() == team.size() ? i : operands.root;
      return peer != team.rank() && may_pay(gains, team, peer);
    };
    return long_blocks(job, blocks, [](int) { return true; }, may_go);
  };
  return {of_ranks(sent), of_ranks(received)};
}

}  // namespace mpress::engine
