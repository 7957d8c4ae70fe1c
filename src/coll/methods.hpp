// Which algorithm moves the data of a call that mpress serves, chosen by policy/methods from
// numbers that all members share.
#pragma once

#include <cstddef>

#include "codec/spec.hpp"
#include "policy/methods.hpp"

namespace mpress::engine {

class Team;
struct Messaging;

/// What members know alike of a call, when its turn has come.
struct CallShape {
  std::size_t bytes;  ///< of a broadcast's data, or of a block of another call; 0: they do not know
  bool compresses;    ///< its messages are expected to be encoded
  bool on_devices;    ///< the communicator has buffers there
  Spec spec;          ///< what encodes them, as far as members know alike
};

/// The method is the same on all members. `seconds`: where to put what the links take by it, or
/// null.
schedule::Method method_of(const Messaging& messaging, schedule::Op op, const CallShape& shape,
                           const Team& team, double* seconds = nullptr);

}  // namespace mpress::engine
