// Real ranks that use layers of the engine directly, without the preloaded library.
#pragma once

#include <cstddef>
#include <span>

#include "core/progress.hpp"
#include "links/member.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/job/teams.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/peek.hpp"

namespace mpress::ranks {

struct Rank final : links::Member {
  engine::Progress progress;
  mpi::Peek peek;
  engine::Teams teams{progress, peek};

  void advance() override { progress.advance(); }
  void barrier() override { mpi::calls().Barrier(MPI_COMM_WORLD); }
  void send(std::span<const std::byte> data, int to) override {
    mpi::calls().Send(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD);
  }
  void receive(std::span<std::byte> data, int from) override {
    mpi::calls().Recv(data.data(), static_cast<int>(data.size()), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
  }
};

using Test = void(Rank&);
Test agree, agree_at_once, gather, orders, freed, refused, threads, lost, hook, mismatch, bench,
    channel_link, peer_link, host_link, channel_link_lost, peer_link_lost, host_link_lost;

}  // namespace mpress::ranks
