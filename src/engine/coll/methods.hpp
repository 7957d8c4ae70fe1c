// Which algorithm moves the data of a call that mpress serves, chosen by policy/methods from
// numbers that all members share.
#pragma once

#include <array>
#include <cstddef>

#include "codec/spec.hpp"
#include "link/list.hpp"
#include "policy/methods.hpp"

namespace mpress::engine {

class Team;
class Job;

/// What links cost, as all ranks of MPI_COMM_WORLD agreed in MPI_Init: of each number the one of
/// the rank that has it worst. The same on all of them.
struct CollectiveCosts {
  policy::CollectiveCosts host;  ///< memory of the host
  /// Of devices: by the link at this position of the list within a host; the last: by MPI.
  std::array<policy::CollectiveCosts, link::count_between_devices + 1> devices;
};

/// Collective over MPI_COMM_WORLD, whose team `world` is; waits.
CollectiveCosts agree_on_costs(const Job& job, const Team& world);

/// What members know alike of a call, when its turn has come.
struct CallShape {
  std::size_t bytes;  ///< of a broadcast's data, or of a block of another call; 0: they do not know
  bool compresses;    ///< its messages are expected to be encoded
  bool on_devices;    ///< the communicator has buffers there
  Spec spec;          ///< what encodes them, as far as members know alike
};

/// The method is the same on all members. `seconds`: where to put what the links take by it, or
/// null.
schedule::Method method_of(const Job& job, schedule::Op op, const CallShape& shape,
                           const Team& team, double* seconds = nullptr);

}  // namespace mpress::engine
