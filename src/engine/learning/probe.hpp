// What links and codecs are like, measured in MPI_Init, where no profile tells.
#pragma once

#include <array>

#include "engine/job/context.hpp"
#include "policy/profile.hpp"

namespace mpress::engine {

class Job;

/// What links are like, as all ranks know.
struct Probed {
  bool may_compress;                             ///< some rank may compress messages in host memory
  std::array<Gains, policy::codec_count> gains;  ///< by codec
};

/// Collective over MPI_COMM_WORLD, whose context `world` is; before its link carries anything.
/// Tells the policy what it measured: for some milliseconds all ranks exchange messages with one
/// rank of their host, and then with one of another, as a program's exchange would; and they encode
/// and decode a little. Returns the same on all ranks.
Probed probe_links(Job& job, const Context& world);

}  // namespace mpress::engine
