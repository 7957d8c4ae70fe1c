// Which protocol carries messages of which sizes, as this rank knows its links and data now: what
// `mpress info --protocols` prints.
#pragma once

#include <string>

namespace mpress::engine {

struct CommSettings;
struct Layout;
struct Messaging;

/// The table of this rank's messages of floats in MPI_COMM_WORLD to a rank of its host and to one
/// of another, from memory of the host and, where a GPU is in use, of that: members of a JSON
/// object, which docs/ways.md names. `floats`: items of one each; `world`: the settings of
/// MPI_COMM_WORLD.
std::string protocol_table(Messaging& messaging, const Layout& floats, const CommSettings& world);

}  // namespace mpress::engine
