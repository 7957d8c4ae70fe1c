// Links between real ranks: the same cases as tests/unit/links_test.cpp has between threads,
// and processes that end.

#include "links/conformance.hpp"
#include "mpi/mpi_channel.hpp"
#include "ranks.hpp"

namespace mpress::ranks {
namespace {

link::Channel& world_channel(Rank& rank) {
  static mpi::MpiChannel channel;
  const auto& world = *rank.teams.world();
  channel.open(engine::comm_of(world), world.tags());
  return channel;
}

void just_end(links::End&) {}

}  // namespace

void channel_link(Rank& rank) {
  links::ByChannel end(rank, world_channel(rank));
  links::conforms(end);
}

void peer_link(Rank& rank) {
  links::ByPeer end(rank);
  links::conforms(end);
}

void host_link(Rank& rank) {
  links::ByHost end(rank);
  links::conforms(end);
}

void channel_link_lost(Rank& rank) {
  links::ByChannel end(rank, world_channel(rank));
  links::loses(end,
               [](links::End& one) { CHECK(!static_cast<links::ByChannel&>(one).shut_down(0)); });
}

void peer_link_lost(Rank& rank) {
  links::ByPeer end(rank);
  links::loses(end, just_end);
}

void host_link_lost(Rank& rank) {
  links::ByHost end(rank);
  links::loses(end, just_end);
}

}  // namespace mpress::ranks
