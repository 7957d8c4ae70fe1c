// Real ranks that use layers of the engine directly, without the preloaded library.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

#include "core/progress.hpp"
#include "engine/job/context.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/peek.hpp"
#include "unit/check.hpp"

namespace mpress::ranks {

struct Rank {
  engine::Progress progress;
  mpi::Peek peek;
  engine::Contexts contexts{progress, peek};
  int rank = 0;
  int size = 0;
  std::mt19937 random;

  /// Advances until `done()`; fails, and returns false, after a minute.
  template <typename Done>
  bool wait(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (engine::Backoff backoff(100); !done(); backoff.pause()) {
      progress.advance();
      if (std::chrono::steady_clock::now() > end) {
        CHECK(!"in time");
        return false;
      }
    }
    return true;
  }

  /// Lets the ranks be at different places.
  void dawdle();

  void barrier() { mpi::calls().Barrier(MPI_COMM_WORLD); }
};

using Test = void(Rank&);
Test agree, agree_at_once, gather, orders, freed, refused, threads, lost, hook, mismatch, bench,
    mpi_link, peer_link, host_link, mpi_link_lost, peer_link_lost, host_link_lost;

}  // namespace mpress::ranks
