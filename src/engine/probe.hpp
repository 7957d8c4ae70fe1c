// What links and codecs are like, measured in MPI_Init, where no profile tells.
#pragma once

namespace mpress::engine {

class Job;
class Context;

/// May any rank compress messages in host memory now, to ranks of its host, or of others?
struct Paying {
  bool within;
  bool between;
};

/// Collective over MPI_COMM_WORLD, whose context `world` is; before its link carries anything.
/// Tells the policy what it measured: for some milliseconds all ranks exchange messages with one
/// rank of their host, and then with one of another, as a program's exchange would; and they encode
/// and decode a little. Returns the same on all ranks.
Paying probe_links(Job& job, const Context& world);

}  // namespace mpress::engine
